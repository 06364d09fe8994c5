"""Averages over groups of tasks, and how alike two groups order the models.

An average is the mean of stock mteb's scores, as papers print it. A model without a score on one of the tasks has no
average of the group, and is listed with what it lacks. Queries are resampled where their scores are known: tasks with
the same queries together, others by themselves. Models of result folders have none and are in no paired test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations

import numpy as np

from curate.commands.evaluate.board import Board
from curate.commands.evaluate.distinctness import FEWEST, correlated
from curate.commands.evaluate.results_folder import ResultModel
from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.stats import significance
from curate.stats.bootstrap import DIGITS, Figure, from_replicates
from curate.stats.replicated import replicas
from curate.stats.tally import Floats

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
    rho, tau = correlated([np.array([each[name] for name in names]) for each in points], (first, second), seed)
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
                **{key: round(each[name], DIGITS) for key, each in zip(("one", "other"), points, strict=True)},
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
