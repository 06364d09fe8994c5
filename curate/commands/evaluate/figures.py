"""Figures of an evaluation: leading way of scoring contested pairs, baselines, tests, headroom, difficulty.

mteb counts contested pairs as not relevant. For ranking systems, that was the worst of ten ways of scoring where judges
often disagree. So scores with the gain of the median grade lead if grades are known. Otherwise condensed scores lead,
unless a model contributed to the pool or panel and thereby influences which pairs are removed. No nDCG is an absolute
score: see `corrected`.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from curate.commands.evaluate import corrected, query_sources
from curate.commands.evaluate.averages import Average, GroupComparison, ResultModelScores
from curate.commands.evaluate.board import Board, FloorComparison, against_floors
from curate.commands.evaluate.corrected import CorrectedScores, ScoreReview
from curate.commands.evaluate.correlation import LegacyComparison
from curate.commands.evaluate.hardness import DifficultyBand, by_difficulty
from curate.commands.evaluate.item_scores import MEDIAN, READINGS
from curate.commands.evaluate.parameters import ParameterCounts
from curate.commands.evaluate.provenance import FamilyModel, MissedLabels
from curate.commands.evaluate.query_sources import QuerySources
from curate.commands.evaluate.results_folders import LeftOutResult
from curate.commands.evaluate.scoring import point
from curate.commands.evaluate.speed import Speed
from curate.commands.evaluate.tasks import EvaluationTask
from curate.commands.evaluate.text_inputs import SeenTexts
from curate.core.figures import Figure, Record, figure
from curate.retrieval.vectors.cache import PrecisionCheck
from curate.stats import significance
from curate.stats.bootstrap import DIGITS
from curate.stats.rank_correlation import tau_ap, tau_b
from curate.stats.significance import DetectableDifference, ModelPair
from curate.system.files import sha256

STOCK, CONDENSED, _ = READINGS
ORDERED = (STOCK, CONDENSED, MEDIAN)


class ReadingCorrelation(Record, schema_name="order"):
    """How alike two readings order the models."""

    one: str = figure("scoring of contested pairs")
    other: str = figure("another scoring of contested pairs")
    tau_b: float | None = figure("Kendall's tau-b; null if all scores of one are equal")
    tau_ap: float | None = figure("tau_AP of the second order against the first")


class ContestedPairs(Record, schema_name="contested"):
    """Contested pairs, those of excluded queries included."""

    pairs: int = figure("contested pairs")
    judged: int = figure("judged pairs")
    share: float = figure("share of the judged pairs that is contested", digits=1, percent=True)


class ModelScore(Record, schema_name="score"):
    """Scores of a model or a trivial baseline on one task."""

    model: str = figure("name of the model or baseline")
    main: float = figure("main measure of the task")
    lead: float = figure("main measure in the leading scoring of contested pairs", digits=2, percent=True)
    best: bool = figure("whether no model has a higher leading score")
    floor: str | None = figure(
        "floor (ignores the texts) or shortcut (reads only their surface); absent for a model", optional=True
    )
    stock: Figure = figure("contested pairs are not relevant, as in mteb", digits=2, percent=True)
    condensed: Figure | None = figure("contested pairs left out", digits=2, percent=True, optional=True)
    optimistic: Figure | None = figure("contested pairs are relevant", digits=2, percent=True, optional=True)
    median: Figure | None = figure(
        "nDCG with the gain of the judges' median grade", digits=2, percent=True, optional=True
    )
    linear: Figure | None = figure("graded labels with linear gain", digits=2, percent=True, optional=True)
    exponential: Figure | None = figure("graded labels with gain 2^gain - 1", digits=2, percent=True, optional=True)
    mean: Figure | None = figure("mean of the judges' gains", digits=2, percent=True, optional=True)
    beside: Mapping[str, Figure] = figure("measure -> further measures, and spreads over draws")
    holes_at_10: float | None = figure("share of the top tens that was never judged", digits=1, percent=True)
    doubtful_at_10: float | None = figure(
        "share of the top tens that is contested or incomplete", digits=1, percent=True
    )
    queries_a_second: float | None = figure("queries per second; null for a score from another machine", digits=0)
    machine: str | None = figure(
        "digest of the machine that scored; null if it was not stored, and for trivial baselines"
    )
    precision: str | None = figure("precision of the weights that was asked for")
    batch: int | None = figure("largest batch size in use")
    width: int | None = figure("dimensions of a vector; null for models without vectors")
    weights: tuple[str, ...] = figure("precisions of the loaded weights")
    precision_check: PrecisionCheck | None = figure(
        "comparison with float32; null for weights in float32, and for truncated vectors"
    )
    inputs: tuple[SeenTexts, ...] = figure("inputs of the model: prompts, lengths and truncation, by role")
    metrics: Mapping[str, float | None] = figure("further measures of mteb")


class PairTest(Record, schema_name="pair"):
    """Test of two models."""

    one: str = figure("the better model")
    other: str = figure("the other model")
    difference: float = figure("score of the better model less that of the other", digits=2, percent=True)
    p: float | None = figure("p-value of the paired test", digits=4)
    adjusted: float | None = figure("p-value adjusted by Holm", digits=4)
    enough: int | None = figure("queries needed to detect the difference")
    smallest: float | None = figure("minimum detectable difference with these queries", digits=2, percent=True)


class NeighbourTests(Record, schema_name="enough"):
    """Tests of neighbours in the ranking."""

    neighbours: tuple[PairTest, ...] = figure("each model with the next")
    most: int | None = figure("queries needed to detect the differences of all neighbours")
    told_apart: int = figure("neighbours that differ significantly")
    of_all: int | None = figure("pairs of all models that differ significantly")


class Headroom(Record):
    """What the best model leaves."""

    best: float = figure("main score of the best model")
    left: float = figure("1 less the best score", digits=2, percent=True)
    best_of_all: float | None = figure(
        "score if the best model is chosen for each item", digits=2, percent=True, optional=True
    )
    nobody: int | None = figure("items on which no model scores", optional=True)
    everybody: int | None = figure("items on which every model is perfect", optional=True)


class TaskFigures(Record, schema_name="task"):
    """Figures of one task."""

    name: str = figure("name of the task")
    card: str | None = figure("SHA-256 of the README of an exported task, which identifies the export")
    kind: str = figure("mteb's type of the task")
    unit: str = figure("unit that is resampled, such as queries, texts, pairs, or sources with all their pairs")
    measure: str = figure("mteb's name of the main measure")
    shown: str = figure("name of the main measure in tables")
    queries: int = figure("units that are resampled")
    rows: int = figure("queries, texts or pairs that are scored")
    lead: str = figure(
        "scoring of contested pairs by which models are ordered and compared (stock, condensed or median)"
    )
    circular: tuple[str, ...] = figure("models that judged this task or wrote its texts")
    orders: tuple[ReadingCorrelation, ...] = figure(
        "correlations of the orders of the models under the scorings of contested pairs"
    )
    undecided: int = figure("judged queries without a relevant document, which are in no score")
    contested: ContestedPairs | None = figure("null without verdicts")
    levels: CorrectedScores | None = figure("corrected scores; null without a reviewed sample of the top tens")
    verdicts: bool = figure("whether the panel's verdicts are available")
    judged: bool = figure("whether a review sample of its top tens can be drawn")
    graded: bool = figure("whether its labels are graded")
    scores: tuple[ModelScore, ...] = figure("models, best first")
    floors: tuple[ModelScore, ...] = figure("trivial baselines, best first")
    against_floors: FloorComparison | None = figure("null without floors")
    exchanged: bool = figure("whether p-values are those of a paired randomisation test, else of a paired bootstrap")
    pairs: tuple[PairTest, ...] = figure("every two models, by p")
    detectable: DetectableDifference | None = figure(
        "minimum detectable difference (80 % power, 5 %); null for one model"
    )
    against_model: tuple[PairTest, ...] | None = figure(
        "tests against the model of --against, with Holm's adjustment over these only"
    )
    enough: NeighbourTests = figure("tests of neighbours in the ranking")
    headroom: Headroom | None = figure("difference of the best model from a perfect score")
    difficulty: tuple[DifficultyBand, ...] | None = figure(
        "scores by difficulty of the query; null without BM25, or without search"
    )
    sources: QuerySources | None = figure("scores on synthetic and on real queries; null without synthetic queries")
    speed: Speed | None = figure(
        "speed on this machine, by --speed of this or an earlier call; null without it", default=None
    )


class ScoredModel(Record, schema_name="model"):
    """A model that was scored."""

    model: str = figure("name of the model")
    revision: str | None = figure("its revision")
    baseline: bool = figure("whether it is scored in every evaluation by default")
    roles: tuple[str, ...] = figure("roles in building the benchmark: retriever, judge, generator")
    circular: bool = figure("whether its score on a task is biased by its roles")


class EvaluationFigures(Record, schema_name="figures"):
    """What models score on a benchmark, and which differences are significant."""

    models: tuple[ScoredModel, ...] = figure("a row per model")
    families: tuple[FamilyModel, ...] = figure("models of the same family as a judge")
    tasks: tuple[TaskFigures, ...] = figure("a row per task")
    legacy: tuple[LegacyComparison, ...] = figure("rank correlations with older tasks")
    missed: MissedLabels = figure("estimates of relevant documents that labels and pool miss")
    averages: tuple[Average, ...] = figure(
        "means over groups of tasks: those of --average, and types with several tasks"
    )
    orders: tuple[GroupComparison, ...] = figure(
        "rank correlations of every two groups of --average without a common task"
    )
    results: tuple[ResultModelScores, ...] = figure("further models, from folders of mteb results")
    unused: tuple[LeftOutResult, ...] = figure("results in these folders that are not used")
    parameters: tuple[ParameterCounts, ...] = figure("numbers of parameters of the models")
    notes: tuple[str, ...] = figure("caveats, one sentence each")
    folder: str = figure("folder of the written page, tables and charts")


def lead(task: EvaluationTask, models: Sequence[str]) -> str:
    """Return the way of scoring by which a task's models are ranked: median, else condensed, else mteb's default."""
    if not task.verdicts or task.gains:
        return STOCK
    if MEDIAN in task.readings:
        return MEDIAN
    return STOCK if any(name in names for names in task.parts.values() for name in models) else CONDENSED


def orders(board: Board) -> list[ReadingCorrelation]:
    """Return tau-b and tau_AP of the models' rankings under each two ways of scoring in `ORDERED`.

    The first is the reference. All scores are on the same queries. Empty for one model, for a task without verdicts,
    and for graded labels.
    """
    readings = [name for name in ORDERED if name in board.task.readings]
    if not board.task.verdicts or board.task.gains or len(board.scored) < 2:
        return []
    scores = {
        name: {scored.model: round(point(board.task.scorer, scored.values, name), DIGITS) for scored in board.scored}
        for name in readings
    }
    return [
        _reading_correlation(first, second, scores[first], scores[second])
        for first, second in combinations(readings, 2)
    ]


def _reading_correlation(
    first_reading: str, second_reading: str, first: Mapping[str, float], second: Mapping[str, float]
) -> ReadingCorrelation:
    """Return tau-b and tau_AP of two scorings of the models; both None if all scores of one are equal."""
    kendall = tau_b(first, second)
    ap_correlation = None if kendall is None else tau_ap(first, second)
    return ReadingCorrelation(first_reading, second_reading, _rounded(kendall), _rounded(ap_correlation))


# Figures of a task: intervals, pairs of models, sufficient number of queries, headroom, difficulty.

CLEAR = 0.05
"""Maximum adjusted p of a significant difference."""


def of_task(board: Board, reviews: Sequence[ScoreReview] = (), against: str | None = None) -> TaskFigures:
    """Return all figures of one task but its speed."""
    task, first = board.task, board.scored[0]
    pairs, rows = _pairs(board), _rows(board)
    return TaskFigures(
        name=task.name,
        card=None if task.folder is None else sha256(task.folder / "README.md"),
        kind=task.kind.mteb.type,
        unit=task.scorer.unit,
        measure=task.measure,
        shown=task.kind.mteb.shown,
        queries=board.items,
        rows=len(first.queries),
        lead=board.lead,
        circular=tuple(scored.model for scored in board.scored if scored.model in task.circular),
        orders=tuple(orders(board)),
        undecided=task.undecided if task.verdicts else 0,
        contested=_contested(task),
        levels=corrected.levels(board, reviews),
        verdicts=bool(task.verdicts),
        judged=task.kind.judged,
        graded=bool(task.gains),
        scores=rows[: len(board.scored)],
        floors=rows[len(board.scored) :],
        against_floors=against_floors(board),
        exchanged=task.scorer.exchanged,
        pairs=tuple(PairTest(**vars(pair)) for pair in pairs),
        detectable=significance.detectable(pairs, board.items),
        against_model=None
        if against is None
        else tuple(PairTest(**vars(pair)) for pair in significance.against(pairs, against)),
        enough=_enough(board, pairs),
        headroom=_headroom(board),
        difficulty=by_difficulty(board),
        sources=query_sources.apart(board),
    )


def _contested(task: EvaluationTask) -> ContestedPairs | None:
    """Return the number and share of contested pairs, including those of excluded queries; None without verdicts."""
    verdicts = [verdict for row in task.verdicts.values() for verdict in row.values()]
    if not verdicts:
        return None
    count, judged = verdicts.count("contested") + task.lost["contested"], len(verdicts) + task.lost["pairs"]
    return ContestedPairs(count, judged, round(count / judged, DIGITS))


def _rows(board: Board) -> tuple[ModelScore, ...]:
    """Return one row per model, best first, then per baseline, with all known ways of scoring."""
    readings = board.task.readings if board.task.verdicts or board.task.gains else READINGS[:1]
    by_reading, further_figures = {reading: board.figures(reading) for reading in readings}, board.beside()
    index_by_id = {id(scored): index for index, scored in enumerate(board.every)}
    return tuple(
        ModelScore(
            model=scored.model,
            main=scored.main,
            lead=round(board.led(scored), DIGITS),
            best=scored.floor is None and board.led(scored) == board.led(board.ranked[0]),
            floor=scored.floor,
            **{reading: figures[index_by_id[id(scored)]] for reading, figures in by_reading.items()},
            beside=further_figures[index_by_id[id(scored)]],
            holes_at_10=round(scored.holes / scored.shown, DIGITS) if scored.shown else None,
            doubtful_at_10=round(scored.doubtful / scored.shown, DIGITS) if scored.shown else None,
            queries_a_second=scored.queries_a_second,
            machine=scored.machine,
            precision=scored.precision,
            batch=scored.batch,
            width=scored.width,
            weights=tuple(scored.weights),
            precision_check=scored.precision_check,
            inputs=tuple(scored.inputs),
            metrics=scored.metrics,
        )
        for scored in (*board.ranked, *board.ordered(board.floors))
    )


def _pairs(board: Board) -> list[ModelPair]:
    names, scorer = [scored.model for scored in board.scored], board.task.scorer
    if scorer.exchanged:
        sums = [scorer.sums(scored.values, board.lead) for scored in board.scored]
        comparisons = significance.compare(names, sums, scorer.statistic, board.seed)
    else:
        points = [point(scorer, scored.values) for scored in board.scored]
        comparisons = significance.compare_bootstrapped(names, points, board.drawn[:, : len(names)], board.items)
    return [pair.rounded() for pair in comparisons]


def _enough(board: Board, pairs: Sequence[ModelPair]) -> NeighbourTests:
    """Return the tests between neighbours in the ranking, and how many of these and of all pairs are significant."""
    order = [scored.model for scored in board.ranked]
    neighbours = {frozenset(both) for both in pairwise(order)}
    rows = [pair for pair in pairs if {pair.one, pair.other} in neighbours]
    rows.sort(key=lambda pair: order.index(pair.one))
    return NeighbourTests(
        neighbours=tuple(PairTest(**vars(pair)) for pair in rows),
        most=max((pair.enough for pair in rows if pair.enough is not None), default=None),
        told_apart=sum(pair.adjusted <= CLEAR for pair in rows),
        of_all=sum(pair.adjusted <= CLEAR for pair in pairs),
    )


def _headroom(board: Board) -> Headroom:
    """Return the score of the best model, and its distance from 1.

    If every item has a score, also the score with the best model per item, and the numbers of items that no model, or
    every model, solves.
    """
    best = max(scored.main for scored in board.scored)
    headroom = round(1 - best, DIGITS)
    if not board.task.scorer.single:
        return Headroom(best, headroom, best_of_all=None, nobody=None, everybody=None)
    table = np.array([scored.values["stock"] for scored in board.scored])
    return Headroom(
        best,
        headroom,
        best_of_all=round(float(table.max(axis=0).mean()), DIGITS),
        nobody=int((table.max(axis=0) <= 0).sum()),
        everybody=int((table.min(axis=0) >= 1 - 1e-9).sum()),
    )


def _rounded(correlation: float | None) -> float | None:
    return None if correlation is None else round(correlation, DIGITS)
