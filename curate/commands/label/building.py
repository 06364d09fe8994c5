"""Groups of texts that one split must hold together (named in the input, or near-duplicates), and the split by them."""

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
from curate.core.records import shown
from curate.core.sampling import shuffled
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import DOCUMENT_RUN, QUERY_RUN, form, overlapping
from curate.stats.confusion import confusions, macro_f1
from curate.stats.shortcuts import commonest, grams, keyword_rule
from curate.system.files import batches, there
from curate.tables.kinds.labelled import TEST_TEXTS, TRAIN_TEXTS, divisible

RUNS = {"queries": QUERY_RUN, "corpus": DOCUMENT_RUN}


def grouped(rows: pl.DataFrame, near: float) -> pl.DataFrame:
    """Return the rows with `group`, the first item of those that belong together; `own` is not kept."""
    ids = rows["item_id"].to_list()
    pairs = [*_named(rows["own"].to_list()), *_alike(rows, near)]
    roots = _joined(len(ids), pairs)
    return rows.with_columns(group=pl.Series([ids[root] for root in roots], dtype=pl.String)).drop("own")


def _named(groups: Sequence[str | None]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    return [(first.setdefault(group, at), at) for at, group in enumerate(groups) if group is not None]


def _alike(rows: pl.DataFrame, near: float) -> list[tuple[int, int]]:
    """Return the places of pairs of texts that have that share of their runs of characters in common."""
    forms = [form(text) for text in rows["text"]]
    run = max(RUNS[side] for side in rows["side"].unique()) if forms else QUERY_RUN
    one, other, _ = overlapping(forms, forms, near, run)
    return [(left, right) for left, right in zip(one.tolist(), other.tolist(), strict=True) if left < right]


def _joined(size: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first of those that pairs join, for each place."""
    roots = list(range(size))

    def root(at: int) -> int:
        while roots[at] != at:
            roots[at] = at = roots[roots[at]]
        return at

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        roots[high] = low
    return [root(at) for at in range(size)]


def draw(rows: pl.DataFrame, share: float, seed: int, purpose: str) -> frozenset[str]:
    """Return whole groups, by seed, that hold about this share of the texts of every class, and at most one more."""
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for group, label in rows.select("group", "label").iter_rows():
        held[group][label] += 1
    room = {label: ceil(share * count) for label, count in Counter(rows["label"]).items()}
    taken: list[str] = []
    for group in shuffled(sorted(held), seed, "label", purpose):
        if _fits(held[group], room):
            taken.append(group)
            room = {label: left - held[group][label] for label, left in room.items()}
    return frozenset(taken)


def _fits(group: Mapping[str, int], room: Mapping[str, int]) -> bool:
    return all(count <= room[label] for label, count in group.items())


# Words that give a class away: its name, and the one keyword by which its training texts are told best, if any are.

MASKED = "[…]"
_INSIDE = r"[^\W\u2e80-\u9fff]"
"""A sign inside a word of a script that puts spaces between words."""


@dataclass(frozen=True)
class LeakWords:
    """The words of every class."""

    words: Mapping[str, tuple[str, ...]]

    def own(self, text: str, label: str) -> bool:
        """Return whether a text holds a word of its own class."""
        return bool(_pattern(self.words[label]).search(text))

    def any(self, text: str) -> bool:
        """Return whether a text holds a word of any class."""
        return bool(self._all.search(text))

    def masked(self, text: str) -> str:
        """Return a text with all words of all classes hidden: what is hidden must not tell which class it is."""
        return self._all.sub(MASKED, text)

    @cached_property
    def _all(self) -> re.Pattern[str]:
        return _pattern([word for words in self.words.values() for word in words])


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return what finds words in any case, the longest first; a Latin word only whole."""
    parts = []
    for word in sorted(dict.fromkeys(words), key=lambda word: (-len(word), word)):
        before, after = (rf"(?<!{_INSIDE})", rf"(?!{_INSIDE})")
        spaced = r"\W+".join(map(re.escape, word.split()))
        starts, ends = (re.match(_INSIDE, sign) is not None for sign in (word[0], word[-1]))
        parts.append(f"{before if starts else ''}{spaced}{after if ends else ''}")
    return re.compile("|".join(parts), re.IGNORECASE)


def learned(rows: pl.DataFrame) -> LeakWords:
    """Return the name of every class, and its best keyword on the training split where that tells anything of it."""
    train = rows.filter(pl.col("split") == "train")
    names = sorted(rows["label"].unique())
    codes = [names.index(label) for label in train["label"]]
    held = [_lettered(gram) for gram in grams(train["text"].to_list())]
    rule = keyword_rule(held, codes, commonest(codes))
    best = {names[code]: word for word, code in rule.keywords if _tells(word, code, held, codes)}
    return LeakWords({name: tuple(dict.fromkeys([name, *([best[name]] if name in best else [])])) for name in names})


def _tells(word: str, code: int, held: Sequence[frozenset[str]], codes: Sequence[int]) -> bool:
    """Return whether a word tells a class better than to say it of every text, as a word of all texts does."""
    own = codes.count(code)
    having = [label for label, each in zip(codes, held, strict=True) if word in each]
    return 2 * having.count(code) / (len(having) + own) > 2 * own / (len(codes) + own)


def _lettered(held: frozenset[str]) -> frozenset[str]:
    """Return n-grams with a letter or digit: to hide a comma everywhere would hide nothing of a class."""
    return frozenset(gram for gram in held if any(sign.isalnum() for sign in gram))


def figures(rows: pl.DataFrame, words: LeakWords) -> dict[str, Json]:
    """Return the share of texts that hold a word of their class, and macro-F1 on the test split of one keyword a class.

    The keywords are learned anew on the training texts as they are; `commonest_f1` is of the most frequent class alone.
    """
    names = sorted(rows["label"].unique())
    train, test = (rows.filter(pl.col("split") == split) for split in ("train", "test"))
    codes, wanted = ([names.index(label) for label in part["label"]] for part in (train, test))
    most = commonest(codes)
    held = grams([*train["text"], *test["text"]])  # together, so that both are read as the same script
    rule = keyword_rule(held[: len(codes)], codes, most)
    own = [words.own(text, label) for text, label in rows.select("text", "label").iter_rows()]
    return {
        "texts": rows.height,
        "share": sum(own) / len(own),
        "keyword_f1": _f1(wanted, rule(held[len(codes) :]), len(names)),
        "commonest_f1": _f1(wanted, [most] * len(wanted), len(names)),
    }


def _f1(labels: Sequence[int], predicted: Sequence[int], classes: int) -> float:
    return float(macro_f1(confusions(np.array(labels), [np.array(predicted)], classes).sum(axis=0)))


# The texts that have a label, and the gate that they pass: one label each, long enough, and no two of them equal.

SHORTEST = 5
"""Characters of a text, at least."""
LABELS, KEY = "labels", {"queries": "query_id", "corpus": "doc_id"}
GONE, SHORT = "its text was dropped as redundant", f"its text has fewer than {SHORTEST} characters"
SEVERAL = "it has several labels"
EQUAL, CONTRARY = "its text is that of another one", "its text is that of another one with another label"


@dataclass
class LabelledTexts:
    """Texts with one label each, and why others are not there."""

    rows: pl.DataFrame
    """item_id, side, text, label, `own` (the group that the input names, or null), sorted by item_id."""
    origins: tuple[str, ...] = ()
    dropped: dict[str, str] = field(default_factory=dict)
    """Item -> reason."""
    sides: dict[str, str] = field(default_factory=dict)
    """Item -> queries or corpus, of all that had a label."""
    left_out: dict[str, dict[str, Json]] = field(default_factory=dict)
    """Class -> why it is left out: `told` in English, and for words of other languages `rule` with its numbers."""

    def keep(self, kept: pl.Expr, reason: str) -> None:
        """Keep some of the rows, and note why the others are gone."""
        self.dropped |= dict.fromkeys(self.rows.filter(~kept)["item_id"], reason)
        self.rows = self.rows.filter(kept)

    def unequal(self) -> None:
        """Merge equal texts of one label into the first; drop those of several labels, and texts that are too short."""
        self.keep(pl.col("text").str.strip_chars().str.len_chars() >= SHORTEST, SHORT)
        self.rows = self.rows.with_columns(form=pl.col("text").map_elements(form, pl.String))
        self.keep(pl.col("label").n_unique().over("form") == 1, CONTRARY)
        self.keep(pl.col("form").is_first_distinct(), EQUAL)
        self.rows = self.rows.drop("form")

    @property
    def reasons(self) -> dict[str, int]:
        """Return reason -> number of texts, most frequent first."""
        return dict(sorted(Counter(self.dropped.values()).items(), key=lambda each: (-each[1], each[0])))


def need_labels(context: Context, leak: Leak) -> None:
    """Raise ConfigError where the pipeline names no labels, or keeps the words that its texts were searched by."""
    section = context.settings.get("ingest")
    if not isinstance(section, dict) or not section:
        return
    named = section.get(LABELS)
    if not isinstance(named, dict):
        raise ConfigError(
            "label: no labels; set ingest.labels, such as {path: labels.csv, columns: {id: id, label: class}}, or "
            "{side: corpus, columns: {label: COLUMN}} for a column of the documents"
        )
    refuse_searched([str(named.get("origin", ""))], leak)


def refuse_searched(origins: list[str], leak: Leak) -> None:
    """Raise ConfigError if texts that were found by the words of their label are to keep them."""
    if "search" in origins and leak == "keep":
        raise ConfigError(
            "label.leak: found keep, and the labels are the words that the texts were searched by (origin: search): "
            "each text holds its own; set label.leak to mask or drop"
        )


def read(context: Context, leak: Leak) -> LabelledTexts:
    """Return the texts that `diversify` kept with the one label that they have, and what was dropped on the way."""
    if not there(context.folder("mask"), LABELS):
        raise ConfigError("label: no labels; set ingest.labels, and run `curate ingest` again")
    labels = context.read("mask", LABELS)
    refuse_searched(labels["origin"].unique().to_list(), leak)
    one = labels.group_by("item_id", "side").agg(
        pl.col("label").n_unique().alias("several"), pl.col("label").first(), own=pl.col("group").drop_nulls().first()
    )
    texts = pl.concat(list(_texts(context, one)))
    rows = one.join(texts, on=["item_id", "side"], how="left").sort("side", "item_id")
    sides = dict(rows.select("item_id", "side").iter_rows())
    found = LabelledTexts(rows, tuple(labels["origin"].unique().sort()), sides=sides)
    found.keep(pl.col("text").is_not_null(), GONE)
    found.keep(pl.col("several") == 1, SEVERAL)
    found.unequal()
    found.rows = found.rows.select("item_id", "side", "text", "label", "own")
    return found


def _texts(context: Context, labels: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield item_id, side and text of labelled texts, title and text of documents as they are shown."""
    yield pl.DataFrame(schema={"item_id": pl.String, "side": pl.String, "text": pl.String})
    for side in labels["side"].unique().sort():
        wanted = labels.filter(pl.col("side") == side)
        for batch in batches(context.folder("diversify"), side):
            held = batch.join(wanted, left_on=KEY[side], right_on="item_id", how="semi")
            titles = held["title"] if "title" in held.columns else [""] * held.height
            whole = [shown(title, text) for title, text in zip(titles, held["text"], strict=True)]
            yield held.select(item_id=KEY[side], side=pl.lit(side), text=pl.Series(whole, dtype=pl.String))


# From labelled texts to a set: groups, classes that are large enough, a split, and what gives classes away.

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
    leak: dict[str, Json] = {"mode": config.leak, "words": {name: list(word) for name, word in words.words.items()}}
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
