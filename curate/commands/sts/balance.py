"""Balance of a set of sentence pairs: labels, lengths, and how far shallow features predict the label."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import polars as pl

from curate.commands.sts.llm_rewriting import KINDS
from curate.core.config import Json

SHORTCUTS = ("synonym_present", "character_overlap", "length_difference")


def figures(pairs: pl.DataFrame) -> dict[str, Json]:
    """Return the figures of a table `pairs`: counts by kind, share of label 1, lengths by kind, and shortcuts.

    Lengths are in code points, `ratio` is the second sentence's over the query's. A shortcut is Pearson's correlation
    of the label with a sign that needs no understanding: whether the synonym stands in the second sentence, Jaccard's
    overlap of the two sets of characters, and how far the lengths differ. A figure is None where it is not defined.
    """
    kinds = Counter(pairs["kind"])
    words = {frozenset(pair) for pair in pairs.select("term", "synonym").iter_rows()}
    return {
        "pairs": len(pairs),
        "kinds": {kind: kinds[kind] for kind in KINDS},
        "positive_share": _rounded(fmean(pairs["label"])) if len(pairs) else None,
        "pairs_of_words": len(words),
        "lengths": {kind: _lengths(pairs.filter(pl.col("kind") == kind)) for kind in KINDS},
        "shortcuts": {name: _rounded(found) for name, found in _shortcuts(pairs).items()},
    }


def overlap(one: str, other: str) -> float | None:
    """Return Jaccard's overlap of the characters of two texts, 0 to 1, blanks and case ignored; None if both are empty.

    Jaccard 1901: |A and B| / |A or B|.
    """
    first, second = (set("".join(text.lower().split())) for text in (one, other))
    return len(first & second) / len(first | second) if first | second else None


def pearson(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, -1 to 1; None where one of the two does not vary."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _shortcuts(pairs: pl.DataFrame) -> dict[str, float | None]:
    rows = list(pairs.select("sentence1", "sentence2").iter_rows())
    signs = (
        [float(_holds(*each)) for each in pairs.select("sentence2", "term", "synonym").iter_rows()],
        [overlap(first, second) or 0.0 for first, second in rows],
        [abs(len(second) / len(first) - 1) for first, second in rows],
    )
    labels = pairs["label"].to_list()
    return {name: pearson(labels, sign) for name, sign in zip(SHORTCUTS, signs, strict=True)}


def _holds(text: str, term: str, synonym: str) -> bool:
    """Say whether the synonym stands in a text, and not only as a part of a longer term."""
    text, term, synonym = text.lower(), term.lower(), synonym.lower()
    return synonym in (text.replace(term, "") if synonym in term else text)


def _lengths(pairs: pl.DataFrame) -> dict[str, Json]:
    asked, written = (pairs[name].str.len_chars().to_list() for name in ("sentence1", "sentence2"))
    ratios = [second / first for first, second in zip(asked, written, strict=True)]
    found = {
        "query_mean": fmean(asked) if asked else None,
        "sentence_mean": fmean(written) if written else None,
        "ratio_mean": fmean(ratios) if ratios else None,
        "ratio_low": min(ratios, default=None),
        "ratio_high": max(ratios, default=None),
    }
    return {name: _rounded(value) for name, value in found.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
