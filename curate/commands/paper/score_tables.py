"""Tables of an evaluation: scores with intervals in two readings, tests between neighbours in the order, speed."""

from collections.abc import Sequence
from typing import Any

from curate.commands.paper.evidence import Figures
from curate.commands.paper.latex import Cell, PaperTable, Shown

Words = dict[str, Any]
POINTS = 100.0
STOCK = "stock"
"""Reading of stock mteb: a contested or unjudged pair counts as not relevant."""


def scores(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per model, the best first, and one per floor, in the readings that lead; None without scores."""
    about = words["listed"].join(described(task, words) for task in tasks)
    return _scored("scores", tasks, [task["lead"] for task in tasks], about, words)


def stock_scores(tasks: Sequence[Figures], words: Words, results: Sequence[Figures] = ()) -> PaperTable | None:
    """Return the same as stock mteb scores it, with models that other people scored so.

    None where that reading leads on every task and nobody else scored one.
    """
    about = words["listed"].join(_of_task(task, words) for task in tasks)
    names = {task["name"] for task in tasks}
    others = [result for result in results if names & {*result["scores"]}]
    if not others and all(task["lead"] == STOCK for task in tasks):
        return None
    return _scored("scores-mteb", tasks, [STOCK] * len(tasks), about, words, others)


def _scored(
    name: str,
    tasks: Sequence[Figures],
    readings: Sequence[str],
    about: str,
    words: Words,
    others: Sequence[Figures] = (),
) -> PaperTable | None:
    if not tasks:
        return None
    said = words["tables"]["scores"]
    heads = [said["model"], *(f"{task['name']}, {task['shown']}" for task in tasks)]
    mean = [said["mean"]] if len(tasks) > 1 else []
    rows = [_scores(model, tasks, readings, words) for model in _ranked(tasks)]
    rows += [_of_others(each, tasks) for each in others]
    caption = said["captions"][name].format(tasks=about)
    theirs = [said["others"].format(models=words["names"].join(each["model"] for each in others))] if others else []
    caption = words["joint"].join([caption, said["how"], *theirs, *circular(tasks, words)])
    return PaperTable(name, caption, [*heads, *mean], rows if mean else [row[:-1] for row in rows])


def described(task: Figures, words: Words) -> str:
    """Return what a caption says of a task's scores: measure, how many, and how contested pairs count."""
    if not task["verdicts"]:
        return _of_task(task, words)
    said = words["tables"]["scores"]["led"]
    return str(said.format(task=_of_task(task, words), lead=words["leads"][task["lead"]]))


def _of_task(task: Figures, words: Words) -> str:
    return str(words["tables"]["scores"]["task"].format(**named(task, words)))


def named(task: Figures, words: Words) -> dict[str, str]:
    """Return what every caption says of a task: name, measure, and how many of what it has."""
    unit = words["units"].get(task["unit"], task["unit"])
    return {"name": task["name"], "measure": task["shown"], "n": f"{task['queries']:,}", "unit": unit}


def _ranked(tasks: Sequence[Figures]) -> list[str]:
    """Return the models by their mean where all tasks have them, then the others, then the floors."""
    found: dict[str, list[float]] = {}
    for task in tasks:
        for row in task["scores"]:
            found.setdefault(row["model"], []).append(row["lead"])
    order = sorted(found, key=lambda name: (-len(found[name]), -sum(found[name]), name))
    return [*order, *dict.fromkeys(row["model"] for task in tasks for row in task["floors"])]


def _scores(model: str, tasks: Sequence[Figures], readings: Sequence[str], words: Words) -> list[Shown]:
    """Return a model's row; the best of a task in this reading is bold, and a floor never is."""
    rows = [next((row for row in (*task["scores"], *task["floors"]) if row["model"] == model), None) for task in tasks]
    values = [row[reading]["value"] if row else None for row, reading in zip(rows, readings, strict=True)]
    cells = [
        Cell.of(row[reading], 2, POINTS, best="floor" not in row and row[reading]["value"] == _best(task, reading))
        if row
        else Cell(None)
        for task, row, reading in zip(tasks, rows, readings, strict=True)
    ]
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if len(known) == len(tasks) else None
    return [marked(model, tasks, words), *cells, Cell(mean, factor=POINTS)]


def _of_others(result: Figures, tasks: Sequence[Figures]) -> list[Shown]:
    """Return the row of a model that other people scored: values of mteb's results, without intervals."""
    known = [result["scores"][task["name"]] for task in tasks if task["name"] in result["scores"]]
    mean = sum(known) / len(known) if len(known) == len(tasks) else None
    values = [*(result["scores"].get(task["name"]) for task in tasks), mean]
    return [result["model"], *(Cell(value, factor=POINTS) for value in values)]


def marked(model: str, tasks: Sequence[Figures], words: Words) -> str:
    """Return a model's name, with a mark if it had a part in making one of the tasks."""
    return str(words["mark"].format(model=model)) if any(model in task["circular"] for task in tasks) else model


def circular(tasks: Sequence[Figures], words: Words) -> list[str]:
    """Return what the mark means, as a caption has it; nothing where no model has it."""
    return [words["circular"]] if any(task["circular"] for task in tasks) else []


def _best(task: Figures, reading: str) -> float | None:
    return max((row[reading]["value"] for row in task["scores"] if row[reading]["value"] is not None), default=None)


def differences(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per two neighbours in the order of a task; None where no task has two models."""
    said, compared = words["tables"]["differences"], [task for task in tasks if task["enough"]["neighbours"]]
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
    caption = said["caption"].format(
        tests=words["listed"].join(_test(task, words) for task in compared),
        told=sum(task["enough"]["told_apart"] for task in compared),
        neighbours=len(rows),
    )
    return PaperTable("differences", caption, said["heads"], rows, keys=3)


def _test(task: Figures, words: Words) -> str:
    said = words["tables"]["differences"]
    how = said["randomisation" if task["exchanged"] else "bootstrap"]
    return str(said["test"].format(**named(task, words), how=how, pairs=len(task["pairs"])))


def timed(tasks: Sequence[Figures]) -> list[Figures]:
    """Return the tasks on whose queries the speed of models was measured."""
    return [task for task in tasks if task.get("speed")]


def speed(tasks: Sequence[Figures], words: Words) -> PaperTable | None:
    """Return a row per task and model, the fastest first; None where no speed was measured."""
    said, measured = words["tables"]["speed"], timed(tasks)
    if not measured:
        return None
    rows = [
        _speed(task["name"], row)
        for task in measured
        for row in sorted(task["speed"]["models"], key=lambda each: (-each["qps"], each["model"]))
    ]
    about = [said["task"].format(name=task["name"], **on_machine(task["speed"])) for task in measured]
    return PaperTable("speed", said["caption"].format(tasks=words["listed"].join(about)), said["heads"], rows, keys=2)


def timed_on(task: Figures, words: Words) -> str:
    """Return task, measure, and how and on what its speed was measured, for captions."""
    about = named(task, words) | on_machine(task["speed"])
    return str(words["figures"]["quality-speed"]["task"].format(**about))


def on_machine(found: Figures) -> dict[str, Any]:
    """Return how and on what a speed was measured, for captions."""
    made = found["machine"]
    return {
        "queries": f"{found['queries']:,}",
        "repeats": found["repeats"],
        "batch": found["batch"],
        "processor": ", ".join([made["processor"], *made["gpus"]]),
        "cores": made["cores"],
    }


def _speed(task: str, row: Figures) -> list[Shown]:
    encoding, search = row["encoding"], row["search"]
    rate = Cell(encoding["qps"], encoding["qps_low"], encoding["qps_high"], 1) if encoding else Cell(None)
    p50, p95 = (Cell(encoding[name] if encoding else None) for name in ("p50_ms", "p95_ms"))
    return [task, row["model"], Cell(row["qps"], digits=1), rate, p50, p95,
            Cell(search["p50_ms"] if search else None), row["device"]]  # fmt: skip
