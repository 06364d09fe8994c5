"""Speed of models: encoding of queries and search, measured separately and stored by task and machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate import timing
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.commands.evaluate.timing import (
    BATCH,
    REPEATS,
    WARM_UPS,
    Ask,
    Machine,
    SpeedSpread,
    Timing,
    Timings,
    in_turn,
    ratio,
)
from curate.core.config import digest
from curate.core.errors import RunFailed
from curate.core.figures import Record, figure
from curate.core.progress import StepLabel, furthest
from curate.core.protocols import Progress, Vectors, quiet
from curate.core.sampling import shuffled
from curate.retrieval.retrievers.bm25 import Bm25, best_scores
from curate.retrieval.similarity.exact_search import top_k, unit
from curate.system import egress
from curate.system.files import read_json, write_json

DEPTH = 10
"""Number of documents that a search returns per query."""
REMOTE = "elsewhere"
"""Name of the device of a remote encoder."""
LARGEST = 1 << 29
"""Maximum size in bytes of the vectors in a timed search; a larger index is truncated, with a note."""


@dataclass(frozen=True)
class SpeedContestant:
    """A model in a speed measurement: its properties and its query encoder, None if the model only searches."""

    name: str
    encode: Ask | None
    dim: int | None = None
    device: str = "cpu"
    dtypes: Sequence[str] = ()
    max_length: int | None = None


@dataclass(frozen=True)
class SearchContestant:
    """A search method in a speed measurement: exact search in vectors of one width, or BM25."""

    ask: Ask
    rows: int
    """Number of documents in the timed search."""
    index_bytes: int


@dataclass
class QueryBatch:
    """Texts in the structure that mteb passes to models: a data loader with one batch."""

    texts: Sequence[str]
    collate_fn: Foreign = None
    features: tuple[str, ...] = ("text",)
    batches: list[dict[str, list[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.batches = [{"text": list(self.texts)}]

    @property
    def dataset(self) -> "QueryBatch":
        """Return the object in which mteb looks up columns."""
        return self

    def __iter__(self) -> Foreign:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


def of_model(model: EvaluatedModel, task: EvaluationTask, texts: Sequence[str]) -> SpeedContestant:
    """Return the contestant of a model; its encoder takes indices of `texts`.

    The first text is encoded here, to determine the width of the vectors.
    """
    if not model.has_vectors:
        return SpeedContestant(model.name, None)
    call = _query_encoder(model.loaded, task)
    weights: Foreign = getattr(getattr(model.loaded, "plain", model.loaded), "model", None)
    parameters = list(weights.parameters()) if hasattr(weights, "parameters") else []
    max_length = getattr(weights, "max_seq_length", None)  # absent or infinite: unknown or unlimited
    return SpeedContestant(
        model.name,
        lambda indices: _in_memory(call([texts[index] for index in indices])),
        int(_in_memory(call(texts[:1])).shape[1]),
        *_place(model.loaded, parameters),
        int(max_length) if isinstance(max_length, int | float) and np.isfinite(max_length) else None,
    )


def of_vectors(dim: int, documents: int, queries: int, seed: int) -> SearchContestant:
    """Return the contestant of exact search in random vectors of width `dim`; the time does not depend on values."""
    rows = max(min(documents, LARGEST // (4 * dim)), 1)
    random = np.random.default_rng(seed)
    index = unit(random.standard_normal((rows, dim), dtype=np.float32))
    query_vectors = unit(random.standard_normal((queries, dim), dtype=np.float32))
    ids = [str(row) for row in range(rows)]
    return SearchContestant(
        lambda indices: list(top_k(query_vectors[indices.start : indices.stop], index, ids, DEPTH)),
        rows,
        4 * dim * documents,
    )


def of_bm25(model: EvaluatedModel, task: EvaluationTask, texts: Sequence[str]) -> SearchContestant:
    """Return the contestant of BM25's search, including the tokenization of queries."""
    searcher = model.loaded
    searcher.index(task.data["corpus"], task_metadata=task.made.metadata)
    index, cut, doc_positions = searcher.retriever.opened(searcher.corpus, quiet)

    def ask(indices: range) -> object:
        return [best_scores(doc_positions, index.scores(cut(texts[position])), DEPTH) for position in indices]

    arrays = index.bm25.scores.values() if index.bm25 is not None else ()
    return SearchContestant(ask, len(index.ids), sum(getattr(array, "nbytes", 0) for array in arrays))


def _query_encoder(loaded: Foreign, task: EvaluationTask) -> Callable[[Sequence[str]], Foreign]:
    """Return a query encoder: curate's encoders directly, others as mteb calls them, with the same prompt."""
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


def _in_memory(rows: Foreign) -> Vectors:
    """Return rows in main memory; on a GPU this waits for all queued work."""
    return np.asarray(rows.cpu() if hasattr(rows, "cpu") else rows)


def _place(loaded: Foreign, parameters: Sequence[Foreign]) -> tuple[str, list[str]]:
    """Return device and precisions of the query encoder; for a remote one, `REMOTE` and []."""
    if parameters:
        return str(parameters[0].device), sorted(
            {str(parameter.dtype).removeprefix("torch.") for parameter in parameters}
        )
    side = getattr(loaded, "of_queries", None)
    return ("cpu", ["float32"]) if side is None or egress.declared(side) == "local" else (REMOTE, [])


# Measurement of one task.

QUERIES = 1_000
SEARCHED = 256
"""Number of queries in a timed search, whose speed depends little on it."""
VERSION = 1
COLUMNS = ("text", "sentence1", "sentences")
"""Columns of queries, sentences, or texts; the first one that exists is used."""


class TimedModel(Record, schema_name="timed"):
    """Speed of one model."""

    model: str = figure("name of the model")
    device: str = figure("device that encodes queries")
    dtypes: tuple[str, ...] = figure("precisions of the weights")
    max_length: int | None = figure("longest input in tokens")
    dim: int | None = figure("dimensions of a vector")
    encoding: Timing | None = figure("time of encoding; null for models that only search")
    search: Timing | None = figure("time of searching; null without a corpus")
    search_rows: int | None = figure("documents of the timed search")
    index_bytes: int | None = figure("size of the index of all documents")
    qps: float = figure("queries per second in batches, encoding and search")


class SpeedRatio(Record, schema_name="ratio"):
    """How many times as fast as the slowest a model encodes."""

    one: str = figure("the faster model")
    other: str = figure("the slowest model")
    wall: SpeedSpread = figure("ratio by wall-clock time")
    cpu: SpeedSpread = figure("ratio by processor time")


class Speed(Record):
    """Speed of models on one task and machine."""

    version: int = figure("version of the stored figures")
    task: str = figure("name of the task")
    measured: str = figure("time of the measurement, UTC")
    machine: Machine = figure("machine of the measurement")
    threads: Any = figure("number of torch threads, and OMP_NUM_THREADS")
    load: Any = figure("load average before and after; null if the system has none")
    queries: int = figure("timed queries")
    wanted: int = figure("queries that the option asks for")
    characters: Mapping[str, float] = figure("median and p95 of the characters per query")
    batch: int = figure("queries per batch")
    warm_ups: int = figure("warm-up calls, which are not timed")
    repeats: int = figure("repeats of each query")
    searched: int | None = figure("queries of the timed search")
    documents: int | None = figure("documents of the corpus")
    models: tuple[TimedModel, ...] = figure("a row per model")
    ratios: tuple[SpeedRatio, ...] = figure("speed of each model over that of the slowest")


def measured(
    models: Sequence[EvaluatedModel], task: EvaluationTask, queries: int, seed: int, folder: Path, progress: Progress
) -> Speed:
    """Return the measured speed of all models on one task, also stored in `folder` by task and machine."""
    texts = _texts(task, queries, seed)
    contestants = [of_model(model, task, texts) for model in models]
    load_before = timing.load()
    asks = {contestant.name: contestant.encode for contestant in contestants if contestant.encode is not None}
    label = StepLabel(f"timing queries, {task.name}", "queries")
    encoded = in_turn(asks, len(texts), _count_answered(progress, label, asks, len(texts))) if asks else {}
    searches = _searches(models, contestants, task, texts, seed)
    n_searched = min(SEARCHED, len(texts))
    label = StepLabel(f"timing search, {task.name}", "queries")
    search_asks = {name: search.ask for name, search in searches.items()}
    searched = (
        in_turn(search_asks, n_searched, _count_answered(progress, label, search_asks, n_searched))
        if search_asks
        else {}
    )
    characters = [len(text) for text in texts]
    rates = {name: timings.figures().qps for name, timings in encoded.items()}
    fastest_first = sorted(rates, key=lambda name: -rates[name])
    measurement = Speed(
        version=VERSION,
        task=task.name,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=timing.identity(),
        threads=timing.threads(),
        load={"before": load_before, "after": timing.load()},
        queries=len(texts),
        wanted=queries,
        characters={"median": float(np.median(characters)), "p95": float(np.quantile(characters, 0.95))},
        batch=BATCH,
        warm_ups=WARM_UPS,
        repeats=REPEATS,
        searched=n_searched if searches else None,
        documents=len(task.data["corpus"]) if task.scorer.searched else None,
        models=tuple(_timed(contestant, encoded, searches, searched) for contestant in contestants),
        ratios=tuple(
            SpeedRatio(name, fastest_first[-1], **ratio(encoded[name], encoded[fastest_first[-1]]))
            for name in fastest_first[:-1]
        ),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(_path(task, folder), measurement.to_json())
    return measurement


def of_tasks(
    models: Sequence[EvaluatedModel],
    tasks: Sequence[EvaluationTask],
    queries: int | None,
    seed: int,
    folder: Path,
    progress: Progress,
) -> dict[str, Speed]:
    """Return task -> speed: measured now with that many `queries`, or if None, the last measurement on this machine."""
    names = [model.name for model in models]
    if queries is None:
        stored = {task.name: kept(task, names, folder) for task in tasks}
        return {name: measurement for name, measurement in stored.items() if measurement is not None}
    # Without a retrieval task, one task is enough: all tasks of an export have the same queries.
    timed_tasks = [task for task in tasks if task.scorer.searched] or list(tasks[:1])
    fit = {task.name: [model for model in models if _is_timed(model, task)] for task in timed_tasks}
    return {
        task.name: measured(fit[task.name], task, queries, seed, folder, progress)
        for task in tasks
        if fit.get(task.name)
    }


def kept(task: EvaluationTask, models: Sequence[str], folder: Path) -> Speed | None:
    """Return the last measurement of a task on this machine, limited to these models; None without one."""
    path = _path(task, folder)
    if not path.is_file() or (stored := read_json(path)).get("version") != VERSION:
        return None
    measurement = Speed.from_json(stored)
    rows = tuple(row for row in measurement.models if row.model in models)
    ratios = tuple(row for row in measurement.ratios if {row.one, row.other} <= {*models})
    return replace(measurement, models=rows, ratios=ratios) if rows else None


def notes(speed: Speed) -> list[str]:
    """Return notes on the interpretation of a speed measurement."""
    name, load_before = speed.task, speed.load["before"]
    sentences = []
    if speed.queries < speed.wanted:
        sentences.append(f"{name}: speed of {speed.queries:,} queries, all that the task has, not of {speed.wanted:,}")
    if load_before is not None and load_before > speed.machine.cores / 2:
        sentences.append(
            f"{name}: speed was measured under load ({load_before:g} on {speed.machine.cores} cores): latencies "
            "are too long, and ratios per processor second hold better than those by the wall"
        )
    sentences += [
        f"{name}: search of {row.model} was timed on {row.search_rows:,} of {speed.documents:,} documents"
        for row in speed.models
        if row.search_rows is not None and speed.documents is not None and row.search_rows < speed.documents
    ]
    return sentences


def _path(task: EvaluationTask, folder: Path) -> Path:
    return folder / f"{digest([task.content, task.kind.mteb.type, timing.identity().id])}.json"


def _texts(task: EvaluationTask, queries: int, seed: int) -> list[str]:
    """Return a random sample of a task's queries, or of its sentences or texts."""
    task_data = task.data
    rows = task_data if hasattr(task_data, "column_names") else task_data["queries"]
    column = next((name for name in COLUMNS if name in rows.column_names), None)
    if column is None:
        raise RunFailed(
            f"{task.name}: --speed found the columns {', '.join(rows.column_names)}, expected one of "
            f"{', '.join(COLUMNS)}; leave it out for this task"
        )
    texts = [str(text) for text in rows[column] if isinstance(text, str)]
    return list(shuffled(texts, seed))[:queries]


def _is_timed(model: EvaluatedModel, task: EvaluationTask) -> bool:
    """Return whether a model is timed on a task: encoders, and BM25 in a corpus; scores of rerankers are kept."""
    return model.has_vectors or (task.scorer.searched and isinstance(model.loaded.retriever, Bm25))


def _searches(
    models: Sequence[EvaluatedModel],
    contestants: Sequence[SpeedContestant],
    task: EvaluationTask,
    texts: Sequence[str],
    seed: int,
) -> dict[str, SearchContestant]:
    """Return width or name -> search contestant; {} without a corpus. Models of the same width share one."""
    if not task.scorer.searched:
        return {}
    documents = len(task.data["corpus"])
    widths = sorted({contestant.dim for contestant in contestants if contestant.dim is not None})
    searches = {str(dim): of_vectors(dim, documents, min(SEARCHED, len(texts)), seed) for dim in widths}
    return searches | {model.name: of_bm25(model, task, texts) for model in models if not model.has_vectors}


def _timed(
    contestant: SpeedContestant,
    encoded: Mapping[str, Timings],
    searches: Mapping[str, SearchContestant],
    searched: Mapping[str, Timings],
) -> TimedModel:
    search_name = contestant.name if contestant.dim is None else str(contestant.dim)
    encoding = encoded[contestant.name].figures() if contestant.name in encoded else None
    search = searched[search_name].figures() if search_name in searched else None
    rates = [timing_figures.qps for timing_figures in (encoding, search) if timing_figures]
    return TimedModel(
        model=contestant.name,
        device=contestant.device,
        dtypes=tuple(contestant.dtypes),
        max_length=contestant.max_length,
        dim=contestant.dim,
        encoding=encoding,
        search=search,
        search_rows=searches[search_name].rows if search_name in searches else None,
        index_bytes=searches[search_name].index_bytes if search_name in searches else None,
        qps=round(1 / sum(1 / rate for rate in rates), 3),
    )


def _count_answered(progress: Progress, label: str, asks: Mapping[str, object], queries: int) -> Callable[[int], None]:
    return furthest(progress, label, len(asks) * queries * REPEATS)
