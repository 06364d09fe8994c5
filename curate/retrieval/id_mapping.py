"""Retrieved ids mapped to the ids that are left after texts were merged and dropped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.errors import DataError
from curate.core.protocols import Corpus, Hits, Progress, Retriever
from curate.core.records import Query
from curate.retrieval import ranking
from curate.retrieval.fusion import Names, lists
from curate.retrieval.ranking import Numbers, Scores

GONE, UNKNOWN = -1, -2
"""Instead of a document's number: its text was dropped; it never was in the corpus."""


@dataclass(frozen=True)
class MappedHits:
    """The hits of some queries under today's ids, each query's best first: a document is its number in `Ids.names`."""

    docs: Numbers
    scores: Scores
    counts: Numbers


class IdMapping:
    """What became of every document, and how often a ranking met one that is merged or dropped."""

    def __init__(self, now: pl.DataFrame) -> None:
        """`now` has one row per `id` that ever was, and the id that stands for it `now`, null if it was dropped."""
        self.names = now["now"].drop_nulls().unique().sort()
        self.merged = self.left_out = 0
        numbers = pl.DataFrame({"now": self.names}).with_row_index("number")
        self._known = now.join(numbers, on="now", how="left").select(
            "id", number=pl.col("number").cast(pl.Int64).fill_null(GONE), moved=pl.col("id").ne(pl.col("now"))
        )
        self._last: tuple[Sequence[str], Numbers, npt.NDArray[np.bool_]] | None = None

    def follow(
        self, retriever: str, queries: Sequence[Query], hits: Hits, depth: int, *, as_given: bool = False
    ) -> MappedHits:
        """Return each query's best `depth` hits, ties by document or, if so wanted, as they are given.

        DataError if a document never was in the corpus.
        """
        numbers, moved = self._look_up(hits.ids)
        docs, asked = numbers[hits.rows], np.repeat(np.arange(len(hits.counts)), hits.counts)
        if (strange := np.flatnonzero(docs == UNKNOWN)).size:
            raise DataError(
                f"retrievers.{retriever}: found the document {hits.ids[hits.rows[strange[0]]]!r} in the ranking of "
                f"query {queries[asked[strange[0]]].query_id!r}, expected one of the corpus; give a run over the "
                "corpus that `ingest` read"
            )
        here = docs != GONE
        self.left_out += int((~here).sum())
        self.merged += int(moved[hits.rows].sum())
        docs, asked, scores = docs[here], asked[here], hits.scores[here]
        rows, _ = ranking.ordered(asked, docs, scores, depth, np.arange(len(docs)) if as_given else docs)
        return MappedHits(docs[rows], scores[rows], np.bincount(asked[rows], minlength=len(hits.counts)))

    def _look_up(self, ids: Sequence[str]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return each id's number, and whether it is another document's by now."""
        if self._last is None or self._last[0] is not ids:
            found = pl.DataFrame({"id": ids}, {"id": pl.String}).join(
                self._known, on="id", how="left", maintain_order="left"
            )
            number, moved = found["number"].fill_null(UNKNOWN), found["moved"].fill_null(value=False)
            self._last = ids, number.to_numpy(), moved.to_numpy()
        return self._last[1:]


def followed(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, ids: IdMapping, progress: Progress
) -> Iterator[MappedHits]:
    """Yield what one retriever found, some queries at once, under today's ids."""
    for asked, hits in ranking.ask(retriever, corpus, queries, depth, progress):
        yield ids.follow(retriever.name, asked, hits, depth, as_given=getattr(retriever, "orders_ties", False))


def ranked(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, ids: IdMapping, progress: Progress
) -> Iterator[pl.DataFrame]:
    """Yield one retriever's rankings as frames of the table `rankings`, some queries each."""
    names = Names(pl.Series([query.query_id for query in queries]), pl.Series([retriever.name]), ids.names)
    done = 0
    for found in followed(retriever, corpus, queries, depth, ids, progress):
        asked = np.repeat(np.arange(done, done + len(found.counts)), found.counts)
        yield names.rankings(lists(asked, 0, found.docs, found.scores))
        done += len(found.counts)
