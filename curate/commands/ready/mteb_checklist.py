"""mteb's checklist for a data set that is added: ticked where there is evidence, else with what is open."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint
from curate.commands.ready.published_results import PublishedResults
from curate.commands.ready.statistics import Statistics
from curate.commands.ready.task_source import rules

WRITE = "WRITE HERE"
"""What stands where only a person can write."""


@dataclass(frozen=True)
class ChecklistItem:
    """One line of mteb's checklist."""

    text: str
    open: str = ""
    """What is open; empty for what is ticked."""
    below: bool = False
    """Whether it is a part of the line above it."""


def items(
    known: ReadyEvidence,
    points: Sequence[ReadyPoint],
    statistics: Mapping[str, Statistics],
    results: PublishedResults,
) -> Iterator[ChecklistItem]:
    """Yield the lines in mteb's order; `points` are all of ours, those of the pull request too."""
    texts = rules()["checklist"]
    yield ChecklistItem(texts["gap"], "only you know it")
    unscored = [name for name in known.tasks if name not in known.scores]
    yield ChecklistItem(texts["runs"], f"no scores of {', '.join(unscored)} as exported now" if unscored else "")
    yield from _models(known, results, texts)
    yield ChecklistItem(texts["difficulty"], _open(points, "neither trivial nor random"))
    yield ChecklistItem(texts["size"].replace("LARGEST", f"{rules()['largest']:,}"), _large(statistics))
    yield ChecklistItem(texts["metadata"], _open(points, "licence", "metadata"))
    yield ChecklistItem(texts["texts"], _open(points, "texts", "lengths"))
    yield ChecklistItem(texts["name"], _open(points, "name"))
    yield ChecklistItem(texts["hub"], _open(points, "hub"))


def _models(known: ReadyEvidence, results: PublishedResults, texts: Mapping[str, str]) -> Iterator[ChecklistItem]:
    lacking = {model: ", ".join(results.lacks(model)) for model in [*rules()["models"], known.rules["random"]]}
    said = {model: f"no result on {tasks}" if tasks else "" for model, tasks in lacking.items()}
    yield ChecklistItem(texts["models"], "as below" if any(said[model] for model in rules()["models"]) else "")
    for model in rules()["models"]:
        yield ChecklistItem(texts["model"].replace("MODEL", model), said[model], below=True)
    random = known.rules["random"]
    yield ChecklistItem(texts["random"].replace("MODEL", random), said[random])


def _open(points: Sequence[ReadyPoint], *names: str) -> str:
    """Return what is open of points of these names, or that begin with one and a colon."""
    meant = [each for each in points if each.name.partition(":")[0] in names]
    said = [f"{each.name.partition(': ')[2]}: {each.found}".removeprefix(": ") for each in meant if each.state != "ok"]
    return "; ".join(said) if meant else f"{', '.join(names)} was not looked at"


def _large(statistics: Mapping[str, Statistics]) -> str:
    """Return which tasks have more examples than mteb thinks enough: queries, or rows where nothing is searched."""
    tests = {task: found["test"] for task, found in statistics.items()}
    sizes = {task: test.get("num_queries") or test["num_samples"] for task, test in tests.items()}
    most = rules()["largest"]
    large = [f"{task} has {size:,}" for task, size in sizes.items() if size > most]
    return f"{', '.join(large)}; say why, or draw fewer" if large else ""
