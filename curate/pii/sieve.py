"""Mask many texts: scans find the few that can hold anything, and Python looks only at those."""

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
from curate.pii.digits import THREE_DIGITS, TWO_SIGNS
from curate.pii.masking import Masked, Masker, Work, found

_KEPT = 32
"""So many patterns polars keeps compiled, in each thread; to compile ours takes 60 ms."""
_UNION = 4
"""So many patterns of letters and digits together are one automaton that is as fast as that of each."""
_FEW = 1_000
"""Characters at which all recognisers look in the time in which the scans begin."""


_HALF = re.compile("[\ud800-\udfff]")


class _Rows(NamedTuple):
    """Some rows of a column, by number and with their texts."""

    numbers: npt.NDArray[np.int64]
    texts: pl.Series


_Chain = tuple[str, ...]
_Asked = tuple[Recogniser, Sequence[_Chain]]
_Scans = dict[_Chain, _Rows]
"""What was scanned: the patterns of a chain -> the rows in which all of them occur."""


def suspects(recognisers: Sequence[Recogniser], texts: pl.Series) -> dict[int, list[Recogniser]]:
    """Return row -> the recognisers that may find something there, for rows where any may.

    Every pattern of a trigger is one scan by an automaton, for all recognisers that share it, of the rows that have
    what it needs.
    """
    scans: _Scans = {(): _Rows(np.arange(len(texts)), texts)}
    likely: dict[int, list[Recogniser]] = {}
    for lane, asked in enumerate(_lanes(recognisers)):
        for recogniser, rows in _thread(lane).submit(_asked, asked, scans).result():
            for row in rows:
                likely.setdefault(row, []).append(recogniser)
    return likely


def _lanes(recognisers: Sequence[Recogniser]) -> list[list[_Asked]]:
    """Return recognisers with their chains, in order, in groups with no more patterns than a thread keeps."""
    triggers = [getattr(recogniser, "triggers", ((),)) for recogniser in recognisers]
    together = _together(dict.fromkeys(chain for chains in triggers for chain in chains))
    lanes, patterns = list[list[_Asked]](), set[str]()
    for recogniser, chains in zip(recognisers, triggers, strict=True):
        asked = [together.get(chain, chain) for chain in chains]
        own = {pattern for chain in asked for pattern in chain}
        if not lanes or len(patterns | own) > _KEPT:
            lanes.append([])
            patterns = set()
        lanes[-1].append((recogniser, asked))
        patterns |= own
    return lanes


def _together(chains: Iterable[_Chain]) -> dict[_Chain, _Chain]:
    """Return chains that end in one of several patterns as those that ask for all of these first, in one scan."""
    ends: dict[_Chain, list[str]] = {(TWO_SIGNS,): [], (THREE_DIGITS,): []}
    for chain in chains:
        if chain[:-1] in ends:
            ends[chain[:-1]].append(chain[-1])
    return {
        (*before, pattern): (*before, "|".join(some), pattern)
        for before, patterns in ends.items()
        for start in range(0, len(patterns), _UNION)
        for some in [patterns[start : start + _UNION]]
        for pattern in some
    }


@cache
def _thread(_lane: int) -> ThreadPoolExecutor:
    """Return the thread of a lane, the same for every batch."""
    return ThreadPoolExecutor(1)


os.register_at_fork(after_in_child=_thread.cache_clear)  # a fork has no threads


def _asked(asked: Sequence[_Asked], scans: _Scans) -> list[tuple[Recogniser, list[int]]]:
    """Return each recogniser with the rows in which it may find something."""
    return [
        (recogniser, np.unique(np.concatenate([_scan(chain, scans).numbers for chain in chains])).tolist())
        for recogniser, chains in asked
    ]


def _scan(chain: _Chain, scans: _Scans) -> _Rows:
    """Return the rows in which every pattern of a chain occurs; what was scanned before is looked up."""
    if chain not in scans:
        rows = _scan(chain[:-1], scans)
        if not len(rows.numbers):
            return rows  # a pattern takes up to milliseconds to compile
        hits = rows.texts.str.contains(chain[-1])
        scans[chain] = _Rows(rows.numbers[hits.to_numpy()], rows.texts.filter(hits))
    return scans[chain]


def mask_all(masker: Masker, texts: Sequence[str], known: Mapping[int, Sequence[Span]] | None = None) -> list[Masked]:
    """Return every text masked, in order; the same as `masker.mask` of each, with the spans that are known by row.

    What was written is looked at in rounds, all texts of a round together.
    """
    known, works = known or {}, dict[int, Work]()
    masked, seen = [Masked(text) for text in texts], dict(enumerate(texts))
    while seen:
        likely, again = _likely(masker.recognisers, seen), dict[int, str]()
        for row in list(seen) if works else sorted(likely.keys() | known.keys()):
            text, spans = seen[row], found(likely.get(row, ()), seen[row])
            if row not in works:
                if not spans and row not in known:
                    continue
                works[row] = masker.work(text, known.get(row, ()))
                next(works[row])
            try:
                again[row] = works[row].send(spans)
            except StopIteration as done:
                masked[row] = done.value
        seen = again
    return masked


def _likely(recognisers: Sequence[Recogniser], seen: Mapping[int, str]) -> Mapping[int, Sequence[Recogniser]]:
    """Return the recognisers that may find something, by row; all of them for a few short texts."""
    if sum(map(len, seen.values())) <= _FEW:
        return dict.fromkeys(seen, recognisers)
    try:
        rows, texts = list(seen), pl.Series(list(seen.values()), dtype=pl.String)
    except UnicodeEncodeError:  # half a surrogate pair is no text in UTF-8
        halves = [row for row, text in seen.items() if _HALF.search(text)]
        rest = {row: seen[row] for row in seen.keys() - set(halves)}
        return {**_likely(recognisers, rest), **dict.fromkeys(halves, recognisers)}
    return {rows[place]: suspect for place, suspect in suspects(recognisers, texts).items()}
