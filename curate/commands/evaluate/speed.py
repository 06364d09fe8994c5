"""What a speed pass asks: models as they encode queries, and the search behind them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import timing
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.commands.evaluate.timing import BATCH, REPEATS, WARM_UPS, Ask, Timings, in_turn, ratio
from curate.core.config import Json, digest
from curate.core.errors import RunFailed
from curate.core.progress import StepLabel, furthest
from curate.core.protocols import Progress, Vectors, quiet
from curate.core.sampling import shuffled
from curate.retrieval.retrievers.bm25 import best_scores
from curate.retrieval.similarity.exact_search import top_k, unit
from curate.system import egress
from curate.system.files import read_json, write_json

DEPTH = 10
"""Documents that a search returns per query."""
REMOTE = "elsewhere"
"""Device of an encoder that sends texts to a service."""
LARGEST = 1 << 29
"""Bytes of the vectors that search is timed on; a larger index is timed on as many rows as fit, which is said."""


@dataclass(frozen=True)
class SpeedContestant:
    """One model: how it encodes queries, None for what only searches, and what is known of it."""

    name: str
    encode: Ask | None
    dim: int | None = None
    device: str = "cpu"
    dtypes: Sequence[str] = ()
    max_length: int | None = None


@dataclass(frozen=True)
class SearchContestant:
    """One way of searching: exact search among vectors of one width, or BM25."""

    ask: Ask
    rows: int
    """Documents that it was timed on."""
    index_bytes: int


@dataclass
class QueryBatch:
    """Texts in the form in which mteb gives them to its models: a loader of one batch."""

    texts: Sequence[str]
    collate_fn: Foreign = None
    features: tuple[str, ...] = ("text",)
    batches: list[dict[str, list[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.batches = [{"text": list(self.texts)}]

    @property
    def dataset(self) -> "QueryBatch":
        """Return what mteb looks into for columns."""
        return self

    def __iter__(self) -> Foreign:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


def of_model(model: EvaluatedModel, task: EvaluationTask, texts: Sequence[str]) -> SpeedContestant:
    """Return a model as it encodes these queries; its weights are loaded, and the first query is encoded."""
    if not model.has_vectors:
        return SpeedContestant(model.name, None)
    call = _call(model.loaded, task)
    weights = _weights(model.loaded)
    parameters = list(weights.parameters()) if hasattr(weights, "parameters") else []
    return SpeedContestant(
        model.name,
        lambda places: _arrived(call([texts[place] for place in places])),
        int(_arrived(call(texts[:1])).shape[1]),
        *_place(model.loaded, parameters),
        _longest(weights),
    )


def of_vectors(dim: int, documents: int, queries: int, seed: int) -> SearchContestant:
    """Return exact search among random vectors of a width: it takes as long whatever the vectors say."""
    rows = max(min(documents, LARGEST // (4 * dim)), 1)
    random = np.random.default_rng(seed)
    index = unit(random.standard_normal((rows, dim), dtype=np.float32))
    asked = unit(random.standard_normal((queries, dim), dtype=np.float32))
    ids = [str(row) for row in range(rows)]
    return SearchContestant(
        lambda places: list(top_k(asked[places.start : places.stop], index, ids, DEPTH)), rows, 4 * dim * documents
    )


def of_bm25(model: EvaluatedModel, task: EvaluationTask, texts: Sequence[str]) -> SearchContestant:
    """Return BM25's search, which cuts the queries into words itself."""
    searcher = model.loaded
    searcher.index(task.data["corpus"])
    index, cut, places = searcher._bm25.opened(searcher._corpus, quiet)  # noqa: SLF001 - mteb's protocol shows neither

    def ask(asked: range) -> object:
        return [best_scores(places, index.scores(cut(texts[at])), DEPTH) for at in asked]

    arrays = index.bm25.scores.values() if index.bm25 is not None else ()
    return SearchContestant(ask, len(index.ids), sum(getattr(array, "nbytes", 0) for array in arrays))


def _call(loaded: Foreign, task: EvaluationTask) -> Callable[[Sequence[str]], Foreign]:
    """Return what encodes queries: an encoder of ours directly, others as mteb calls them, with the same prompt."""
    if (encoder := getattr(loaded, "encoder", None)) is not None:
        return lambda texts: encoder.encode(texts, "query")
    from mteb.types import PromptType

    metadata = task.made.metadata
    plain: Foreign = getattr(loaded, "plain", loaded)
    return lambda texts: plain.encode(
        QueryBatch(texts),
        task_metadata=metadata,
        hf_split=metadata.eval_splits[0],
        hf_subset=task.subset,
        prompt_type=PromptType.query,
        batch_size=len(texts),
        show_progress_bar=False,
    )


def _arrived(rows: Foreign) -> Vectors:
    """Return rows in this machine's memory: of a GPU that waits for all work that was only begun."""
    return np.asarray(rows.cpu() if hasattr(rows, "cpu") else rows)


def _place(loaded: Foreign, parameters: Sequence[Foreign]) -> tuple[str, list[str]]:
    """Return where queries are encoded and in which precisions; of a service elsewhere neither is known."""
    if parameters:
        return str(parameters[0].device), sorted(
            {str(parameter.dtype).removeprefix("torch.") for parameter in parameters}
        )
    side = getattr(loaded, "of_queries", None)
    return ("cpu", ["float32"]) if side is None or egress.declared(side) == "local" else (REMOTE, [])


def _weights(loaded: Foreign) -> Foreign:
    return getattr(getattr(loaded, "plain", loaded), "model", None)


def _longest(weights: Foreign) -> int | None:
    """Return the longest input in tokens; None where a model takes any, or does not tell."""
    found = getattr(weights, "max_seq_length", None)
    return int(found) if isinstance(found, int | float) and np.isfinite(found) else None


# A speed pass over one task: encoding of queries and search, measured apart; kept by task and machine.

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
    before = timing.load()
    asks = {contestant.name: contestant.encode for contestant in contestants if contestant.encode is not None}
    label = StepLabel(f"timing queries, {task.name}", "queries")
    encoded = in_turn(asks, len(texts), _told(progress, label, asks, len(texts))) if asks else {}
    searches = _searches(models, contestants, task, texts, seed)
    few = min(SEARCHED, len(texts))
    label = StepLabel(f"timing search, {task.name}", "queries")
    asked = {name: search.ask for name, search in searches.items()}
    searched = in_turn(asked, few, _told(progress, label, asked, few)) if asked else {}
    found: dict[str, Any] = {
        "version": VERSION,
        "task": task.name,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": timing.identity(),
        "threads": timing.threads(),
        "load": {"before": before, "after": timing.load()},
        "queries": len(texts),
        "wanted": queries,
        "characters": _lengths(texts),
        "batch": BATCH,
        "warm_ups": WARM_UPS,
        "repeats": REPEATS,
        "searched": few if searches else None,
        "documents": len(task.data["corpus"]) if task.scorer.searched else None,
        "models": [_row(contestant, encoded, searches, searched) for contestant in contestants],
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
    return folder / f"{digest([task.content, task.kind.mteb.type, timing.identity()['id']])}.json"


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
    widths = sorted({contestant.dim for contestant in contestants if contestant.dim is not None})
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
