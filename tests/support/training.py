"""Own-answer labels of real questions, split by title: triples to train on, and an export to test on."""

import json
from pathlib import Path

import bm25s
import numpy as np
import polars as pl

from curate.core.protocols import Benchmark
from curate.core.sampling import generator
from curate.system.files import frame
from curate.testing import ListCorpus
from tests.support.evaluating import written

MINED = range(3, 30)
"""Ranks of BM25 that negatives are taken from; nearer ones are often answers too."""


def medquad(data: Path, folder: Path, queries: int | None = None) -> tuple[Path, Path]:
    """Write triples and an export of MedQuAD whose titles are disjoint; `queries` takes only so many of each."""
    source = data / "medquad_legacy_en"
    corpus = pl.read_ndjson(source / "corpus.jsonl").select("_id", "title", "text")
    asked = dict(pl.read_ndjson(source / "queries.jsonl").select("_id", "text").iter_rows())
    labels = pl.read_csv(source / "qrels.tsv", separator="\t").rename({"query-id": "query_id", "corpus-id": "doc_id"})
    titles = dict(corpus.select("_id", "title").iter_rows())
    parts = _parts(labels, titles)
    test = [query for query in asked if parts[query]][:queries]
    train = [query for query in asked if not parts[query]][:queries]
    texts = {key: f"{title} {text}" for key, title, text in corpus.iter_rows()}
    held = frame("qrels", labels.filter(pl.col("query_id").is_in(test)).to_dicts())
    if queries is not None:
        used = labels.filter(pl.col("query_id").is_in([*train, *test]))["doc_id"]
        texts = {key: texts[key] for key in used.unique().sort()}
    _write_triples(folder / "triples.jsonl", train, asked, labels, texts)
    rows = [{"query_id": query, "text": asked[query], "source": ""} for query in test]
    made = Benchmark(
        name="medquad",
        language="en",
        queries=frame("queries", rows),
        corpus=ListCorpus(texts),
        qrels=held.sort("query_id", "doc_id"),
        candidates=frame("qrels"),
        verdicts=frame("verdicts"),
        facts={},
    )
    return folder / "triples.jsonl", written(made, folder / "export" / "mteb").parent


def _parts(labels: pl.DataFrame, titles: dict[str, str]) -> dict[str, bool]:
    """Return which queries are held for the test: all of a title, and of titles that share a query."""
    group: dict[str, str] = {}
    for query, doc, _ in labels.select("query_id", "doc_id", "score").iter_rows():
        group.setdefault(query, titles[doc])
    random = generator(7, "title")
    held = {title: random.random() < 0.3 for title in sorted({*titles.values()})}
    return {query: held[title] for query, title in group.items()}


def _write_triples(
    path: Path, queries: list[str], asked: dict[str, str], labels: pl.DataFrame, texts: dict[str, str]
) -> None:
    """Write own answers as positives, and what BM25 ranks below the first as negatives."""
    ids = list(texts)
    index = bm25s.BM25()
    index.index(bm25s.tokenize([texts[key] for key in ids], show_progress=False), show_progress=False)
    depth = min(MINED.stop, len(ids))
    found, _ = index.retrieve(
        bm25s.tokenize([asked[query] for query in queries], show_progress=False), k=depth, show_progress=False
    )
    own = {query: set(docs) for query, docs in labels.group_by("query_id").agg("doc_id").iter_rows()}
    with path.open("w", encoding="utf-8") as stream:
        for query, row in zip(queries, np.asarray(found), strict=True):
            near = [ids[at] for at in row[min(MINED.start, depth - 1) :] if ids[at] not in own[query]][:4]
            right = [texts[doc] for doc in sorted(own[query]) if doc in texts]
            if near and right:
                line = {"query": asked[query], "pos": right, "neg": [texts[doc] for doc in near]}
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")
