"""Agreement of a panel or of any raters with intervals, and confusion matrices of pairs of judges.

Figures have the names used in `agreement`: measures over all raters, and Cohen's kappa of every two raters. Each has a
95 % percentile interval from 1,000 resamples of the clusters; a panel's clusters are its queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json
from curate.core.progress import StepLabel
from curate.core.protocols import Progress, quiet
from curate.core.scale import Scale
from curate.panel import voting
from curate.stats import agreement
from curate.stats.agreement import Missing, Scheme, Steps, scalar
from curate.stats.bootstrap import Interval, intervals
from curate.stats.tally import Codes, Compressed, Crosstab, Floats, Sums, compress, crosstab, tally

Level = Literal["nominal", "ordinal", "interval"]
SCALES: dict[Level, tuple[str, ...]] = {
    "nominal": ("percent", "fleiss", "randolph", "alpha_nominal", "ac1"),
    "ordinal": ("alpha_ordinal", "ac2_linear", "ac2_quadratic"),
    "interval": ("alpha_interval",),
}
"""Scale -> its measures, in addition to those of the scales before it."""
SCHEMES: tuple[Scheme, ...] = ("nominal", "linear", "quadratic")
TOP = 50
"""Positions of the pool with agreement of their own: it depends on depth and on the share of positives."""
PAIRED = 20
"""Maximum raters to measure every pair of: a hundred of them would be 4,950 pairs."""


@dataclass(frozen=True)
class Kind:
    """Scale of the ratings, and treatment of missing ones."""

    categories: int
    scale: Level = "interval"
    steps: Steps | None = None
    """Positions of the categories on an interval scale; equal steps if None."""
    missing: Missing = "gwet"

    @property
    def measures(self) -> list[str]:
        """Return the names of the measures that the scale allows."""
        order = list(SCALES)
        return [name for scale in order[: order.index(self.scale) + 1] for name in SCALES[scale]]

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """Return the weights of Cohen's kappa that the scale allows."""
        return SCHEMES[:1] if self.scale == "nominal" else SCHEMES


def measure(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    seed: int,
    scale: Scale,
    replicates: int = 1000,
    progress: Progress = quiet,
) -> dict[str, Json]:
    """Return the panel's `figures` for grades and for binary labels; a nominal scale has only the former.

    Clusters are the queries; measures that need distances between grades use differences of gains.
    """
    table = voting.votes(ratings, panel, scale)
    grades, queries = voting.coded(table, panel, scale), table["query_id"].rank("dense").to_numpy()
    return on_grades(grades, panel, queries, scale, seed=seed, replicates=replicates, progress=progress)


def on_parts(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    sample: pl.DataFrame,
    pool: pl.DataFrame,
    seed: int,
    scale: Scale,
    progress: Progress = quiet,
) -> dict[str, Json]:
    """Return `measure` for all pairs and, as `top_50`, for the first positions of the pool.

    `top_50` is None where no pool goes deeper. After a cascade only the pairs of its `sample` are measured, which all
    judges were asked to grade.
    """
    rated = ratings if sample.is_empty() else ratings.join(sample, on=voting.PAIR, how="semi")
    top = pool.filter(pl.col("position") <= TOP)
    deeper = len(top) < len(pool)
    return {
        **measure(rated, panel, seed, scale, progress=progress),
        "top_50": measure(rated.join(top, on=voting.PAIR, how="semi"), panel, seed, scale, progress=progress)
        if deeper
        else None,
    }


def on_grades(
    grades: Codes,
    panel: Sequence[str],
    queries: npt.ArrayLike,
    scale: Scale,
    *,
    seed: int,
    replicates: int = 1000,
    progress: Progress = quiet,
) -> dict[str, Json]:
    """Return `measure` from codes of grades (0 for the best, see `voting.codes`), pairs x judges."""
    counted = compress(grades, len(scale.labels), queries)
    all_grades = _figures(counted, kind_of(scale), panel, seed, replicates, progress)
    results: dict[str, Json] = {"all_grades": all_grades, "cut": None}
    if scale.relevant:
        cut = replace(counted, codes=voting.sides(counted.codes, scale))
        results["cut"] = _figures(cut, Kind(2), panel, seed, replicates, progress)
    return results


def kind_of(scale: Scale) -> Kind:
    """Return the kind of a scale: interval, with the gains as positions, or nominal."""
    if scale.order == "nominal":
        return Kind(len(scale.labels), "nominal")
    return Kind(len(scale.labels), steps=[scale.gains[0] - gain for gain in scale.gains])


def figures(
    codes: Codes,
    kind: Kind,
    raters: Sequence[str],
    clusters: npt.ArrayLike | None = None,
    *,
    seed: int,
    replicates: int = 1000,
    progress: Progress = quiet,
) -> dict[str, Json]:
    """Return the agreement in a matrix of codes, items x raters, as plain values.

    Keys: the fields of `Agreement` that the scale allows; `clusters`, their number (each item is one if `clusters` is
    None); `intervals`, measure -> [low, high], None for fewer than two clusters or if only one category is used;
    `pairs_of_raters`, None if `raters` is empty or has more than `PAIRED`. Without replicates there are no intervals.
    Figures are rounded to six digits, so that rounding errors do not make runs differ.
    """
    counted = compress(codes, kind.categories, clusters)
    return _figures(counted, kind, raters, seed, replicates, progress, single=clusters is None)


def _figures(
    counted: Compressed,
    kind: Kind,
    raters: Sequence[str],
    seed: int,
    replicates: int,
    progress: Progress,
    *,
    single: bool = False,
) -> dict[str, Json]:
    pairs = list(combinations(range(len(raters)), 2)) if len(raters) <= PAIRED else []
    drawn = _drawn(counted, kind, pairs, seed, replicates, progress, single=single) if replicates else {}
    summary = asdict(agreement.summary(tally(counted.codes, kind.categories, counted.times), kind.missing, kind.steps))
    unfit = {name for names in SCALES.values() for name in names} - set(kind.measures)
    by_pair = [{"raters": [raters[one], raters[two]], **_pair(counted, kind, one, two, drawn)} for one, two in pairs]
    return {
        **{name: _rounded(figure) for name, figure in summary.items() if name not in unfit},
        "clusters": int(counted.times.sum() if single else counted.clusters.max(initial=-1) + 1),
        "intervals": {name: None if summary["one_category"] else _ends(drawn.get(name)) for name in kind.measures},
        "pairs_of_raters": by_pair if 0 < len(raters) <= PAIRED else None,
    }


@dataclass(frozen=True)
class _Stack:
    """Sums of all raters, and tables of every pair of them, stacked by cluster; shape of a table (..., pairs, K, K)."""

    sums: Sums
    tables: Crosstab

    def __len__(self) -> int:
        return len(self.sums)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(self.sums.weighted(weights), self.tables.weighted(weights))


def _drawn(
    counted: Compressed,
    kind: Kind,
    pairs: Sequence[tuple[int, int]],
    seed: int,
    replicates: int,
    progress: Progress,
    *,
    single: bool,
) -> dict[str, Interval | None]:
    """Return the intervals by name, those of a pair of raters as `scheme one other`.

    If every item is a cluster of its own (`single`), equal items are resampled as equal clusters.
    """
    codes, size = counted.codes, kind.categories
    clusters, times = (np.arange(len(codes)), None) if single else (counted.clusters, counted.times)
    tables = [crosstab(codes[:, one], codes[:, two], size, clusters, times).table for one, two in pairs]
    stacked = np.stack(tables, axis=1) if tables else np.zeros((len(np.unique(clusters)), 0, size, size))
    stack = _Stack(tally(codes, size, times).by_cluster(clusters), Crosstab(stacked))
    statistics = _statistics(kind)
    by_name: dict[str, Callable[[_Stack], Floats]] = {
        name: partial(_of_all, statistics[name]) for name in kind.measures
    }
    for index, (one, two) in enumerate(pairs):
        for scheme in kind.schemes:
            by_name[f"{scheme} {one} {two}"] = partial(_of_pair, index, scheme, kind.steps)
    drawn = partial(progress, StepLabel("resampling for intervals of agreement", "samples"), replicates)
    alike = counted.times if single else None
    return intervals(stack, by_name, seed=seed, replicates=replicates, alike=alike, drawn=drawn)


def _of_all(statistic: Callable[[Sums], Floats], stack: _Stack) -> Floats:
    return statistic(stack.sums)


def _of_pair(index: int, scheme: Scheme, steps: Steps | None, stack: _Stack) -> Floats:
    return agreement.cohen(Crosstab(stack.tables.table[..., index, :, :]), scheme, steps)


def _statistics(kind: Kind) -> dict[str, Callable[[Sums], Floats]]:
    return {
        "percent": agreement.percent,
        "fleiss": partial(agreement.fleiss, missing=kind.missing),
        "randolph": agreement.randolph,
        "alpha_nominal": agreement.alpha,
        "alpha_ordinal": partial(agreement.alpha, level="ordinal"),
        "alpha_interval": partial(agreement.alpha, level="interval", steps=kind.steps),
        "ac1": agreement.ac,
        "ac2_linear": partial(agreement.ac, scheme="linear", steps=kind.steps),
        "ac2_quadratic": partial(agreement.ac, scheme="quadratic", steps=kind.steps),
    }


def _pair(counted: Compressed, kind: Kind, one: int, two: int, drawn: Mapping[str, Interval | None]) -> dict[str, Json]:
    """Return two raters' number of common items, kappas with intervals, and standard error for independent items."""
    codes = counted.codes
    table = crosstab(codes[:, one], codes[:, two], kind.categories, None, counted.times)
    return {
        "items": int(table.table.sum()),
        **{scheme: _rounded(scalar(agreement.cohen(table, scheme, kind.steps))) for scheme in kind.schemes},
        "error": _rounded(scalar(agreement.cohen_error(table))),
        "intervals": {scheme: _ends(drawn.get(f"{scheme} {one} {two}")) for scheme in kind.schemes},
    }


def _ends(interval: Interval | None) -> Json:
    return _rounded([interval.low, interval.high]) if interval else None


def _rounded(figure: Json) -> Json:
    if isinstance(figure, list | tuple):
        return [_rounded(entry) for entry in figure]
    return round(figure, 6) if isinstance(figure, float) else figure


# Confusion matrices of pairs of judges, from the ratings of a run.


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix of two judges' grades; pairs without a grade by one of them are left out."""

    one: str
    other: str
    counts: list[list[int]]
    """Rows are grades of `one`, columns those of `other`, both from the best to the worst."""
    scale: Scale

    @property
    def pairs(self) -> int:
        """Pairs that both graded."""
        return sum(map(sum, self.counts))

    @property
    def equal(self) -> int:
        """Pairs to which both gave the same grade."""
        return sum(row[index] for index, row in enumerate(self.counts))

    @property
    def apart(self) -> int:
        """Pairs that one found relevant and the other not."""
        side = [label in self.scale.relevant for label in self.scale.labels]
        return sum(
            n
            for row, is_row_relevant in zip(self.counts, side, strict=True)
            for n, is_column_relevant in zip(row, side, strict=True)
            if is_row_relevant != is_column_relevant
        )


def confusions(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> list[Confusion]:
    """Return the confusion matrix of every two judges of a panel; [] for more than `PAIRED` judges."""
    grades = voting.codes(ratings, panel, scale)
    pairs = combinations(range(len(panel)), 2) if len(panel) <= PAIRED else ()
    size = len(scale.labels)
    tables = ((one, two, crosstab(grades[:, one], grades[:, two], size).table) for one, two in pairs)
    return [Confusion(panel[one], panel[two], table.astype(int).tolist(), scale) for one, two, table in tables]
