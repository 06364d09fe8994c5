"""Mask many texts: scans find the few that can hold anything, and Python looks only at those."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.records import Span
from curate.pii import Recogniser
from curate.pii.masking import Masked, Masker


def suspects(recognisers: Sequence[Recogniser], texts: pl.Series) -> dict[int, list[Recogniser]]:
    """Return row -> the recognisers that may find something there, for rows where any may.

    Every pattern of a trigger is one scan by an automaton, for all recognisers that share it, of the rows that have
    what it needs.
    """
    scans: dict[tuple[str, ...], _Rows] = {(): _Rows(np.arange(len(texts)), texts)}
    found: dict[int, list[Recogniser]] = {}
    for recogniser in recognisers:
        chains = getattr(recogniser, "triggers", ((),))
        rows = np.unique(np.concatenate([_scan(chain, scans).numbers for chain in chains]))
        for row in rows.tolist():
            found.setdefault(row, []).append(recogniser)
    return found


class _Rows(NamedTuple):
    """Some rows of a column, by number and with their texts."""

    numbers: npt.NDArray[np.int64]
    texts: pl.Series


def _scan(chain: tuple[str, ...], scans: dict[tuple[str, ...], _Rows]) -> _Rows:
    """Return the rows in which every pattern of a chain occurs; what was scanned before is looked up."""
    if chain not in scans:
        rows = _scan(chain[:-1], scans)
        hits = rows.texts.str.contains(chain[-1])
        scans[chain] = _Rows(rows.numbers[hits.to_numpy()], rows.texts.filter(hits))
    return scans[chain]


def mask_all(masker: Masker, texts: Sequence[str], known: Mapping[int, Sequence[Span]] | None = None) -> list[Masked]:
    """Return every text masked, in order; the same as `masker.mask` of each, with the spans that are known by row."""
    known = known or {}
    try:
        found = suspects(masker.recognisers, pl.Series(texts, dtype=pl.String))
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8, so all of them are looked at one by one
        found = {row: list(masker.recognisers) for row in range(len(texts))}
    return [
        masker.mask(text, known.get(row, ()), found.get(row, ())) if row in found or row in known else Masked(text)
        for row, text in enumerate(texts)
    ]
