"""Kinds of labelled texts: classification and clustering.

Each is exported twice: with all given labels, and only with those that all judges confirmed.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
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
    empty,
    listed,
    repeated,
    rounded,
    sentence,
)
from curate.tables.kinds.confirmed import PublishedItem, otherwise

if TYPE_CHECKING:
    import pyarrow as pa

TRAIN_TEXTS, TEST_TEXTS = 8, 2
"""Minimum number of texts per class and split; mteb trains on 8 per class."""
CONFIRMED, QUESTION = "confirmed", "class"
_NAMES = {"item_id": "item-id", "label": "label-name"}


def divisible() -> pl.Expr:
    """Return a polars expression: whether a row's class has enough texts in both splits."""
    counts = {split: (pl.col("split") == split).sum().over("label") for split in ("train", TEST)}
    return (counts["train"] >= TRAIN_TEXTS) & (counts[TEST] >= TEST_TEXTS)


def confirmed(classified: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that all judges confirmed, of classes with enough of them; no row if under two classes remain."""
    agreed = classified.filter(pl.col("verdict") == CONFIRMED).filter(divisible())
    return agreed if agreed["label"].n_unique() > 1 else agreed.clear()


class OfClasses(BenchmarkKind):
    """Base class of the kinds made of the table `classified`: texts with one class each."""

    stage = "label"
    table = "classified"
    spliced = True
    default = "texts"
    items = ("texts",)
    card = "tables/kinds/labelled.md.j2"
    only_confirmed: bool = False
    """Whether the kind is limited to labels that all judges confirmed."""
    shown: str = "text"
    """mteb's column of the text; `labelled` is that of the class number."""
    labelled: str = "label"

    def rows(self, benchmark: Benchmark) -> pl.DataFrame:
        """Return the texts of the kind, all or only confirmed ones, sorted by item."""
        table = benchmark.tables[self.table]
        return (confirmed(table) if self.only_confirmed else table).sort("item_id")

    def present(self, benchmark: Benchmark) -> bool:
        """Return whether there are texts of the kind."""
        return self.table in benchmark.tables and bool(self.rows(benchmark).height)

    @property
    def configs(self) -> Mapping[str, "pa.Schema"]:
        """Return the columns: text and class number under mteb's names, then label name, votes and other facts."""
        import pyarrow as pa

        text = pa.string()
        votes = pa.list_(pa.struct({"judge": text, "answer": text}))
        columns = {
            self.shown: text,
            self.labelled: pa.int64(),
            **dict.fromkeys(("label-name", "item-id", "side"), text),
        }
        return {"texts": pa.schema({**columns, "split": text, "group": text, "verdict": text, "votes": votes})}

    def written(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with the columns of the exported file."""
        renamed = rows.rename(_NAMES).rename({"label_id": self.labelled, "text": self.shown})
        return renamed.select(*self.configs["texts"].names)

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the table `classified` rebuilt from its exported rows."""
        back = {new: old for old, new in _NAMES.items()}
        rows = pl.concat(tables.values()).rename({self.shown: "text", self.labelled: "label_id"}).rename(back)
        return rows.select(pl.col(name).cast(kind) for name, kind in self.columns.items()).sort("item_id")

    def renamed(self, table: pl.DataFrame, new: Mapping[str, pl.Expr]) -> pl.DataFrame:
        """Return the table with new ids of its texts.

        A group is named by the id of its first text, so it is renamed too.
        """
        changed = table
        for column in ("item_id", "group"):
            either = {name: pl.col(column) for name in ("query_id", "doc_id")}
            sides = changed.with_columns(**either).select(query=new["query_id"], doc=new["doc_id"], side="side")
            picked = sides.select(pl.when(pl.col("side") == "queries").then("query").otherwise("doc"))
            changed = changed.with_columns(picked.to_series().alias(column))
        return changed.sort("item_id")

    def words(self, language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return the description, and the prompt of its texts."""
        texts = words.of(language)
        return texts["description"][self.name], texts[self.name.partition("-")[0]]

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield the problems of the table.

        Only `classification` yields them, because the other kinds have the same texts.
        """
        if self.only_confirmed or self.name != "classification":
            return
        table = benchmark.tables[self.table]
        yield from repeated(self.table, table, "item_id")
        yield from empty(self.table, table, "item_id", "text")
        same = table.filter(pl.col("text").str.strip_chars().is_duplicated())["item_id"].to_list()
        yield from sentence(self.table, same, "texts are equal", "run `curate label` again")
        sides = table.filter(pl.col("split").n_unique().over("group") > 1)["item_id"].to_list()
        yield from sentence(self.table, sides, "texts have their group in both splits", "run `curate label` again")
        odd = table.filter(pl.col("label_id").n_unique().over("label") > 1)["item_id"].to_list()
        yield from sentence(self.table, odd, "labels have several numbers", "run `curate label` again")

    def of_card(self, benchmark: Benchmark) -> Mapping[str, Any]:
        """Return the names of the classes, by number."""
        return {"classes": self._classes(benchmark), "only_confirmed": self.only_confirmed}

    def front(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return the names of the classes by number, and whether the labels are `confirmed` or `given`."""
        return {"classes": self._classes(benchmark), "labels": CONFIRMED if self.only_confirmed else "given"}

    def _classes(self, benchmark: Benchmark) -> dict[str, Json]:
        pairs = benchmark.tables[self.table].select("label_id", "label").unique().sort("label_id")
        return {str(number): name for number, name in pairs.iter_rows()}

    def counts(self, rows: pl.DataFrame) -> list[Json]:
        """Return one row of figures per class, and one for all classes."""
        lengths = Lengths(0)
        groups = [
            *((name, rows.filter(pl.col("label") == name)) for name in sorted(rows["label"].unique())),
            ("all", rows),
        ]
        return [
            {
                "class": name,
                "texts": group.height,
                **{split: group.filter(pl.col("split") == split).height for split in ("train", TEST)},
                "groups": group["group"].n_unique(),
                "confirmed": group.filter(pl.col("verdict") == CONFIRMED).height,
                "tokens": rounded(lengths.mean_of(group["text"].to_list())),
            }
            for name, group in groups
        ]

    def to_review(self, table: pl.DataFrame) -> ReviewItems | None:
        """Return the texts for review; assessors choose the class, `none` or `several`.

        There is one stratum per class and verdict.
        """
        if self.only_confirmed:
            return None
        stratum = pl.concat_str("label", "verdict", separator=", ")
        rows = table.select("item_id", text1="text", text2=pl.lit(None, pl.String), label="label", stratum=stratum)
        question = words.translated("which")
        return ReviewItems(rows, (*sorted(table["label"].unique()), "none", "several"), question)

    def verify(self, table: pl.DataFrame, facts: Mapping[str, Any], ledger: Ledger) -> KindCheck:
        """Compare the table with the judges' answers in the ledger, and with verdicts and class numbers recomputed."""
        panel_question = facts.get("asked", {}).get(QUESTION)
        differences = list(self._contradictions(table))
        if panel_question is None:
            unchecked = [f"{self.name}: {table.height:,} labels as given, nobody was asked"]
            return KindCheck(differences, unchecked, table.height, as_given=True)
        items = {
            row["item_id"]: PublishedItem(
                (row["text"],), row["label"], row["verdict"], {vote["judge"]: vote["answer"] for vote in row["votes"]}
            )
            for row in table.iter_rows(named=True)
        }
        differences += otherwise(self.name, panel_question, items, ledger)
        unconfirmed = table.filter(pl.col("verdict") != CONFIRMED).height
        unchecked = (
            [f"{self.name}: {unconfirmed:,} given labels that the panel does not confirm"] if unconfirmed else []
        )
        return KindCheck(differences, unchecked, table.height, as_given=bool(unconfirmed))

    def _contradictions(self, table: pl.DataFrame) -> Iterable[str]:
        names = table.group_by("label_id").agg(pl.col("label").unique())
        several = names.filter(pl.col("label").list.len() > 1)["label_id"].cast(pl.String).to_list()
        twice = table.filter(pl.col("item_id").is_duplicated())["item_id"].unique().sort().to_list()
        both = table.filter(pl.col("split").n_unique().over("group") > 1)["item_id"].to_list()
        alone = table.filter(pl.col("verdict") != CONFIRMED)["item_id"].to_list() if self.only_confirmed else []
        for ids, what in (
            (several, "numbers stand for several classes"),
            (twice, "texts stand there more than once"),
            (both, "texts have their group in both splits"),
            (alone, "texts are not confirmed"),
        ):
            if ids:
                yield f"{self.name}: {len(ids):,} {what}, for example {listed(ids)}"


# Classification: texts with one class each, for a classifier over an encoder's vectors.

_TASK = MtebClass(
    "Classification",
    "classification.AbsTaskClassification",
    "f1",
    "macro-F1",
    "text-classification",
    {"samples_per_label": 8, "n_experiments": 10},
)


class Classification(OfClasses):
    """Classification with all given labels."""

    name = "classification"
    title = "classification"
    mteb = _TASK
    splits = (TEST, "train")
    scorer = "curate.commands.evaluate.scorers_by_type:ClassificationScorer"
    section = "tables/kinds/labelled_section.html.j2"
    section_words = "tables/kinds/labelled.yaml"

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the texts of both splits."""
        rows = self.rows(benchmark)
        tables = {split: self.written(rows.filter(pl.col("split") == split)) for split in self.splits}
        return TaskContent(
            [ExportTable("texts", [table], split) for split, table in tables.items()], lambda: self.counts(rows)
        )


class ConfirmedClassification(Classification):
    """Classification with the labels that all judges confirmed."""

    name = "classification-confirmed"
    title = "classification (confirmed labels)"
    only_confirmed = True
    section = section_words = ""


# Clustering: the same texts as in classification, both splits together, for nothing is trained on them.

MOST = 2_048
"""Maximum number of texts that are embedded."""


class Clustering(OfClasses):
    """Clustering with all given labels."""

    name = "clustering"
    title = "clustering"
    mteb = MtebClass(
        "Clustering",
        "clustering.AbsTaskClustering",
        "v_measure",
        "V-measure",
        "text-classification",
        # mteb embeds 4 % of the texts unless it is told otherwise.
        {"max_fraction_of_documents_to_embed": None, "max_document_to_embed": MOST},
    )
    shown, labelled = "sentences", "labels"
    scorer = "curate.commands.evaluate.scorers_by_type:ClusteringScorer"

    def attributes(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return mteb's sampling: each draw, with replacement, has as many texts as the kind, at most `MOST`."""
        return {**self.mteb.attributes, "max_documents_per_cluster": min(self.rows(benchmark).height, MOST)}

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return all texts as one split."""
        rows = self.rows(benchmark)
        return TaskContent([ExportTable("texts", [self.written(rows)])], lambda: self.counts(rows))


class ConfirmedClustering(Clustering):
    """Clustering with the labels that all judges confirmed."""

    name = "clustering-confirmed"
    title = "clustering (confirmed labels)"
    only_confirmed = True
