"""Rules of labelled texts that the stage and both kinds keep: which classes have texts enough to train and test on."""

import polars as pl

TRAIN, TEST = 8, 2
"""Texts of a class in each split, at least: stock mteb trains on 8 per class."""


def divisible() -> pl.Expr:
    """Return whether the class of a row has texts enough in both splits."""
    counts = {split: (pl.col("split") == split).sum().over("label") for split in ("train", "test")}
    return (counts["train"] >= TRAIN) & (counts["test"] >= TEST)


def confirmed(classified: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that all judges confirm, of classes that have enough of them; none where under two have."""
    agreed = classified.filter(pl.col("verdict") == "confirmed").filter(divisible())
    return agreed if agreed["label"].n_unique() > 1 else agreed.clear()
