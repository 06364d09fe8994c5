"""`fever`: texts that speak of fever or of something else, a kind of benchmark of its own."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curate import (
    Benchmark,
    BenchmarkKind,
    Columns,
    ExportTable,
    Json,
    KindCheck,
    Ledger,
    MtebClass,
    ReviewItems,
    TaskContent,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Fever(BenchmarkKind):
    """Texts, labelled 1 where they speak of fever, for mteb's classification."""

    name = title = "fever"
    mteb = MtebClass(
        "Classification",
        "classification.AbsTaskClassification",
        "f1",
        "F1",
        "text-classification",
        {"n_experiments": 3},
    )
    splits = ("test", "train")
    default = "texts"
    items = ("texts",)
    card = "tables/exporters/card.md.j2"
    scorer = "nobody:asks"
    stage = "fever"
    table = "fevers"
    section = str(Path(__file__).with_name("toy_section.html.j2"))
    section_words = str(Path(__file__).with_name("toy_words.yaml"))

    @property
    def columns(self) -> Columns:
        """Return the columns of its table; a stage of ours has them in `TABLES`."""
        return {"id": pl.String, "text": pl.String, "label": pl.Int64, "split": pl.String}

    @property
    def configs(self) -> "Mapping[str, pa.Schema]":
        """Return configuration -> columns, as the Parquet files have them."""
        import pyarrow as pa

        return {"texts": pa.schema({"id": pa.string(), "text": pa.string(), "label": pa.int64()})}

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the texts of both splits, and how many each has for the card."""
        parts = {split: self._rows(benchmark.tables[self.table], split) for split in self.splits}
        counts: dict[str, Json] = {split: part.height for split, part in parts.items()}
        return TaskContent([ExportTable("texts", [part], split) for split, part in parts.items()], lambda: counts)

    def _rows(self, table: pl.DataFrame, split: str) -> pl.DataFrame:
        return table.filter(pl.col("split") == split).sort("id").select("id", "text", "label")

    def words(self, _language: str, _facts: Mapping[str, Json]) -> tuple[str, Json]:
        """Return description and prompt of mteb's task."""
        return "Does a text speak of fever?", "Classify by fever"

    def problems(self, benchmark: Benchmark) -> Iterable[str]:
        """Yield what must not be exported: `export` stops with these sentences."""
        table = benchmark.tables[self.table]
        if void := table.filter(pl.col("text").str.strip_chars() == "")["id"].to_list():
            yield f"fevers: {len(void)} rows have an empty text, for example {void[:3]}; drop them"

    def to_review(self, table: pl.DataFrame) -> ReviewItems:
        """Return what `curate review export --of fever` shows people; they see neither label nor stratum."""
        label = pl.when(pl.col("label") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
        one = pl.lit(None, pl.String)
        rows = table.select(item_id="id", text1="text", text2=one, label=label, stratum="split")
        return ReviewItems(rows, ("yes", "no"), {"en": "Does the text speak of fever?", "zh": "这段文字提到发热吗？"})

    def read(self, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return the table from the files that were written: `content` backwards."""
        names = {"test": "texts", "train": "texts-train"}
        return pl.concat(tables[names[split]].with_columns(split=pl.lit(split)) for split in self.splits)

    def verify(self, table: pl.DataFrame, _made: Mapping[str, Any], _ledger: Ledger) -> KindCheck:
        """Compare every label with what follows from its origin; a panel's answers are read again from the ledger."""
        wrong = table.filter(pl.col("text").str.contains("热").cast(pl.Int64) != pl.col("label"))["id"].to_list()
        said = [f"fever: {len(wrong)} labels are not what the texts say, for example {wrong[:3]}"] if wrong else []
        return KindCheck(said, [], table.height)
