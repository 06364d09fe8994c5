"""Mask many texts: scans find the few that can hold anything, and Python looks only at those."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.pii import Recogniser
from curate.pii.masking import Masked, Masker
from curate.records import Span


def suspects(recognisers: Sequence[Recogniser], texts: pl.Series) -> dict[int, list[Recogniser]]:
    """Return row -> the recognisers that may find something there, for rows where any may.

    Every pattern of a trigger is one scan of the column by an automaton, for all recognisers that share it.
    """
    nothing, everywhere = np.zeros(len(texts), bool), np.ones(len(texts), bool)
    scans: dict[str, npt.NDArray[np.bool_]] = {}
    found: dict[int, list[Recogniser]] = {}
    for recogniser in recognisers:
        patterns = getattr(recogniser, "triggers", None)
        hits = everywhere if patterns is None else nothing
        for pattern in patterns or ():
            if pattern not in scans:
                scans[pattern] = texts.str.contains(pattern).to_numpy()
            hits = hits | scans[pattern]
        for row in np.flatnonzero(hits).tolist():
            found.setdefault(row, []).append(recogniser)
    return found


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
