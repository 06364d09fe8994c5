"""Paraphrases: pairs of a query and a sentence of the same meaning, or of similar wording but another meaning."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
from curate.llm.recorded_votes import Verdict
from curate.stats.shortcuts import overlap
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

_NAMED = {"labels": "label", "pair-id": "pair_id", "query-id": "query_id"}
"""Column of an export -> column of the table, where they differ."""
_COLUMNS = ("sentence1", "sentence2", *_NAMED, "kind", "group", "retriever", "rank", "overlap", "verdict", "votes")
_SENTENCES, _PLAUSIBLE, _DIFFERENT = "sts-sentences", "edit-plausible", "edit-different"
"""Names of the questions that the stage asks the panel."""
_POSITIVE, _NEIGHBOUR, _CHANGED = "paraphrase", "neighbour", "different"
PUBLISHED = ("confirmed", "unconfirmed")
"""Verdicts of pairs that may be published."""


class Paraphrase(BenchmarkKind):
    """Pairs of sentences with label 1 or 0, scored by average precision with the best of mteb's similarities."""

    name = "paraphrase"
    title = "paraphrase"
    mteb = MtebClass(
        "PairClassification",
        "pair_classification.AbsTaskPairClassification",
        "max_ap",
        "average precision",
        "sentence-similarity",
    )
    splits = (TEST, "train")
    default = "pairs"
    items = ("pairs",)
    card = "tables/kinds/paraphrase.md.j2"
    scorer = "curate.commands.evaluate.scorers_by_type:PairClassificationScorer"
    circular = ("retriever", "judge", "generator")
    stage = "paraphrase"
    table = "paraphrases"
    section = "tables/kinds/paraphrase_section.html.j2"
    section_words = "tables/kinds/paraphrase.yaml"

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns of the pairs: texts, the label as an integer, and the origin of the pair."""
        import pyarrow as pa

        votes = pa.list_(pa.struct({"judge": pa.string(), "answer": pa.string()}))
        typed = {"labels": pa.int32(), "rank": pa.int32(), "overlap": pa.float64(), "votes": votes}
        return {"pairs": pa.schema(dict.fromkeys(_COLUMNS, pa.string()) | typed)}

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether any pair is in the split `test`, the only one that is scored."""
        return self.table in benchmark.tables and (benchmark.tables[self.table]["split"] == TEST).any()

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the pairs of each split that has any, sorted by id."""
        pairs = benchmark.tables[self.table]
        held = {
            split: rows
            for split in self.splits
            if (rows := pairs.filter(pl.col("split") == split).sort("pair_id")).height
        }
        columns = {name: pl.col(_NAMED.get(name, name)) for name in _COLUMNS}
        return TaskContent(
            [ExportTable("pairs", [rows.select(**columns)], split) for split, rows in held.items()],
            lambda: [_counts(split, rows) for split, rows in held.items()],
        )

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield a sentence per problem: ids, equal or empty sentences, labels, texts in both splits, only one label."""
        pairs = benchmark.tables[self.table].drop_nulls("split")
        yield from repeated("paraphrases", pairs, "pair_id")
        yield from empty("paraphrases", pairs, "pair_id", "sentence1", "sentence2")
        for rows, what, remedy in (
            (pairs.filter(_label_contradicts_kind()), "labels are not their kind's", "1 is for paraphrases alone"),
            (pairs.filter(pl.col("sentence1") == pl.col("sentence2")), "pairs are of equal sentences", "drop them"),
            (pairs.filter(~pl.col("verdict").is_in(PUBLISHED)), "pairs were not confirmed", "drop them"),
        ):
            yield from sentence("paraphrases", rows["pair_id"].to_list(), what, remedy)
        by_split = [pairs.filter(pl.col("split") == split) for split in self.splits]
        for what, columns in (("groups", ["group"]), ("texts", ["sentence1", "sentence2"])):
            train, test = ({content for name in columns for content in split_pairs[name]} for split_pairs in by_split)
            ids = pairs.filter(pl.any_horizontal(pl.col(columns).is_in(sorted(train & test))))["pair_id"].to_list()
            yield from sentence("paraphrases", ids, f"pairs share {what} with the other split", "split by group")
        if by_split[0].height and by_split[0]["label"].n_unique() < 2:
            yield "paraphrases: all pairs of the split test have one label; set paraphrase.queries higher"

    def renamed(self, table: pl.DataFrame, new: Mapping[str, pl.Expr]) -> pl.DataFrame:
        """Return the pairs with new query ids, also in the column `group`, which contains query ids."""
        group = table.select(query_id="group").select(group=new["query_id"])["group"]
        return table.with_columns(group, query_id=new["query_id"])

    def words(self, language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and one prompt for both sentences."""
        texts = words.of(language)
        return texts["description"][self.name], texts["similar"]

    def front(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return role -> contributors; their models get too high scores on this kind (circularity)."""
        return contributors(benchmark)

    def of_card(self, benchmark: Benchmark) -> Mapping[str, Any]:
        """Return the contributors, by role."""
        return {"circular": contributors(benchmark)}

    def to_review(self, table: pl.DataFrame) -> ReviewItems:
        """Return the published pairs for review; assessors answer whether both sentences mean the same."""
        return of_pairs(table.drop_nulls("split"))

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the pairs of both splits."""
        by_split = {split: tables.get(configured("pairs", split)) for split in self.splits}
        return pl.concat(
            pairs.rename(_NAMED).with_columns(split=pl.lit(split))
            for split, pairs in by_split.items()
            if pairs is not None
        )

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> KindCheck:
        """Compare labels with the kind of each pair, overlaps with the texts, and votes with the ledger."""
        differences = list(_contradictions(table))
        asked_of = facts.get("asked", {})
        if asked_of:
            for question, items in _items(table).items():
                differences += otherwise(self.name, asked_of[question], items, ledger) if items else []
        unchecked = f"paraphrase: {table.height:,} labels of pairs that no panel confirmed, but for their kind"
        return KindCheck(differences, [] if asked_of else [unchecked], table.height, as_given=not asked_of)


def contributors(benchmark: Benchmark) -> Mapping[str, Json]:
    """Return role -> names of the contributors to paraphrases, as reported by the stage; empty without a report."""
    of_stages: Any = benchmark.facts.get("kinds") or {}
    roles: Mapping[str, Json] = (of_stages.get("paraphrase") or {}).get("parts") or {}
    return roles


def answers(votes: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return judge -> answer from the votes of one row."""
    return {vote["judge"]: vote["answer"] for vote in votes}


def _label_contradicts_kind() -> pl.Expr:
    return pl.col("label").ne_missing((pl.col("kind") == _POSITIVE).cast(pl.Int32))


def _contradictions(table: pl.DataFrame) -> Iterator[str]:
    """Yield one sentence per inconsistency within the table: overlaps, edits and labels."""
    texts = table.select("pair_id", "sentence1", "sentence2", "overlap").iter_rows()
    moved = [name for name, one, two, published in texts if abs(overlap(one, two) - published) > 1e-6]
    edits = table.filter(~pl.col("kind").is_in([_POSITIVE, _NEIGHBOUR]))
    unchanged = [
        name
        for name, votes in edits.select("pair_id", "votes").iter_rows()
        if set(answers(votes).values()) - {_CHANGED}
    ]
    for ids, what in (
        (table.filter(_label_contradicts_kind())["pair_id"].to_list(), "labels contradict their kind"),
        (table.filter(pl.col("pair_id").is_duplicated())["pair_id"].to_list(), "pairs stand there more than once"),
        (table.filter(~pl.col("verdict").is_in(PUBLISHED))["pair_id"].to_list(), "pairs are not confirmed"),
        (moved, "overlaps are not those of the texts"),
        (unchanged, "votes do not confirm an edit"),
    ):
        if ids:
            yield f"paraphrase: {len(ids):,} {what}, for example {listed(ids)}"


def _items(table: pl.DataFrame) -> dict[str, dict[str, PublishedItem]]:
    """Return question -> pair id -> texts shown and answer expected; edits occur under two questions."""
    items: dict[str, dict[str, PublishedItem]] = {_SENTENCES: {}, _PLAUSIBLE: {}, _DIFFERENT: {}}
    columns = table.select("pair_id", "sentence1", "sentence2", "kind", "label", "votes", "verdict")
    for name, one, two, kind, label, votes, published in columns.iter_rows():
        verdict: Verdict = published
        if kind in (_POSITIVE, _NEIGHBOUR):
            confirmation = PublishedItem((one, two), "yes" if label else "no", verdict, answers(votes))
            items[_SENTENCES][name] = confirmation
        else:
            items[_PLAUSIBLE][name] = items[_DIFFERENT][name] = PublishedItem((one, two), "yes", verdict)
    return items


def _counts(split: str, pairs: pl.DataFrame) -> dict[str, Json]:
    """Return the figures of one split."""
    lengths = Lengths(0)
    kinds = dict(pairs["kind"].value_counts().sort("kind").iter_rows())
    return {
        "split": split,
        "pairs": pairs.height,
        "label 1": f"{pairs['label'].sum() / pairs.height:.2%}",
        "queries": pairs["query_id"].n_unique(),
        **kinds,
        "tokens of sentence1": rounded(lengths.mean_of(pairs["sentence1"].to_list())),
        "tokens of sentence2": rounded(lengths.mean_of(pairs["sentence2"].to_list())),
    }
