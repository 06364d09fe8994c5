"""Content of an mteb task: its queries, documents and labels, and the figures of its card."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark, Corpus
from curate.core.records import Document
from curate.formats.exporters.card import TaskMetadata
from curate.formats.exporters.lengths import SAMPLE, Lengths


@dataclass(frozen=True)
class Content:
    """The tables of one task; `ranked` holds query_id and the list of its candidates, None for retrieval."""

    queries: pl.DataFrame
    documents: Iterable[Document]
    size: int
    qrels: pl.DataFrame
    ranked: pl.DataFrame | None
    verdicts: pl.DataFrame
    contested: pl.DataFrame | None = None
    """Of graded labels those of contested pairs; None for binary ones."""
    relevant_from: int = 1
    """Lowest score in `qrels` that makes a positive."""


def content_of(benchmark: Benchmark, task: TaskMetadata) -> Content:
    """Return what a task of documents holds."""
    return _reranking(benchmark) if task.kind == "Reranking" else _retrieval(benchmark, graded=task.graded)


def _retrieval(benchmark: Benchmark, *, graded: bool) -> Content:
    """Return the whole corpus, the queries, the positives or the graded labels, and every judged pair."""
    corpus, qrels = benchmark.corpus, benchmark.gains if graded else benchmark.qrels
    doubtful = benchmark.graded.filter(pl.col("contested")) if graded and benchmark.graded is not None else None
    least = 1 if graded else benchmark.relevant_from
    return Content(benchmark.queries, _rows(corpus), len(corpus), qrels, None, benchmark.verdicts, doubtful, least)


def _reranking(benchmark: Benchmark) -> Content:
    """Return the candidates, their documents and queries, and every judged pair of these queries."""
    qrels = benchmark.candidates
    wanted = set(qrels["doc_id"])
    # Sorted by id: the order in which a reranker is given its candidates must not tell which are positives.
    ranked = qrels.sort("query_id", "doc_id").group_by("query_id", maintain_order=True).agg("doc_id")
    return Content(
        queries=benchmark.queries.join(qrels, on="query_id", how="semi", maintain_order="left"),
        documents=(item for item in _rows(benchmark.corpus) if item.doc_id in wanted),
        size=len(wanted),
        qrels=qrels,
        ranked=ranked,
        verdicts=benchmark.verdicts.join(qrels, on="query_id", how="semi"),
    )


def counts(content: Content, lengths: Lengths) -> dict[str, Json]:
    """Return the figures of one folder; a mean over nothing is None."""
    queries = content.queries.height
    positives = content.qrels.filter(pl.col("score") >= content.relevant_from).height
    negatives = content.qrels.height - positives
    labels: dict[str, Json] = {
        "positives": positives,
        "positives per query": positives / queries if queries else None,
        **({"negatives": negatives, "negatives per query": negatives / queries} if queries and negatives else {}),
    }
    if content.contested is not None:
        worth = content.qrels["score"].value_counts().sort("score", descending=True)
        labels = {
            "labels with a gain": positives,
            "labels with a gain per query": positives / queries if queries else None,
            **{f"labels with the gain {gain}": count for gain, count in worth.iter_rows()},
            "labels with a gain, of contested pairs": content.contested.filter(pl.col("score") > 0).height,
        }
    of_verdict = dict(content.verdicts["verdict"].value_counts().sort("verdict").iter_rows())
    counted = f"{min(queries, SAMPLE):,} queries and {len(lengths.counts):,} documents, by cl100k_base"
    return {
        "queries": queries,
        "documents": content.size,
        **labels,
        "tokens per query": rounded(lengths.mean_of(content.queries["text"].to_list())),
        "tokens per document": rounded(lengths.mean),
        "tokens were counted in": counted,
        "judged pairs": content.verdicts.height,
        **{f"judged pairs, {verdict}": count for verdict, count in of_verdict.items()},
    }


def rounded(figure: float | None) -> float | None:
    """Return a figure to two digits; None stays None."""
    return None if figure is None else round(figure, 2)


def _rows(corpus: Corpus) -> Iterator[Document]:
    return chain.from_iterable(corpus.batches())
