"""Tables of a run for a paper: tasks, agreement, audit, scores; each only where the run measured it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curate.evaluation.paper.table import Cell, PaperTable
from curate.evaluation.paper.table import Shown as Value
from curate.evaluation.publish.evidence import ReadyEvidence

Words = Mapping[str, Any]
TEXTS = ("text", "sentence1", "sentence2")
"""Columns whose lengths are shown."""


@dataclass(frozen=True)
class Absent:
    """A table that the run does not give, why, and what to type."""

    table: str
    why: str
    next: str


@dataclass(frozen=True)
class PaperContents:
    """What a run gives for a paper."""

    tables: Sequence[PaperTable]
    absent: Sequence[Absent]


def contents(known: ReadyEvidence, words: Words) -> PaperContents:
    """Return the tables that a run with an export gives, and those that it lacks."""
    made = [make(known, words) for make in (_agreement, _audit, _evaluation)]
    tables = [each for found in made if not isinstance(found, Absent) for each in found]
    absent = [found for found in made if isinstance(found, Absent)]
    return PaperContents([_statistics(known, words["statistics"]), *tables], absent)


def _statistics(known: ReadyEvidence, words: Words) -> PaperTable:
    rows = [row for folder in known.folders for row in _tables(folder, known.fronts[folder.name])]
    caption = words["caption"].format(name=known.context.name, language=known.context.language)
    return PaperTable("statistics", caption, words["heads"], rows)


def _tables(folder: Path, front: Mapping[str, Any]) -> Iterator[list[Value]]:
    """Yield a row per table of a task: rows, rows per query of labels, and the median length of its texts."""
    for config in front["configs"]:
        for file in config["data_files"]:
            table = pl.scan_parquet(folder / file["path"])
            names = table.collect_schema().names()
            columns = [name for name in TEXTS if name in names and table.collect_schema()[name] == pl.String]
            lengths = [pl.col(name).str.len_chars().alias(name) for name in columns]
            count = int(table.select(pl.len()).collect().item())
            asked = next((name for name in ("query-id", "query_id") if name in names), None)
            queries = None if asked is None else int(table.select(pl.col(asked).n_unique()).collect().item())
            chars = table.select(pl.concat_list(lengths).explode().median()).collect().item() if columns else None
            yield [
                front["mteb"]["name"],
                front["mteb"]["type"],
                config["config_name"],
                file["split"],
                count,
                Cell(count / queries, digits=2) if queries else None,
                Cell(chars, digits=0) if chars is not None else None,
            ]


def _agreement(known: ReadyEvidence, words: Words) -> list[PaperTable] | Absent:
    found = known.written("consensus", "agreement.json")
    if found is None or len(found["panel"]) < 2:
        return Absent("agreement", "fewer than two judges rated", known.command("judges"))
    sides = [found["all_grades"], found["cut"]]
    about = {
        "name": known.context.name,
        "judges": len(found["panel"]),
        "items": f"{sides[1]['items']:,}",
        "queries": f"{found['counts']['queries']:,}",
    }
    rows: list[list[Value]] = [
        [said, *(_ranged(side.get(name), side["intervals"].get(name)) for side in sides)]
        for name, said in words["agreement"]["rows"].items()
    ]
    whole = PaperTable("agreement", words["agreement"]["caption"].format(**about), words["agreement"]["heads"], rows)
    by_pair = [{tuple(each["raters"]): each for each in side["pairs_of_raters"]} for side in sides]
    kinds = ("quadratic", "nominal")
    pairs: list[list[Value]] = [
        [
            " / ".join(pair),
            *(
                _ranged(side[pair][kind], side[pair]["intervals"].get(kind)) if pair in side else None
                for side, kind in zip(by_pair, kinds, strict=True)
            ),
        ]
        for pair in by_pair[1]
    ]
    two = PaperTable("judges", words["judges"]["caption"].format(**about), words["judges"]["heads"], pairs)
    return [whole, two]


def _ranged(value: float | None, bounds: Sequence[float] | None) -> Cell:
    low, high = bounds or (None, None)
    return Cell(value, low, high, digits=3)


def _audit(known: ReadyEvidence, words: Words) -> list[PaperTable] | Absent:
    found = known.written("audit", "audit.json")
    if found is None:
        return Absent("audit", "no labels of others were audited in this run", "curate audit --help")
    measures, said, panel = found["measures"], words["audit"], known.written("judge", "panel.json") or {}
    rows: list[list[Value]] = [
        [name, Cell(each["mean"], each["low"], each["high"]), each["total"]]
        for key, name in said["rows"].items()
        if (each := measures.get(key)) is not None
    ]
    queries = measures["labels"]["spread"]["measured"]
    caption = said["caption"].format(name=known.context.name, judges=len(panel), queries=f"{queries:,}")
    return [PaperTable("audit", caption, said["heads"], rows)]


def _evaluation(known: ReadyEvidence, words: Words) -> list[PaperTable] | Absent:
    """Return scores of all models on all tasks, and per task the tests of neighbours."""
    if not known.scores:
        why = "models were not scored on this export" if known.evaluation is None else "scores are of an older export"
        return Absent("evaluation", why, f"curate evaluate {shlex.quote(str(known.run.folder))}")
    said, tasks = words["evaluation"], list(known.scores.values())
    circular = {each["model"] for each in known.evaluation["models"] if each["circular"]} if known.evaluation else set()
    by_task = [{each["model"]: each for each in task["scores"]} for task in tasks]
    models = sorted({name for each in by_task for name in each})
    heads = [said["model"], *(_task(said["task"], task) for task in tasks)]
    made = []
    for name, readings in (("evaluation", [task["lead"] for task in tasks]), ("mteb", ["stock"] * len(tasks))):
        rows: list[list[Value]] = [
            [
                f"{model} *" if model in circular else model,
                *(_score(by.get(model), reading, by) for by, reading in zip(by_task, readings, strict=True)),
            ]
            for model in models
        ]
        caption = said["captions"][name].format(
            name=known.context.name,
            tasks=", ".join(
                f"{head}: {said['readings'][reading]}" for head, reading in zip(heads[1:], readings, strict=True)
            ),
            circular=said["circular"] if circular & {*models} else "",
        )
        made.append(PaperTable(name, caption.strip(), heads, rows))
    return [*(made[:1] if made[0].rows == made[1].rows else made), *_neighbours(tasks, said)]


def _task(form: str, task: Mapping[str, Any]) -> str:
    return form.format(task=task["name"], shown=task["shown"], queries=f"{task['queries']:,}")


def _score(score: Mapping[str, Any] | None, reading: str, others: Mapping[str, Mapping[str, Any]]) -> Value:
    """Return a model's score in one reading; the best of all models is bold."""
    if score is None or score.get(reading) is None:
        return None
    values = [each[reading]["value"] for each in others.values() if each.get(reading) is not None]
    known = [value for value in values if value is not None]
    value = score[reading]["value"]
    return Cell.of(score[reading], 2, 100.0, best=value is not None and value == max(known))


def _neighbours(tasks: Sequence[Mapping[str, Any]], said: Words) -> Iterator[PaperTable]:
    for task in tasks:
        tested = (task.get("enough") or {}).get("neighbours") or []
        if not tested:
            continue
        rows: list[list[Value]] = [
            [each["one"], each["other"], Cell(each["difference"], digits=2, factor=100.0), _p(each["adjusted"])]
            for each in tested
        ]
        caption = said["pairs_caption"].format(
            task=task["name"], shown=task["shown"], queries=f"{task['queries']:,}", tests=len(task["pairs"])
        )
        yield PaperTable(f"differences-{task['name']}", caption, said["pairs"], rows)


def _p(value: float | None) -> Value:
    return None if value is None else Cell(value, digits=4)
