"""Comparisons that papers print, beside the figures of single tasks: averages, further models, one model against all.

What a user asked is checked before any model is scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curate.commands.evaluate import averages, parameters, results_folder
from curate.commands.evaluate.averages import TaskGroup
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.results_folder import ResultModel
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.stats import significance
from curate.stats.bootstrap import DIGITS
from curate.stats.significance import ModelPair


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
    left: Sequence[results_folder.LeftOutResult]


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
    there = results_folder.task_names(order.results)
    groups = averages.parsed(order.average, [*here, *there])
    wanted = dict.fromkeys([*(task for group in groups for task in group.tasks), *here])
    expected = [
        results_folder.expected(here[name]) if name in here else results_folder.expected_by_name(name)
        for name in wanted
        if name in there
    ]
    if order.results and not expected:
        raise ConfigError(
            f"--results: none of the {len(there)} tasks with results is scored here; name some with --average "
            f"NAME=TASK,TASK, such as {there[0]}"
        )
    found, left = results_folder.read(order.results, expected)
    return Comparison(groups, order.against, *_merged(found, models, left))


def _merged(
    found: Sequence[ResultModel], models: Sequence[EvaluatedModel], left: Sequence[results_folder.LeftOutResult]
) -> tuple[list[ResultModel], list[results_folder.LeftOutResult]]:
    """Leave results out of a model that is scored here in another revision; the same one is completed by them."""
    here = {model.name: model.revision for model in models}
    other = [each for each in found if each.name in here and here[each.name] != each.revision]
    more = [
        results_folder.LeftOutResult(f"{each.name}, revision {each.revision}", "another revision than is scored here")
        for each in other
    ]
    return [each for each in found if each not in other], [*left, *more]


def figures(
    comparison: Comparison, names: Sequence[str], boards: Sequence[Board], new: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Return averages, orders of groups, further models and parameters; `names` as given, `new` task -> kind."""
    scores = averages.gathered(boards, comparison.models, seed)
    groups = [group for group in (*comparison.groups, *averages.of_kinds(new)) if all(t in scores for t in group.tasks)]
    known = {**{each.name: each.parameters for each in comparison.models}, **parameters.of_names(names)}
    return {
        "averages": [averages.of_group(group, scores, comparison.against) for group in groups],
        "orders": averages.of_orders(groups, scores, seed),
        "results": [
            {"model": each.name, "revision": each.revision, "scores": dict(each.scores)} for each in comparison.models
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
    return [*said, *results_folder.notes(comparison.left)]
