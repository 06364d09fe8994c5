"""Words that give a class away: its name, and the one keyword by which its training texts are told best, if any are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.stats.confusion import confusions, macro_f1
from curate.stats.shortcuts import commonest, grams, keyword_rule

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
    for word in sorted(dict.fromkeys(words), key=lambda each: (-len(each), each)):
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
    held = [_lettered(each) for each in grams(train["text"].to_list())]
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
