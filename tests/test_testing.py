"""The contracts catch what they are for: each promise is broken once."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.config import Json
from curate.protocols import Benchmark, Corpus, Exporter, Progress
from curate.records import GRADES, Document, Hit, Outcome, Query
from curate.testing import check_exporter, check_judge, check_retriever

Ranked = list[tuple[str, float]]
turns = count()
RANKINGS: dict[str, tuple[Callable[[list[str], int], Ranked], str]] = {
    "best first": (lambda ids, depth: [(name, float(place)) for place, name in enumerate(ids[:depth])], "best first"),
    "ties": (lambda ids, depth: [(name, 1.0) for name in sorted(ids, reverse=True)[:depth]], "ties by document id"),
    "once": (lambda ids, depth: [(name, 1.0) for name in ids[:1] * 2][:depth], "found once"),
    "known": (lambda _ids, _depth: [("elsewhere", 1.0)], "only documents of the corpus"),
    "finite": (lambda ids, _depth: [(ids[0], math.inf)], "scores are finite"),
    "depth": (lambda ids, _depth: [(name, 1.0) for name in sorted(ids)], "a depth only cuts"),
    "same": (lambda ids, depth: [(name, 1.0) for name in sorted(ids)[next(turns) % 5 :]][:depth], "only cuts|the same"),
    "nothing": (lambda ids, depth: [(name, 1.0) for name in sorted(ids)[:depth]] or [("d1", 1.0)], "in nothing"),
}


class Ranking:
    """A retriever that ranks all documents by a function of their ids and the depth."""

    name = "ranking"
    identity: Json = None

    def __init__(self, rank: Callable[[list[str], int], Ranked]) -> None:
        self._rank = rank

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        ids = [item.doc_id for batch in corpus.batches() for item in batch]
        progress("search", len(queries), len(queries))
        for _ in queries:
            yield [Hit(name, rank, score) for rank, (name, score) in enumerate(self._rank(ids, depth), start=1)]


@pytest.mark.parametrize("name", RANKINGS)
def test_a_broken_retriever(name: str) -> None:
    rank, promise = RANKINGS[name]
    with pytest.raises(AssertionError, match=promise):
        check_retriever(lambda: Ranking(rank))


def test_a_retriever_that_keeps_the_contract() -> None:
    check_retriever(lambda: Ranking(lambda ids, depth: [(name, 1.0) for name in sorted(ids)[:depth]]))


def test_progress_that_does_not_end() -> None:
    class Halfway(Ranking):
        def search(
            self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress
        ) -> Iterator[list[Hit]]:
            yield from super().search(
                corpus, queries, depth, lambda label, total, done: progress(label, total + 1, done)
            )

    with pytest.raises(AssertionError, match="ends at its total"):
        check_retriever(lambda: Halfway(lambda ids, depth: [(name, 1.0) for name in sorted(ids)[:depth]]))


GRADINGS: dict[str, tuple[Callable[[Sequence[Document]], Any], str]] = {
    "one less": (lambda passages: [Outcome("A")] * (len(passages) - 1), "every passage"),
    "grades": (lambda passages: ["A"] * len(passages), "gives outcomes"),
    "by place": (lambda passages: [Outcome("S"), *[Outcome("D")] * (len(passages) - 1)], "order"),
    "by company": (lambda passages: [Outcome("S" if len(passages) > 1 else "D")] * len(passages), "other passages"),
    "anew": (lambda passages: [Outcome(GRADES[next(turns) // 6 % 5])] * len(passages), "order|other|the same"),
    "of nothing": (lambda passages: [Outcome("A")] * max(1, len(passages)), "of no passage"),
}


class Grading:
    """A judge by a function of the passages."""

    name = "grading"

    def __init__(self, grade: Callable[[Sequence[Document]], Any], **identity: Json) -> None:
        self._grade, self.identity = grade, identity

    identity: Mapping[str, Json]

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        said: list[Outcome] = self._grade(passages)
        return said


@pytest.mark.parametrize("name", GRADINGS)
def test_a_broken_judge(name: str) -> None:
    grade, promise = GRADINGS[name]
    with pytest.raises(AssertionError, match=promise):
        check_judge(lambda: Grading(grade, version=1))


def test_a_judge_of_no_identity() -> None:
    with pytest.raises(AssertionError, match="identity"):
        check_judge(lambda: Grading(lambda passages: [Outcome("A")] * len(passages)))


def labels(folder: Path) -> list[tuple[str, str, int]]:
    rows = pl.read_csv(folder / "q.csv", infer_schema=False).iter_rows()
    return [(query, document, int(score)) for query, document, score in rows]


def right(benchmark: Benchmark, folder: Path) -> None:
    benchmark.qrels.sort("query_id", "doc_id").write_csv(folder / "q.csv")


def unsorted(benchmark: Benchmark, folder: Path) -> None:
    benchmark.qrels.write_csv(folder / "q.csv")


def timed(benchmark: Benchmark, folder: Path) -> None:
    right(benchmark, folder)
    (folder / "when").write_text(str(time.time_ns()))


def placed(benchmark: Benchmark, folder: Path) -> None:
    right(benchmark, folder)
    (folder / "where").write_text(str(folder.parent))


def hidden(benchmark: Benchmark, folder: Path) -> None:
    right(benchmark, folder)
    (folder / ".lock").touch()


def generous(benchmark: Benchmark, folder: Path) -> None:
    every = benchmark.verdicts.select("query_id", "doc_id", score=pl.lit(1)).sort("query_id", "doc_id")
    every.write_csv(folder / "q.csv")


def careless(benchmark: Benchmark, folder: Path) -> None:
    relevant = (pl.col("verdict") == "relevant").cast(pl.Int32)
    benchmark.verdicts.select("query_id", "doc_id", score=relevant).sort("query_id", "doc_id").write_csv(
        folder / "q.csv"
    )


def lazy(benchmark: Benchmark, folder: Path) -> None:
    del benchmark, folder


WRITERS: dict[Exporter, str] = {
    unsorted: "the same bytes",
    timed: "the same bytes",
    placed: "names a path",
    hidden: "hidden file",
    generous: "nothing else is 1",
    careless: "only what nobody found relevant",
    lazy: "something is written",
}


@pytest.mark.parametrize("export", WRITERS)
def test_a_broken_exporter(export: Exporter) -> None:
    with pytest.raises(AssertionError, match=WRITERS[export]):
        check_exporter(export, labels)


def test_an_exporter_that_keeps_the_contract() -> None:
    check_exporter(right, labels)
