"""A panel's agreement on some pairs: all of them, the top of the pool, a reranker's candidates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import polars as pl

from curate import agreement, intervals, voting
from curate.config import Json
from curate.records import GRADES
from curate.tally import Codes, Floats, Sums, tally

STATISTICS: Mapping[str, Callable[[Sums], Floats]] = {
    "percent": agreement.percent,
    "fleiss": agreement.fleiss,
    "alpha_nominal": agreement.alpha,
    "alpha_ordinal": partial(agreement.alpha, level="ordinal"),
    "ac1": agreement.ac,
}


def measure(ratings: pl.DataFrame, panel: Sequence[str], seed: int) -> dict[str, Json]:
    """Return the panel's agreement on the five grades and on the cut between A and B, as plain mappings.

    Beside the fields of `Agreement` each has `clusters`, the number of queries, and `intervals`: [low, high] by the
    name of a figure, from 1,000 samples of the queries; None for fewer than two queries.
    """
    grades = voting.codes(ratings, panel)
    queries = voting.votes(ratings, panel)["query_id"]
    return {
        "five_grades": _figures(grades, len(GRADES), queries, seed),
        "cut": _figures(voting.sides(grades), 2, queries, seed),
    }


def _figures(codes: Codes, categories: int, queries: pl.Series, seed: int) -> dict[str, Json]:
    """Return agreement with its intervals, rounded so that a last bit cannot make two runs differ."""
    ratings = tally(codes, categories)
    by_query = ratings.by_cluster(queries.to_numpy())
    found = {name: intervals.interval(by_query, figure, seed=seed) for name, figure in STATISTICS.items()}
    return {
        **{name: _rounded(value) for name, value in asdict(agreement.summary(ratings)).items()},
        "clusters": len(by_query),
        "intervals": {name: _rounded([each.low, each.high]) if each else None for name, each in found.items()},
    }


def _rounded(value: Json) -> Json:
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value
