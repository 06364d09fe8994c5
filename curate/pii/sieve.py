"""Masking of many texts: cheap scans select the few that may contain personal data; recognisers run only on these."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.records import Span
from curate.pii import Recogniser
from curate.pii.masking import Masked, Masker, Work, found
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS

_KEPT = 32
"""Maximum number of patterns per thread: polars caches that many compiled ones, and compiling ours takes 60 ms."""
_UNION = 4
"""Number of patterns that one automaton, their union, scans as fast as a single one."""
_FEW = 1_000
"""Number of characters below which running all recognisers is faster than starting the scans."""


_HALF = re.compile("[\ud800-\udfff]")


class _Rows(NamedTuple):
    """Selected rows of a column: row numbers and texts."""

    numbers: npt.NDArray[np.int64]
    texts: pl.Series


_Chain = tuple[str, ...]
_Chained = tuple[Recogniser, Sequence[_Chain]]
_Scans = dict[_Chain, _Rows]
"""Scan results: chain of patterns -> rows in which all of them match."""


def suspects(recognisers: Sequence[Recogniser], texts: pl.Series) -> dict[int, list[Recogniser]]:
    """Return row -> recognisers that may find something in it; rows without any are omitted.

    A trigger is a chain of patterns: each is searched only in rows that match the previous ones. Recognisers whose
    chains begin alike share these scans.
    """
    scans: _Scans = {(): _Rows(np.arange(len(texts)), texts)}
    likely: dict[int, list[Recogniser]] = {}
    for number, group in enumerate(_groups(recognisers)):
        for recogniser, rows in _thread(number).submit(_rows_by_recogniser, group, scans).result():
            for row in rows:
                likely.setdefault(row, []).append(recogniser)
    return likely


def _groups(recognisers: Sequence[Recogniser]) -> list[list[_Chained]]:
    """Return recognisers with their chains, in order, grouped so that a group has at most `_KEPT` patterns."""
    triggers = [getattr(recogniser, "triggers", ((),)) for recogniser in recognisers]
    together = _with_unions(dict.fromkeys(chain for chains in triggers for chain in chains))
    groups, patterns = list[list[_Chained]](), set[str]()
    for recogniser, chains in zip(recognisers, triggers, strict=True):
        chains_joined = [together.get(chain, chain) for chain in chains]
        needed = {pattern for chain in chains_joined for pattern in chain}
        if not groups or len(patterns | needed) > _KEPT:
            groups.append([])
            patterns = set()
        groups[-1].append((recogniser, chains_joined))
        patterns |= needed
    return groups


def _with_unions(chains: Iterable[_Chain]) -> dict[_Chain, _Chain]:
    """Return chain -> chain with an additional first scan for the union of several patterns."""
    ends: dict[_Chain, list[str]] = {(TWO_SIGNS,): [], (THREE_DIGITS,): []}
    for chain in chains:
        if chain[:-1] in ends:
            ends[chain[:-1]].append(chain[-1])
    return {
        (*prefix, pattern): (*prefix, "|".join(union), pattern)
        for prefix, patterns in ends.items()
        for start in range(0, len(patterns), _UNION)
        for union in [patterns[start : start + _UNION]]
        for pattern in union
    }


@cache
def _thread(_group: int) -> ThreadPoolExecutor:
    """Return the thread of a group, the same for every batch, because polars caches compiled patterns per thread."""
    return ThreadPoolExecutor(1)


os.register_at_fork(after_in_child=_thread.cache_clear)  # a fork has no threads


def _rows_by_recogniser(group: Sequence[_Chained], scans: _Scans) -> list[tuple[Recogniser, list[int]]]:
    return [
        (recogniser, np.unique(np.concatenate([_scan(chain, scans).numbers for chain in chains])).tolist())
        for recogniser, chains in group
    ]


def _scan(chain: _Chain, scans: _Scans) -> _Rows:
    """Return the rows in which every pattern of a chain matches; results are cached in `scans`."""
    if chain not in scans:
        rows = _scan(chain[:-1], scans)
        if not len(rows.numbers):
            return rows  # a pattern takes up to milliseconds to compile
        hits = rows.texts.str.contains(chain[-1])
        scans[chain] = _Rows(rows.numbers[hits.to_numpy()], rows.texts.filter(hits))
    return scans[chain]


def mask_all(masker: Masker, texts: Sequence[str], known: Mapping[int, Sequence[Span]] | None = None) -> list[Masked]:
    """Return every text masked, in order, as `masker.mask` does; `known` (row -> spans) are spans found by other means.

    Masked texts are scanned again in rounds, all texts of a round together.
    """
    known, works = known or {}, dict[int, Work]()
    masked, seen = [Masked(text) for text in texts], dict(enumerate(texts))
    while seen:
        likely, next_round = _likely(masker.recognisers, seen), dict[int, str]()
        for row in list(seen) if works else sorted(likely.keys() | known.keys()):
            text, spans = seen[row], found(likely.get(row, ()), seen[row])
            if row not in works:
                if not spans and row not in known:
                    continue
                works[row] = masker.work(text, known.get(row, ()))
                next(works[row])
            try:
                next_round[row] = works[row].send(spans)
            except StopIteration as done:
                masked[row] = done.value
        seen = next_round
    return masked


def _likely(recognisers: Sequence[Recogniser], seen: Mapping[int, str]) -> Mapping[int, Sequence[Recogniser]]:
    """Return row -> recognisers that may find something; all recognisers for a few short texts."""
    if sum(map(len, seen.values())) <= _FEW:
        return dict.fromkeys(seen, recognisers)
    try:
        rows, texts = list(seen), pl.Series(list(seen.values()), dtype=pl.String)
    except UnicodeEncodeError:  # a lone surrogate cannot be encoded in UTF-8
        halves = [row for row, text in seen.items() if _HALF.search(text)]
        valid = {row: seen[row] for row in seen.keys() - set(halves)}
        return {**_likely(recognisers, valid), **dict.fromkeys(halves, recognisers)}
    return {rows[index]: suspect for index, suspect in suspects(recognisers, texts).items()}
