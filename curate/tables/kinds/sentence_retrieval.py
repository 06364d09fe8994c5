"""Sentence retrieval: find the original query of a paraphrase; the panel's labels are the qrels."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
from curate.llm.recorded_votes import Verdict
from curate.tables.kinds import benchmark_kind as words
from curate.tables.kinds.benchmark_kind import (
    BenchmarkKind,
    ExportTable,
    KindCheck,
    Lengths,
    TaskContent,
    empty,
    listed,
    rounded,
    sentence,
)
from curate.tables.kinds.confirmed import PublishedItem, otherwise
from curate.tables.kinds.documents import LEAST_QUERIES, TASK
from curate.tables.kinds.paraphrase import answers, contributors

if TYPE_CHECKING:
    import pyarrow as pa

_QUESTION = "sts-sentences"
_VERDICTS = {"confirmed": "relevant", "rejected": "not relevant"}
"""Verdict in the table -> verdict in an export; other verdicts are exported unchanged."""
POSITIVE = pl.col("verdict").is_in(["confirmed", "unconfirmed"])
_BY_ID = ("pair_id", "query_id")


class SentenceRetrieval(BenchmarkKind):
    """Retrieval with paraphrases as queries and all original queries as the corpus, scored by nDCG@10."""

    name = "sentence-retrieval"
    title = "sentence retrieval"
    mteb = TASK
    default = "qrels"
    items = ("corpus",)
    card = "tables/kinds/sentence_retrieval.md.j2"
    scorer = "curate.commands.evaluate.scorers:RetrievalScorer"
    circular = ("judge", "generator")
    stage = "paraphrase"
    table = "originals"
    least = LEAST_QUERIES

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns of every configuration, in the types that mteb reads; `grades` holds every judged pair."""
        import pyarrow as pa

        text = pa.string()
        pair = {"query-id": text, "corpus-id": text}
        votes = pa.list_(pa.struct({"judge": text, "grade": text}))
        columns = {
            "corpus": {"id": text, "title": text, "text": text},
            "queries": {"id": text, "text": text},
            "qrels": pair | {"score": pa.int32()},
            "grades": pair | {"verdict": text, "votes": votes},
        }
        return {name: pa.schema(column) for name, column in columns.items()}

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether any paraphrase has a relevant original."""
        return self.table in benchmark.tables and bool(benchmark.tables[self.table].filter(POSITIVE).height)

    def sizes(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return the number of paraphrases with a relevant original."""
        return {self.name: benchmark.tables[self.table].filter(POSITIVE)["pair_id"].n_unique()}

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return corpus, queries, positives, and every judged pair."""
        table = benchmark.tables[self.table]
        corpus = table.select(id="query_id", title=pl.lit(""), text="text").unique("id").sort("id")
        judged = table.drop_nulls("pair_id").sort(_BY_ID)
        queries = judged.select(id="pair_id", text="paraphrase").unique("id").sort("id")
        keys = {"query-id": pl.col("pair_id"), "corpus-id": pl.col("query_id")}
        grade = pl.element().struct.rename_fields(["judge", "grade"])
        tables = [
            ExportTable("corpus", [corpus]),
            ExportTable("queries", [queries]),
            ExportTable("qrels", [judged.filter(POSITIVE).select(**keys, score=pl.lit(1))]),
            ExportTable(
                "grades",
                [
                    judged.select(
                        **keys, verdict=pl.col("verdict").replace(_VERDICTS), votes=pl.col("votes").list.eval(grade)
                    )
                ],
            ),
        ]
        return TaskContent(tables, lambda: _counts(corpus, queries, judged))

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield problems: empty texts, ids with several texts, repeated pairs, paraphrases without original."""
        table = benchmark.tables[self.table]
        judged = table.drop_nulls("pair_id")
        yield from empty("originals", table, "query_id", "text")
        yield from empty("originals", judged, "pair_id", "paraphrase")
        for key, text in (("query_id", "text"), ("pair_id", "paraphrase")):
            several = judged.group_by(key).agg(pl.col(text).n_unique().alias("texts")).filter(pl.col("texts") > 1)
            yield from sentence("originals", sorted(several[key]), f"ids of {text}s have several", "give each its own")
        twice = judged.filter(judged.select(_BY_ID).is_duplicated())["pair_id"].unique().sort().to_list()
        yield from sentence("originals", twice, "paraphrases stand there twice with one original", "drop one")
        bare = judged.join(judged.filter(POSITIVE), on="pair_id", how="anti")["pair_id"].unique().sort().to_list()
        yield from sentence("originals", bare, "paraphrases have no original", "leave them out")

    def words(self, language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and one prompt for queries and documents, which are both questions."""
        texts = words.of(language)
        return texts["description"][self.name], texts["similar"]

    def front(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return role -> contributors; their models get too high scores on this kind (circularity)."""
        return contributors(benchmark)

    def of_card(self, benchmark: Benchmark) -> Mapping[str, Any]:
        """Return the contributors, by role."""
        return {"circular": contributors(benchmark)}

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return one row per judged pair, and one per original without a pair; `score` is the value in the qrels."""
        answer = pl.element().struct.rename_fields(["judge", "answer"])
        table_verdicts = {exported: word for word, exported in _VERDICTS.items()}
        pairs = tables["grades"].join(tables["qrels"], on=["query-id", "corpus-id"], how="full", coalesce=True)
        judged = pairs.join(tables["queries"], left_on="query-id", right_on="id", how="left").select(
            query_id="corpus-id",
            pair_id="query-id",
            paraphrase="text",
            verdict=pl.col("verdict").replace(table_verdicts),
            votes=pl.col("votes").list.eval(answer),
            score="score",
        )
        corpus = tables["corpus"].select(query_id="id", text="text")
        return corpus.join(judged, on="query_id", how="full", coalesce=True).sort("query_id", "pair_id")

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> KindCheck:
        """Return the differences of labels from verdicts, and of verdicts from the panel's answers in the ledger."""
        judged = table.drop_nulls("pair_id")
        expected = pl.when(POSITIVE).then(1)
        differences = [
            f"{self.name}: {rows.height:,} {what}, for example {listed(rows['pair_id'].to_list())}"
            for rows, what in (
                (judged.filter(expected.ne_missing(pl.col("score"))), "labels are not what their verdict says"),
                (judged.filter(pl.any_horizontal(pl.col("text", "paraphrase").is_null())), "pairs lack a text"),
            )
            if rows.height
        ]
        asked_of = facts.get("asked", {})
        if asked_of:
            differences += otherwise(self.name, asked_of[_QUESTION], _items(judged), ledger)
        unchecked = f"{self.name}: {judged.height:,} labels that no panel confirmed"
        return KindCheck(differences, [] if asked_of else [unchecked], judged.height, as_given=not asked_of)


def _items(judged: pl.DataFrame) -> dict[str, PublishedItem]:
    """Return pair -> texts shown to the panel, and the published answers."""
    complete = judged.drop_nulls(["text", "paraphrase", "verdict"])
    columns = complete.select("query_id", "pair_id", "text", "paraphrase", "verdict", "votes")
    items: dict[str, PublishedItem] = {}
    for query_id, pair_id, original, paraphrase, verdict, votes in columns.iter_rows():
        published: Verdict = verdict
        items[f"{pair_id} {query_id}"] = PublishedItem((original, paraphrase), "yes", published, answers(votes))
    return items


def _counts(corpus: pl.DataFrame, queries: pl.DataFrame, judged: pl.DataFrame) -> dict[str, Json]:
    lengths, positives = Lengths(0), judged.filter(POSITIVE).height
    verdicts = dict(judged["verdict"].value_counts().sort("verdict").iter_rows())
    return {
        "queries": queries.height,
        "originals": corpus.height,
        "positives": positives,
        "positives per query": rounded(positives / queries.height),
        "judged pairs": judged.height,
        **{f"judged pairs, {_VERDICTS.get(verdict, verdict)}": count for verdict, count in verdicts.items()},
        "pairs that nobody judged": queries.height * corpus.height - judged.height,
        "tokens per query": rounded(lengths.mean_of(queries["text"].to_list())),
        "tokens per original": rounded(lengths.mean_of(corpus["text"].to_list())),
    }
