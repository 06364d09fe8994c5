"""Reranking: per query positives and drawn negatives to be put in order."""

from curate.core.protocols import Benchmark
from curate.tables.kinds.documents import Content, OfDocuments, documents
from curate.tables.kinds.kind import MtebClass


class Reranking(OfDocuments):
    """Candidates of queries, scored by MAP@10."""

    name = title = "reranking"
    mteb = MtebClass("Reranking", "retrieval.AbsTaskRetrieval", "map_at_10", "MAP@10", "text-ranking")
    card = "tables/kinds/reranking.md.j2"
    scorer = "curate.commands.evaluate.scorers:RerankingScorer"

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether any query has candidates."""
        return bool(benchmark.candidates.height)

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the candidates, their documents and queries, and every judged pair of these queries."""
        qrels = benchmark.candidates
        wanted = set(qrels["doc_id"])
        # Sorted by id: the order in which a reranker is given its candidates must not tell which are positives.
        ranked = qrels.sort("query_id", "doc_id").group_by("query_id", maintain_order=True).agg("doc_id")
        return Content(
            queries=benchmark.queries.join(qrels, on="query_id", how="semi", maintain_order="left"),
            documents=(item for item in documents(benchmark.corpus) if item.doc_id in wanted),
            size=len(wanted),
            qrels=qrels,
            ranked=ranked,
            verdicts=benchmark.verdicts.join(qrels, on="query_id", how="semi"),
        )
