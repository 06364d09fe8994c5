"""STS (semantic textual similarity): pairs of a query and a sentence made from it, with the same or another meaning."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
from curate.llm.recorded_votes import verdict, votes
from curate.tables.kinds import benchmark_kind as words
from curate.tables.kinds.benchmark_kind import (
    TEST,
    BenchmarkKind,
    ExportTable,
    KindCheck,
    Lengths,
    MtebClass,
    ReviewItems,
    TaskContent,
    configured,
    empty,
    listed,
    repeated,
    rounded,
    sentence,
)
from curate.tables.kinds.confirmed import PublishedItem, of_pairs, otherwise

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("sentence1", "sentence2", "score", "kind", "pair-id", "query-id", "term", "synonym")
_NAMED = {"score": pl.col("label"), "query-id": pl.col("query_id"), "pair-id": pl.col("pair_id")}


class Sts(BenchmarkKind):
    """Pairs of sentences with label 1 or 0, scored by Spearman's correlation of labels and cosine similarities."""

    name = "sts"
    title = "sentence similarity"
    mteb = MtebClass(
        "STS", "sts.AbsTaskSTS", "cosine_spearman", "Spearman", "sentence-similarity", {"min_score": 0, "max_score": 1}
    )
    splits = ("test", "train")
    default = "pairs"
    items = ("pairs",)
    card = "tables/kinds/sts.md.j2"
    scorer = "curate.commands.evaluate.scorers:PairScorer"
    stage = "sts"
    table = "pairs"
    least = 100
    unit = "pairs"
    section = "tables/kinds/sts_section.html.j2"
    section_words = "tables/kinds/sts.yaml"

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns of the pairs: texts, and the label as a whole number."""
        import pyarrow as pa

        return {"pairs": pa.schema(dict.fromkeys(_COLUMNS, pa.string()) | {"score": pa.int32()})}

    def sizes(self, benchmark: Benchmark) -> Mapping[str, int]:
        """Return the number of pairs of the split `test`, the only one that is scored."""
        return {self.name: benchmark.tables[self.table].filter(pl.col("split") == TEST).height}

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the pairs of each non-empty split, sorted by id, with the label as score."""
        pairs = benchmark.tables[self.table]
        by_split = {split: pairs.filter(pl.col("split") == split).sort("pair_id") for split in self.splits}
        held = {split: rows for split, rows in by_split.items() if rows.height}
        columns = {name: _NAMED.get(name, pl.col(name)) for name in _COLUMNS}
        return TaskContent(
            [ExportTable("pairs", [rows.select(**columns)], split) for split, rows in held.items()],
            lambda: [_counts(split, rows) for split, rows in held.items()],
        )

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield problems: invalid ids, empty sentences, labels that contradict the kind, queries in both splits."""
        pairs = benchmark.tables[self.table]
        yield from repeated("pairs", pairs, "pair_id")
        yield from empty("pairs", pairs, "pair_id", "sentence1", "sentence2")
        odd = pairs.filter(pl.col("label").ne_missing((pl.col("kind") == "positive").cast(pl.Int32)))
        yield from sentence(
            "pairs", odd["pair_id"].to_list(), "labels are not their kind's", "1 is for positives alone"
        )
        train, test = (set(pairs.filter(pl.col("split") == split)["query_id"]) for split in ("train", "test"))
        yield from sentence("pairs", sorted(train & test), "queries are in both splits", "split by query")

    def words(self, language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and one prompt for both sentences."""
        texts = words.of(language)
        return texts["description"][self.name], texts["similar"]

    def to_review(self, table: pl.DataFrame) -> ReviewItems:
        """Return the pairs for review (do both sentences mean the same?), with one stratum per split and kind."""
        return of_pairs(table)

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the pairs of both splits."""
        names = {"score": "label", "pair-id": "pair_id", "query-id": "query_id"}
        by_split = {split: tables.get(configured("pairs", split)) for split in self.splits}
        return pl.concat(
            pairs.rename(names).with_columns(split=pl.lit(split))
            for split, pairs in by_split.items()
            if pairs is not None
        )

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> KindCheck:
        """Return the differences of labels from the pairs' kinds and from the panel's answers."""
        wrong = pl.col("label").ne_missing((pl.col("kind") == "positive").cast(pl.Int32))
        differences = [
            f"sts: {rows.height:,} {what}, for example {listed(rows['pair_id'].to_list())}"
            for rows, what in (
                (table.filter(wrong), "labels contradict their kind"),
                (table.filter(pl.col("pair_id").is_duplicated()), "pairs stand there more than once"),
            )
            if rows.height
        ]
        asked_of = facts.get("asked", {})
        unchecked = f"sts: {table.height:,} labels of pairs of sentences that no panel confirmed, but for their kind"
        if "sentences" in asked_of:
            rows = table.select("pair_id", "sentence1", "sentence2", "label").iter_rows()
            items = {name: PublishedItem((one, two), "yes" if label else "no") for name, one, two, label in rows}
            differences += otherwise(self.name, asked_of["sentences"], items, ledger)
        if "words" in asked_of:
            differences += _words(table, asked_of["words"], ledger)
        confirmed = "sentences" in asked_of
        return KindCheck(differences, [] if confirmed else [unchecked], table.height, as_given=not confirmed)


def _words(pairs: pl.DataFrame, question: Mapping[str, Any], ledger: Ledger) -> Iterator[str]:
    """Yield a sentence if the panel confirmed the words of a pair neither as (term, synonym) nor in reversed order."""
    words = pairs.select("term", "synonym").unique(maintain_order=True).rows()
    both = [words, [pair[::-1] for pair in words]]
    answers_of = [votes(question, {str(number): pair for number, pair in enumerate(order)}, ledger) for order in both]
    odd = [
        pair
        for number, pair in enumerate(words)
        if not any(
            answers.keys() == question["panel"].keys() and verdict(answers, "yes") == "confirmed"
            for answers in (by_pair[str(number)] for by_pair in answers_of)
        )
    ]
    rows = pairs.filter(pl.struct("term", "synonym").is_in([{"term": one, "synonym": two} for one, two in odd]))
    if odd:
        yield (
            f"sts: the words of {rows.height:,} pairs are not confirmed in the ledger, for example "
            f"{listed(rows['pair_id'].to_list())}"
        )


def _counts(split: str, pairs: pl.DataFrame) -> dict[str, Json]:
    """Return the figures of one split of the pairs of sentences."""
    lengths = Lengths(0)
    kinds = dict(pairs["kind"].value_counts().sort("kind").iter_rows())
    return {
        "split": split,
        "pairs": pairs.height,
        "label 1": f"{pairs['label'].sum() / pairs.height:.2%}",
        **kinds,
        "tokens of sentence1": rounded(lengths.mean_of(pairs["sentence1"].to_list())),
        "tokens of sentence2": rounded(lengths.mean_of(pairs["sentence2"].to_list())),
    }
