"""Floors of rankings: random vectors for a corpus; for candidates also equal scores, length and shared characters."""

from collections.abc import Callable, Iterator

import numpy as np

from curate.commands.evaluate.floor_vectors import random_vectors
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.stats.shortcuts import alike_in_length, overlap

DEPTH, BLOCK, DIM = 100, 256, 64
"""Documents per query, queries that are ranked at once, dimensions of random vectors."""

Rankings = dict[str, dict[str, float]]
Named = Iterator[tuple[str, Rankings]]


def of_retrieval(task: EvaluationTask) -> Named:
    """Yield the rankings of random vectors; BM25, which is a model, is the shortcut here."""
    data = task.data
    documents, queries = random_vectors(_texts(data["corpus"]), DIM), data["queries"]
    ids, found = list(data["corpus"]["id"]), Rankings()
    depth = min(DEPTH, len(ids))
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        scores = random_vectors(block["text"], DIM) @ documents.T
        best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        for query, row, places in zip(block["id"], scores, best, strict=True):
            found[query] = {ids[place]: float(row[place]) for place in places}
    yield "random encoder", found


def of_reranking(task: EvaluationTask) -> Named:
    """Yield the rankings of every query's candidates; of equal scores the order is that of ids, as in trec_eval."""
    data = task.data
    texts = dict(zip(data["corpus"]["id"], _texts(data["corpus"]), strict=True))
    asked = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))

    def ranked(score: Callable[[str, str], float]) -> Rankings:
        return {
            query: {doc: score(asked[query], texts[doc]) for doc in candidates}
            for query, candidates in data["top_ranked"].items()
        }

    yield "all-equal", ranked(lambda _query, _document: 0.0)
    yield "length", ranked(lambda _query, document: float(len(document)))
    yield "alike in length", ranked(alike_in_length)
    yield "overlap", ranked(overlap)
    vectors = dict(zip(texts, random_vectors(list(texts.values()), DIM), strict=True))
    given = dict(zip(asked, random_vectors(list(asked.values()), DIM), strict=True))
    yield (
        "random encoder",
        {
            query: {doc: float(given[query] @ vectors[doc]) for doc in candidates}
            for query, candidates in data["top_ranked"].items()
        },
    )


def _texts(corpus: Foreign) -> list[str]:
    titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
    return [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]
