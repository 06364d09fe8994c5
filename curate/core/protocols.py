"""Protocols of plugins, one per family, and the records that they exchange.

Stages create plugins by name and pass them on; plugins depend neither on one another nor on their callers.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, ProviderError
from curate.core.messages import BatchState, Reply, Request
from curate.core.records import Document, Hit, Outcome, Query, Role
from curate.core.scale import FIVE, Scale

Vectors = npt.NDArray[np.float32]
Task = TypeVar("Task")
Result = TypeVar("Result")


class Progress(Protocol):
    """Function that shows the progress of a long step; the CLI draws a bar, tests and libraries use `quiet`.

    Call it as often as convenient, and at the start with the number of units done already, such as those in a cache;
    these are excluded from the rate. A step ends when `done` reaches `total`. A `StepLabel` also names the unit.
    """

    def __call__(self, label: str, total: int, done: int, /) -> None:
        """Report that `done` of `total` units of `label` are complete."""
        ...


class PaidProgress(Progress, Protocol):
    """Progress function that also shows the amount paid."""

    def __call__(self, label: str, total: int, done: int, money: str = "", /) -> None:
        """Report that `done` of `total` units of `label` are complete, and the amount paid for them."""
        ...


def quiet(_label: str, _total: int, _done: int, _money: str = "") -> None:
    """Show nothing."""


class Encoder(Protocol):
    """Function from texts to vectors whose inner products are similarities.

    Optional attributes: `lanes`, the number of threads that may use it concurrently, as with several GPUs. `load`, a
    method that loads weights, called (perhaps repeatedly) before texts are encoded. `step`, a batch size with which
    rows do not depend on the other rows, so that progress is shown after each step. `revisions`, a revision per role,
    if queries and documents change independently: the cache then keeps one role's rows when the other's change.
    """

    name: str
    revision: str
    """Everything that changes the vectors: model revision, prompts, length, precision. Part of the cache key."""

    @property
    def dim(self) -> int:
        """Return the number of dimensions of a vector."""
        ...

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one L2-normalised float32 row per text, shape (len(texts), dim)."""
        ...


class Corpus(Protocol):
    """A corpus that can be read repeatedly, in batches, always in the same order."""

    @property
    def digest(self) -> str:
        """Return a digest of ids and texts."""
        ...

    def __len__(self) -> int:
        """Return the number of documents."""
        ...

    def batches(self) -> Iterable[Sequence[Document]]:
        """Yield the documents in order, in batches."""
        ...


@dataclass(frozen=True)
class Hits:
    """The hits of several queries as columns, concatenated query by query, best first."""

    ids: Sequence[str]
    """Document ids indexed by `rows`.

    Blocks of one search should share one object, which is then looked up only once.
    """
    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    """Number of hits per query; their sum is the length of the other columns."""


class Retriever(Protocol):
    """Function that ranks the documents of a corpus for queries.

    After a search, the optional attributes `facts` (a mapping) and `notes` (sentences) hold information for the pool's
    report, for example on an external index.
    """

    name: str
    identity: Json
    """Everything that changes a ranking, besides corpus and queries."""

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterable[Hits | Sequence[Hit]]:
        """Yield for each query, in order, its best `depth` hits: best first, ranks from 1, ties by document id.

        A list of `Hit` belongs to one query; a retriever with many hits yields `Hits` of several queries. A retriever
        whose ids may be out of date, as in a file, yields all its hits: the pool renames ids and cuts the list.
        """
        ...


class Engine(Protocol):
    """Function that maps another function over the parts of a task, in processes that may be on other machines."""

    shards: int
    """Number of parts of a task; it does not change results."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Yield the function's result for every task, in order; a task is repeated if its process dies.

        Function, tasks and results are exchanged by pickle.
        """
        ...


class MaySend(Protocol):
    """Function that checks whether data derived from texts may be sent to an address."""

    def __call__(self, who: str, address: str, local: bool = False, /) -> None:
        """Return if `who` may send to the address, else raise UserError.

        `local`: the user declares that data stays there.
        """
        ...


def freely(_who: str, _address: str, _local: bool = False, /) -> None:
    """Allow everything."""


def _no_retriever(name: str) -> Retriever:
    raise ConfigError(f"retrievers: {name!r} is not known here; define it in a pipeline")


@dataclass(frozen=True)
class Kit:
    """Services for plugins: encoders by name, a folder for caches, an engine, a device."""

    encoder: Callable[[str], Encoder]
    cache: Path
    engine: Engine | None = None
    """Engine for a corpus in parts; None: the corpus is processed as a whole in this process."""
    device: str = "cpu"
    """Device on which vectors are compared (`engine.device`)."""
    named: Callable[[str], str] = str
    """Function from a source id of a query or document to its id in the run.

    Ids with personal data are renamed, so plugins that use ids from outside the run need it.
    """
    scale: Scale = FIVE
    """Scale of the judges' grades, as declared in the pipeline's rubric."""
    language: str = "zh"
    """Language of the texts, declared by the pipeline or detected."""
    may_send: MaySend = freely
    """Function to call with sender and address before sending data derived from texts.

    It raises UserError if the data must not be sent.
    """
    may_reach: Callable[[str, Sequence[str]], None] = lambda _who, _addresses: None
    """Function to call with the plugin's path and its addresses before it asks a server anything.

    It raises ConfigError for a host that `egress.allow` does not name.
    """
    retriever: Callable[[str], Retriever] = _no_retriever
    """Function from the name of another retriever of the pipeline to it."""


class Judge(Protocol):
    """Judge without model calls: a heuristic, or recorded grades."""

    name: str
    identity: Mapping[str, Json]
    """Everything that changes a grade; part of the ledger key."""

    def rate(self, query: Query, passages: Sequence[Document]) -> Sequence[Outcome]:
        """Return one outcome per passage, in order."""
        ...


class Provider(Protocol):
    """Client of one model: sends requests and returns replies."""

    name: str
    identity: Mapping[str, Json]
    """Everything that changes an answer: vendor, model and sampling parameters; never an API key."""

    async def answer(self, request: Request) -> Reply:
        """Return the reply; the attributes of ProviderError tell whether a retry may help and how long to wait."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class BatchProvider(Provider, Protocol):
    """A provider with a batch API, which answers thousands of requests within a day at a lower price.

    An item has a key of at most 64 letters, digits, - and _, unique in its batch. Every method may raise ProviderError.
    """

    most_items: int
    most_bytes: int
    """Maximum number of bytes of a batch; `most_items` is that of items."""

    def item(self, key: str, request: Request) -> bytes:
        """Return a request as one line of the batch file, including the line feed."""
        ...

    async def submit(self, items: BinaryIO, mark: str) -> str:
        """Submit a file of items and return the id of the batch; `mark` is stored with it if the vendor supports that.

        The error is `useless` if the vendor may have accepted the batch nevertheless: if sent again, it may be paid
        twice.
        """
        ...

    async def orphans(self, mark: str, known: Callable[[str], bool]) -> Mapping[str, set[str]]:
        """Return batch id -> keys of its items, for the batches with this mark for which `known` is false."""
        ...

    async def poll(self, batch_id: str) -> BatchState:
        """Return the state of a batch; BatchGone if the vendor has none of this id."""
        ...

    def collect(self, batch_id: str) -> AsyncGenerator[tuple[str, Reply | ProviderError], None]:
        """Yield (key, result) for the items of an ended batch, in any order; items may be missing."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop a batch; earlier answers can still be collected and are paid."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """A finished benchmark, the input of all exporters."""

    name: str
    language: str
    queries: pl.DataFrame
    corpus: Corpus
    qrels: pl.DataFrame
    """query_id, doc_id, score 1 for unanimous positives; in a repaired benchmark the original scores."""
    candidates: pl.DataFrame
    """query_id, doc_id, score 0 or 1: the candidates of a reranker."""
    verdicts: pl.DataFrame
    """Every judged pair with its votes, including contested and incomplete ones."""
    facts: Mapping[str, Json]
    """Figures for the card: agreement, counts, judges, settings; no times and no paths."""
    duplicates: Literal["merge", "keep"] = "merge"
    """Whether equal texts were merged, or the user chose to keep several ids for them."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Name -> table of another kind of benchmark, such as `pairs` for sts."""
    scale: Scale = FIVE
    """Scale of the grades in `verdicts`."""
    graded: pl.DataFrame | None = None
    """query_id, doc_id, score (gain) and contested of the graded labels; None if labels are binary only."""
    replaced: bool = False
    """Whether the graded labels replace the binary ones; else they are added to them."""
    relevant_from: int = 1
    """Lowest score in `qrels` that means relevant; above 1 only in a repaired benchmark."""
    apart: bool = False
    """Whether the queries with reranking candidates are excluded from the retrieval task."""

    def of_retrieval(self) -> "Benchmark":
        """Return the benchmark of the retrieval task, without separate queries of the reranking task."""
        if not self.apart:
            return self
        tables = {"queries": self.queries, "qrels": self.qrels, "verdicts": self.verdicts}
        if self.graded is not None:
            tables["graded"] = self.graded
        retrieval_tables: Any = {
            name: table.join(self.candidates, on="query_id", how="anti", maintain_order="left")
            for name, table in tables.items()
        }
        return replace(self, **retrieval_tables, candidates=self.candidates.clear(), apart=False)

    @property
    def gains(self) -> pl.DataFrame:
        """Return query_id, doc_id and score of the graded labels with a gain above 0."""
        assert self.graded is not None
        return self.graded.filter(pl.col("score") > 0).drop("contested")

    @property
    def labels(self) -> pl.DataFrame:
        """Return the labels of the retrieval task: query_id, doc_id, score."""
        return self.gains if self.replaced else self.qrels


class Exporter(Protocol):
    """Function that writes a benchmark into an empty folder in one format."""

    def __call__(self, benchmark: Benchmark, folder: Path) -> None:
        """Write all files; equal benchmarks give equal bytes."""
        ...
