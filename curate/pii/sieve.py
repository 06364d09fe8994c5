"""Mask many texts: one scan finds the few that can hold anything, and only those are looked at by Python."""

from collections.abc import Mapping, Sequence

import polars as pl

from curate.pii import Recogniser
from curate.pii.masking import Masked, Masker
from curate.records import Span


def suspects(recognisers: Sequence[Recogniser], texts: pl.Series) -> pl.Series:
    """Return for each text whether the trigger of any recogniser occurs in it: one automaton for all."""
    triggers = [getattr(recogniser, "trigger", None) for recogniser in recognisers]
    if None in triggers:
        return pl.repeat(value=True, n=len(texts), eager=True)
    return texts.str.contains("|".join(f"(?:{trigger})" for trigger in triggers) or r"[^\s\S]")


def mask_all(masker: Masker, texts: Sequence[str], known: Mapping[int, Sequence[Span]] | None = None) -> list[Masked]:
    """Return every text masked, in order; the same as `masker.mask` of each, with the spans that are known by row."""
    known = known or {}
    try:
        found = suspects(masker.recognisers, pl.Series(texts, dtype=pl.String))
    except UnicodeEncodeError:  # half a surrogate pair: no text in UTF-8, so all of them are looked at one by one
        found = pl.repeat(value=True, n=len(texts), eager=True)
    return [
        masker.mask(text, known.get(row, ())) if hit or row in known else Masked(text)
        for row, (text, hit) in enumerate(zip(texts, found, strict=True))
    ]
