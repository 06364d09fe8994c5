r"""Fertility: tokens per word, split words, unknown ones, lengths, and the ceiling of one token per word.

A *unit* is a run of letters, digits and marks; or one Chinese or Japanese character, which no space parts from its
neighbours; or a run of other signs (`\w+|[^\w\s]+` in the notation of regular expressions).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from curate.stats.bootstrap import Figure, divided, measured
from curate.stats.tally import Floats, Ints

CHARACTERS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
"""Han and kana: each is a unit of its own."""
LENGTHS = (128, 256, 512)
"""Tokens, those that mark beginning and end included, over which texts are counted."""
COLUMNS = ("texts", "units", "tokens", "pieces", "split", "saved", "unknown", "over_own", *map(str, LENGTHS))
"""What is summed per text: `pieces` are the tokens of units, `saved` those beyond the first of each unit."""
SHARES = ("split", "unknown", "ceiling")
FREQUENT = 5
"""Texts that a term must occur in to be listed: a rarer one may tell of whom a text speaks."""


@dataclass(frozen=True)
class UnitSpans:
    """Where the units of a text lie."""

    starts: Ints
    ends: Ints
    characters: int
    """How many of them are Chinese or Japanese characters."""

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class Pieces:
    """What a tokenizer makes of a text."""

    tokens: int
    """Without those that mark beginning and end."""
    length: int
    """With them."""
    per_unit: Ints | None
    """Tokens that touch each unit; None of a tokenizer that counts and does not show where it cuts."""
    unknown: Ints | None = None
    """Tokens of each unit that stand for what the vocabulary lacks."""


@dataclass
class Terms:
    """Split units by their text in lower case, of one tokenizer."""

    times: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    saved: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, spans: UnitSpans, per_unit: Ints) -> None:
        """Count the split units of one text."""
        here = set()
        for at in np.flatnonzero(per_unit > 1):
            term = text[spans.starts[at] : spans.ends[at]].lower()
            self.times[term] += 1
            self.saved[term] += int(per_unit[at]) - 1
            here.add(term)
        self.texts.update(here)

    def worst(self, count: int) -> list[tuple[str, int, int, int]]:
        """Return (term, times, texts, tokens beyond the first) of the costliest that are in `FREQUENT` texts."""
        rows = [(term, self.times[term], self.texts[term], saved) for term, saved in self.saved.items()]
        known = [row for row in rows if row[2] >= FREQUENT and any(map(str.isalnum, row[0]))]
        return sorted(known, key=lambda row: (-row[3], row[0]))[:count]


def spans(text: str) -> UnitSpans:
    """Return the units of a text."""
    found = [match.span() for match in _unit().finditer(text)]
    ends = np.array(found, dtype=np.int64).reshape(-1, 2)
    return UnitSpans(ends[:, 0], ends[:, 1], len(_characters().findall(text)))


def per_unit(units: UnitSpans, starts: Ints, ends: Ints) -> Ints:
    """Return how many tokens touch each unit, of tokens in their order in the text."""
    before = np.searchsorted(starts, units.ends, side="left")
    return np.asarray(before - np.searchsorted(ends, units.starts, side="right"), dtype=np.int64)


def row(units: UnitSpans, pieces: Pieces, own: int | None) -> list[float]:
    """Return the sums of one text, in the order of `COLUMNS`; NaN where the tokenizer cannot tell."""
    counts, unknown, nan = pieces.per_unit, pieces.unknown, float("nan")
    beyond = [nan] * 3 if counts is None else [counts.sum(), (counts > 1).sum(), np.maximum(counts - 1, 0).sum()]
    return [
        1,
        len(units),
        pieces.tokens,
        *map(float, beyond),
        nan if unknown is None else float((unknown > 0).sum()),
        nan if own is None else float(pieces.length > own),
        *(float(pieces.length > length) for length in LENGTHS),
    ]


def figures(sums: Sequence[Floats], seed: int) -> list[dict[str, Figure]]:
    """Return the figures of each tokenizer on the same texts, with 95 % intervals that resample texts.

    `sums` holds a table per tokenizer: a row per text, the columns `COLUMNS`. `relative` is its tokens over those of
    the first tokenizer. The same resamples serve all, so that one can be compared with another.
    """
    found = measured(np.hstack(sums), lambda all_sums: _ratios(all_sums, len(sums)), seed)
    names = ["fertility", *SHARES, "over_own", *(f"over_{length}" for length in LENGTHS), "relative"]
    return [dict(zip(names, found[at : at + len(names)], strict=True)) for at in range(0, len(found), len(names))]


def _ratios(sums: Floats, tables: int) -> Floats:
    parts = np.split(sums, tables, axis=-1)
    first = _named(parts[0])["tokens"]
    return np.stack([ratio for part in parts for ratio in _of_one(_named(part), first)], axis=-1)


def _named(part: Floats) -> Mapping[str, Floats]:
    return {name: part[..., at] for at, name in enumerate(COLUMNS)}


def _of_one(part: Mapping[str, Floats], first: Floats) -> Iterator[Floats]:
    yield divided(part["tokens"], part["units"])
    yield divided(part["split"], part["units"])
    yield divided(part["unknown"], part["units"])
    yield divided(part["saved"], part["pieces"])
    for name in ("over_own", *map(str, LENGTHS)):
        yield divided(part[name], part["texts"])
    yield divided(part["tokens"], first)


@cache
def _unit() -> re.Pattern[str]:
    word = rf"[^\W{CHARACTERS}]|[{_marks()}]"
    return re.compile(rf"[{CHARACTERS}]|(?:{word})+|[^\w\s{_marks()}]+")


@cache
def _characters() -> re.Pattern[str]:
    return re.compile(rf"[{CHARACTERS}]")


@cache
def _marks() -> str:
    """Return all combining marks, which belong to the word that they stand in: `re` has no class for them."""
    codes = {code for code in range(0x110000) if unicodedata.category(chr(code)).startswith("M")}
    first = sorted(code for code in codes if code - 1 not in codes)
    last = sorted(code for code in codes if code + 1 not in codes)
    return "".join(f"{chr(one)}-{chr(other)}" for one, other in zip(first, last, strict=True))
