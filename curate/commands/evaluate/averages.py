"""Comparisons across tasks: averages over groups of tasks, rank correlation of two groups, models with mteb results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from curate.commands.evaluate import parameters, results_folders
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.correlation import FEWEST, Correlation, correlated
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.parameters import ParameterCounts
from curate.commands.evaluate.results_folders import ResultModel
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.errors import ConfigError, suggestion
from curate.core.figures import Figure, Record, figure
from curate.stats import significance
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.significance import DetectableDifference, replicas
from curate.stats.tally import Floats

REPLICATES = 2_000


@dataclass(frozen=True)
class TaskGroup:
    """A named group of tasks whose scores are averaged."""

    name: str
    tasks: Sequence[str]
    given: bool = True
    """Whether the user defined the group; else it consists of all new tasks of one type."""


@dataclass(frozen=True)
class TaskScores:
    """Scores of the models on one task: `points`, and for models scored here `drawn`, on resampled queries."""

    name: str
    measure: str | None = None
    """mteb's name of the measure; None if it is not known."""
    items: int = 0
    points: dict[str, float] = field(default_factory=dict)
    drawn: dict[str, Floats] = field(default_factory=dict)


def parsed(options: Sequence[str], known_tasks: Sequence[str]) -> list[TaskGroup]:
    """Return the groups of the options `--average NAME=TASK,TASK`; ConfigError for an invalid one."""
    groups = [_parsed_group(option, known_tasks) for option in options]
    names = [group.name for group in groups]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"--average: found several groups named {', '.join(repeated)}; give each a name of its own")
    return groups


def _parsed_group(option: str, known_tasks: Sequence[str]) -> TaskGroup:
    name, _, task_list = option.partition("=")
    tasks = [task for task in task_list.split(",") if task]
    if not name or not tasks:
        raise ConfigError(f"--average {option}: expected NAME=TASK,TASK, such as legacy=CMedQAv1-reranking,Mine")
    if len(set(tasks)) < len(tasks):
        raise ConfigError(f"--average {option}: found a task twice; name each once")
    if unknown := [task for task in tasks if task not in known_tasks]:
        raise ConfigError(
            f"--average {option}: no scores of the task {unknown[0]}; {suggestion(unknown[0], known_tasks)}"
        )
    return TaskGroup(name, tasks)


def of_kinds(kinds: Mapping[str, str]) -> list[TaskGroup]:
    """Return one group per task type that has several tasks; `kinds` maps every new task to its type."""
    by_kind = {
        kind: [task for task, task_kind in kinds.items() if task_kind == kind] for kind in sorted(set(kinds.values()))
    }
    return [TaskGroup(kind, tasks, given=False) for kind, tasks in by_kind.items() if len(tasks) > 1]


def gathered(
    boards: Sequence[Board], models: Sequence[ResultModel], measures: Mapping[str, str | None], seed: int
) -> dict[str, TaskScores]:
    """Return task -> scores, first of models scored here, then of models with mteb results.

    `measures` are the measures of tasks that are not scored here.
    """
    scores_by_task: dict[str, TaskScores] = {}
    seen: list[list[str]] = []
    for board in boards:
        queries = board.scored[0].queries
        if queries not in seen:
            seen.append(queries)
        scores = board.scores(board.scored)
        drawn = replicas(scores, board.items, seed + seen.index(queries), REPLICATES)
        main = np.array([scored.main for scored in board.scored])
        if board.task.scorer.centred:
            drawn = drawn - np.nanmean(drawn, axis=0) + main
        names = [scored.model for scored in board.scored]
        columns = dict(zip(names, drawn.T, strict=True))
        scores_by_task[board.task.name] = TaskScores(
            board.task.name, board.task.measure, board.items, dict(zip(names, main, strict=True)), columns
        )
    for model in models:
        for task, score in model.scores.items():
            task_scores = scores_by_task.setdefault(task, TaskScores(task, measures.get(task)))
            task_scores.points.setdefault(model.name, score)
    return scores_by_task


class AveragedModel(Record, schema_name="averaged"):
    """Mean score of a model."""

    model: str = figure("name of the model")
    paired: bool = figure("whether its scores per query are known, so that it is in the paired tests")
    value: float = figure("mean score")
    low: float | None = figure("lower bound of the 95 % interval; null without scores per query")
    high: float | None = figure("upper bound")


class LackingModel(Record, schema_name="lacking"):
    """A model without an average."""

    model: str = figure("name of the model")
    tasks: tuple[str, ...] = figure("tasks on which it has no score")


class AveragePair(Record):
    """Test of two averages."""

    one: str = figure("the better model")
    other: str = figure("the other model")
    difference: float = figure("average of the better model less that of the other", digits=2, percent=True)
    p: float = figure("p-value of a paired bootstrap over queries", digits=4)
    adjusted: float = figure("p-value adjusted by Holm", digits=4)
    smallest: float = figure("minimum detectable difference with these queries", digits=2, percent=True)


MIXED = "mteb's mean (mixes measures)"
"""Name of the mean of scores that are not comparable, such as nDCG and accuracy, which mteb gives."""


class Average(Record):
    """Mean of stock mteb's scores over a group of tasks."""

    name: str = figure("name of the group")
    statistic: str = figure(f"`mean` if all tasks have the same measure, else `{MIXED}`")
    measure: str | None = figure("mteb's name of the measure of all tasks; null if they have several, or it is unknown")
    tasks: tuple[str, ...] = figure("its tasks")
    given: bool = figure("whether it was defined by --average")
    models: tuple[AveragedModel, ...] = figure("best first")
    missing: tuple[LackingModel, ...] = figure("models without an average, because they lack a score on a task")
    against: str | None = figure("model given by --against")
    pairs: tuple[AveragePair, ...] = figure(
        "tests of two models with scores per query; with --against, only those with that model"
    )
    detectable: DetectableDifference | None = figure("minimum detectable difference")


class AverageScores(Record):
    """Averages of one model over two groups."""

    model: str = figure("name of the model")
    one: float = figure("average over the first group")
    other: float = figure("average over the second group")


class GroupComparison(Record, schema_name="order_of_groups"):
    """Rank correlation of two groups without a common task."""

    one: str = figure("the first group")
    other: str = figure("the second group")
    models: int = figure("models with both averages")
    fewest: int = figure("minimum number of models for a correlation")
    spearman: Correlation | None = figure("Spearman's rho; null with fewer models than `fewest`")
    kendall: Correlation | None = figure("Kendall's tau-b; null with fewer models than `fewest`")
    scores: tuple[AverageScores, ...] = figure("a row per model")
    with_queries: float | None = figure("share of the scores whose queries are resampled", digits=0, percent=True)


def of_group(group: TaskGroup, scores: Mapping[str, TaskScores], against: str | None) -> Average:
    """Return the figures of a group: average scores, best first; missing scores; paired tests of models scored here."""
    tasks = [scores[task] for task in group.tasks]
    points = averages(tasks)
    lacking = {
        name: [task.name for task in tasks if name not in task.points]
        for name in dict.fromkeys(name for task in tasks for name in task.points)
    }
    paired = [name for name in points if all(name in task_scores.drawn for task_scores in tasks)]
    drawn = {name: np.mean([task_scores.drawn[name] for task_scores in tasks], axis=0) for name in paired}
    table = np.column_stack([drawn[name] for name in paired]) if paired else np.empty((REPLICATES, 0))
    pairs = significance.compare_bootstrapped(paired, [points[name] for name in paired], table, 1)
    pairs_shown = pairs if against is None else significance.against(pairs, against)
    items = min((task_scores.items for task_scores in tasks), default=0)
    means = {
        name: from_replicates(points[name], drawn[name], items)
        if name in drawn
        else Figure(round(points[name], DIGITS))
        for name in sorted(points, key=lambda name: (-points[name], name))
    }
    detectable = significance.detectable(pairs, 1)
    measures = {task_scores.measure for task_scores in tasks}
    measure = measures.pop() if len(measures) == 1 else None
    return Average(
        name=group.name,
        statistic="mean" if measure or len(tasks) == 1 else MIXED,
        measure=measure,
        tasks=tuple(group.tasks),
        given=group.given,
        models=tuple(
            AveragedModel(name, name in drawn, round(points[name], DIGITS), mean.low, mean.high)
            for name, mean in means.items()
        ),
        missing=tuple(LackingModel(name, tuple(task_names)) for name, task_names in lacking.items() if task_names),
        against=against,
        pairs=tuple(
            AveragePair(pair.one, pair.other, pair.difference, pair.p, pair.adjusted, pair.smallest)
            for pair in (pair.rounded() for pair in pairs_shown)
        ),
        # the queries of several tasks have no common spread
        detectable=detectable and replace(detectable, spread=None),
    )


def of_orders(
    groups: Sequence[TaskGroup], scores: Mapping[str, TaskScores], seed: int, replicates: int = REPLICATES
) -> list[GroupComparison]:
    """Return the rank correlations of user-defined groups without a common task, over models with both averages."""
    given_groups = [group for group in groups if group.given]
    return [
        _compare_groups(first, second, scores, seed, replicates)
        for first, second in combinations(given_groups, 2)
        if not set(first.tasks) & set(second.tasks)
    ]


def averages(tasks: Sequence[TaskScores]) -> dict[str, float]:
    """Return model -> mean score, for models with a score on every task."""
    names = [name for name in tasks[0].points if all(name in task.points for task in tasks)]
    return {name: float(np.mean([task.points[name] for task in tasks])) for name in names}


def _compare_groups(
    first_group: TaskGroup, second_group: TaskGroup, scores: Mapping[str, TaskScores], seed: int, replicates: int
) -> GroupComparison:
    sides = [[scores[task] for task in group.tasks] for group in (first_group, second_group)]
    points = [averages(side) for side in sides]
    names = [name for name in points[0] if name in points[1]]
    chosen = np.random.default_rng([seed, 1]).integers(0, max(len(names), 1), size=(replicates, len(names)))
    first, second = (
        np.take_along_axis(_resampled(side, names, replicates), chosen, axis=1) if names else np.empty((replicates, 0))
        for side in sides
    )
    rho, tau = correlated([np.array([point[name] for name in names]) for point in points], (first, second), seed)
    resampled = sum(name in task_scores.drawn for side in sides for task_scores in side for name in names)
    return GroupComparison(
        one=first_group.name,
        other=second_group.name,
        models=len(names),
        fewest=FEWEST,
        spearman=rho,
        kendall=tau,
        scores=tuple(AverageScores(name, *(round(point[name], DIGITS) for point in points)) for name in names),
        with_queries=round(resampled / (len(names) * sum(map(len, sides))), DIGITS) if names else None,
    )


def _resampled(tasks: Sequence[TaskScores], names: Sequence[str], replicates: int) -> Floats:
    """Return average scores on resampled queries, shape (replicates, models); a score without queries is constant."""
    columns = [
        [
            task.drawn[name][:replicates] if name in task.drawn else np.full(replicates, task.points[name])
            for name in names
        ]
        for task in tasks
    ]
    return np.asarray(np.mean(columns, axis=0)).T


# Comparisons across tasks: averages, models with mteb results, one model against all others.


class ResultModelScores(Record, schema_name="result_model"):
    """A further model of a result folder."""

    model: str = figure("name of the model")
    revision: str = figure("its revision")
    scores: Mapping[str, float] = figure("task -> main score")


@dataclass(frozen=True)
class Comparison:
    """Checked options, and the models of the result folders."""

    groups: Sequence[TaskGroup]
    against: str | None
    models: Sequence[ResultModel]
    measures: Mapping[str, str | None]
    """Task with results -> mteb's name of its measure; None if it is not known."""
    left_out: Sequence[results_folders.LeftOutResult]


def prepared(
    average: Sequence[str],
    results: Sequence[Path],
    against: str | None,
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    dims: Sequence[int] = (),
) -> Comparison:
    """Return the checked options with the results of the folders; ConfigError or UserError for invalid ones.

    `average` are groups of tasks, as NAME=TASK,TASK. `results` are folders of mteb results, whose models are compared
    without query scores. `against` is the model against which all others are tested, with Holm's adjustment over these
    pairs only.
    """
    names = [
        name for model in models for name in (model.name, *(model.at(width) for width in dims if model.has_vectors))
    ]
    if against is not None and against not in names:
        raise ConfigError(f"--against {against}: not among the models; {suggestion(against, names)}")
    scored_here = {task.name: task for task in tasks}
    with_results = results_folders.task_names(results)
    groups = parsed(average, [*scored_here, *with_results])
    compared = dict.fromkeys([*(task for group in groups for task in group.tasks), *scored_here])
    expected = [
        results_folders.expected(scored_here[name]) if name in scored_here else results_folders.expected_by_name(name)
        for name in compared
        if name in with_results
    ]
    if results and not expected:
        raise ConfigError(
            f"--results: none of the {len(with_results)} tasks with results is scored here; name some with --average "
            f"NAME=TASK,TASK, such as {with_results[0]}"
        )
    result_models, left_out = results_folders.read(results, expected)
    measures = {task.name: task.main for task in expected}
    used_models, excluded = _merged(result_models, models, left_out)
    return Comparison(groups, against, used_models, measures, excluded)


def _merged(
    result_models: Sequence[ResultModel],
    models: Sequence[EvaluatedModel],
    left_out: Sequence[results_folders.LeftOutResult],
) -> tuple[list[ResultModel], list[results_folders.LeftOutResult]]:
    """Return the result models without the scores of other revisions than are scored here, and all excluded ones."""
    revision_by_name = {model.name: model.revision for model in models}
    used_models, excluded = list[ResultModel](), list[results_folders.LeftOutResult]()
    for model in result_models:
        same = model.of_revision(revision_by_name[model.name]) if model.name in revision_by_name else model
        used_models += [same] if same.scores else []
        excluded += [
            results_folders.LeftOutResult(f"{model.name}, revision {revision}", "another revision than is scored here")
            for revision in dict.fromkeys(model.revisions.values())
            if revision not in same.revisions.values()
        ]
    return used_models, [*left_out, *excluded]


class AcrossTasks(NamedTuple):
    """Comparisons across tasks."""

    averages: tuple[Average, ...]
    orders: tuple[GroupComparison, ...]
    results: tuple[ResultModelScores, ...]
    unused: tuple[results_folders.LeftOutResult, ...]
    parameters: tuple[ParameterCounts, ...]


def figures(
    comparison: Comparison, names: Sequence[str], boards: Sequence[Board], new: Mapping[str, str], seed: int
) -> AcrossTasks:
    """Return averages, correlations of groups, models with results, and parameters; `new` maps a task to its type."""
    scores = gathered(boards, comparison.models, comparison.measures, seed)
    groups = [group for group in (*comparison.groups, *of_kinds(new)) if all(t in scores for t in group.tasks)]
    parameters_by_model = {
        **{model.name: model.parameters for model in comparison.models},
        **parameters.of_names(names),
    }
    return AcrossTasks(
        tuple(of_group(group, scores, comparison.against) for group in groups),
        tuple(of_orders(groups, scores, seed)),
        tuple(ResultModelScores(model.name, model.revision, model.scores) for model in comparison.models),
        tuple(comparison.left_out),
        tuple(
            ParameterCounts(name, count.query, count.document, count.source)
            for name, count in parameters_by_model.items()
        ),
    )


def notes(comparison: Comparison, figures: AcrossTasks, scored: Sequence[EvaluatedModel] = ()) -> list[str]:
    """Return notes on missing averages, on correlations, and on tests against one model."""
    sentences = [
        f"{group.name}: {len(group.missing)} models have no average, as they lack a score on a task: "
        f"{', '.join(model.model for model in group.missing[:5])}{' ...' if len(group.missing) > 5 else ''}"
        for group in figures.averages
        if group.missing
    ]
    sentences += [
        f"{order.one} and {order.other}: the orders of {order.models} models are not compared; that takes "
        f"{order.fewest}, and says little even then"
        for order in figures.orders
        if order.models < order.fewest
    ]
    without_scores = {group.name for group in comparison.groups} - {group.name for group in figures.averages}
    sentences += [f"--average {name}: no model has a score on all of its tasks" for name in sorted(without_scores)]
    if comparison.against is not None and comparison.against not in {model.name for model in scored}:
        sentences.append(
            f"--against {comparison.against}: no model was tested against it, as it was not scored at that width"
        )
    return [*sentences, *results_folders.notes(comparison.left_out)]
