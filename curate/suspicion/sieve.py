"""Flags of many texts: scans in Rust find the few that can have any, and Python looks only at those.

A text is looked at if it holds a word of each group that a form of order needs, a word of a mark, the mark of a
disguise or a character that shows nothing.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from curate.suspicion import flags, marks
from curate.suspicion.disguise import scans
from curate.suspicion.weighing import Orders, orders

_BEGIN = 14
"""Letters of a word that are looked for: the beginnings are fewer, and a text with the word has them."""
_WORDS = pl.concat_str(pl.lit(" "), pl.col("small").str.replace_all(r"[\W_]+", " "), pl.lit(" "))
_MANY = 5000
"""From so many words on it takes longer to make a table of them than to look at the texts that they would leave out."""
_CHUNK = 8192
"""Texts that are scanned at once; tables are made for each chunk."""


@dataclass(frozen=True)
class _Group:
    """Words of which a text must hold one."""

    words: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    """What is looked for besides, with regard to capitals."""
    exact: bool = False
    """Signs count, too."""


@dataclass(frozen=True)
class _Sieve:
    chains: tuple[tuple[_Group, ...], ...]
    anywhere: tuple[str, ...]
    """Found in a text as it stands, so that it must be looked at; one after the other is faster than all in one."""
    simpler: tuple[list[str], list[str]]


def flags_all(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the flags of every text, in order; the same as `flags` of each."""
    found: list[tuple[str, ...]] = []
    for first in range(0, len(texts), _CHUNK):
        piece = texts[first : first + _CHUNK]
        found += [flags(text) if suspect else () for text, suspect in zip(piece, suspects(piece), strict=True)]
    return found


def suspects(texts: Sequence[str]) -> list[bool]:
    """Say of every text whether it may have a flag."""
    try:
        raw = pl.Series("raw", texts, dtype=pl.String)
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8
        return [True] * len(texts)
    sieve = _sieve()
    rows = pl.DataFrame({"row": range(len(texts)), "text": _plain(raw, sieve.simpler)})
    rows = rows.with_columns(small=pl.col("text").str.to_lowercase()).with_columns(words=_WORDS)
    marked = [pl.col("raw").str.contains(pattern) for pattern in sieve.anywhere]
    kept = raw.to_frame().select(pl.any_horizontal(marked)).to_series().to_list()
    for chain in sieve.chains:
        left = rows
        for group in chain:
            column = pl.col("small" if group.exact else "words")
            holds = column.str.contains_any(list(group.words)) if group.words else pl.lit(value=False)
            for pattern in group.patterns:
                holds |= pl.col("text").str.contains(pattern)
            left = left.filter(holds)
        for row in left["row"]:
            kept[row] = True
    return kept


def _plain(texts: pl.Series, simpler: tuple[list[str], list[str]]) -> pl.Series:
    """Return texts without accents and vowel points, in compatible and simplified letters; more than words need."""
    bare = texts.str.normalize("NFKD").str.replace_all(r"[\p{Mn}\u0640]+", "").str.normalize("NFC")
    return pl.select(pl.lit(bare).str.replace_many(*simpler)).to_series()


@cache
def _sieve() -> _Sieve:
    known = orders()
    plainer = {chr(code): letter for code, letter in known.plainer.items() if letter and _whole(chr(code))}
    simpler = ([*plainer], [*plainer.values()])
    chains = []
    for form in known.file.forms.values():
        first, *others = (_group(known, need, simpler) for need in form.needs)
        chains.append((first, *(each for each in others if len(each.words) < _MANY)))
    needs = _Group(tuple({word for word, _, _ in marks().words}), exact=True)
    return _Sieve((*chains, (needs,)), (marks().unseen.pattern, *scans()), simpler)


def _group(known: Orders, concepts: Sequence[str], simpler: tuple[list[str], list[str]]) -> _Group:
    """Return what is looked for of some concepts: words as they begin and end where their language parts words."""
    words = {
        _fenced(word, parted=known.parted(name))
        for name, said in known.raw.items()
        for concept in concepts
        for word in said.get(concept, ())
    }
    folded = _plain(pl.Series("small", [*words], dtype=pl.String), simpler).str.to_lowercase().to_frame()
    distinct = folded.select(pl.col("small").str.replace_all(r"[\W_]+", " ")).to_series().unique()
    patterns = tuple(f"(?m){each}" for concept in concepts for each in known.file.verdicts.get(concept, ()))
    return _Group(tuple({word[:_BEGIN] for word in distinct}), patterns)


def _fenced(word: str, *, parted: bool) -> str:
    return word.rstrip("*") if not parted else f" {word[:-1]}" if word.endswith("*") else f" {word} "


def _whole(letter: str) -> bool:
    """Say whether a letter stays what it is when accents are taken off."""
    return unicodedata.normalize("NFKD", letter) == letter
