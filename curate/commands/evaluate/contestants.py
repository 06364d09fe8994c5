"""What a speed pass asks: models as they encode queries, and the search behind them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.commands.evaluate.timing import Ask
from curate.core.protocols import Vectors, quiet
from curate.retrieval.retrievers.bm25 import best_scores
from curate.retrieval.similarity.exact_search import top_k, unit
from curate.system import egress

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
    return SearchContestant(ask, len(index.ids), sum(getattr(each, "nbytes", 0) for each in arrays))


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
        return str(parameters[0].device), sorted({str(each.dtype).removeprefix("torch.") for each in parameters})
    side = getattr(loaded, "of_queries", None)
    return ("cpu", ["float32"]) if side is None or egress.declared(side) == "local" else (REMOTE, [])


def _weights(loaded: Foreign) -> Foreign:
    return getattr(getattr(loaded, "plain", loaded), "model", None)


def _longest(weights: Foreign) -> int | None:
    """Return the longest input in tokens; None where a model takes any, or does not tell."""
    found = getattr(weights, "max_seq_length", None)
    return int(found) if isinstance(found, int | float) and np.isfinite(found) else None
