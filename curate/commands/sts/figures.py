"""Balance of a set of sentence pairs: labels, lengths, and how far shallow features predict the label."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import polars as pl

from curate.ask.edits.dictionary import Book
from curate.ask.edits.synonyms import Entry
from curate.commands.sts.task import KINDS, NO, YES, Choice, Draft, Sentence
from curate.core.config import Json
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.system.files import frame

SHORTCUTS = ("synonym_present", "character_overlap", "length_difference")


def figures(pairs: pl.DataFrame) -> dict[str, Json]:
    """Return the figures of a table `pairs`: counts by kind, share of label 1, lengths by kind, and shortcuts.

    Lengths are in code points, `ratio` is the second sentence's over the query's. A shortcut is Pearson's correlation
    of the label with a sign that needs no understanding: whether the synonym stands in the second sentence, Jaccard's
    overlap of the two sets of characters, and how far the lengths differ. A figure is None where it is not defined.
    """
    kinds = Counter(pairs["kind"])
    words = {frozenset(pair) for pair in pairs.select("term", "synonym").iter_rows()}
    return {
        "pairs": len(pairs),
        "kinds": {kind: kinds[kind] for kind in KINDS},
        "positive_share": _rounded(fmean(pairs["label"])) if len(pairs) else None,
        "pairs_of_words": len(words),
        "lengths": {kind: _lengths(pairs.filter(pl.col("kind") == kind)) for kind in KINDS},
        "shortcuts": {name: _rounded(shortcut) for name, shortcut in _shortcuts(pairs).items()},
    }


def overlap(one: str, other: str) -> float | None:
    """Return Jaccard's overlap of the characters of two texts, 0 to 1, blanks and case ignored; None if both are empty.

    Jaccard 1901: |A and B| / |A or B|.
    """
    first, second = (set("".join(text.lower().split())) for text in (one, other))
    return len(first & second) / len(first | second) if first | second else None


def pearson(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, -1 to 1; None where one of the two does not vary."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _shortcuts(pairs: pl.DataFrame) -> dict[str, float | None]:
    rows = list(pairs.select("sentence1", "sentence2").iter_rows())
    signs = (
        [float(_holds(*row)) for row in pairs.select("sentence2", "term", "synonym").iter_rows()],
        [overlap(first, second) or 0.0 for first, second in rows],
        [abs(len(second) / len(first) - 1) for first, second in rows],
    )
    labels = pairs["label"].to_list()
    return {name: pearson(labels, sign) for name, sign in zip(SHORTCUTS, signs, strict=True)}


def _holds(text: str, term: str, synonym: str) -> bool:
    """Say whether the synonym stands in a text, and not only as a part of a longer term."""
    text, term, synonym = text.lower(), term.lower(), synonym.lower()
    return synonym in (text.replace(term, "") if synonym in term else text)


def _lengths(pairs: pl.DataFrame) -> dict[str, Json]:
    asked, written = (pairs[name].str.len_chars().to_list() for name in ("sentence1", "sentence2"))
    ratios = [second / first for first, second in zip(asked, written, strict=True)]
    found = {
        "query_mean": fmean(asked) if asked else None,
        "sentence_mean": fmean(written) if written else None,
        "ratio_mean": fmean(ratios) if ratios else None,
        "ratio_low": min(ratios, default=None),
        "ratio_high": max(ratios, default=None),
    }
    return {name: _rounded(value) for name, value in found.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


# What an STS set came to, in tables and figures: sentences, what gave none and why, agreement, balance.

SPLITS = ("test", "train")


@dataclass
class StsResult:
    """What writing and confirming came to."""

    book: Book
    rejected: list[Entry]
    """Rows on which the panel does not agree that both words mean the same."""
    words: dict[int, dict[str, str]]
    """Line -> judge -> what it said of the words."""
    choice: Choice
    draft: Draft


def lost(made: StsResult) -> dict[str, str]:
    """Return query -> why none of its sentences can be used."""
    written = {sentence.task.query_id for sentence in made.draft.sentences}
    usable = {sentence.task.query_id for sentence in made.draft.sentences if sentence.usable}
    found: dict[str, str] = {}
    for query in (task.query_id for task in made.choice.tasks if task.query_id not in usable):
        rules = "a sentence held personal data" if query in made.draft.disclosing else "no sentence kept to the rules"
        silent = "the generator refused" if query in made.draft.refused else rules
        found[query] = "no sentence was confirmed" if query in written else silent
    return found


def dropped(queries: Mapping[str, str], made: StsResult) -> pl.DataFrame:
    """Return the table `dropped`: queries by reason, and the rows of the dictionary that were left out."""
    rows = [{"table": "queries", "id": query, "stage": "sts", "reason": reason} for query, reason in queries.items()]
    lines = {fault.line: fault.reason for fault in reversed(made.book.faults)}
    lines |= {entry.line: "the panel does not agree that both words mean the same" for entry in made.rejected}
    rows += [
        {"table": "synonyms", "id": f"{made.book.where}:{line}", "stage": "sts", "reason": reason}
        for line, reason in lines.items()
    ]
    return frame("dropped", rows).sort("table", "id")


def sentences(written: Sequence[Sentence], spelled: Mapping[str, str]) -> pl.DataFrame:
    """Return the table `sentences`; `spelled` is how words are written."""
    rows = (
        {
            "query_id": each.task.query_id,
            "kind": each.kind,
            "text": each.text,
            "term": spelled[each.task.term],
            "synonym": spelled[each.task.synonym],
            "way": each.way,
            "attempt": each.attempt,
            "outcome": each.outcome,
            "answers": [{"judge": judge, "answer": answer} for judge, answer in sorted(each.votes.items())],
        }
        for each in written
    )
    return frame("sentences", rows).sort("query_id", "kind")


def facts(
    made: StsResult, pairs: pl.DataFrame, left_out: Mapping[str, str], panel: Sequence[str], seed: int
) -> dict[str, Json]:
    """Return the figures of the set: how it was made, how far judges agree, and for each split what `balance` has.

    A pair is planned of each query; `left_out` is query -> why there is none.
    """
    draft = made.draft
    votes = [(sentence.task.query_id, sentence.votes) for sentence in draft.sentences]
    outcomes = {
        kind: Counter(sentence.outcome for sentence in draft.sentences if sentence.kind == kind) for kind in KINDS
    }
    return {
        "planned": len(pairs) + len(left_out),
        "built": len(pairs),
        "dropped": dict(Counter(left_out.values()).most_common()),
        "dictionary": {
            "rows": len(made.book.entries) + len({fault.line for fault in made.book.faults}),
            "faulty": dict(sorted(Counter(fault.reason for fault in made.book.faults).items())),
            "asked": len(made.words),
            "rejected": len(made.rejected),
            "agreement": _agreement([(str(line), word) for line, word in made.words.items()], panel, seed),
        },
        "panel": list(panel),
        "queries_with_a_word": len(made.choice.tasks),
        "sentences": {kind: dict(sorted(outcome.items())) for kind, outcome in outcomes.items()},
        "ways": dict(sorted(Counter(sentence.way for sentence in draft.sentences).items())),
        "attempts": {
            str(n): count for n, count in sorted(Counter(sentence.attempt for sentence in draft.sentences).items())
        },
        "broken_rules": dict(sorted(draft.broken.items())),
        "refused": len(draft.refused),
        "agreement": _agreement(votes, panel, seed),
        "splits": {name: figures(pairs.filter(pl.col("split") == name)) for name in SPLITS},
    }


def _agreement(
    votes: Sequence[tuple[str, Mapping[str, str] | Mapping[str, str | None]]], panel: Sequence[str], seed: int
) -> Json:
    """Return the panel's agreement on same meaning or not, queries resampled; None with fewer than two judges."""
    if len(panel) < 2 or not votes:
        return None
    known = {YES: 1, NO: 0}
    codes = [[known.get(said.get(name) or "", -1) for name in panel] for _, said in votes]
    places = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in votes))}
    clusters = [places[name] for name, _ in votes]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed)
