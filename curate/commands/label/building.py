"""Construction of a labelled set: groups (named or near-duplicates), split, words that reveal a class, filters."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

import numpy as np
import polars as pl

from curate.commands.label import Config, Leak
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.records import FILTERED, shown
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import DOCUMENT_RUN, QUERY_RUN, form, overlapping
from curate.stats.confusion import confusions, macro_f1
from curate.stats.shortcuts import commonest, grams, keyword_rule
from curate.system.files import batches, there
from curate.tables.kinds.labelled import TEST_TEXTS, TRAIN_TEXTS, divisible

RUNS = {"queries": QUERY_RUN, "corpus": DOCUMENT_RUN}


def grouped(rows: pl.DataFrame, near: float) -> pl.DataFrame:
    """Return the rows with `group`, the first item of the group, and without `own`."""
    ids = rows["item_id"].to_list()
    first_index: dict[str, int] = {}
    own_pairs = (
        (first_index.setdefault(group, index), index) for index, group in enumerate(rows["own"]) if group is not None
    )
    roots = _components(len(ids), [*own_pairs, *_similar_pairs(rows, near)])
    return rows.with_columns(group=pl.Series([ids[root] for root in roots], dtype=pl.String)).drop("own")


def _similar_pairs(rows: pl.DataFrame, near: float) -> list[tuple[int, int]]:
    """Return index pairs of texts that share at least `near` of their character runs."""
    forms = [form(text) for text in rows["text"]]
    run = max(RUNS[side] for side in rows["side"].unique()) if forms else QUERY_RUN
    first, second, _ = overlapping(forms, forms, near, run)
    return [
        (first_index, second_index)
        for first_index, second_index in zip(first.tolist(), second.tolist(), strict=True)
        if first_index < second_index
    ]


def _components(size: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each index the smallest index of its connected component."""
    roots = list(range(size))

    def root(index: int) -> int:
        while roots[index] != index:
            roots[index] = index = roots[roots[index]]
        return index

    for first, second in pairs:
        low, high = sorted((root(first), root(second)))
        roots[high] = low
    return [root(index) for index in range(size)]


def draw(rows: pl.DataFrame, share: float, seed: int, purpose: str) -> frozenset[str]:
    """Return whole groups in random order, up to this share of the texts of every class, rounded up."""
    labels_by_group: dict[str, Counter[str]] = defaultdict(Counter)
    for group, label in rows.select("group", "label").iter_rows():
        labels_by_group[group][label] += 1
    remaining = {label: ceil(share * count) for label, count in Counter(rows["label"]).items()}
    groups: list[str] = []
    for group in shuffled(sorted(labels_by_group), seed, "label", purpose):
        if all(count <= remaining[label] for label, count in labels_by_group[group].items()):
            groups.append(group)
            remaining = {label: count_left - labels_by_group[group][label] for label, count_left in remaining.items()}
    return frozenset(groups)


# Words that reveal a class: its name, and its best keyword on the training split, if it is informative.

MASKED = "[…]"
_INSIDE = r"[^\W\u2e80-\u9fff]"
"""A character of a word in a script with spaces between words."""


@dataclass(frozen=True)
class LeakWords:
    """Words that reveal a class, by class."""

    words: Mapping[str, tuple[str, ...]]

    def own(self, text: str, label: str) -> bool:
        """Whether a text contains a word of its own class."""
        return bool(_pattern(self.words[label]).search(text))

    def any(self, text: str) -> bool:
        """Whether a text contains a word of any class."""
        return bool(self._any_keyword.search(text))

    def masked(self, text: str) -> str:
        """Return a text with the words of all classes masked, so that the mask does not reveal the class."""
        return self._any_keyword.sub(MASKED, text)

    @cached_property
    def _any_keyword(self) -> re.Pattern[str]:
        return _pattern([word for words in self.words.values() for word in words])


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return a case-insensitive pattern of words, the longest first; words of scripts with spaces match whole only."""
    patterns = []
    for word in sorted(dict.fromkeys(words), key=lambda word: (-len(word), word)):
        not_before, not_after = (rf"(?<!{_INSIDE})", rf"(?!{_INSIDE})")
        spaced = r"\W+".join(map(re.escape, word.split()))
        starts, ends = (re.match(_INSIDE, sign) is not None for sign in (word[0], word[-1]))
        patterns.append(f"{not_before if starts else ''}{spaced}{not_after if ends else ''}")
    return re.compile("|".join(patterns), re.IGNORECASE)


def learned(rows: pl.DataFrame) -> LeakWords:
    """Return the name of every class, and its best keyword on the training split if informative."""
    train = rows.filter(pl.col("split") == "train")
    names = sorted(rows["label"].unique())
    codes = [names.index(label) for label in train["label"]]
    text_grams = [  # without punctuation: masking it would hide nothing of a class
        frozenset(gram for gram in text if any(sign.isalnum() for sign in gram))
        for text in grams(train["text"].to_list())
    ]
    rule = keyword_rule(text_grams, codes, commonest(codes))
    best = {names[code]: word for word, code in rule.keywords if _improves_f1(word, code, text_grams, codes)}
    return LeakWords({name: tuple(dict.fromkeys([name, *([best[name]] if name in best else [])])) for name in names})


def _improves_f1(word: str, code: int, text_grams: Sequence[frozenset[str]], codes: Sequence[int]) -> bool:
    """Whether the F1 of a word for a class exceeds that of assigning the class to every text."""
    n_class = codes.count(code)
    codes_with_word = [label for label, words in zip(codes, text_grams, strict=True) if word in words]
    return 2 * codes_with_word.count(code) / (len(codes_with_word) + n_class) > 2 * n_class / (len(codes) + n_class)


def figures(rows: pl.DataFrame, words: LeakWords) -> dict[str, Json]:
    """Return the share of texts with a word of their class, and macro-F1 of one keyword per class on the test split.

    Keywords are learned on the given training texts; `commonest_f1` is that of the most frequent class.
    """
    names = sorted(rows["label"].unique())
    train, test = (rows.filter(pl.col("split") == split) for split in ("train", "test"))
    codes, test_codes = ([names.index(label) for label in split_rows["label"]] for split_rows in (train, test))
    most = commonest(codes)
    text_grams = grams([*train["text"], *test["text"]])  # together, so that both are read as the same script
    rule = keyword_rule(text_grams[: len(codes)], codes, most)
    reveals = [words.own(text, label) for text, label in rows.select("text", "label").iter_rows()]
    return {
        "texts": rows.height,
        "share": sum(reveals) / len(reveals),
        "keyword_f1": _f1(test_codes, rule(text_grams[len(codes) :]), len(names)),
        "commonest_f1": _f1(test_codes, [most] * len(test_codes), len(names)),
    }


def _f1(labels: Sequence[int], predicted: Sequence[int], classes: int) -> float:
    return float(macro_f1(confusions(np.array(labels), [np.array(predicted)], classes).sum(axis=0)))


# Labelled texts and their filters: one label each, long enough, no equal texts.

SHORTEST = 5
"""Minimum characters of a text."""
LABELS, KEY = "labels", {"queries": "query_id", "corpus": "doc_id"}
GONE, SHORT = "its text was dropped as redundant", f"its text has fewer than {SHORTEST} characters"
SEVERAL = "it has several labels"
EQUAL, CONTRARY = "its text is that of another one", "its text is that of another one with another label"


@dataclass
class LabelledTexts:
    """Texts with one label each, and the dropped ones."""

    rows: pl.DataFrame
    """item_id, side, text, label, `own` (the group that the input names, or null), sorted by item_id."""
    origins: tuple[str, ...] = ()
    dropped: dict[str, str] = field(default_factory=dict)
    """Item -> reason."""
    sides: dict[str, str] = field(default_factory=dict)
    """Item -> queries or corpus, of all labelled texts."""
    left_out: dict[str, dict[str, Json]] = field(default_factory=dict)
    """Excluded class -> reason: `told` in English; `rule` and its numbers for other languages."""

    def keep(self, condition: pl.Expr, reason: str) -> None:
        """Keep the rows of an expression; record the reason for the others."""
        self.dropped |= dict.fromkeys(self.rows.filter(~condition)["item_id"], reason)
        self.rows = self.rows.filter(condition)

    def unequal(self) -> None:
        """Drop short texts, all equal texts with different labels, and all but the first of other equal texts."""
        self.keep(pl.col("text").str.strip_chars().str.len_chars() >= SHORTEST, SHORT)
        self.rows = self.rows.with_columns(form=pl.col("text").map_elements(form, pl.String))
        self.keep(pl.col("label").n_unique().over("form") == 1, CONTRARY)
        self.keep(pl.col("form").is_first_distinct(), EQUAL)
        self.rows = self.rows.drop("form")

    @property
    def reasons(self) -> dict[str, int]:
        """Return reason -> number of texts, most frequent first."""
        return dict(sorted(Counter(self.dropped.values()).items(), key=lambda count: (-count[1], count[0])))


def need_labels(context: Context, leak: Leak) -> None:
    """Raise ConfigError if the pipeline has no labels, or keeps the words by which its texts were searched."""
    section = context.settings.get("ingest")
    if not isinstance(section, dict) or not section:
        return
    labels = section.get(LABELS)
    if not isinstance(labels, dict):
        raise ConfigError(
            "label: no labels; set ingest.labels, such as {path: labels.csv, columns: {id: id, label: class}}, or "
            "{side: corpus, columns: {label: COLUMN}} for a column of the documents"
        )
    refuse_searched([str(labels.get("origin", ""))], leak)


def refuse_searched(origins: list[str], leak: Leak) -> None:
    """Raise ConfigError if texts found by the words of their label are to keep these words."""
    if "search" in origins and leak == "keep":
        raise ConfigError(
            "label.leak: found keep, and the labels are the words that the texts were searched by (origin: search): "
            "each text holds its own; set label.leak to mask or drop"
        )


def read(context: Context, leak: Leak) -> LabelledTexts:
    """Return the texts of `diversify` with exactly one label, and the dropped ones."""
    if not there(context.folder("mask"), LABELS):
        raise ConfigError("label: no labels; set ingest.labels, and run `curate ingest` again")
    labels = context.read("mask", LABELS)
    refuse_searched(labels["origin"].unique().to_list(), leak)
    item_labels = labels.group_by("item_id", "side").agg(
        pl.col("label").n_unique().alias("several"), pl.col("label").first(), own=pl.col("group").drop_nulls().first()
    )
    texts = pl.concat(list(_texts(context, item_labels)))
    rows = item_labels.join(texts, on=["item_id", "side"], how="left").sort("side", "item_id")
    sides = dict(rows.select("item_id", "side").iter_rows())
    labelled = LabelledTexts(rows, tuple(labels["origin"].unique().sort()), sides=sides)
    labelled.keep(pl.col("text").is_not_null(), GONE)
    labelled.keep(pl.col("several") == 1, SEVERAL)
    labelled.unequal()
    labelled.rows = labelled.rows.select("item_id", "side", "text", "label", "own")
    return labelled


def _texts(context: Context, labels: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield item_id, side and text of labelled texts; the text of a document includes its title."""
    yield pl.DataFrame(schema={"item_id": pl.String, "side": pl.String, "text": pl.String})
    for side in labels["side"].unique().sort():
        side_labels = labels.filter(pl.col("side") == side)
        for batch in batches(context.folder(FILTERED), side):
            labelled = batch.join(side_labels, left_on=KEY[side], right_on="item_id", how="semi")
            titles = labelled["title"] if "title" in labelled.columns else [""] * labelled.height
            full_texts = [shown(title, text) for title, text in zip(titles, labelled["text"], strict=True)]
            yield labelled.select(item_id=KEY[side], side=pl.lit(side), text=pl.Series(full_texts, dtype=pl.String))


# From labelled texts to a set: group, exclude small classes, split, treat words that reveal classes.

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
"""Rule -> reason for the exclusion of a class."""


@dataclass(frozen=True)
class LabelSet:
    """The texts to publish, before confirmation by a panel."""

    texts: LabelledTexts
    """With `group` and `split` in `rows`."""
    words: LeakWords
    leak: dict[str, Json]
    """Figures of the words that reveal classes: kept, masked, published."""

    @property
    def classes(self) -> list[str]:
        """Return the sorted class names; the index of a class is its number."""
        return sorted(self.texts.rows["label"].unique())


def build(texts: LabelledTexts, config: Config, seed: int) -> LabelSet:
    """Group, exclude small classes, reduce to `config.texts`, split, and treat words that reveal classes.

    DataError if fewer than two classes remain.
    """
    n_classes = len(texts.rows["label"].unique())
    texts.rows = grouped(texts.rows, config.near)
    _without_small(texts, config, n_classes)
    if config.texts is not None and texts.rows.height > config.texts:
        groups = draw(texts.rows, config.texts / texts.rows.height, seed, "texts")
        texts.keep(pl.col("group").is_in(sorted(groups)), BEYOND)
        _without_small(texts, config, n_classes)
    tests = draw(texts.rows, config.test, seed, "split")
    split = pl.when(pl.col("group").is_in(sorted(tests))).then(pl.lit("test")).otherwise(pl.lit("train"))
    texts.rows = texts.rows.with_columns(split=split)
    _indivisible(texts, n_classes)
    words = learned(texts.rows)
    leak: dict[str, Json] = {"mode": config.leak, "words": {name: list(word) for name, word in words.words.items()}}
    masked = texts.rows.with_columns(text=pl.col("text").map_elements(words.masked, pl.String))
    leak |= {"kept": figures(texts.rows, words), "masked": figures(masked, words)}
    if config.leak == "mask":
        texts.rows = masked
        texts.unequal()
    elif config.leak == "drop":
        texts.keep(~pl.col("text").map_elements(words.any, pl.Boolean), LEAKING)
    if config.leak != "keep":
        _without_small(texts, config, n_classes)
        _indivisible(texts, n_classes)
        leak["published"] = figures(texts.rows, words)
    return LabelSet(texts, words, leak)


def _without_small(texts: LabelledTexts, config: Config, n_classes: int) -> None:
    """Exclude classes with too few texts or groups."""
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
    _leave_out(texts, {"texts": short, "groups": scarce}, n_classes)


def _indivisible(texts: LabelledTexts, n_classes: int) -> None:
    """Exclude classes with too few texts in a split, for example because one group contains most of them."""
    short = (
        texts.rows.filter(~divisible()).group_by("label").agg((pl.col("split") == "test").sum(), pl.len()).sort("label")
    )
    why = {label: {"train": count - tests, "test": tests} for label, tests, count in short.iter_rows()}
    _leave_out(texts, {"split": why}, n_classes)


def _leave_out(texts: LabelledTexts, classes: Mapping[str, Mapping[str, dict[str, int]]], n_classes: int) -> None:
    """Exclude classes, given as rule that excludes -> class -> its counts; DataError if fewer than two remain."""
    for rule, failing in classes.items():
        texts.keep(~pl.col("label").is_in(sorted(failing)), REASONS[rule])
        texts.left_out |= {
            name: {"rule": rule, **numbers, "told": TOLD[rule].format(**numbers)} for name, numbers in failing.items()
        }
    remaining = sorted(texts.rows["label"].unique())
    if len(remaining) > 1:
        return
    reasons = "; ".join(f"{name!r}: {why['told']}" for name, why in list(texts.left_out.items())[:5])
    alone = "all texts have one label" if remaining else "no text is left"
    dropped = ", ".join(f"{count:,} x {reason}" for reason, count in texts.reasons.items())
    mask = "set label.leak: mask, which keeps texts that drop leaves out, or " if LEAKING in texts.reasons else ""
    raise DataError(
        f"label: {len(remaining)} of {n_classes:,} classes left, expected two or more ({reasons or alone}); {mask}give "
        "more texts per class, join classes in the file of labels, or lower label.min_texts and label.min_groups"
        + (f"\ntexts that are not there: {dropped}" if dropped else "")
    )
