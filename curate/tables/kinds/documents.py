"""Kinds of benchmark whose labels are the panel's verdicts on documents: retrieval, graded retrieval and reranking."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark, Corpus
from curate.core.records import Document
from curate.core.scale import FIVE
from curate.system.files import BATCH
from curate.tables.kinds import benchmark_kind as words
from curate.tables.kinds.benchmark_kind import (
    SAMPLE,
    BenchmarkKind,
    ExportTable,
    Lengths,
    MtebClass,
    TaskContent,
    rounded,
)

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_QUERIES = 50
"""Minimum number of queries: with fewer, bootstrap intervals of a difference of models are too narrow (.925 at 50)."""
_KEYS = {"query-id": pl.col("query_id"), "corpus-id": pl.col("doc_id")}
_RANKED = {"query-id": pl.col("query_id"), "corpus-ids": pl.col("doc_id")}


@dataclass(frozen=True)
class Content:
    """The tables of one task; `ranked` (query_id, list of candidates' ids) is None for retrieval."""

    queries: pl.DataFrame
    documents: Iterable[Document]
    size: int
    qrels: pl.DataFrame
    ranked: pl.DataFrame | None
    verdicts: pl.DataFrame
    contested: pl.DataFrame | None = None
    """Graded labels of contested pairs; None for binary labels."""
    relevant_from: int = 1
    """Lowest score in `qrels` that counts as positive."""


class OfDocuments(BenchmarkKind):
    """Base class of retrieval, graded retrieval and reranking."""

    default = "qrels"
    items = ("corpus",)
    judged = True
    least = LEAST_QUERIES

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns of every configuration, in the types that mteb reads."""
        import pyarrow as pa

        text = pa.string()
        pair = {"query-id": text, "corpus-id": text}
        votes = pa.list_(pa.struct({"judge": text, "grade": text}))
        columns = {
            "corpus": {"id": text, "title": text, "text": text},
            "queries": {"id": text, "text": text},
            "qrels": pair | {"score": pa.int32()},
            "top_ranked": {"query-id": text, "corpus-ids": pa.list_(text)},
            "grades": pair | {"verdict": text, "votes": votes},
            "contested": pair | {"votes": votes},
        }
        return {name: pa.schema(column) for name, column in columns.items()}

    @abstractmethod
    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the queries, documents and labels of the task."""

    def is_graded(self, _benchmark: Benchmark) -> bool:
        """Return whether the labels are gains; else they are positives."""
        return False

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the tables: corpus, queries, qrels, candidates, all judged pairs and, if graded, contested pairs."""
        content = self.chosen(benchmark)
        lengths = Lengths(content.size)
        return TaskContent(_tables(content, lengths), lambda: counts(content, lengths))

    def words(self, language: str, facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and the prompt of queries: the fact `instruction`, else that of the language."""
        texts = words.of(language)
        instruction = str(facts.get("instruction") or texts["instruction"])
        return texts["description"][self.name], {"query": instruction}

    def of_card(self, benchmark: Benchmark) -> Mapping[str, Any]:
        """Return the card's variables on grades and gains."""
        scale, graded = benchmark.scale, self.is_graded(benchmark)
        others = [label for label in scale.labels if label not in scale.relevant]
        rule = str(benchmark.facts.get("graded labels") or "").partition(",")[0]
        return {
            "graded": graded,
            "grades_sentence": f"{', '.join(scale.positives)} (relevant), {', '.join(others)} (not relevant)",
            "gains": ", ".join(f"{label} {scale.gain(label)}" for label in scale.labels),
            "own_scores": benchmark.qrels.filter(pl.col("score") > 0)["score"].n_unique() > 1,
            "chosen_grade": {"minimum": "the minimum"}.get(rule, "the lower median"),
            "below": graded and bool((benchmark.gains["score"] < scale.gain(scale.relevant_from)).any()),
        }

    def front(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return the contributors by role, the gains of graded labels, and the scale unless it is the default."""
        facts: Any = benchmark.facts.get("parts") or {}
        if benchmark.scale != FIVE:
            facts = {**facts, "scale": benchmark.scale.to_json()}
        if self.is_graded(benchmark):
            facts = {**facts, "gains": dict(zip(benchmark.scale.labels, benchmark.scale.gains, strict=True))}
        front: Mapping[str, Json] = facts
        return front


def _tables(content: Content, lengths: Lengths) -> Iterator[ExportTable]:
    yield ExportTable("corpus", _frames(lengths.passing(content.documents)))
    yield ExportTable("queries", [content.queries.select(id="query_id", text="text")])
    yield ExportTable("qrels", [_keyed(content.qrels, "score")])
    if content.ranked is not None:
        yield ExportTable("top_ranked", [content.ranked.select(**_RANKED)])
    by_judge = pl.element().sort_by(pl.element().struct.field("judge"))
    grades = content.verdicts.with_columns(pl.col("votes").list.eval(by_judge))
    contested = grades.filter(pl.col("verdict") == "contested")
    yield ExportTable("grades", [_keyed(grades, "verdict", "votes")])
    if contested.height:  # `datasets` cannot read a file without rows
        yield ExportTable("contested", [_keyed(contested, "votes")])


def _keyed(pairs: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the pairs sorted by ids, with the ids in mteb's columns (query-id, corpus-id) and `columns` unchanged."""
    return pairs.sort("query_id", "doc_id").select(**_KEYS, **{name: pl.col(name) for name in columns})


def _frames(documents: Iterable[Document]) -> Iterator[pl.DataFrame]:
    """Yield the corpus in frames of `BATCH` rows, so that the written bytes do not depend on the source's batches."""
    stream = iter(documents)
    while batch := list(islice(stream, BATCH)):
        rows = [(document.doc_id, document.title, document.text) for document in batch]
        yield pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String, "text": pl.String}, orient="row")


def counts(content: Content, lengths: Lengths) -> dict[str, Json]:
    """Return the figures of one task folder; a mean over no items is None."""
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
    counted = f"{min(queries, SAMPLE):,} queries and {len(lengths.counts):,} documents, by `cl100k_base`"
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


def documents(corpus: Corpus) -> Iterator[Document]:
    """Yield every document of a corpus."""
    return chain.from_iterable(corpus.batches())


# Reranking: per query positives and drawn negatives to be put in order.


class Reranking(OfDocuments):
    """Reranking of a query's candidates, scored by MAP@10."""

    name = title = "reranking"
    mteb = MtebClass("Reranking", "retrieval.AbsTaskRetrieval", "map_at_10", "MAP@10", "text-ranking")
    card = "tables/kinds/reranking.md.j2"
    scorer = "curate.commands.evaluate.scorers:RerankingScorer"

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether any query has candidates."""
        return bool(benchmark.candidates.height)

    def sizes(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return the number of queries with candidates."""
        return {self.name: benchmark.candidates["query_id"].n_unique()}

    def reduced(self, benchmark: Benchmark, _parts: Collection[str]) -> Benchmark:
        """Return the benchmark without candidates, whose queries remain in the retrieval task or return to it."""
        return replace(benchmark, candidates=benchmark.candidates.clear(), apart=False)

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the candidates, their documents and queries, and every judged pair of these queries."""
        qrels = benchmark.candidates
        doc_ids = set(qrels["doc_id"])
        # Sorted by id: the order of a reranker's candidates must not reveal the positives.
        ranked = qrels.sort("query_id", "doc_id").group_by("query_id", maintain_order=True).agg("doc_id")
        return Content(
            queries=benchmark.queries.join(qrels, on="query_id", how="semi", maintain_order="left"),
            documents=(document for document in documents(benchmark.corpus) if document.doc_id in doc_ids),
            size=len(doc_ids),
            qrels=qrels,
            ranked=ranked,
            verdicts=benchmark.verdicts.join(qrels, on="query_id", how="semi"),
        )


# Retrieval: the whole corpus, and the positives of every query; with graded labels in their place, or beside.

TASK = MtebClass("Retrieval", "retrieval.AbsTaskRetrieval", "ndcg_at_10", "nDCG@10", "text-retrieval")


class OfCorpus(OfDocuments):
    """Base class of retrieval and graded retrieval, which have the same queries and documents."""

    mteb = TASK
    card = "tables/kinds/retrieval.md.j2"
    scorer = "curate.commands.evaluate.scorers:RetrievalScorer"

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether the retrieval task has any query."""
        return bool(benchmark.of_retrieval().queries.height)

    def sizes(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return the number of queries."""
        return {self.name: benchmark.of_retrieval().queries.height}

    def reduced(self, benchmark: Benchmark, _parts: Collection[str]) -> Benchmark:
        """Return the benchmark of the reranking task alone: its candidates, and their queries and verdicts."""
        pair, candidates = ["query_id", "doc_id"], benchmark.candidates
        return replace(
            benchmark,
            queries=benchmark.queries.join(candidates, on="query_id", how="semi", maintain_order="left"),
            qrels=benchmark.qrels.join(candidates, on=pair, how="semi", maintain_order="left"),
            verdicts=benchmark.verdicts.join(candidates, on=pair, how="semi", maintain_order="left"),
            graded=None,
            apart=True,
        )


class Retrieval(OfCorpus):
    """Retrieval from the whole corpus, scored by nDCG@10."""

    name = title = "retrieval"

    def is_graded(self, benchmark: Benchmark) -> bool:
        """Return whether graded labels replace the positives."""
        return benchmark.replaced

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the whole corpus, the queries, the positives or the graded labels, and every judged pair."""
        return _content(benchmark, graded=benchmark.replaced)


class Graded(OfCorpus):
    """Retrieval with graded labels, scored by nDCG@10 with gains."""

    name = title = "graded"

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether the benchmark has graded labels in addition to the binary ones, and any query."""
        return benchmark.graded is not None and not benchmark.replaced and super().present(benchmark)

    def is_graded(self, _benchmark: Benchmark) -> bool:
        """Return True: the labels are gains."""
        return True

    def chosen(self, benchmark: Benchmark) -> Content:
        """Return the whole corpus, the queries, the graded labels, and every judged pair."""
        return _content(benchmark, graded=True)


def _content(full: Benchmark, *, graded: bool) -> Content:
    benchmark = full.of_retrieval()
    corpus, qrels = benchmark.corpus, benchmark.gains if graded else benchmark.qrels
    doubtful = benchmark.graded.filter(pl.col("contested")) if graded and benchmark.graded is not None else None
    least = 1 if graded else benchmark.relevant_from
    return Content(benchmark.queries, documents(corpus), len(corpus), qrels, None, benchmark.verdicts, doubtful, least)
