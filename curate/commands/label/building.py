"""From labelled texts to a set: groups, classes that are large enough, a split, and what gives classes away."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from curate.commands.label import Config
from curate.commands.label.groups import draw, grouped
from curate.commands.label.leaking import LeakWords, figures, learned
from curate.commands.label.texts import LabelledTexts
from curate.core.config import Json
from curate.core.errors import DataError
from curate.tables.kinds.labelled import TEST_TEXTS, TRAIN_TEXTS, divisible

BEYOND = "beyond label.texts"
LEAKING = "it holds a word that gives a class away"
SMALL, FEW_GROUPS = "its class has too few texts", "its class has too few groups"
UNEVEN = "its class has too few texts in one of the splits"
REASONS = {"texts": SMALL, "groups": FEW_GROUPS, "split": UNEVEN}
TOLD = {
    "texts": "{found:,} texts, and label.min_texts is {needed}",
    "groups": "{found:,} groups, and label.min_groups is {needed}",
    "split": f"{{train:,}} texts to train on and {{test:,}} to test, {TRAIN_TEXTS} and {TEST_TEXTS} are needed: "
    "change label.test, or give smaller groups",
}
"""Why a class is left out, by the rule that it fails."""


@dataclass(frozen=True)
class LabelSet:
    """The texts that are published, before anybody was asked."""

    texts: LabelledTexts
    """`rows` have group and split too."""
    words: LeakWords
    leak: dict[str, Json]
    """Figures of what gives classes away, before and after."""

    @property
    def classes(self) -> list[str]:
        """Return the classes by name; the place of each is its number."""
        return sorted(self.texts.rows["label"].unique())


def build(texts: LabelledTexts, config: Config, seed: int) -> LabelSet:
    """Group, leave small classes out, cut to size, split, and treat words that give classes away.

    DataError with what to do where fewer than two classes are left.
    """
    found = len(texts.rows["label"].unique())
    texts.rows = grouped(texts.rows, config.near)
    _without_small(texts, config, found)
    if config.texts is not None and texts.rows.height > config.texts:
        taken = draw(texts.rows, config.texts / texts.rows.height, seed, "texts")
        texts.keep(pl.col("group").is_in(sorted(taken)), BEYOND)
        _without_small(texts, config, found)
    tests = draw(texts.rows, config.test, seed, "split")
    split = pl.when(pl.col("group").is_in(sorted(tests))).then(pl.lit("test")).otherwise(pl.lit("train"))
    texts.rows = texts.rows.with_columns(split=split)
    _indivisible(texts, found)
    words = learned(texts.rows)
    leak: dict[str, Json] = {"mode": config.leak, "words": {name: list(each) for name, each in words.words.items()}}
    masked = texts.rows.with_columns(text=pl.col("text").map_elements(words.masked, pl.String))
    leak |= {"kept": figures(texts.rows, words), "masked": figures(masked, words)}
    if config.leak == "mask":
        texts.rows = masked
        texts.unequal()
    elif config.leak == "drop":
        texts.keep(~pl.col("text").map_elements(words.any, pl.Boolean), LEAKING)
    if config.leak != "keep":
        _without_small(texts, config, found)
        _indivisible(texts, found)
        leak["published"] = figures(texts.rows, words)
    return LabelSet(texts, words, leak)


def _without_small(texts: LabelledTexts, config: Config, found: int) -> None:
    """Leave out classes with too few texts or groups."""
    sizes = texts.rows.group_by("label").agg(texts=pl.len(), groups=pl.col("group").n_unique())
    short = {
        label: {"found": count, "needed": config.min_texts}
        for label, count, _ in sizes.sort("label").iter_rows()
        if count < config.min_texts
    }
    scarce = {
        label: {"found": groups, "needed": config.min_groups}
        for label, _, groups in sizes.sort("label").iter_rows()
        if label not in short and groups < config.min_groups
    }
    _leave_out(texts, {"texts": short, "groups": scarce}, found)


def _indivisible(texts: LabelledTexts, found: int) -> None:
    """Leave out classes of which a split has too few texts, as where one group holds most of them."""
    short = (
        texts.rows.filter(~divisible()).group_by("label").agg((pl.col("split") == "test").sum(), pl.len()).sort("label")
    )
    why = {label: {"train": count - tests, "test": tests} for label, tests, count in short.iter_rows()}
    _leave_out(texts, {"split": why}, found)


def _leave_out(texts: LabelledTexts, classes: Mapping[str, Mapping[str, dict[str, int]]], found: int) -> None:
    """Leave out classes, by the rule that they fail: class -> its numbers. DataError if one class is left."""
    for rule, failing in classes.items():
        texts.keep(~pl.col("label").is_in(sorted(failing)), REASONS[rule])
        texts.left_out |= {
            name: {"rule": rule, **numbers, "told": TOLD[rule].format(**numbers)} for name, numbers in failing.items()
        }
    left = sorted(texts.rows["label"].unique())
    if len(left) > 1:
        return
    told = "; ".join(f"{name!r}: {why['told']}" for name, why in list(texts.left_out.items())[:5])
    alone = "all texts have one label" if left else "no text is left"
    mask = "set label.leak: mask, which keeps texts that drop leaves out, or " if LEAKING in texts.reasons else ""
    raise DataError(
        f"label: {len(left)} of {found:,} classes left, expected two or more ({told or alone}); {mask}give more texts "
        "per class, join classes in the file of labels, or lower label.min_texts and label.min_groups" + _lost(texts)
    )


def _lost(texts: LabelledTexts) -> str:
    reasons = [f"{count:,} x {reason}" for reason, count in texts.reasons.items()]
    return f"\ntexts that are not there: {', '.join(reasons)}" if reasons else ""
