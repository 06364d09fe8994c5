"""Retrieval: the whole corpus, and the positives of every query; with graded labels in their place, or beside."""

import polars as pl

from curate.core.protocols import Benchmark
from curate.tables.kinds.documents import Content, OfDocuments, documents
from curate.tables.kinds.kind import MtebClass

TASK = MtebClass("Retrieval", "retrieval.AbsTaskRetrieval", "ndcg_at_10", "nDCG@10", "text-retrieval")


class Retrieval(OfDocuments):
    """Documents of a corpus for queries, scored by nDCG@10."""

    name = title = "retrieval"
    mteb = TASK
    card = "tables/kinds/retrieval.md.j2"
    scorer = "curate.commands.evaluate.scorers:RetrievalScorer"

    def present(self, _benchmark: Benchmark) -> bool:
        """Return True: without a positive there is no benchmark."""
        return True

    def is_graded(self, benchmark: Benchmark) -> bool:
        """Return whether graded labels stand in the place of the positives."""
        return benchmark.replaced

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the whole corpus, the queries, the positives or the graded labels, and every judged pair."""
        return _content(benchmark, graded=benchmark.replaced)


class Graded(OfDocuments):
    """The same queries and documents as retrieval, with graded labels: gains for nDCG."""

    name = title = "graded"
    mteb = TASK
    card = "tables/kinds/retrieval.md.j2"
    scorer = "curate.commands.evaluate.scorers:RetrievalScorer"

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether there are graded labels beside the binary ones."""
        return benchmark.graded is not None and not benchmark.replaced

    def is_graded(self, _benchmark: Benchmark) -> bool:
        """Return True."""
        return True

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the whole corpus, the queries, the graded labels, and every judged pair."""
        return _content(benchmark, graded=True)


def _content(whole: Benchmark, *, graded: bool) -> Content:
    benchmark = whole.of_retrieval()
    corpus, qrels = benchmark.corpus, benchmark.gains if graded else benchmark.qrels
    doubtful = benchmark.graded.filter(pl.col("contested")) if graded and benchmark.graded is not None else None
    least = 1 if graded else benchmark.relevant_from
    return Content(benchmark.queries, documents(corpus), len(corpus), qrels, None, benchmark.verdicts, doubtful, least)
