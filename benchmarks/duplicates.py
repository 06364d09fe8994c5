"""What a similarity threshold finds of planted near-duplicates, in Chinese and in English, and the packaged thresholds.

    python -m benchmarks.duplicates SYNONYMS ZH EN    a TSV of terms in both languages (columns term, synonym), and two
                                                      folders with a corpus.jsonl of real answers

Questions are made of the same terms, aspects and wordings in both languages (`duplicates.yaml`). Pairs are an edited
copy, a paraphrase, or different: the same words of another term, or another aspect of the same term. Documents are
real answers: edited or with synonyms put in, against another answer of the same subject, and against the nearest of all
that share less than OVERLAP of their runs of four signs. Terms and answers of even numbers choose the threshold: the
one, to 2 digits for use and 3 for e5, with the best F-beta for copies against different texts, of equals the largest.
Beta is a half, for a text that is dropped wrongly costs more than a copy that stays. Paraphrases of questions count for
neither side: no threshold tells them from other aspects. The odd numbers are what is reported.
"""

import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.calibrate_heuristics import best
from curate.ask import build
from curate.core.config import read_yaml
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.pipeline.stage import Context
from curate.retrieval.similarity.leaks import DOCUMENT_RUN, form

TERMS, ANSWERS = 300, 150
BETA, OVERLAP = 0.5, 0.3
DIGITS = {"use": 2, "e5": 3}
LENGTHS = {"zh": (60, 300), "en": (200, 900)}
SUBJECT: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "zh": lambda row: str(row["metadata"]["department"]),
    "en": lambda row: str(row["title"]),
}
KINDS = ("edited copy", "paraphrase", "other aspect or subject", "other term or nearest")
COPY, DIFFERENT = KINDS[0], KINDS[2:]


class Pair(NamedTuple):
    """Two texts, the kind of the second, and the number of the term or answer that they are of."""

    number: int
    kind: str
    one: str
    other: str


def questions(words: Mapping[str, Any], terms: Sequence[str], away: int = 37) -> Iterator[Pair]:
    """Yield the pairs of questions of one language; an aspect and a wording per term, the other term so far `away`."""
    aspects = list(words["questions"])
    for number, term in enumerate(terms):
        own, wording = number % len(aspects), number % 3
        forms, others = (words["questions"][aspects[at % len(aspects)]] for at in (own, own + 1 + number % 4))
        base = forms[wording].format(term)
        for edited in (*_edits(words, base), words["greeting"][0] + base + words["greeting"][1]):
            yield Pair(number, KINDS[0], base, edited)
        yield Pair(number, KINDS[1], base, forms[(wording + 1) % 3].format(term))
        yield Pair(number, KINDS[2], base, others[wording].format(term))
        yield Pair(number, KINDS[3], base, forms[wording].format(terms[(number + away) % len(terms)]))


def _edits(words: Mapping[str, Any], base: str) -> Iterator[str]:
    """Yield a question with other punctuation, with one sign lost, and with its halves swapped."""
    half = len(base) // 2
    cut = base.find(" ", half) if " " in base[half:] else half
    yield base.rstrip("？?") + "!!"
    yield base[:half] + base[half + 1 :]
    yield base[cut:].strip() + words["joint"] + base[:cut]


def documents(words: Mapping[str, Any], answers: Sequence[tuple[str, str]]) -> Iterator[Pair]:
    """Yield the pairs of documents of one language: each answer with its edits, and with another of its subject."""
    for number, (text, other) in enumerate(answers):
        sentences = re.split(f"(?<={words['stop']})", text)
        edited = ["".join(sign if sign.isalnum() else " " for sign in text), words["lead"] + text]
        if len(sentences) > 2:
            edited += ["".join(sentences[:1] + sentences[2:]), " ".join([*sentences[1:], sentences[0]])]
        for each in edited:
            yield Pair(number, KINDS[0], text, each)
        replaced = text
        for word, instead in words["synonyms"]:
            replaced = re.sub(rf"\b{word}\b" if word.isascii() else word, instead, replaced)
        yield Pair(number, KINDS[0], text, replaced)
        yield Pair(number, KINDS[2], text, other)


def subjects(folder: Path, language: str) -> list[tuple[str, str]]:
    """Return pairs of different answers of one subject, no subject before its turn, by seed."""
    low, high = LENGTHS[language]
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if low < len(row["text"]) < high]
    random.Random(3).shuffle(rows)
    rows.sort(key=SUBJECT[language])
    groups = [[row["text"] for row in group] for _, group in groupby(rows, SUBJECT[language])]
    found = [(at, pair) for group in groups for at, pair in enumerate(zip(group[::2], group[1::2], strict=False))]
    return [pair for _, pair in sorted(found, key=lambda each: each[0])][:ANSWERS]


def nearest(pairs: Sequence[Pair], vectors: Vectors) -> Iterator[Pair]:
    """Yield for every answer the nearest other one that is worded otherwise, by vectors of the first texts."""
    first = {pair.one: at for at, pair in reversed([*enumerate(pairs)])}
    known = [(text, _runs(text), pairs[at].number) for text, at in first.items()]
    scores = vectors[[*first.values()]] @ vectors[[*first.values()]].T
    for row, (text, runs, number) in enumerate(known):
        for at in np.argsort(-scores[row]):
            other, others, _ = known[at]
            if len(runs & others) < OVERLAP * len(runs | others):
                yield Pair(number, KINDS[3], text, other)
                break


def _runs(text: str) -> set[str]:
    plain = form(text)
    return {plain[at : at + DOCUMENT_RUN] for at in range(len(plain))}


def report(label: str, pairs: Sequence[Pair], scores: npt.NDArray[np.float64], digits: int) -> None:
    """Choose on even numbers, print a row of what odd ones show: the share of each kind above the threshold."""
    kinds = np.array([pair.kind if pair.one != pair.other else "" for pair in pairs])
    odd = np.array([pair.number % 2 == 1 for pair in pairs])
    fit = ~odd & np.isin(kinds, [COPY, *DIFFERENT])
    t = best(scores[fit], kinds[fit] == COPY, digits, BETA) - 10.0**-digits  # a text is alike above t, not from t on
    shares = [scores[odd & (kinds == kind)] > t for kind in KINDS]
    cells = [f"{each.mean():.3f} of {len(each)}" if len(each) else "" for each in shares]
    copies, different = shares[0].sum(), sum(each.sum() for each in shares[2:])
    print(f"| {label} | {t:.{digits}f} | {' | '.join(cells)} | {copies / (copies + different):.3f} |", flush=True)


def main() -> None:
    """Print a row per encoder, table and language."""
    synonyms, *folders = map(Path, sys.argv[1:4])
    words, home = read_yaml(Path(__file__).with_suffix(".yaml")), Path(os.environ.get("CURATE_HOME", ".curate"))
    short = pl.col("term").str.len_chars().is_between(2, 10) & pl.col("synonym").str.len_chars().is_between(4, 40)
    terms = pl.read_csv(synonyms, separator="\t").filter(short).sample(TERMS, seed=7)
    named = {"zh": terms["term"].to_list(), "en": [f"{name[0].lower()}{name[1:]}" for name in terms["synonym"]]}
    print(f"| encoder, texts | t | {' | '.join(KINDS)} | precision |\n| --- | --: | --: | --: | --: | --: | --: |")
    roles: Mapping[str, Role] = {"queries": "query", "corpus": "document"}
    for encoder in (build.encoder(Context(run=home, out=home, home=home), name) for name in ("use", "e5")):
        for table, role in roles.items():
            for language, folder in zip(named, folders, strict=True):
                own: Any = words[language]
                made = (
                    questions(own, named[language]) if role == "query" else documents(own, subjects(folder, language))
                )
                pairs = list(made)
                if role == "document":
                    pairs += nearest(pairs, encoder.encode([pair.one for pair in pairs], role))
                one, other = (encoder.encode([pair[side] for pair in pairs], role) for side in (2, 3))
                scores = (one * other).sum(axis=1).astype(np.float64)
                report(f"{encoder.name}, {table}, {language}", pairs, scores, DIGITS[encoder.name])


if __name__ == "__main__":
    main()
