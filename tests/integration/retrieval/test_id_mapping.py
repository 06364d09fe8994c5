"""What retrievers found, under today's ids: columns and lists of hits, beside a literal definition."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.config import Json
from curate.core.errors import DataError, RunFailed
from curate.core.protocols import Corpus, Hits, Progress, quiet
from curate.core.records import TABLES, Hit, Query
from curate.retrieval.id_mapping import IdMapping, ranked
from curate.retrieval.ranking import columns
from curate.testing import ListCorpus
from tests.support.small import asked

NOW: Mapping[str, str | None] = {"a": "a", "b": "b", "c": "c", "é": "é", "old": "b", "copy": "a", "x": None, "y": None}
Lists = Sequence[Sequence[tuple[str, float]]]


class Made:
    """A retriever that gives what it is told to, in lists of hits or, by so many queries, in columns."""

    name = "made"
    identity: Json = None

    def __init__(self, lists: Lists, sizes: Sequence[int] = ()) -> None:
        self.hits = [[Hit(doc, rank, score) for rank, (doc, score) in enumerate(each, start=1)] for each in lists]
        self.sizes = sizes

    def search(
        self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
    ) -> Iterable[Hits | Sequence[Hit]]:
        ends = [0, *accumulate(self.sizes)]
        for start, end in pairwise(ends):
            yield columns(self.hits[start:end])
        yield from self.hits[ends[-1] :]


def ids() -> IdMapping:
    return IdMapping(pl.DataFrame({"id": list(NOW), "now": list(NOW.values())}))


def table(retriever: Made, queries: int, depth: int, known: IdMapping) -> pl.DataFrame:
    texts = {f"q{number}": "" for number in range(queries)}
    parts = ranked(retriever, ListCorpus({}), asked(texts), depth, known, quiet)
    return pl.concat([pl.DataFrame(schema=TABLES["rankings"]), *parts])


def literal(lists: Lists, depth: int) -> list[tuple[str, str, str, int, float]]:
    """Let every document count once, at its best score, under the id that stands for it."""
    rows = []
    for number, each in enumerate(lists):
        scores: dict[str, float] = {}
        for doc, score in each:
            if (now := NOW[doc]) is not None:
                scores[now] = max(score, scores.get(now, -math.inf))
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:depth]
        rows += [(f"q{number}", "made", doc, rank, score) for rank, (doc, score) in enumerate(best, start=1)]
    return rows


one_list = st.lists(st.tuples(st.sampled_from(sorted(NOW)), st.sampled_from([-1.0, 0.5, 0.75])), max_size=9)


@given(st.lists(one_list, max_size=6), st.lists(st.integers(0, 3), max_size=3), st.integers(1, 5))
def test_lists_and_columns_are_followed_alike(lists: Lists, sizes: Sequence[int], depth: int) -> None:
    while sum(sizes) > len(lists):
        sizes = sizes[:-1]
    known = ids()
    found = table(Made(lists, sizes), len(lists), depth, known)
    assert found.rows() == literal(lists, depth)
    assert dict(found.schema) == dict(pl.Schema(TABLES["rankings"]))
    docs = [doc for each in lists for doc, _ in each]
    assert known.left_out == sum(NOW[doc] is None for doc in docs)
    assert known.merged == sum(NOW[doc] not in (None, doc) for doc in docs)


def test_a_document_that_never_was_is_refused() -> None:
    lists = [[("a", 1.0)], [("b", 2.0), ("new", 1.0)]]
    for sizes in ([], [2], [1, 1]):
        with pytest.raises(DataError, match="made: found the document 'new' in the ranking of query 'q1', expected"):
            table(Made(lists, sizes), 2, 5, ids())


def test_every_query_needs_a_list() -> None:
    for queries in (1, 3):
        with pytest.raises(RunFailed, match=rf"retrievers\.made: found lists for 2 queries, expected {queries}"):
            table(Made([[("a", 1.0)], [("b", 1.0)]]), queries, 5, ids())


def test_blocks_may_share_their_ids() -> None:
    shared = ["é", "x", "copy"]
    block = Hits(shared, np.array([2, 0, 1]), np.array([3.0, 2.0, 1.0]), np.array([1, 2]))

    class Shared(Made):
        def search(
            self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
        ) -> Iterable[Hits | Sequence[Hit]]:
            yield block
            yield block

    rows = table(Shared([]), 4, 5, ids()).select("query_id", "doc_id", "score").rows()
    assert rows == [("q0", "a", 3.0), ("q1", "é", 2.0), ("q2", "a", 3.0), ("q3", "é", 2.0)]
