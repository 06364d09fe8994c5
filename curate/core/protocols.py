"""What a user may swap: one small protocol per family, and the records that pass through it.

Stages build plugins by name and hand them down; plugins never know one another, nor who calls them.
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
    """Show how far a long step is; the CLI draws a bar, tests and libraries use `quiet`.

    Call it as often as is convenient, and with 0 when the step begins: what is done at the first call, as units that a
    cache held, is in no rate. A step ends when `done` reaches `total`. A `StepLabel` also names the unit.
    """

    def __call__(self, label: str, total: int, done: int, /) -> None:
        """Say that `done` of `total` units of `label` are finished."""
        ...


class PaidProgress(Progress, Protocol):
    """A progress that also shows what was paid meanwhile."""

    def __call__(self, label: str, total: int, done: int, money: str = "", /) -> None:
        """Say that `done` of `total` units of `label` are finished, and what was paid for them."""
        ...


def quiet(_label: str, _total: int, _done: int, _money: str = "") -> None:
    """Show nothing."""


class Encoder(Protocol):
    """Turn texts into vectors whose inner product is their similarity.

    One that several threads may use at once, as with several GPUs, says how many in an attribute `lanes`. One whose
    weights take seconds to load has a method `load`, which is called, perhaps more than once, before texts are encoded.
    One that makes the same rows of few texts at a time, whatever their neighbours are, says in `step` of how many:
    progress is shown after each step. One whose queries and documents are not changed by the same things gives a
    revision per role in `revisions`: the cache then keeps one role's rows while the other's change.
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
        """Return what identifies ids and texts."""
        ...

    def __len__(self) -> int:
        """Return the number of documents."""
        ...

    def batches(self) -> Iterable[Sequence[Document]]:
        """Yield the documents in order."""
        ...


@dataclass(frozen=True)
class Hits:
    """The hits of some queries in columns: one query's documents behind the other's, each best first."""

    ids: Sequence[str]
    """What `rows` points into. Blocks of one search best share one object, which is then looked up once."""
    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    """How many hits each query has; they add up to the length of the other columns."""


class Retriever(Protocol):
    """Rank documents of a corpus for queries.

    What is to be reported of a search, as of an index that others keep, stands afterwards in the attributes `facts`
    (a mapping) and `notes` (sentences); the pool reports both.
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
    """Do one function on several parts of a work, in processes that may be on other machines."""

    shards: int
    """Into how many parts a work is cut; no number changes a result."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Yield the function's result for every task, in order; a task whose process dies is done again.

        Function, tasks and results go from process to process by pickle.
        """
        ...


class MaySend(Protocol):
    """Ask whether something made of texts may go to an address."""

    def __call__(self, who: str, address: str, local: bool = False, /) -> None:
        """Return if it may; UserError otherwise. `local` is the user's word that it stays there."""
        ...


def freely(_who: str, _address: str, _local: bool = False, /) -> None:
    """Let everything be sent."""


@dataclass(frozen=True)
class Kit:
    """What a stage hands to the plugins it builds: encoders by name, a folder for caches, an engine, a device."""

    encoder: Callable[[str], Encoder]
    cache: Path
    engine: Engine | None = None
    """What works on a corpus in parts; None for in one piece, in this process."""
    device: str = "cpu"
    """Where vectors are compared, as `engine.device` names it."""
    named: Callable[[str], str] = str
    """Returns what the run calls a query or document of the source, whose id may have been renamed for what it held:
    of use for a plugin that knows ids from outside the run."""
    scale: Scale = FIVE
    """Of the grades that judges give: that of the pipeline's rubric."""
    language: str = "zh"
    """Of the texts, as the pipeline says or their script shows."""
    may_send: MaySend = freely
    """Called with who sends, and the address, before anything made of texts goes there; UserError if it must not."""


class Judge(Protocol):
    """Rate passages by something that costs no call: a heuristic, or grades recorded before."""

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
    """Vendor, model and sampling parameters: what can change an answer. Never a key."""

    async def answer(self, request: Request) -> Reply:
        """Return the reply; ProviderError says whether asking again is useless and how long to wait."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...


class BatchProvider(Provider, Protocol):
    """A provider that also takes requests by the thousand and answers them within a day, for less money.

    An item has a key of at most 64 letters, digits, - and _, unique in a batch. Every method raises ProviderError.
    """

    most_items: int
    most_bytes: int
    """What one batch may hold."""

    def item(self, key: str, request: Request) -> bytes:
        """Return one line, its end included: an item as it is sent."""
        ...

    async def submit(self, items: BinaryIO, mark: str) -> str:
        """Send a file of items, and return the id of the batch, which bears the mark where the vendor keeps one.

        The error is `useless` if the vendor may have taken the batch all the same: sent again, it may be paid twice.
        """
        ...

    async def orphans(self, mark: str, known: Callable[[str], bool]) -> Mapping[str, set[str]]:
        """Return the batches that bear a mark and are not known, with the keys of their items."""
        ...

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is; BatchGone if there is none of this id."""
        ...

    def collect(self, batch_id: str) -> AsyncGenerator[tuple[str, Reply | ProviderError], None]:
        """Yield key and result of an ended batch's items, in any order; an item may be missing."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop; what was answered before can still be collected, and is paid."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """A finished benchmark: what every exporter writes, in its own format."""

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
    """Whether one text may stand under several ids: `keep` says that it was asked for."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Tables of the kinds that stages of their own make, such as `pairs` of sts, by name: those that were made."""
    scale: Scale = FIVE
    """Of the grades in `verdicts`."""
    graded: pl.DataFrame | None = None
    """query_id, doc_id, score (a gain) and contested: graded labels; None where labels are binary alone."""
    replaced: bool = False
    """Whether the graded labels stand in the place of the binary ones, or beside them."""
    relevant_from: int = 1
    """Lowest score in `qrels` that means relevant: above 1 in a repaired set alone."""
    apart: bool = False
    """Whether the queries that have candidates are in no retrieval task."""

    def of_retrieval(self) -> "Benchmark":
        """Return what the retrieval task holds: all, but of queries that are a reranker's own."""
        if not self.apart:
            return self
        tables = {"queries": self.queries, "qrels": self.qrels, "verdicts": self.verdicts}
        if self.graded is not None:
            tables["graded"] = self.graded
        rest: Any = {
            name: table.join(self.candidates, on="query_id", how="anti", maintain_order="left")
            for name, table in tables.items()
        }
        return replace(self, **rest, candidates=self.candidates.clear(), apart=False)

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
