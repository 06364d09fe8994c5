"""Prompt-injection flags of many texts: scans in Rust (polars) select the suspects, and Python checks only those.

A text is selected if it contains a word from every group that some form of injected order needs, a word that a pattern
of `marks` needs, a sign of disguised text, or an invisible character.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from curate.llm.prompt_injection import flags, marks
from curate.llm.prompt_injection.disguise import scans
from curate.llm.prompt_injection.weighing import Orders, orders

_BEGIN = 14
"""First letters of a word that are searched: there are fewer such prefixes, and a text with the word contains one."""
_WORDS = pl.concat_str(pl.lit(" "), pl.col("small").str.replace_all(r"[\W_]+", " "), pl.lit(" "))
_MANY = 5000
"""With more words, building their search table takes longer than reading the texts that it would exclude."""
_CHUNK = 8192
"""Texts that are scanned at once; search tables are built for each chunk."""


@dataclass(frozen=True)
class _Group:
    """Words and patterns; a text must contain at least one of them."""

    words: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    """Regular expressions, case-sensitive."""
    exact: bool = False
    """Whether punctuation counts; else it is replaced by spaces."""


@dataclass(frozen=True)
class _Sieve:
    chains: tuple[tuple[_Group, ...], ...]
    anywhere: tuple[str, ...]
    """Patterns that select a text by themselves, on the raw text; one by one is faster than joined in one."""
    simpler: tuple[list[str], list[str]]


def flags_all(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the flags of every text, in order; the same as `flags` of each."""
    all_flags: list[tuple[str, ...]] = []
    for first in range(0, len(texts), _CHUNK):
        chunk = texts[first : first + _CHUNK]
        all_flags += [
            flags(text) if may_have_flag else () for text, may_have_flag in zip(chunk, suspects(chunk), strict=True)
        ]
    return all_flags


def suspects(texts: Sequence[str]) -> list[bool]:
    """Return, for every text, whether it may have a flag."""
    try:
        raw = pl.Series("raw", texts, dtype=pl.String)
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8
        return [True] * len(texts)
    sieve = _sieve()
    rows = pl.DataFrame({"row": range(len(texts)), "text": _plain(raw, sieve.simpler)})
    rows = rows.with_columns(small=pl.col("text").str.to_lowercase()).with_columns(words=_WORDS)
    marked = [pl.col("raw").str.contains(pattern) for pattern in sieve.anywhere]
    selected = raw.to_frame().select(pl.any_horizontal(marked)).to_series().to_list()
    for chain in sieve.chains:
        candidates = rows
        for group in chain:
            column = pl.col("small" if group.exact else "words")
            holds = column.str.contains_any(list(group.words)) if group.words else pl.lit(value=False)
            for pattern in group.patterns:
                holds |= pl.col("text").str.contains(pattern)
            candidates = candidates.filter(holds)
        for row in candidates["row"]:
            selected[row] = True
    return selected


def _plain(texts: pl.Series, simpler: tuple[list[str], list[str]]) -> pl.Series:
    """Return texts in compatible letters (NFKD), without accents and vowel points, replaced by `simpler`."""
    bare = texts.str.normalize("NFKD").str.replace_all(r"[\p{Mn}\u0640]+", "").str.normalize("NFC")
    return pl.select(pl.lit(bare).str.replace_many(*simpler)).to_series()


@cache
def _sieve() -> _Sieve:
    order_forms = orders()
    # letters that NFKD changes are not in the texts of `_plain`
    plainer = {
        chr(code): letter
        for code, letter in order_forms.plainer.items()
        if letter and unicodedata.normalize("NFKD", chr(code)) == chr(code)
    }
    simpler = ([*plainer], [*plainer.values()])
    chains = []
    for form in order_forms.file.forms.values():
        first, *others = (_group(order_forms, need, simpler) for need in form.needs)
        chains.append((first, *(group for group in others if len(group.words) < _MANY)))
    needs = _Group(tuple({word for word, _, _ in marks().words}), exact=True)
    return _Sieve((*chains, (needs,)), (marks().unseen.pattern, *scans()), simpler)


def _group(order_forms: Orders, concepts: Sequence[str], simpler: tuple[list[str], list[str]]) -> _Group:
    """Return the words and patterns of some concepts; words of languages with spaces are bounded by spaces."""
    words = {
        _fenced(word, parted=order_forms.parted(name))
        for name, words_of in order_forms.raw.items()
        for concept in concepts
        for word in words_of.get(concept, ())
    }
    folded = _plain(pl.Series("small", [*words], dtype=pl.String), simpler).str.to_lowercase().to_frame()
    distinct = folded.select(pl.col("small").str.replace_all(r"[\W_]+", " ")).to_series().unique()
    patterns = tuple(f"(?m){pattern}" for concept in concepts for pattern in order_forms.file.verdicts.get(concept, ()))
    return _Group(tuple({word[:_BEGIN] for word in distinct}), patterns)


def _fenced(word: str, *, parted: bool) -> str:
    return word.rstrip("*") if not parted else f" {word[:-1]}" if word.endswith("*") else f" {word} "
