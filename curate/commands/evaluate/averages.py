"""Averages over groups of tasks, and rank correlation of two groups or benchmarks over the same models.

With few models a correlation is uncertain: rho = 0.354 of 14 models, for example, is compatible with -0.22 and 0.74. So
it has a p-value and an interval from resampling models and queries together, and is omitted below eight models.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import mteb_results, parameters
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.mteb_results import ResultModel
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.core.figures import Figure
from curate.stats import significance
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.rank_correlation import kendall, spearman_of_scores
from curate.stats.significance import ModelPair, Replicated, replicas
from curate.stats.tally import Floats

FEWEST = 8
"""Minimum number of models for a correlation."""
SHUFFLES = 9_999
EXACT = 40_320
"""Maximum number of permutations that are all evaluated: 8!, those of eight models."""


@dataclass(frozen=True)
class Correlation:
    """A rank correlation, -1 to 1, with its 95 % interval and two-sided p-value."""

    value: float
    low: float | None
    high: float | None
    p: float
    p_by: str
    """Name of the test of `p`: all permutations (exact), or random ones."""
    p_t: float | None = None
    """p-value of Spearman's rho by the t distribution, as in scipy; None for Kendall's tau-b."""


@dataclass(frozen=True)
class Compared:
    """Rank correlations of two benchmarks over the same models."""

    models: int
    spearman: Correlation | None
    """None below eight models, or if all scores are equal."""
    kendall: Correlation | None
    """Kendall's tau-b; None as for `spearman`."""


@dataclass(frozen=True)
class BenchmarkScores:
    """Scores of models on one benchmark as functions of resampled queries, and the number of its queries."""

    scores: Sequence[Replicated]
    """One score function per model, in the same order on both benchmarks."""
    queries: int


def compare(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, *, same_queries: bool = False, replicates: int = 1000
) -> Compared:
    """Return the rank correlations of two benchmarks over the same models.

    Each replicate of the interval draws models with replacement, and queries of both benchmarks: the same ones with
    `same_queries` (both have the same queries in the same order), else independently. p is two-sided, from all
    permutations of the models or 9,999 random ones.
    """
    models = len(new.scores)
    if models < FEWEST:
        return Compared(models, None, None)
    drawn = _draw(new, old, seed, replicates, same_queries=same_queries)
    points = [np.array([float(score(np.ones((1, side.queries)))[0]) for score in side.scores]) for side in (new, old)]
    return Compared(models, *correlated(points, drawn, seed))


def correlated(
    points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> tuple[Correlation | None, Correlation | None]:
    """Return Spearman's rho and Kendall's tau-b of two scorings of the same models; (None, None) below eight models.

    `drawn` are the scores of resampled models, two arrays of shape (replicates, models).
    """
    if len(points[0]) < FEWEST:
        return None, None
    rho, tau = (_order(measure, points, drawn, seed) for measure in (spearman_of_scores, kendall))
    return rho and replace(rho, p_t=by_t(rho.value, len(points[0]))), tau


def by_t(rho: float, models: int) -> float:
    """Return the two-sided p-value of rho under no correlation, by Student's t with n - 2 degrees of freedom."""
    from scipy.special import stdtr

    unexplained = 1 - rho * rho
    return (
        round(float(2 * stdtr(models - 2, -abs(rho) * math.sqrt((models - 2) / unexplained))), DIGITS)
        if unexplained > 0
        else 0.0
    )


def _order(
    measure: Callable[[Floats, Floats], Floats],
    points: Sequence[Floats],
    replicate_scores: tuple[Floats, Floats],
    seed: int,
) -> Correlation | None:
    correlation = float(measure(points[0], points[1]))
    if np.isnan(correlation):
        return None
    number = math.factorial(len(points[1]))
    if number <= EXACT:
        shuffled, test = np.array(list(permutations(points[1]))), f"exact, all {number:,} orders"
    else:
        copies = np.tile(points[1], (SHUFFLES, 1))
        shuffled = np.random.default_rng(seed).permuted(copies, axis=1)
        test = f"permutation, {SHUFFLES:,} random orders"
    # 1e-12: permutations that differ from the observed correlation in the last bits count as equal
    n_extreme = int((np.abs(measure(points[0], shuffled)) >= abs(correlation) - 1e-12).sum())
    p = n_extreme / len(shuffled) if number <= EXACT else (1 + n_extreme) / (1 + SHUFFLES)
    figures = measure(*replicate_scores)
    defined = figures[~np.isnan(figures)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (None, None)
    bounds = [None if bound is None else round(float(bound), DIGITS) for bound in (low, high)]
    return Correlation(round(correlation, DIGITS), bounds[0], bounds[1], round(p, DIGITS), test)


def _draw(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, replicates: int, *, same_queries: bool
) -> tuple[Floats, Floats]:
    """Return the scores of resampled models on resampled queries, two arrays of shape (replicates, models)."""
    models = len(new.scores)
    chosen = np.random.default_rng([seed, 1]).integers(0, models, size=(replicates, models))
    salts = (seed, seed if same_queries else seed + 1)
    new_scores, old_scores = (
        np.take_along_axis(replicas(side.scores, side.queries, salt, replicates), chosen, axis=1)
        for side, salt in zip((new, old), salts, strict=True)
    )
    return new_scores, old_scores


# Averages over groups of tasks, and rank correlation of two groups.

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


def gathered(boards: Sequence[Board], models: Sequence[ResultModel], seed: int) -> dict[str, TaskScores]:
    """Return task -> scores, first of models scored here, then of models with mteb results."""
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
            board.task.name, board.items, dict(zip(names, main, strict=True)), columns
        )
    for model in models:
        for task, score in model.scores.items():
            scores_by_task.setdefault(task, TaskScores(task)).points.setdefault(model.name, score)
    return scores_by_task


def of_group(group: TaskGroup, scores: Mapping[str, TaskScores], against: str | None) -> dict[str, Json]:
    """Return the figures of a group: average scores, best first; missing scores; paired tests of models scored here."""
    tasks = [scores[task] for task in group.tasks]
    points = averages(tasks)
    lacking = {
        name: [task.name for task in tasks if name not in task.points]
        for name in dict.fromkeys(name for task in tasks for name in task.points)
    }
    missing: list[Json] = [{"model": name, "tasks": task_names} for name, task_names in lacking.items() if task_names]
    paired = [name for name in points if all(name in task_scores.drawn for task_scores in tasks)]
    drawn = {name: np.mean([task_scores.drawn[name] for task_scores in tasks], axis=0) for name in paired}
    table = np.column_stack([drawn[name] for name in paired]) if paired else np.empty((REPLICATES, 0))
    pairs = significance.compare_bootstrapped(paired, [points[name] for name in paired], table, 1)
    pairs_shown = pairs if against is None else significance.against(pairs, against)
    items = min((task_scores.items for task_scores in tasks), default=0)
    figures = {
        name: from_replicates(points[name], drawn[name], items)
        if name in drawn
        else Figure(round(points[name], DIGITS))
        for name in sorted(points, key=lambda name: (-points[name], name))
    }
    return {
        "name": group.name,
        "tasks": list(group.tasks),
        "given": group.given,
        "models": [{"model": name, "paired": name in drawn, **figure.to_json()} for name, figure in figures.items()],
        "missing": missing,
        "against": against,
        "pairs": [
            {
                name: round(figure, DIGITS) if isinstance(figure, float) else figure
                for name, figure in asdict(pair).items()
                if name != "enough"
            }
            for pair in pairs_shown
        ],
        "detectable": _detectable(pairs),
    }


def of_orders(
    groups: Sequence[TaskGroup], scores: Mapping[str, TaskScores], seed: int, replicates: int = REPLICATES
) -> list[dict[str, Json]]:
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
) -> dict[str, Json]:
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
    return {
        "one": first_group.name,
        "other": second_group.name,
        "models": len(names),
        "fewest": FEWEST,
        "spearman": asdict(rho) if rho else None,
        "kendall": asdict(tau) if tau else None,
        "scores": [
            {
                "model": name,
                **{key: round(point[name], DIGITS) for key, point in zip(("one", "other"), points, strict=True)},
            }
            for name in names
        ],
        "with_queries": round(resampled / (len(names) * sum(map(len, sides))), DIGITS) if names else None,
    }


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


def _detectable(pairs: Sequence[significance.ModelPair]) -> dict[str, Json] | None:
    """Return the minimum detectable differences of averages, without `spread`, which is defined for one task only."""
    differences = significance.detectable(pairs, 1)
    return (
        None
        if differences is None
        else {name: round(difference, DIGITS) for name, difference in asdict(differences).items() if name != "spread"}
    )


# Comparisons across tasks: averages, models with mteb results, one model against all others.


@dataclass(frozen=True)
class ComparisonOptions:
    """Options for comparisons beyond those of models on single tasks."""

    average: Sequence[str] = ()
    """Groups of tasks, as NAME=TASK,TASK."""
    results: Sequence[Path] = ()
    """Folders of mteb results; their models are compared without query scores."""
    against: str | None = None
    """Model against which all others are tested, with Holm's adjustment over these pairs only."""


@dataclass(frozen=True)
class Comparison:
    """Checked options, and the models of the result folders."""

    groups: Sequence[TaskGroup]
    against: str | None
    models: Sequence[ResultModel]
    left: Sequence[mteb_results.LeftOutResult]


def prepared(
    order: ComparisonOptions,
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    dims: Sequence[int] = (),
) -> Comparison:
    """Return the checked options with the results of the folders; ConfigError or UserError for invalid ones."""
    names = [
        name for model in models for name in (model.name, *(model.at(width) for width in dims if model.has_vectors))
    ]
    if order.against is not None and order.against not in names:
        raise ConfigError(f"--against {order.against}: not among the models; {suggestion(order.against, names)}")
    scored_here = {task.name: task for task in tasks}
    with_results = mteb_results.task_names(order.results)
    groups = parsed(order.average, [*scored_here, *with_results])
    compared = dict.fromkeys([*(task for group in groups for task in group.tasks), *scored_here])
    expected = [
        mteb_results.expected(scored_here[name]) if name in scored_here else mteb_results.expected_by_name(name)
        for name in compared
        if name in with_results
    ]
    if order.results and not expected:
        raise ConfigError(
            f"--results: none of the {len(with_results)} tasks with results is scored here; name some with --average "
            f"NAME=TASK,TASK, such as {with_results[0]}"
        )
    result_models, left_out = mteb_results.read(order.results, expected)
    return Comparison(groups, order.against, *_merged(result_models, models, left_out))


def _merged(
    result_models: Sequence[ResultModel],
    models: Sequence[EvaluatedModel],
    left_out: Sequence[mteb_results.LeftOutResult],
) -> tuple[list[ResultModel], list[mteb_results.LeftOutResult]]:
    """Return the result models without those that are scored here in another revision, and all excluded ones."""
    revision_by_name = {model.name: model.revision for model in models}
    other_revision = [
        model
        for model in result_models
        if model.name in revision_by_name and revision_by_name[model.name] != model.revision
    ]
    excluded = [
        mteb_results.LeftOutResult(f"{model.name}, revision {model.revision}", "another revision than is scored here")
        for model in other_revision
    ]
    return [model for model in result_models if model not in other_revision], [*left_out, *excluded]


def figures(
    comparison: Comparison, names: Sequence[str], boards: Sequence[Board], new: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Return averages, correlations of groups, models with results, and parameters; `new` maps a task to its type."""
    scores = gathered(boards, comparison.models, seed)
    groups = [group for group in (*comparison.groups, *of_kinds(new)) if all(t in scores for t in group.tasks)]
    parameters_by_model = {
        **{model.name: model.parameters for model in comparison.models},
        **parameters.of_names(names),
    }
    return {
        "averages": [of_group(group, scores, comparison.against) for group in groups],
        "orders": of_orders(groups, scores, seed),
        "results": [
            {"model": model.name, "revision": model.revision, "scores": dict(model.scores)}
            for model in comparison.models
        ],
        "parameters": [{"model": name, **count.shown()} for name, count in parameters_by_model.items()],
    }


def of_pairs(pairs: Sequence[Mapping[str, Any]], items: int, against: str | None) -> dict[str, Json]:
    """Return a task's minimum detectable differences, and its tests against the model `against`, if given."""
    model_pairs = [ModelPair(**pair) for pair in pairs]
    differences = significance.detectable(model_pairs, items)
    detectable = (
        None
        if differences is None
        else {name: round(difference, DIGITS) for name, difference in asdict(differences).items()}
    )
    return {
        "detectable": detectable,
        "against_model": None
        if against is None
        else [asdict(pair) for pair in significance.against(model_pairs, against)],
    }


def notes(comparison: Comparison, figures: Mapping[str, Any], scored: Sequence[EvaluatedModel] = ()) -> list[str]:
    """Return notes on missing averages, on correlations, and on tests against one model."""
    sentences = [
        f"{group['name']}: {len(group['missing'])} models have no average, as they lack a score on a task: "
        f"{', '.join(model['model'] for model in group['missing'][:5])}{' ...' if len(group['missing']) > 5 else ''}"
        for group in figures["averages"]
        if group["missing"]
    ]
    sentences += [
        f"{order['one']} and {order['other']}: the orders of {order['models']} models are not compared; that takes "
        f"{order['fewest']}, and says little even then"
        for order in figures["orders"]
        if order["models"] < order["fewest"]
    ]
    without_scores = {group.name for group in comparison.groups} - {group["name"] for group in figures["averages"]}
    sentences += [f"--average {name}: no model has a score on all of its tasks" for name in sorted(without_scores)]
    if comparison.against is not None and comparison.against not in {model.name for model in scored}:
        sentences.append(
            f"--against {comparison.against}: no model was tested against it, as it was not scored at that width"
        )
    return [*sentences, *mteb_results.notes(comparison.left)]
