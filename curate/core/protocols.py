"""Protocols of plugins, one per family, and the records that pass through them.

Stages build plugins by name and pass them on; plugins depend neither on one another nor on their callers.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Reply, Request
from curate.core.records import Document, Hit, Outcome, Query, Role
from curate.core.scale import FIVE, Scale

Vectors = npt.NDArray[np.float32]
Task = TypeVar("Task")
Result = TypeVar("Result")


class Progress(Protocol):
    """Show the progress of a long step; the CLI draws a bar, tests and libraries use `quiet`.

    Call it as often as is convenient, and with 0 when the step begins: what is done at the first call, as units that a
    cache held, is in no rate. A step ends when `done` reaches `total`. A `StepLabel` also names the unit.
    """

    def __call__(self, label: str, total: int, done: int, /) -> None:
        """Report that `done` of `total` units of `label` are completed."""
        ...


class PaidProgress(Progress, Protocol):
    """A progress that also shows the amount paid."""

    def __call__(self, label: str, total: int, done: int, money: str = "", /) -> None:
        """Report that `done` of `total` units of `label` are completed, and the amount paid for them."""
        ...


def quiet(_label: str, _total: int, _done: int, _money: str = "") -> None:
    """Show nothing."""


class Encoder(Protocol):
    """Turn texts into vectors whose inner product is their similarity.

    Optional attributes: `lanes`, the number of threads that may use it concurrently, as with several GPUs; a method
    `load` for weights that take seconds, called, perhaps more than once, before texts are encoded; `step`, a batch size
    at which rows do not depend on their neighbours, so that progress is shown after each step; `revisions`, a revision
    per role, if queries and documents change independently: the cache then keeps one role's rows when the other's
    change.
    """

    name: str
    revision: str
    """All that changes the vectors: model revision, prompts, length, precision. Part of the cache key."""

    @property
    def dim(self) -> int:
        """Return the length of a vector."""
        ...

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one L2-normalised float32 row a text, shape (len(texts), dim)."""
        ...


class Corpus(Protocol):
    """A corpus that can be read several times, in batches, always in the same order."""

    @property
    def digest(self) -> str:
        """Return a digest of ids and texts."""
        ...

    def __len__(self) -> int:
        """Return the number of documents."""
        ...

    def batches(self) -> Iterable[Sequence[Document]]:
        """Yield the documents in order."""
        ...


@dataclass(frozen=True)
class Hits:
    """The hits of some queries in columns: concatenated per query, best first."""

    ids: Sequence[str]
    """Document ids that `rows` indexes. Blocks of one search should share one object, which is then looked up once."""
    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    """Number of hits per query; their sum is the length of the other columns."""


class Retriever(Protocol):
    """Rank documents of a corpus for queries.

    After a search the optional attributes `facts` (a mapping) and `notes` (sentences) hold what the pool reports of it,
    for example of an external index.
    """

    name: str
    identity: Json
    """All that changes a ranking, besides corpus and queries."""

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterable[Hits | Sequence[Hit]]:
        """Yield, for each query in order, its best `depth` hits, best first, ranks from 1, ties by document id.

        A list of `Hit` is one query's; a retriever with many hits yields `Hits`, some queries at once. One that knows
        only ids that may be out of date, as of a file, yields all it has: the pool renames and cuts.
        """
        ...


class Engine(Protocol):
    """Map a function over parts of a task, in processes that may be on other machines."""

    shards: int
    """Number of parts of a task; it changes no result."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Yield the function's result for every task, in order; a task whose process dies is done again.

        Function, tasks and results go from process to process by pickle.
        """
        ...


class MaySend(Protocol):
    """Check whether something derived from texts may be sent to an address."""

    def __call__(self, who: str, address: str, local: bool = False, /) -> None:
        """Return if it may; UserError otherwise. `local`: the user declares that it stays there."""
        ...


def freely(_who: str, _address: str, _local: bool = False, /) -> None:
    """Allow everything."""


@dataclass(frozen=True)
class Kit:
    """Services for plugins: encoders by name, a folder for caches, an engine, a device."""

    encoder: Callable[[str], Encoder]
    cache: Path
    engine: Engine | None = None
    """Engine for a corpus in parts; None: in one piece, in this process."""
    device: str = "cpu"
    """Device that vectors are compared on, `engine.device`."""
    named: Callable[[str], str] = str
    """Returns what the run calls a query or document of the source, whose id may have been renamed for what it held:
    of use for a plugin that knows ids from outside the run."""
    scale: Scale = FIVE
    """Scale of the judges' grades, from the pipeline's rubric."""
    language: str = "zh"
    """Language of the texts, declared by the pipeline or detected."""
    may_send: MaySend = freely
    """Called with sender and address before anything derived from texts is sent there; UserError if it must not be."""


class Judge(Protocol):
    """Rate passages without calls: a heuristic, or recorded grades."""

    name: str
    identity: Mapping[str, Json]
    """All that changes a grade; part of the ledger key."""

    def rate(self, query: Query, passages: Sequence[Document]) -> Sequence[Outcome]:
        """Return one outcome per passage, in order."""
        ...


class Provider(Protocol):
    """Send a request to one model and return its reply."""

    name: str
    identity: Mapping[str, Json]
    """Vendor, model and sampling parameters: all that can change an answer. Never a key."""

    async def answer(self, request: Request) -> Reply:
        """Return the reply; ProviderError tells whether a retry is useless and how long to wait."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class BatchProvider(Provider, Protocol):
    """A provider with a batch API: thousands of requests, answered within a day at a lower price.

    An item has a key of at most 64 letters, digits, - and _, unique in a batch. Every method raises ProviderError.
    """

    most_items: int
    most_bytes: int
    """Maximum items and bytes of one batch."""

    def item(self, key: str, request: Request) -> bytes:
        """Return an item as one line to send, with its line feed."""
        ...

    async def submit(self, items: BinaryIO, mark: str) -> str:
        """Send a file of items, and return the id of the batch; `mark` is stored with it if the vendor supports that.

        The error is `useless` if the vendor may have taken the batch all the same: sent again, it may be paid twice.
        """
        ...

    async def orphans(self, mark: str, known: Callable[[str], bool]) -> Mapping[str, set[str]]:
        """Return the batches with a mark that are not known -> keys of their items."""
        ...

    async def poll(self, batch_id: str) -> BatchState:
        """Return the state of a batch; BatchGone if there is none of this id."""
        ...

    def collect(self, batch_id: str) -> AsyncGenerator[tuple[str, Reply | ProviderError], None]:
        """Yield key and result of an ended batch's items, in any order; an item may be missing."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop; what was answered before can still be collected, and is paid."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """A finished benchmark, the input of all exporters."""

    name: str
    language: str
    queries: pl.DataFrame
    corpus: Corpus
    qrels: pl.DataFrame
    """query_id, doc_id, score 1: the unanimous positives; of a repaired set the scores that it came with."""
    candidates: pl.DataFrame
    """query_id, doc_id, score 0 or 1: what a reranker is given."""
    verdicts: pl.DataFrame
    """Every judged pair with its votes, contested and incomplete ones too."""
    facts: Mapping[str, Json]
    """Figures for the card: agreement, counts, judges, settings; no times and no paths."""
    duplicates: Literal["merge", "keep"] = "merge"
    """Whether equal texts may have several ids: `keep` if the user chose that."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Name -> table of further kinds of benchmark, such as `pairs` of sts."""
    scale: Scale = FIVE
    """Scale of the grades in `verdicts`."""
    graded: pl.DataFrame | None = None
    """query_id, doc_id, score (a gain) and contested: graded labels; None for binary labels only."""
    replaced: bool = False
    """Whether the graded labels replace the binary ones, or are added to them."""
    relevant_from: int = 1
    """Lowest score in `qrels` that means relevant: above 1 in a repaired set alone."""
    apart: bool = False
    """Whether queries with reranking candidates are in no retrieval task."""

    def of_retrieval(self) -> "Benchmark":
        """Return the benchmark of the retrieval task, without the separate queries of reranking."""
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
        """Return query_id, doc_id and score of the graded labels that gain something."""
        assert self.graded is not None
        return self.graded.filter(pl.col("score") > 0).drop("contested")

    @property
    def labels(self) -> pl.DataFrame:
        """Return the labels of the retrieval task: query_id, doc_id, score."""
        return self.gains if self.replaced else self.qrels


class Exporter(Protocol):
    """Write a benchmark into an empty folder in one format."""

    def __call__(self, benchmark: Benchmark, folder: Path) -> None:
        """Write all files; the same benchmark gives the same bytes."""
        ...
