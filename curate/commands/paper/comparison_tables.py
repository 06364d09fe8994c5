"""Tables of an evaluation: scores by query difficulty, averages over groups of tasks, rank correlation of tasks."""

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
    """Return the table of mean scores by query difficulty, one row per task and model; None without BM25.

    Difficulty is the band of the best rank of a positive in BM25. The first row of a task has the share of its queries
    in each band.
    """
    texts, with_bands = words["tables"]["difficulty"], graded(tasks)
    if not with_bands:
        return None
    rows = [row for task in with_bands for row in _band_rows(task, words)]
    descriptions = words["listed"].join(counted(task, words) for task in with_bands)
    heads = [*texts["heads"], *(words["ranks"][name] for name in NAMES)]
    caption = words["joint"].join([texts["caption"].format(tasks=descriptions), *circular(with_bands, words)])
    return PaperTable("difficulty", caption, heads, rows, keys=2)


def counted(task: Figures, words: Words) -> str:
    """Return a phrase for captions with task, measure, and the number of queries in each band."""
    bands = ", ".join(f"{words['ranks'][band['best_rank']]}: {band['queries']:,}" for band in task["difficulty"])
    return str(words["tables"]["difficulty"]["task"].format(**named(task, words), bands=bands))


def _band_rows(task: Figures, words: Words) -> Iterator[list[Shown]]:
    bands = {band["best_rank"]: band for band in task["difficulty"]}
    shares = [Cell(bands[name]["share"] if name in bands else None, digits=1, factor=POINTS) for name in NAMES]
    yield [task["name"], words["tables"]["difficulty"]["share"], *shares]
    for model in (row["model"] for row in task["scores"]):
        means = [bands[name]["scores"][model] if name in bands else None for name in NAMES]
        yield [task["name"], marked(model, [task], words), *(Cell(mean, factor=POINTS) for mean in means)]


def averages(evaluation: Figures | None, scored: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return the table of mean scores over groups of tasks, one row per group and model, the best first.

    A group may contain tasks with published scores; tasks of this benchmark must be scored on the current export. None
    without such a group.
    """
    if not evaluation or not scored:
        return None
    outdated = {task["name"] for task in evaluation["tasks"]} - {task["name"] for task in scored}
    groups = [group for group in evaluation["averages"] if group["models"] and outdated.isdisjoint(group["tasks"])]
    if not groups:
        return None
    texts, names = words["tables"]["averages"], {group["name"] for group in groups}
    tasks_by_group = [[task for task in scored if task["name"] in group["tasks"]] for group in groups]
    rows: list[Sequence[Shown]] = [
        [group["name"], marked(row["model"], tasks, words), Cell.of(row, 2, POINTS)]
        for group, tasks in zip(groups, tasks_by_group, strict=True)
        for row in group["models"]
    ]
    descriptions = [
        texts["group"].format(name=group["name"], tasks=words["names"].join(group["tasks"])) for group in groups
    ]
    orders = [order for order in evaluation["orders"] if {order["one"], order["other"]} <= names]
    correlations = [_correlation(order["one"], order["other"], order, words) for order in orders]
    caption = texts["caption"].format(groups=words["listed"].join(descriptions))
    sentences = [caption, *correlations, *circular([task for tasks in tasks_by_group for task in tasks], words)]
    return PaperTable("averages", words["joint"].join(sentences), texts["heads"], rows, keys=2)


def legacy(evaluation: Figures | None, scored: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return the table of scores on a task and on a legacy task, one row per model; None if none was compared."""
    current, texts = {task["name"]: task for task in scored}, words["tables"]["legacy"]
    compared = (
        [comparison for comparison in evaluation["legacy"] if comparison["new"] in current]
        if evaluation and scored
        else []
    )
    if not compared:
        return None
    rows: list[Sequence[Shown]] = [
        [comparison["new"], comparison["old"], marked(row["model"], [current[comparison["new"]]], words),
         *(Cell(row[side], factor=POINTS) for side in ("new", "old"))]
        for comparison in compared
        for row in sorted(comparison["scores"], key=lambda row: (-row["new"], row["model"]))
    ]  # fmt: skip
    correlations = [_correlation(comparison["new"], comparison["old"], comparison, words) for comparison in compared]
    sentences = [
        texts["caption"],
        *correlations,
        *circular([current[comparison["new"]] for comparison in compared], words),
    ]
    return PaperTable("legacy", words["joint"].join(sentences), texts["heads"], rows, keys=3)


def _correlation(first: str, second: str, figures: Figures, words: Words) -> str:
    """Return the sentence on the rank correlation of two system rankings, or on why it is undefined."""
    texts = words["alike"]
    fields = {"one": first, "other": second, "models": figures["models"], "fewest": figures["fewest"]}
    if not figures["spearman"] or not figures["kendall"]:
        return str(texts["none"].format(**fields))
    coefficients = {name: Cell.of(figures[name], 3).shown() for name in ("spearman", "kendall")}
    tests = {f"{name}_p": f"{figures[name]['p']:.4f}" for name in coefficients}
    return str(texts["both"].format(**fields, **coefficients, **tests))
