"""Tables of an evaluation: scores in two ways of scoring, significance tests of neighbours in the ranking, speed."""

from collections.abc import Sequence
from typing import Any

from curate.commands.paper.evidence import Figures
from curate.commands.paper.latex import Cell, PaperTable, Shown

Words = dict[str, Any]
POINTS = 100.0
STOCK = "stock"
"""Name of mteb's default scoring: a contested or unjudged pair counts as not relevant."""


def scores(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return the table of scores in each task's leading scoring; None without scores.

    One row per model, the best first, then one per trivial baseline.
    """
    about = words["listed"].join(described(task, words) for task in tasks)
    return _score_table("scores", tasks, [task["lead"] for task in tasks], about, words)


def stock_scores(tasks: Sequence[Figures], words: Words, results: Sequence[Figures] = ()) -> PaperTable | None:
    """Return the table `scores` in mteb's default scoring, with models from published results.

    None if that scoring leads on every task and there are no published results.
    """
    about = words["listed"].join(_task_words(task, words) for task in tasks)
    names = {task["name"] for task in tasks}
    others = [result for result in results if names & {*result["scores"]}]
    if not others and all(task["lead"] == STOCK for task in tasks):
        return None
    return _score_table("scores-mteb", tasks, [STOCK] * len(tasks), about, words, others)


def _score_table(
    name: str,
    tasks: Sequence[Figures],
    readings: Sequence[str],
    about: str,
    words: Words,
    others: Sequence[Figures] = (),
) -> PaperTable | None:
    if not tasks:
        return None
    texts = words["tables"]["scores"]
    heads = [texts["model"], *(f"{task['name']}, {task['shown']}" for task in tasks)]
    mean = [texts["mean"]] if len(tasks) > 1 else []
    rows = [_scores(model, tasks, readings, words) for model in _ranked_models(tasks)]
    rows += [_published_row(result, tasks) for result in others]
    caption = texts["captions"][name].format(tasks=about)
    published = (
        [texts["others"].format(models=words["names"].join(result["model"] for result in others))] if others else []
    )
    caption = words["joint"].join([caption, texts["how"], *published, *circular(tasks, words)])
    return PaperTable(name, caption, [*heads, *mean], rows if mean else [row[:-1] for row in rows])


def described(task: Figures, words: Words) -> str:
    """Return a phrase on a task for captions: measure, number of queries, and scoring of contested pairs."""
    if not task["verdicts"]:
        return _task_words(task, words)
    text = words["tables"]["scores"]["led"]
    return str(text.format(task=_task_words(task, words), lead=words["leads"][task["lead"]]))


def _task_words(task: Figures, words: Words) -> str:
    return str(words["tables"]["scores"]["task"].format(**named(task, words)))


def named(task: Figures, words: Words) -> dict[str, str]:
    """Return the fields of a task to fill into captions: name, measure, number of queries or other units."""
    unit = words["units"].get(task["unit"], task["unit"])
    return {"name": task["name"], "measure": task["shown"], "n": f"{task['queries']:,}", "unit": unit}


def _ranked_models(tasks: Sequence[Figures]) -> list[str]:
    """Return the models, those with most tasks first, then by mean score; trivial baselines last."""
    scores_by_model: dict[str, list[float]] = {}
    for task in tasks:
        for row in task["scores"]:
            scores_by_model.setdefault(row["model"], []).append(row["lead"])
    order = sorted(scores_by_model, key=lambda name: (-len(scores_by_model[name]), -sum(scores_by_model[name]), name))
    return [*order, *dict.fromkeys(row["model"] for task in tasks for row in task["floors"])]


def _scores(model: str, tasks: Sequence[Figures], readings: Sequence[str], words: Words) -> list[Shown]:
    """Return a model's row of scores and mean; the best score of a task is bold, except for trivial baselines."""
    rows = [next((row for row in (*task["scores"], *task["floors"]) if row["model"] == model), None) for task in tasks]
    model_scores = [row[reading]["value"] if row else None for row, reading in zip(rows, readings, strict=True)]
    task_scores = [
        [row[reading]["value"] for row in task["scores"]] for task, reading in zip(tasks, readings, strict=True)
    ]
    best = [max((score for score in scores if score is not None), default=None) for scores in task_scores]
    cells = [
        Cell.of(row[reading], 2, POINTS, best="floor" not in row and row[reading]["value"] == top)
        if row
        else Cell(None)
        for row, reading, top in zip(rows, readings, best, strict=True)
    ]
    defined = [score for score in model_scores if score is not None]
    mean = sum(defined) / len(defined) if len(defined) == len(tasks) else None
    return [marked(model, tasks, words), *cells, Cell(mean, factor=POINTS)]


def _published_row(result: Figures, tasks: Sequence[Figures]) -> list[Shown]:
    """Return the row of a model from published mteb results, without intervals."""
    task_scores = [result["scores"][task["name"]] for task in tasks if task["name"] in result["scores"]]
    mean = sum(task_scores) / len(task_scores) if len(task_scores) == len(tasks) else None
    values = [*(result["scores"].get(task["name"]) for task in tasks), mean]
    return [result["model"], *(Cell(score, factor=POINTS) for score in values)]


def marked(model: str, tasks: Sequence[Figures], words: Words) -> str:
    """Return a model's display name, marked if it is a contributor (retriever, judge, generator) to a task."""
    return str(words["mark"].format(model=model)) if any(model in task["circular"] for task in tasks) else model


def circular(tasks: Sequence[Figures], words: Words) -> list[str]:
    """Return the legend of the contributors' mark for a caption; [] if no model has it."""
    return [words["circular"]] if any(task["circular"] for task in tasks) else []


def differences(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return the table of differences between neighbours in the system ranking, with significance tests.

    None if no task has two models.
    """
    texts, compared = words["tables"]["differences"], [task for task in tasks if task["enough"]["neighbours"]]
    if not compared:
        return None
    rows: list[Sequence[Shown]] = [
        [
            task["name"],
            pair["one"],
            pair["other"],
            Cell(pair["difference"], factor=POINTS),
            Cell(pair["p"], digits=4),
            Cell(pair["adjusted"], digits=4),
            pair["enough"],
        ]
        for task in compared
        for pair in task["enough"]["neighbours"]
    ]
    tests = [
        texts["test"].format(
            **named(task, words),
            how=texts["randomisation" if task["exchanged"] else "bootstrap"],
            pairs=len(task["pairs"]),
        )
        for task in compared
    ]
    caption = texts["caption"].format(
        tests=words["listed"].join(tests),
        told=sum(task["enough"]["told_apart"] for task in compared),
        neighbours=len(rows),
    )
    return PaperTable("differences", caption, texts["heads"], rows, keys=3)


def timed(tasks: Sequence[Figures]) -> list[Figures]:
    """Return the tasks for which the speed of models was measured."""
    return [task for task in tasks if task.get("speed")]


def speed(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return the table of speed, one row per task and model, the fastest first; None if not measured."""
    texts, measured = words["tables"]["speed"], timed(tasks)
    if not measured:
        return None
    rows = [
        _speed_row(task["name"], row)
        for task in measured
        for row in sorted(task["speed"]["models"], key=lambda row: (-row["qps"], row["model"]))
    ]
    descriptions = [texts["task"].format(name=task["name"], **on_machine(task["speed"])) for task in measured]
    return PaperTable(
        "speed", texts["caption"].format(tasks=words["listed"].join(descriptions)), texts["heads"], rows, keys=2
    )


def timed_on(task: Figures, words: Words) -> str:
    """Return a phrase for captions with task, measure, and conditions of the speed measurement."""
    about = named(task, words) | on_machine(task["speed"])
    return str(words["figures"]["quality-speed"]["task"].format(**about))


def on_machine(figures: Figures) -> dict[str, Any]:
    """Return the conditions of a speed measurement to fill into captions: queries, repeats, batch, machine."""
    machine = figures["machine"]
    return {
        "queries": f"{figures['queries']:,}",
        "repeats": figures["repeats"],
        "batch": figures["batch"],
        "processor": ", ".join([machine["processor"], *machine["gpus"]]),
        "cores": machine["cores"],
    }


def _speed_row(task: str, row: Figures) -> list[Shown]:
    encoding, search = row["encoding"], row["search"]
    rate = Cell(encoding["qps"], encoding["qps_low"], encoding["qps_high"], 1) if encoding else Cell(None)
    p50, p95 = (Cell(encoding[name] if encoding else None) for name in ("p50_ms", "p95_ms"))
    return [task, row["model"], Cell(row["qps"], digits=1), rate, p50, p95,
            Cell(search["p50_ms"] if search else None), row["device"]]  # fmt: skip
