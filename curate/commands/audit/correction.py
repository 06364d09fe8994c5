"""Audit counts corrected by people's answers: false negatives and false positives of all that was retrieved.

A panel errs, so its own counts are wrong both ways. People grade a sample of pairs whose strata part legacy labels
(+, -) and verdicts; with N pairs in a stratum, of which n were answered and x found relevant, the false negatives are
the sum of N x / n over the strata without a label, the false positives the sum of N (1 - x / n) over those with one.

The mean per query is for the population that the queries were drawn from, so two things vary: queries, and which of
their pairs were drawn. Both are in the variance of the linearised estimate, whose term of a query is the sum over
strata of N_q p + (N / n) (x_q - n_q p). Where every answer of a stratum is the same, the sample shows no variance at
all; what smoothing p to (x + 1/2) / (n + 1) adds to the design's part is added, as in `estimates`.

A few hits in a large stratum weigh much, so the estimate is skewed, and too small a one goes with too small a variance.
The interval is therefore a score interval with a variance that grows with the mean: all m, from 0 on, with
(mean - m)^2 <= z^2 (V + s (m - mean)), where s is the third cumulant of the estimate over its variance V. For a Poisson
count s is 1 and this is the usual score interval; for s = 0 it is the normal one. With s proportional to V alone, the
intervals of 1,000 queries and 500 answers fell to 0.90 coverage in simulations, with this s they kept 0.93 and more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.panel.audit_design import LABELLED, UNLABELLED
from curate.review.agreement import checked
from curate.review.desk import Desk
from curate.stats.sample_estimates import LEVEL, Bounded, Estimate, StratumCounts, share
from curate.stats.tally import Floats


@dataclass(frozen=True)
class Mean(Bounded):
    """A corrected mean per query with its interval."""

    queries: int


@dataclass(frozen=True)
class Corrected:
    """What the answers to a sample make of an audit; a figure is None if a stratum that it needs has no answer."""

    answered: int
    false_negatives: Mean | None
    false_positives: Mean | None
    positives: Mean | None
    """Relevant documents among the retrieved, labelled or not."""
    precision: Estimate | None
    """Share of the claimed false negatives that people confirm."""


def correct(pairs: pl.DataFrame, answers: pl.DataFrame, queries: Sequence[str], level: float = LEVEL) -> Corrected:
    """Return the corrected means of an audit.

    `pairs` has query_id and stratum of every judged pair (see `audit.strata`), `answers` query_id, stratum and relevant
    of those that were answered. `queries` are all that were audited, those without a pair too. DataError if a stratum
    holds more answers than pairs.
    """
    names = sorted(pairs["stratum"].unique())
    size = _table(pairs.with_columns(count=1), queries, names)
    answered = _table(answers.with_columns(count=1), queries, names)
    hits = _table(answers.with_columns(count=pl.col("relevant").cast(pl.Int64)), queries, names)
    if (answered.sum(axis=0) > size.sum(axis=0)).any() or len(answers) > answered.sum():
        raise DataError(
            "audit: found more answers than pairs in a stratum; give the pairs that the sample was drawn of"
        )
    labelled = np.array([name.endswith(LABELLED) for name in names], dtype=bool)
    claimed = [place for place, name in enumerate(names) if name == f"relevant{UNLABELLED}"]
    parts = [StratumCounts(*(int(each[:, place].sum()) for each in (size, answered, hits))) for place in claimed]
    return Corrected(
        answered=len(answers),
        false_negatives=mean(size[:, ~labelled], answered[:, ~labelled], hits[:, ~labelled], level),
        false_positives=mean(size[:, labelled], answered[:, labelled], (answered - hits)[:, labelled], level),
        positives=mean(size, answered, hits, level),
        precision=share(parts, level),
    )


def mean(size: Floats, answered: Floats, hits: Floats, level: float = LEVEL) -> Mean | None:
    """Return the mean number of hits per query, from counts by query and stratum, each of shape (queries, strata).

    None if a stratum has pairs and no answer, or there are fewer than two queries.
    """
    queries, (pairs, drawn, found) = len(size), (each.sum(axis=0) for each in (size, answered, hits))
    filled = pairs > 0
    if queries < 2 or not drawn[filled].all():
        return None
    size, answered, hits = (each[:, filled] for each in (size, answered, hits))
    pairs, drawn, found = pairs[filled], drawn[filled], found[filled]
    rate, smooth = found / drawn, (found + 0.5) / (drawn + 1)
    terms = (size * rate + pairs / drawn * (hits - answered * rate)).sum(axis=1)
    weight = pairs / drawn / queries
    unseen = (
        weight**2 * drawn * (pairs - drawn) / np.maximum(pairs - 1, 1) * (smooth * (1 - smooth) - rate * (1 - rate))
    )
    unseen = np.maximum(unseen, 0.0)
    value, centred = float(terms.mean()), terms - terms.mean()
    variance = float((centred**2).sum() / (queries - 1) / queries + unseen.sum())
    third = float((centred**3).sum() / queries**3 + (weight * unseen).sum())
    low, high = _score(value, variance, third, level)
    return Mean(value, low, high, level, int(drawn.sum()), queries)


def _score(value: float, variance: float, third: float, level: float) -> tuple[float, float]:
    """Return the skewed score interval of a mean, from its variance and third cumulant."""
    square = NormalDist().inv_cdf((1 + level) / 2) ** 2
    shift = square * third / variance / 2 if variance else 0.0
    half = math.sqrt(square * variance + shift**2)
    return min(max(value + shift - half, 0.0), value), max(value + shift + half, value)


def _table(rows: pl.DataFrame, queries: Sequence[str], names: Sequence[str]) -> Floats:
    """Return the sum of `count` by query and stratum, in the orders given."""
    places = {name: place for place, name in enumerate(queries)}
    columns = {name: place for place, name in enumerate(names)}
    found = np.zeros((len(queries), len(names)))
    summed = rows.group_by("query_id", "stratum").agg(pl.col("count").sum()).iter_rows()
    for query, stratum, count in summed:
        if query in places and stratum in columns:
            found[places[query], columns[stratum]] = count
    return found


# Counts of an audit corrected by the answers to a sample of it.

FIGURES = ("false_negatives", "false_positives", "positives", "precision")


def corrected_counts(desk: Desk, pairs: pl.DataFrame, queries: Sequence[str]) -> dict[str, Json]:
    """Return the corrected means as plain mappings: false_negatives, false_positives, positives, and precision.

    `precision` is the share of the claimed false negatives that people confirm. `pairs` are those of `audit.strata`
    now: if they are not those that the sample was drawn of, it is `outdated` and corrects nothing.
    """
    design = desk.sample.design
    if _outdated(desk, pairs):
        return {"sample": design.name, "outdated": True}
    read = [(row.ids[0], row.stratum, row.relevant) for row in checked(desk) if row.settled]
    columns = {"query_id": pl.String, "stratum": pl.String, "relevant": pl.Boolean}
    found = correct(pairs, pl.DataFrame(read, columns, orient="row"), queries)
    return {
        "sample": design.name,
        "outdated": False,
        "answered": found.answered,
        **{name: _bounded_json(getattr(found, name)) for name in FIGURES},
    }


def _outdated(desk: Desk, pairs: pl.DataFrame) -> bool:
    """Say whether the strata have other sizes, or a drawn pair another stratum, than when the sample was drawn."""
    drawn = desk.sample.survey.filter(pl.col("expected").is_null()).select(
        "stratum", query_id=pl.col("ids").list.get(0), doc_id=pl.col("ids").list.get(1)
    )
    sizes = dict(pairs.group_by("stratum").len().iter_rows())
    moved = drawn.join(pairs, on=["query_id", "doc_id", "stratum"], how="anti")
    return len(moved) > 0 or sizes != {stratum.name: stratum.size for stratum in desk.sample.design.strata}


def _bounded_json(figure: Bounded | None) -> dict[str, Json] | None:
    """Return a figure and its bounds, rounded; None where a stratum that it needs has no answer."""
    if figure is None:
        return None
    return {**figure.bounds(5), "answered": figure.answered}
