"""A speed pass over one task: encoding of queries and search, measured apart; kept by task and machine."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import machine
from curate.commands.evaluate.contestants import SearchContestant, SpeedContestant, of_bm25, of_model, of_vectors
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.tasks import EvaluationTask
from curate.commands.evaluate.timing import BATCH, REPEATS, WARM_UPS, Timings, in_turn, ratio
from curate.core.config import Json, digest
from curate.core.errors import RunFailed
from curate.core.progress import StepLabel, furthest
from curate.core.protocols import Progress
from curate.core.sampling import shuffled
from curate.system.files import read_json, write_json

QUERIES = 1_000
SEARCHED = 256
"""Queries that search is timed on: it depends on them little."""
VERSION = 1
COLUMNS = ("text", "sentence1", "sentences")
"""Where tasks have their queries, sentences, or texts."""

Row = dict[str, Any]


def measured(
    models: Sequence[EvaluatedModel], task: EvaluationTask, queries: int, seed: int, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Return a speed pass of all models over one task, and keep it in `folder` by task and machine."""
    texts = _texts(task, queries, seed)
    contestants = [of_model(model, task, texts) for model in models]
    before = machine.load()
    asks = {each.name: each.encode for each in contestants if each.encode is not None}
    label = StepLabel(f"timing queries, {task.name}", "queries")
    encoded = in_turn(asks, len(texts), _told(progress, label, asks, len(texts))) if asks else {}
    searches = _searches(models, contestants, task, texts, seed)
    few = min(SEARCHED, len(texts))
    label = StepLabel(f"timing search, {task.name}", "queries")
    asked = {name: each.ask for name, each in searches.items()}
    searched = in_turn(asked, few, _told(progress, label, asked, few)) if asked else {}
    found: dict[str, Any] = {
        "version": VERSION,
        "task": task.name,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.identity(),
        "threads": machine.threads(),
        "load": {"before": before, "after": machine.load()},
        "queries": len(texts),
        "wanted": queries,
        "characters": _lengths(texts),
        "batch": BATCH,
        "warm_ups": WARM_UPS,
        "repeats": REPEATS,
        "searched": few if searches else None,
        "documents": len(task.data["corpus"]) if task.scorer.searched else None,
        "models": [_row(each, encoded, searches, searched) for each in contestants],
        "ratios": _ratios(encoded),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_json(_path(task, folder), found)
    return found


def of_tasks(
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    queries: int | None,
    seed: int,
    folder: Path,
    progress: Progress,
) -> dict[str, dict[str, Any]]:
    """Return task -> its speed pass: measured now on so many queries, or with None what this machine measured last."""
    names = [model.name for model in models]
    if queries is None:
        found = {task.name: kept(task, names, folder) for task in tasks}
        return {name: each for name, each in found.items() if each is not None}
    fit = {
        task.name: [model for model in models if model.has_vectors or task.scorer.searched] for task in _to_time(tasks)
    }
    return {
        task.name: measured(fit[task.name], task, queries, seed, folder, progress)
        for task in tasks
        if fit.get(task.name)
    }


def _to_time(tasks: Sequence[EvaluationTask]) -> list[EvaluationTask]:
    """Return the tasks whose corpus is searched, else the first: other tasks of an export have the same queries."""
    return [task for task in tasks if task.scorer.searched] or list(tasks[:1])


def kept(task: EvaluationTask, models: Sequence[str], folder: Path) -> dict[str, Any] | None:
    """Return the last pass of this machine over a task, with those of its models that are named; None without one."""
    path = _path(task, folder)
    if not path.is_file() or (found := read_json(path)).get("version") != VERSION:
        return None
    rows = [row for row in found["models"] if row["model"] in models]
    ratios = [row for row in found["ratios"] if {row["one"], row["other"]} <= {*models}]
    return {**found, "models": rows, "ratios": ratios} if rows else None


def notes(speed: Mapping[str, Any]) -> list[str]:
    """Return what must be known before a speed is used."""
    name, before = speed["task"], speed["load"]["before"]
    said = []
    if speed["queries"] < speed["wanted"]:
        said.append(f"{name}: speed of {speed['queries']:,} queries, all that the task has, not of {speed['wanted']:,}")
    if before is not None and before > speed["machine"]["cores"] / 2:
        said.append(
            f"{name}: speed was measured under load ({before:g} on {speed['machine']['cores']} cores): latencies are "
            "too long, and ratios per processor second hold better than those by the wall"
        )
    said += [
        f"{name}: search of {row['model']} was timed on {row['search_rows']:,} of {speed['documents']:,} documents"
        for row in speed["models"]
        if row["search_rows"] is not None and row["search_rows"] < speed["documents"]
    ]
    return said


def _path(task: EvaluationTask, folder: Path) -> Path:
    return folder / f"{digest([task.content, task.kind.mteb.type, machine.identity()['id']])}.json"


def _texts(task: EvaluationTask, queries: int, seed: int) -> list[str]:
    """Return queries of a task, drawn by the seed; of a task without queries its sentences or texts."""
    data = task.data
    rows = data if hasattr(data, "column_names") else data["queries"]
    column = next((name for name in COLUMNS if name in rows.column_names), None)
    if column is None:
        raise RunFailed(
            f"{task.name}: --speed found the columns {', '.join(rows.column_names)}, expected one of "
            f"{', '.join(COLUMNS)}; leave it out for this task"
        )
    texts = [str(text) for text in rows[column] if isinstance(text, str)]
    return list(shuffled(texts, seed))[:queries]


def _searches(
    models: Sequence[EvaluatedModel],
    contestants: Sequence[SpeedContestant],
    task: EvaluationTask,
    texts: Sequence[str],
    seed: int,
) -> dict[str, SearchContestant]:
    """Return width or name -> search, where a corpus is searched; models of one width share one."""
    if not task.scorer.searched:
        return {}
    documents = len(task.data["corpus"])
    widths = sorted({each.dim for each in contestants if each.dim is not None})
    found = {str(dim): of_vectors(dim, documents, min(SEARCHED, len(texts)), seed) for dim in widths}
    return found | {model.name: of_bm25(model, task, texts) for model in models if not model.has_vectors}


def _row(
    each: SpeedContestant,
    encoded: Mapping[str, Timings],
    searches: Mapping[str, SearchContestant],
    searched: Mapping[str, Timings],
) -> Row:
    by = each.name if each.dim is None else str(each.dim)
    encoding = encoded[each.name].shown() if each.name in encoded else None
    search = searched[by].shown() if by in searched else None
    rates = [part["qps"] for part in (encoding, search) if part]
    return {
        "model": each.name,
        "device": each.device,
        "dtypes": list(each.dtypes),
        "max_length": each.max_length,
        "dim": each.dim,
        "encoding": encoding,
        "search": search,
        "search_rows": searches[by].rows if by in searches else None,
        "index_bytes": searches[by].index_bytes if by in searches else None,
        "qps": round(1 / sum(1 / rate for rate in rates), 3),
    }


def _ratios(encoded: Mapping[str, Timings]) -> list[Row]:
    """Return how many times as fast each model encodes as the slowest of them, the fastest first."""
    rates = {name: each.shown()["qps"] for name, each in encoded.items()}
    order = sorted(rates, key=lambda name: -rates[name])
    return [{"one": name, "other": order[-1], **ratio(encoded[name], encoded[order[-1]])} for name in order[:-1]]


def _lengths(texts: Sequence[str]) -> dict[str, Json]:
    counts = [len(text) for text in texts]
    return {"median": float(np.median(counts)), "p95": float(np.quantile(counts, 0.95))}


def _told(progress: Progress, label: str, asks: Mapping[str, object], queries: int) -> Callable[[int], None]:
    return furthest(progress, label, len(asks) * queries * REPEATS)
