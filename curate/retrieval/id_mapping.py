"""Mapping of retrieved document ids to surviving ids, after duplicate texts were merged and others dropped."""

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
"""Values instead of a document's number: GONE if its text was dropped, UNKNOWN if it was never in the corpus."""


@dataclass(frozen=True)
class MappedHits:
    """Hits of a block of queries with surviving ids, best first; `docs` are indexes of `IdMapping.names`.

    `counts` is the number of hits per query; `docs` and `scores` have one entry per hit.
    """

    docs: Numbers
    scores: Scores
    counts: Numbers


class IdMapping:
    """Map of every document id to its surviving id; `merged` and `left_out` count the hits merged and dropped."""

    def __init__(self, now: pl.DataFrame) -> None:
        """`now` is a table with one row per original `id`; its column `now` is the surviving id, null if dropped."""
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
        """Return each query's best `depth` hits with surviving ids.

        Of hits merged into one document the best counts. Ties are by document or, with `as_given`, in the given order.
        DataError if a document was never in the corpus.
        """
        numbers, moved = self._look_up(hits.ids)
        docs, query_numbers = numbers[hits.rows], np.repeat(np.arange(len(hits.counts)), hits.counts)
        if (strange := np.flatnonzero(docs == UNKNOWN)).size:
            raise DataError(
                f"retrievers.{retriever}: found the document {hits.ids[hits.rows[strange[0]]]!r} in the ranking of "
                f"query {queries[query_numbers[strange[0]]].query_id!r}, expected one of the corpus; give a run over "
                "the corpus that `ingest` read"
            )
        survives = docs != GONE
        self.left_out += int((~survives).sum())
        self.merged += int(moved[hits.rows].sum())
        docs, query_numbers, scores = docs[survives], query_numbers[survives], hits.scores[survives]
        rows, _ = ranking.ordered(query_numbers, docs, scores, depth, np.arange(len(docs)) if as_given else docs)
        return MappedHits(docs[rows], scores[rows], np.bincount(query_numbers[rows], minlength=len(hits.counts)))

    def _look_up(self, ids: Sequence[str]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return each id's number, and whether it was merged into another document."""
        if self._last is None or self._last[0] is not ids:
            joined = pl.DataFrame({"id": ids}, {"id": pl.String}).join(
                self._known, on="id", how="left", maintain_order="left"
            )
            number, moved = joined["number"].fill_null(UNKNOWN), joined["moved"].fill_null(value=False)
            self._last = ids, number.to_numpy(), moved.to_numpy()
        return self._last[1:]


def followed(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, ids: IdMapping, progress: Progress
) -> Iterator[MappedHits]:
    """Yield the hits of one retriever with surviving ids, in blocks of queries; a search of `corpus` to `depth`."""
    for block, hits in ranking.ask(retriever, corpus, queries, depth, progress):
        yield ids.follow(retriever.name, block, hits, depth, as_given=getattr(retriever, "orders_ties", False))


def ranked(
    retriever: Retriever, corpus: Corpus, queries: Sequence[Query], depth: int, ids: IdMapping, progress: Progress
) -> Iterator[pl.DataFrame]:
    """Yield one retriever's rankings with surviving ids, as rows of the table `rankings`, in blocks of queries."""
    names = Names(pl.Series([query.query_id for query in queries]), pl.Series([retriever.name]), ids.names)
    first = 0
    for mapped in followed(retriever, corpus, queries, depth, ids, progress):
        query_numbers = np.repeat(np.arange(first, first + len(mapped.counts)), mapped.counts)
        yield names.rankings(lists(query_numbers, 0, mapped.docs, mapped.scores))
        first += len(mapped.counts)
