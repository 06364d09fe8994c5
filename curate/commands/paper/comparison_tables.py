"""Tables of an evaluation beyond single tasks: difficulty of queries, averages of groups, order on legacy tasks."""

from collections.abc import Iterator, Sequence
from typing import Any

from curate.commands.paper.evidence import Figures
from curate.commands.paper.latex import Cell, PaperTable, Shown
from curate.commands.paper.score_tables import POINTS, circular, marked, named
from curate.stats.difficulty import NAMES

Words = dict[str, Any]


def graded(tasks: Sequence[Figures]) -> list[Figures]:
    """Return the tasks whose queries were grouped by difficulty."""
    return [task for task in tasks if task.get("difficulty")]


def difficulty(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per task and model with its mean by BM25's best rank of a positive; None where BM25 was not scored.

    The first row of a task holds the share of its queries in each band.
    """
    said, found = words["tables"]["difficulty"], graded(tasks)
    if not found:
        return None
    rows = [row for task in found for row in _banded(task, words)]
    about = words["listed"].join(counted(task, words) for task in found)
    heads = [*said["heads"], *(words["ranks"][name] for name in NAMES)]
    caption = words["joint"].join([said["caption"].format(tasks=about), *circular(found, words)])
    return PaperTable("difficulty", caption, heads, rows, keys=2)


def counted(task: Figures, words: Words) -> str:
    """Return task, measure, and the number of queries in each band, for captions."""
    bands = ", ".join(f"{words['ranks'][band['best_rank']]}: {band['queries']:,}" for band in task["difficulty"])
    return str(words["tables"]["difficulty"]["task"].format(**named(task, words), bands=bands))


def _banded(task: Figures, words: Words) -> Iterator[list[Shown]]:
    bands = {band["best_rank"]: band for band in task["difficulty"]}
    shares = [Cell(bands[name]["share"] if name in bands else None, digits=1, factor=POINTS) for name in NAMES]
    yield [task["name"], words["tables"]["difficulty"]["share"], *shares]
    for model in (row["model"] for row in task["scores"]):
        means = [bands[name]["scores"][model] if name in bands else None for name in NAMES]
        yield [task["name"], marked(model, [task], words), *(Cell(mean, factor=POINTS) for mean in means)]


def averages(evaluation: Figures | None, scored: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per group of tasks and model, the best first; None without groups of today's export.

    A group may hold tasks that other people scored; those of this benchmark must be scored on today's labels.
    """
    if not evaluation or not scored:
        return None
    groups = [group for group in evaluation["averages"] if group["models"] and _current(group, evaluation, scored)]
    if not groups:
        return None
    said, names = words["tables"]["averages"], {group["name"] for group in groups}
    parts = [[task for task in scored if task["name"] in group["tasks"]] for group in groups]
    rows: list[Sequence[Shown]] = [
        [group["name"], marked(row["model"], tasks, words), Cell.of(row, 2, POINTS)]
        for group, tasks in zip(groups, parts, strict=True)
        for row in group["models"]
    ]
    about = [said["group"].format(name=group["name"], tasks=words["names"].join(group["tasks"])) for group in groups]
    orders = [each for each in evaluation["orders"] if {each["one"], each["other"]} <= names]
    alike = [_alike(order["one"], order["other"], order, words) for order in orders]
    caption = said["caption"].format(groups=words["listed"].join(about))
    sentences = [caption, *alike, *circular([task for tasks in parts for task in tasks], words)]
    return PaperTable("averages", words["joint"].join(sentences), said["heads"], rows, keys=2)


def _current(group: Figures, evaluation: Figures, scored: Sequence[Figures]) -> bool:
    mine, now = {task["name"] for task in evaluation["tasks"]}, {task["name"] for task in scored}
    return mine & {*group["tasks"]} <= now


def legacy(evaluation: Figures | None, scored: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per task, legacy task and model, with both scores; None where none was compared."""
    now, said = {task["name"]: task for task in scored}, words["tables"]["legacy"]
    compared = [each for each in evaluation["legacy"] if each["new"] in now] if evaluation and scored else []
    if not compared:
        return None
    rows: list[Sequence[Shown]] = [
        [each["new"], each["old"], marked(row["model"], [now[each["new"]]], words),
         *(Cell(row[side], factor=POINTS) for side in ("new", "old"))]
        for each in compared
        for row in sorted(each["scores"], key=lambda row: (-row["new"], row["model"]))
    ]  # fmt: skip
    alike = [_alike(each["new"], each["old"], each, words) for each in compared]
    sentences = [said["caption"], *alike, *circular([now[each["new"]] for each in compared], words)]
    return PaperTable("legacy", words["joint"].join(sentences), said["heads"], rows, keys=3)


def _alike(one: str, other: str, found: Figures, words: Words) -> str:
    """Return the sentence on how alike two orders of the models are: both correlations, or why there is none."""
    said, about = words["alike"], {"one": one, "other": other, "models": found["models"], "fewest": found["fewest"]}
    if not found["spearman"] or not found["kendall"]:
        return str(said["none"].format(**about))
    parts = {name: Cell.of(found[name], 3).shown() for name in ("spearman", "kendall")}
    tests = {f"{name}_p": f"{found[name]['p']:.4f}" for name in parts}
    return str(said["both"].format(**about, **parts, **tests))
