"""Agreement of a panel or of any raters with intervals, and confusion matrices of pairs of judges.

Figures have the names used in `agreement`: measures over all raters, and Cohen's kappa of every two raters. Each has a
95 % percentile interval from 1,000 resamples of the clusters; a panel's clusters are its queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.figures import Record, figure
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


Bounds = tuple[float, ...] | None
"""Lower and upper bound of a 95 % interval; None where it is not defined."""


class RaterPair(Record, schema_name="pair_of_raters"):
    """Cohen's kappa of two raters."""

    raters: tuple[str, ...] = figure("names of both raters")
    items: int = figure("items that both raters rated")
    nominal: float | None = figure("Cohen's kappa")
    linear: float | None = figure("Cohen's kappa with linear weights", optional=True, nullable=True)
    quadratic: float | None = figure("Cohen's kappa with quadratic weights", optional=True, nullable=True)
    error: float | None = figure("standard error of the kappa `nominal`, for independent items")
    intervals: Mapping[str, Bounds] = figure("kappa -> its interval")

    def left_out(self) -> set[str]:
        """Return the kappas that do not fit the scale, which have no interval."""
        return {"linear", "quadratic"} - self.intervals.keys()


class AgreementFigures(Record, schema_name="agreement"):
    """Agreement of raters, as `stats.agreement.Agreement`, with 95 % intervals."""

    items: int = figure("rated items")
    under_two: int = figure("items with fewer than two ratings")
    unanimous: int = figure("items on which all ratings are equal")
    estimator: str = figure("treatment of missing ratings: complete (none are missing), gwet or drop")
    one_category: bool = figure("whether only one rating is used; all defined figures are then 1")
    percent: float | None = figure("observed agreement")
    fleiss: float | None = figure("Fleiss' kappa")
    chance: float | None = figure("chance agreement of Fleiss' kappa")
    z: float | None = figure("Fleiss' kappa over its standard error under random ratings")
    randolph: float | None = figure("Randolph's free-marginal kappa")
    alpha_nominal: float | None = figure("Krippendorff's alpha, nominal scale")
    alpha_ordinal: float | None = figure("Krippendorff's alpha, ordinal scale", optional=True, nullable=True)
    alpha_interval: float | None = figure("Krippendorff's alpha, interval scale", optional=True, nullable=True)
    ac1: float | None = figure("Gwet's AC1")
    ac2_linear: float | None = figure("Gwet's AC2 with linear weights", optional=True, nullable=True)
    ac2_quadratic: float | None = figure("Gwet's AC2 with quadratic weights", optional=True, nullable=True)
    prevalence: tuple[float | None, ...] = figure("share of each rating, in the order of the scale")
    specific: tuple[float | None, ...] = figure("specific agreement of each rating")
    clusters: int = figure("clusters that the intervals resample")
    intervals: Mapping[str, Bounds] = figure("measure -> its interval")
    pairs_of_raters: tuple[RaterPair, ...] | None = figure(f"every two raters; null for more than {PAIRED}")

    def left_out(self) -> set[str]:
        """Return the measures that do not fit the scale, which have no interval."""
        return {name for names in SCALES.values() for name in names} - self.intervals.keys()


class CutAgreement(Record, schema_name="top"):
    """Agreement on grades, and on binary labels."""

    all_grades: AgreementFigures = figure("agreement on the grades")
    cut: AgreementFigures | None = figure("agreement on binary labels; null on a scale without a relevance threshold")


class PanelAgreement(CutAgreement, schema_name="levels"):
    """Agreement of a panel on all pairs, and on the first of each query."""

    top_50: CutAgreement | None = figure(
        "agreement on the first 50 documents of each query; null for a pool that is no deeper"
    )


def measure(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    seed: int,
    scale: Scale,
    replicates: int = 1000,
    progress: Progress = quiet,
) -> CutAgreement:
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
) -> PanelAgreement:
    """Return `measure` for all pairs, and for the first positions of the pool where it is deeper.

    After a cascade only the pairs of its `sample` are measured, which all
    judges were asked to grade.
    """
    rated = ratings if sample.is_empty() else ratings.join(sample, on=voting.PAIR, how="semi")
    top = pool.filter(pl.col("position") <= TOP)
    on_all, on_top = measure(rated, panel, seed, scale, progress=progress), None
    if len(top) < len(pool):
        on_top = measure(rated.join(top, on=voting.PAIR, how="semi"), panel, seed, scale, progress=progress)
    return PanelAgreement(on_all.all_grades, on_all.cut, on_top)


def on_grades(
    grades: Codes,
    panel: Sequence[str],
    queries: npt.ArrayLike,
    scale: Scale,
    *,
    seed: int,
    replicates: int = 1000,
    progress: Progress = quiet,
) -> CutAgreement:
    """Return `measure` from codes of grades (0 for the best, see `voting.codes`), pairs x judges."""
    counted = compress(grades, len(scale.labels), queries)
    all_grades = _figures(counted, kind_of(scale), panel, seed, replicates, progress)
    if not scale.relevant:
        return CutAgreement(all_grades, None)
    cut = replace(counted, codes=voting.sides(counted.codes, scale))
    return CutAgreement(all_grades, _figures(cut, Kind(2), panel, seed, replicates, progress))


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
) -> AgreementFigures:
    """Return the agreement in a matrix of codes, items x raters; each item is a cluster if `clusters` is None.

    An interval is None for fewer than two clusters, without replicates, or if only one category is used.
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
) -> AgreementFigures:
    pairs = list(combinations(range(len(raters)), 2)) if len(raters) <= PAIRED else []
    drawn = _drawn(counted, kind, pairs, seed, replicates, progress, single=single) if replicates else {}
    summary = agreement.summary(tally(counted.codes, kind.categories, counted.times), kind.missing, kind.steps)
    return AgreementFigures(
        **vars(summary),
        clusters=int(counted.times.sum() if single else counted.clusters.max(initial=-1) + 1),
        intervals={name: None if summary.one_category else _ends(drawn.get(name)) for name in kind.measures},
        pairs_of_raters=tuple(_pair(counted, kind, raters, pair, drawn) for pair in pairs)
        if 0 < len(raters) <= PAIRED
        else None,
    ).rounded()


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


def _pair(
    counted: Compressed,
    kind: Kind,
    raters: Sequence[str],
    pair: tuple[int, int],
    drawn: Mapping[str, Interval | None],
) -> RaterPair:
    codes, (one, two) = counted.codes, pair
    table = crosstab(codes[:, one], codes[:, two], kind.categories, None, counted.times)
    kappas = {scheme: scalar(agreement.cohen(table, scheme, kind.steps)) for scheme in kind.schemes}
    return RaterPair(
        raters=(raters[one], raters[two]),
        items=int(table.table.sum()),
        **{"linear": None, "quadratic": None, **kappas},
        error=scalar(agreement.cohen_error(table)),
        intervals={scheme: _ends(drawn.get(f"{scheme} {one} {two}")) for scheme in kind.schemes},
    )


def _ends(interval: Interval | None) -> Bounds:
    return (interval.low, interval.high) if interval else None


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
