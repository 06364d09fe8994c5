"""What people are asked of pairs of sentences: whether both mean the same."""

import polars as pl

from curate.tables.kinds import words
from curate.tables.kinds.kind import ReviewItems


def of_pairs(table: pl.DataFrame) -> ReviewItems:
    """Return the pairs of a table with the label 1 for the same meaning; a stratum per split and kind."""
    label = pl.when(pl.col("label") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    stratum = pl.concat_str("split", "kind", separator=", ")
    said = {language: words.of(language)["same"] for language in ("en", "zh")}
    return ReviewItems(
        table.select(item_id="pair_id", text1="sentence1", text2="sentence2", label=label, stratum=stratum),
        ("yes", "no"),
        {language: each["question"] for language, each in said.items()},
        {language: each["answers"] for language, each in said.items()},
    )
