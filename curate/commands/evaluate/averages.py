"""Rank correlation of two benchmarks over the same models, with p and an interval.

Models are few and a correlation of few is worth little, so both come with p and with an interval that resamples models
and queries together, and below eight models with neither: rho = 0.354 of 14 models, for one, is compatible with -0.22
as well as with 0.74.
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
from curate.stats import significance
from curate.stats.bootstrap import DIGITS, Figure, from_replicates
from curate.stats.rank_correlation import kendall, spearman
from curate.stats.replicated import Replicated, replicas
from curate.stats.significance import ModelPair
from curate.stats.tally import Floats

FEWEST = 8
"""Models below which no correlation is given."""
SHUFFLES = 9_999
EXACT = 40_320
"""Orders that are all counted: those of eight models."""


@dataclass(frozen=True)
class Correlation:
    """How alike two orders are, -1 to 1, with the 95 % interval and p of no correlation."""

    value: float
    low: float | None
    high: float | None
    p: float
    p_by: str
    """The test that p is of: all orders of the models, where they are few, or a sample of them."""
    p_t: float | None = None
    """p of Spearman's rho by the t distribution, which is what papers and scipy print; None for Kendall's tau-b."""


@dataclass(frozen=True)
class Compared:
    """Two benchmarks, by the scores that the same models have on them."""

    models: int
    spearman: Correlation | None
    """None below eight models, or where all models have one score."""
    kendall: Correlation | None
    """Tau-b, likewise."""


@dataclass(frozen=True)
class BenchmarkScores:
    """One benchmark: what scores every model, in the order of the models, and its number of queries."""

    scores: Sequence[Replicated]
    """Every model's score on resampled queries."""
    queries: int


def compare(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, *, same_queries: bool = False, replicates: int = 1000
) -> Compared:
    """Return how alike the orders are that two benchmarks put the same models in.

    An interval's replicate draws models with replacement, and queries of both sides: the same ones where
    `same_queries` says that their rows are the same queries, else independently. p is that of all orders of the models,
    or of 9,999 random ones, two-sided.
    """
    models = len(new.scores)
    if models < FEWEST:
        return Compared(models, None, None)
    drawn = _drawn(new, old, seed, replicates, same_queries=same_queries)
    points = [np.array([float(score(np.ones((1, side.queries)))[0]) for score in side.scores]) for side in (new, old)]
    return Compared(models, *correlated(points, drawn, seed))


def correlated(
    points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> tuple[Correlation | None, Correlation | None]:
    """Return Spearman's rho and Kendall's tau-b of two scorings of the same models; neither below eight models.

    `drawn` are the scores of resampled models, shape (replicates, models) each.
    """
    if len(points[0]) < FEWEST:
        return None, None
    rho, tau = (_order(measure, points, drawn, seed) for measure in (spearman, kendall))
    return rho and replace(rho, p_t=by_t(rho.value, len(points[0]))), tau


def by_t(rho: float, models: int) -> float:
    """Return p of no correlation, two-sided, by Student's t with n - 2 degrees of freedom."""
    from scipy.special import stdtr

    left = 1 - rho * rho
    return round(float(2 * stdtr(models - 2, -abs(rho) * math.sqrt((models - 2) / left))), DIGITS) if left > 0 else 0.0


def _shuffled(scores: Floats, seed: int) -> tuple[Floats, str]:
    """Return other orders of the scores, all of them where that is few, and the name of the test that they make."""
    if (number := math.factorial(len(scores))) <= EXACT:
        return np.array(list(permutations(scores))), f"exact, all {number:,} orders"
    shuffled = np.random.default_rng(seed).permuted(np.tile(scores, (SHUFFLES, 1)), axis=1)
    return shuffled, f"permutation, {SHUFFLES:,} random orders"


def _order(
    measure: Callable[[Floats, Floats], Floats], points: Sequence[Floats], drawn: tuple[Floats, Floats], seed: int
) -> Correlation | None:
    value = float(measure(points[0], points[1]))
    if np.isnan(value):
        return None
    shuffled, named = _shuffled(points[1], seed)
    far = int((np.abs(measure(points[0], shuffled)) >= abs(value) - 1e-12).sum())
    p = far / len(shuffled) if named.startswith("exact") else (1 + far) / (1 + SHUFFLES)
    figures = measure(*drawn)
    defined = figures[~np.isnan(figures)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (None, None)
    ends = [None if end is None else round(float(end), DIGITS) for end in (low, high)]
    return Correlation(round(value, DIGITS), ends[0], ends[1], round(p, DIGITS), named)


def _drawn(
    new: BenchmarkScores, old: BenchmarkScores, seed: int, replicates: int, *, same_queries: bool
) -> tuple[Floats, Floats]:
    """Return the scores of resampled models on resampled queries; both of shape (replicates, models)."""
    models = len(new.scores)
    chosen = np.random.default_rng([seed, 1]).integers(0, models, size=(replicates, models))
    salts = (seed, seed if same_queries else seed + 1)
    one, other = (
        np.take_along_axis(replicas(side.scores, side.queries, salt, replicates), chosen, axis=1)
        for side, salt in zip((new, old), salts, strict=True)
    )
    return one, other


# Averages over groups of tasks, and how alike two groups order the models.

REPLICATES = 2_000


@dataclass(frozen=True)
class TaskGroup:
    """Tasks whose scores are averaged."""

    name: str
    tasks: Sequence[str]
    given: bool = True
    """Whether a user named it; else it holds all new tasks of one kind."""


@dataclass(frozen=True)
class TaskScores:
    """What every model scores on one task, and what those with queries score on resampled ones."""

    name: str
    items: int = 0
    points: dict[str, float] = field(default_factory=dict)
    drawn: dict[str, Floats] = field(default_factory=dict)


def parsed(given: Sequence[str], known: Sequence[str]) -> list[TaskGroup]:
    """Return the groups of `--average NAME=TASK,TASK`; ConfigError names what is wrong with one."""
    groups = [_parsed(each, known) for each in given]
    names = [group.name for group in groups]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"--average: found several groups named {', '.join(twice)}; give each a name of its own")
    return groups


def _parsed(given: str, known: Sequence[str]) -> TaskGroup:
    name, _, rest = given.partition("=")
    tasks = [task for task in rest.split(",") if task]
    if not name or not tasks:
        raise ConfigError(f"--average {given}: expected NAME=TASK,TASK, such as legacy=CMedQAv1-reranking,Mine")
    if len(set(tasks)) < len(tasks):
        raise ConfigError(f"--average {given}: found a task twice; name each once")
    if unknown := [task for task in tasks if task not in known]:
        raise ConfigError(f"--average {given}: no scores of the task {unknown[0]}; {suggestion(unknown[0], known)}")
    return TaskGroup(name, tasks)


def of_kinds(kinds: Mapping[str, str]) -> list[TaskGroup]:
    """Return a group per kind that has several tasks; `kinds` holds the kind of every new task."""
    by_kind = {kind: [task for task, mine in kinds.items() if mine == kind] for kind in sorted(set(kinds.values()))}
    return [TaskGroup(kind, tasks, given=False) for kind, tasks in by_kind.items() if len(tasks) > 1]


def gathered(boards: Sequence[Board], models: Sequence[ResultModel], seed: int) -> dict[str, TaskScores]:
    """Return task -> scores of models that were scored here, and of those that have results; the former come first."""
    found: dict[str, TaskScores] = {}
    seen: list[list[str]] = []
    for board in boards:
        queries = board.scored[0].queries
        if queries not in seen:
            seen.append(queries)
        scores = board.scores(board.scored)
        drawn = replicas(scores, board.items, seed + seen.index(queries), REPLICATES)
        main = np.array([each.main for each in board.scored])
        if board.task.scorer.centred:
            drawn = drawn - np.nanmean(drawn, axis=0) + main
        names = [each.model for each in board.scored]
        columns = dict(zip(names, drawn.T, strict=True))
        found[board.task.name] = TaskScores(board.task.name, board.items, dict(zip(names, main, strict=True)), columns)
    for model in models:
        for task, score in model.scores.items():
            found.setdefault(task, TaskScores(task)).points.setdefault(model.name, score)
    return found


def of_group(group: TaskGroup, scores: Mapping[str, TaskScores], against: str | None) -> dict[str, Json]:
    """Return the figures of one group: averages best first, who lacks what, and paired tests of models with queries."""
    parts = [scores[task] for task in group.tasks]
    points, missing = averages(parts), _missing(parts)
    paired = [name for name in points if all(name in part.drawn for part in parts)]
    drawn = {name: np.mean([part.drawn[name] for part in parts], axis=0) for name in paired}
    table = np.column_stack([drawn[name] for name in paired]) if paired else np.empty((REPLICATES, 0))
    pairs = significance.compare_bootstrapped(paired, [points[name] for name in paired], table, 1)
    shown = pairs if against is None else significance.against(pairs, against)
    items = min((part.items for part in parts), default=0)
    order = sorted(points, key=lambda name: (-points[name], name))
    return {
        "name": group.name,
        "tasks": list(group.tasks),
        "given": group.given,
        "models": [
            {"model": name, "paired": name in drawn, **_figure(points[name], drawn.get(name), items).shown()}
            for name in order
        ],
        "missing": missing,
        "against": against,
        "pairs": [_pair(pair) for pair in shown],
        "detectable": _detectable(pairs),
    }


def of_orders(
    groups: Sequence[TaskGroup], scores: Mapping[str, TaskScores], seed: int, replicates: int = REPLICATES
) -> list[dict[str, Json]]:
    """Return how alike every two given groups without a common task order the models that both have averages of."""
    given = [group for group in groups if group.given]
    return [
        _alike(one, other, scores, seed, replicates)
        for one, other in combinations(given, 2)
        if not set(one.tasks) & set(other.tasks)
    ]


def averages(parts: Sequence[TaskScores]) -> dict[str, float]:
    """Return model -> mean of its scores, for models that have a score on every task."""
    names = [name for name in parts[0].points if all(name in part.points for part in parts)]
    return {name: float(np.mean([part.points[name] for part in parts])) for name in names}


def _missing(parts: Sequence[TaskScores]) -> list[Json]:
    names = dict.fromkeys(name for part in parts for name in part.points)
    lacking = {name: [part.name for part in parts if name not in part.points] for name in names}
    return [{"model": name, "tasks": tasks} for name, tasks in lacking.items() if tasks]


def _alike(
    one: TaskGroup, other: TaskGroup, scores: Mapping[str, TaskScores], seed: int, replicates: int
) -> dict[str, Json]:
    sides = [[scores[task] for task in group.tasks] for group in (one, other)]
    points = [averages(side) for side in sides]
    names = [name for name in points[0] if name in points[1]]
    chosen = np.random.default_rng([seed, 1]).integers(0, max(len(names), 1), size=(replicates, len(names)))
    first, second = (
        np.take_along_axis(_resampled(side, names, replicates), chosen, axis=1) if names else np.empty((replicates, 0))
        for side in sides
    )
    rho, tau = correlated([np.array([point[name] for name in names]) for point in points], (first, second), seed)
    resampled = sum(name in part.drawn for side in sides for part in side for name in names)
    return {
        "one": one.name,
        "other": other.name,
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


def _resampled(parts: Sequence[TaskScores], names: Sequence[str], replicates: int) -> Floats:
    """Return averages on resampled queries, shape (replicates, models); a score without queries stays what it is."""
    columns = [
        [
            part.drawn[name][:replicates] if name in part.drawn else np.full(replicates, part.points[name])
            for name in names
        ]
        for part in parts
    ]
    return np.asarray(np.mean(columns, axis=0)).T


def _figure(value: float, drawn: Floats | None, items: int) -> Figure:
    return Figure(round(value, DIGITS)) if drawn is None else from_replicates(value, drawn, items)


def _pair(pair: significance.ModelPair) -> dict[str, Json]:
    kept = {name: value for name, value in asdict(pair).items() if name != "enough"}
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in kept.items()}


def _detectable(pairs: Sequence[significance.ModelPair]) -> dict[str, Json] | None:
    """Return the smallest differences of averages, for the queries at hand; there is no one spread per query."""
    found = significance.detectable(pairs, 1)
    return (
        None
        if found is None
        else {name: round(value, DIGITS) for name, value in asdict(found).items() if name != "spread"}
    )


# Comparisons that papers print, beside the figures of single tasks: averages, further models, one model against all.


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared beside the models on single tasks."""

    average: Sequence[str] = ()
    """Groups of tasks, each as NAME=TASK,TASK."""
    results: Sequence[Path] = ()
    """Folders of mteb results, whose models are compared without queries."""
    against: str | None = None
    """Model that every other one is tested against, with Holm over these pairs alone."""


@dataclass(frozen=True)
class Comparison:
    """Checked options, with what the result folders hold."""

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
    """Return the comparison that was asked for; ConfigError or UserError if it cannot be made."""
    names = [
        name for model in models for name in (model.name, *(model.at(width) for width in dims if model.has_vectors))
    ]
    if order.against is not None and order.against not in names:
        raise ConfigError(f"--against {order.against}: not among the models; {suggestion(order.against, names)}")
    here = {task.name: task for task in tasks}
    there = mteb_results.task_names(order.results)
    groups = parsed(order.average, [*here, *there])
    wanted = dict.fromkeys([*(task for group in groups for task in group.tasks), *here])
    expected = [
        mteb_results.expected(here[name]) if name in here else mteb_results.expected_by_name(name)
        for name in wanted
        if name in there
    ]
    if order.results and not expected:
        raise ConfigError(
            f"--results: none of the {len(there)} tasks with results is scored here; name some with --average "
            f"NAME=TASK,TASK, such as {there[0]}"
        )
    found, left = mteb_results.read(order.results, expected)
    return Comparison(groups, order.against, *_merged(found, models, left))


def _merged(
    found: Sequence[ResultModel], models: Sequence[EvaluatedModel], left: Sequence[mteb_results.LeftOutResult]
) -> tuple[list[ResultModel], list[mteb_results.LeftOutResult]]:
    """Leave results out of a model that is scored here in another revision; the same one is completed by them."""
    here = {model.name: model.revision for model in models}
    other = [each for each in found if each.name in here and here[each.name] != each.revision]
    more = [
        mteb_results.LeftOutResult(f"{each.name}, revision {each.revision}", "another revision than is scored here")
        for each in other
    ]
    return [each for each in found if each not in other], [*left, *more]


def figures(
    comparison: Comparison, names: Sequence[str], boards: Sequence[Board], new: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Return averages, orders of groups, further models and parameters; `names` as given, `new` task -> kind."""
    scores = gathered(boards, comparison.models, seed)
    groups = [group for group in (*comparison.groups, *of_kinds(new)) if all(t in scores for t in group.tasks)]
    known = {**{model.name: model.parameters for model in comparison.models}, **parameters.of_names(names)}
    return {
        "averages": [of_group(group, scores, comparison.against) for group in groups],
        "orders": of_orders(groups, scores, seed),
        "results": [
            {"model": model.name, "revision": model.revision, "scores": dict(model.scores)}
            for model in comparison.models
        ],
        "parameters": [{"model": name, **each.shown()} for name, each in known.items()],
    }


def of_pairs(pairs: Sequence[Mapping[str, Any]], items: int, against: str | None) -> dict[str, Json]:
    """Return what a task's items show of two models, and the tests against one model alone where one was named."""
    known = [ModelPair(**pair) for pair in pairs]
    found = significance.detectable(known, items)
    shown = None if found is None else {name: round(value, DIGITS) for name, value in asdict(found).items()}
    return {
        "detectable": shown,
        "against_model": None if against is None else [asdict(pair) for pair in significance.against(known, against)],
    }


def notes(comparison: Comparison, found: Mapping[str, Any], scored: Sequence[EvaluatedModel] = ()) -> list[str]:
    """Return what must be known before an average is used, or a test against one model is missed."""
    said = [
        f"{group['name']}: {len(group['missing'])} models have no average, as they lack a score on a task: "
        f"{', '.join(each['model'] for each in group['missing'][:5])}{' ...' if len(group['missing']) > 5 else ''}"
        for group in found["averages"]
        if group["missing"]
    ]
    said += [
        f"{each['one']} and {each['other']}: the orders of {each['models']} models are not compared; that takes "
        f"{each['fewest']}, and says little even then"
        for each in found["orders"]
        if each["models"] < each["fewest"]
    ]
    asked = {group.name for group in comparison.groups} - {group["name"] for group in found["averages"]}
    said += [f"--average {name}: no model has a score on all of its tasks" for name in sorted(asked)]
    if comparison.against is not None and comparison.against not in {model.name for model in scored}:
        said.append(
            f"--against {comparison.against}: no model was tested against it, as it was not scored at that width"
        )
    return [*said, *mteb_results.notes(comparison.left)]
