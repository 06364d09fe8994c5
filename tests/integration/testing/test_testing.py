"""The contracts catch what they are for: each promise is broken once."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import Reply, Request, Usage
from curate.core.protocols import Benchmark, Corpus, Exporter, Progress, Vectors
from curate.core.records import Document, Hit, Outcome, Query, Role, Span
from curate.core.scale import FIVE
from curate.testing import (
    check_encoder,
    check_exporter,
    check_judge,
    check_provider,
    check_recogniser,
    check_retriever,
)
from tests.support.small import Letters, letters

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


GRADINGS: dict[str, tuple[Callable[[Sequence[Document]], Any], str]] = {
    "one less": (lambda passages: [Outcome("A")] * (len(passages) - 1), "every passage"),
    "grades": (lambda passages: ["A"] * len(passages), "gives outcomes"),
    "by place": (lambda passages: [Outcome("S"), *[Outcome("D")] * (len(passages) - 1)], "order"),
    "by company": (lambda passages: [Outcome("S" if len(passages) > 1 else "D")] * len(passages), "other passages"),
    "anew": (lambda passages: [Outcome(FIVE.labels[next(turns) // 6 % 5])] * len(passages), "order|other|the same"),
    "of nothing": (lambda passages: [Outcome("A")] * max(1, len(passages)), "of no passage"),
}


def agreed(passages: Sequence[Document]) -> list[Outcome]:
    return [Outcome("A")] * len(passages)


class Grading:
    """A judge by a function of the passages."""

    name = "grading"

    def __init__(self, grade: Callable[[Sequence[Document]], Any], **identity: Json) -> None:
        self._grade, self.identity = grade, identity

    identity: Mapping[str, Json]

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        said: list[Outcome] = self._grade(passages)
        return said


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


WRITERS: dict[str, tuple[Exporter, str]] = {
    "unsorted": (unsorted, "the same bytes"),
    "timed": (timed, "the same bytes"),
    "placed": (placed, "names a path"),
    "hidden": (hidden, "hidden file"),
    "generous": (generous, "nothing else is 1"),
    "careless": (careless, "only what nobody found relevant"),
    "lazy": (lazy, "something is written"),
}


ENCODINGS: dict[str, tuple[Callable[[Vectors, Sequence[str], Role], Any], str]] = {
    "float64": (lambda rows, _texts, _role: rows.astype(np.float64), "float32"),
    "a row less": (lambda rows, _texts, _role: rows[1:], "a row per text"),
    "too long": (lambda rows, _texts, _role: rows * 2, "length 1"),
    "not finite": (lambda rows, _texts, _role: rows * np.float32(np.nan), "finite"),
    "one for all": (lambda rows, _texts, _role: letters(["a"] * len(rows)), "different texts"),
    "by place": (lambda rows, _texts, _role: np.roll(rows, np.arange(len(rows)).sum(), axis=1), "other texts"),
    "by order": (lambda rows, texts, _role: rows[np.argsort(list(map(len, texts)))], "order"),
    "anew": (lambda rows, _texts, _role: np.roll(rows, next(turns), axis=1), "order|other|the same"),
    "no queries": (lambda rows, _texts, role: rows if role == "document" else rows[:0], "a row per text"),
}


class Encoding(Letters):
    """An encoder whose rows a function has changed."""

    def __init__(self, change: Callable[[Vectors, Sequence[str], Role], Any], revision: str = "1") -> None:
        super().__init__("encoding", revision)
        self._change = change

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        changed: Vectors = self._change(super().encode(texts, role), texts, role)
        return changed


FOUND = {"来访者V1和V2已经登记": ["V1", "V2"], "没有": []}


def badges(text: str) -> list[Span]:
    return [Span(*each.span(), "permit", "badge") for each in re.finditer(r"V\d", text)]


RECOGNISERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "tuples": (lambda text: [each.span() for each in re.finditer(r"V\d", text)], "whole spans"),
    "no kind": (lambda text: [replace(span, kind="") for span in badges(text)], "whole spans"),
    "last first": (lambda text: badges(text)[::-1], "first one first"),
    "empty": (lambda text: [replace(span, end=span.start) for span in badges(text)], "hold something"),
    "overlapping": (lambda text: [span for span in badges(text) for _ in "ab"], "never overlap"),
    "too much": (lambda text: [replace(span, end=span.end + 1) for span in badges(text)], "what is expected"),
    "too little": (lambda text: badges(text)[:1], "what is expected"),
    "anew": (lambda text: badges(text) if next(turns) % 2 else [], "expected|the same spans|code points"),
    "in UTF-16": (
        lambda text: [
            replace(span, start=span.start + wide, end=span.end + wide)
            for span in badges(text)
            for wide in [sum(ord(char) > 0xFFFF for char in text[: span.start])]
        ],
        "code points",
    ),
    "the mask": (lambda text: badges(text) or [Span(0, 1, "m", "m")] * ("[" in text), "left alone"),
    "nothing": (lambda text: badges(text) or ([] if text else [Span(0, 0, "m", "m")]), "in nothing"),
}


KEY = "sk-0123456789"
USED = Usage(prompt=100, cached=60, written=30, output=20, reasoning=10)
REPLY = Reply("yes", "stop", "m-1", USED)


class Saying:
    """A provider that gives a reply or raises an error."""

    name = "saying"

    def __init__(self, said: Any, **identity: Json) -> None:
        self._said, self.identity = said, identity

    identity: Mapping[str, Json]

    async def answer(self, request: Request) -> Reply:
        if isinstance(self._said, Exception):
            raise self._said
        if callable(self._said):
            raise ProviderError(self._said(request))
        said: Reply = self._said
        return said

    async def close(self) -> None:
        """There is nothing to give back."""


REPLIES: dict[str, tuple[Any, str]] = {
    "a text": ("yes", "gives replies"),
    "cut": (replace(REPLY, finish="length"), "to its end"),
    "thoughts only": (replace(REPLY, text=None), "answered"),
    "nobody": (replace(REPLY, model=""), "names its model"),
    "cached beside": (replace(REPLY, usage=replace(USED, prompt=80)), "parts of the prompt"),
    "thoughts beside": (replace(REPLY, usage=replace(USED, output=5)), "part of the output"),
    "tokens as text": (replace(REPLY, usage=replace(USED, cached=cast("int", "60"))), "are counted"),
    "its key": (replace(REPLY, raw=f"Bearer {KEY}"), "no key comes out"),
}
AWAY: dict[str, tuple[Any, str]] = {
    "an answer": (REPLY, "is a ProviderError, found None"),
    "another error": (OSError("refused"), "is a ProviderError, found OSError"),
    "the key": (ProviderError(f"no answer, {KEY}"), "holds the key"),
    "the text": (lambda request: f"no answer to {request.messages[-1].content}", "holds a text"),
}
GONE = ProviderError("no answer")


def by_id(ids: list[str], depth: int) -> Ranked:
    return [(name, 1.0) for name in sorted(ids)[:depth]]


class Halfway(Ranking):
    """A retriever whose progress does not end."""

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        yield from super().search(corpus, queries, depth, lambda label, total, done: progress(label, total + 1, done))


def provides(said: Any = REPLY, away: Any = GONE, **identity: Json) -> Callable[[], None]:
    def check() -> None:
        check_provider(lambda: Saying(said, **identity), lambda: Saying(away, **identity), key=KEY)

    return check


def each(table: Mapping[Any, tuple[Any, str]], check: Callable[[Any], None]) -> list[Any]:
    """Return a row per broken promise: a check that is to fail, and the words it fails with."""
    return [pytest.param(partial(check, broken), words, id=name) for name, (broken, words) in table.items()]


BROKEN = [
    *each(RANKINGS, lambda rank: check_retriever(lambda: Ranking(rank))),
    *each({"progress": (by_id, "ends at its total")}, lambda rank: check_retriever(lambda: Halfway(rank))),
    *each(GRADINGS, lambda grade: check_judge(lambda: Grading(grade, version=1))),
    *each({"no identity": (agreed, "identity")}, lambda grade: check_judge(lambda: Grading(grade))),
    *each(WRITERS, lambda w: check_exporter(w, labels)),
    *each(ENCODINGS, lambda change: check_encoder(lambda: Encoding(change))),
    *each(
        {"no revision": (lambda: "", "a revision says")},
        lambda revision: check_encoder(lambda: Letters(revision=revision())),
    ),
    *each(
        {"revisions": (lambda: str(next(turns)), "the same revision")},
        lambda r: check_encoder(lambda: Letters(revision=r())),
    ),
    *each(RECOGNISERS, lambda recognise: check_recogniser(recognise, FOUND)),
    *each({"no example": ({"没有": []}, "one text at least")}, lambda found: check_recogniser(badges, found)),
    *each(REPLIES, lambda said: provides(said, model="m")()),
    *each(AWAY, lambda away: provides(away=away, model="m")()),
    *each(
        {"no identity": ({}, "an identity says"), "its key": ({"key": KEY}, "no key comes out")},
        lambda identity: provides(**identity)(),
    ),
    *each(
        {"changes": (turns, "the same identity")},
        lambda drawn: check_provider(lambda: Saying(REPLY, model=next(drawn)), lambda: Saying(GONE)),
    ),
]


@pytest.mark.parametrize(("check", "promise"), BROKEN)
def test_a_broken_promise_is_named(check: Callable[[], None], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check()


def test_what_keeps_its_contract_passes() -> None:
    check_retriever(lambda: Ranking(by_id))
    check_exporter(right, labels)
    check_encoder(Letters)
    check_recogniser(badges, FOUND)
    for usage in (USED, None):
        provides(replace(REPLY, usage=usage), model="m")()
