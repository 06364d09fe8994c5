"""Tables and figures of a set of sentence pairs: balance, lengths, shortcuts, agreement."""

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
    of the label with a lexical feature: presence of the synonym in the second sentence, Jaccard overlap of the
    characters, and relative difference in length. Undefined figures are None.
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


def overlap(left: str, right: str) -> float | None:
    """Return the Jaccard index of two texts' sets of characters, without blanks and case; None if both are empty.

    Jaccard 1901: |A and B| / |A or B|, 0 to 1.
    """
    first, second = (set("".join(text.lower().split())) for text in (left, right))
    return len(first & second) / len(first | second) if first | second else None


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Pearson's correlation, -1 to 1; None if one of the two is constant."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return float(np.corrcoef(left, right)[0, 1])


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
    """Whether the synonym occurs in a text, not only as part of a longer term."""
    text, term, synonym = text.lower(), term.lower(), synonym.lower()
    return synonym in (text.replace(term, "") if synonym in term else text)


def _lengths(pairs: pl.DataFrame) -> dict[str, Json]:
    queries, sentences = (pairs[name].str.len_chars().to_list() for name in ("sentence1", "sentence2"))
    ratios = [second / first for first, second in zip(queries, sentences, strict=True)]
    lengths = {
        "query_mean": fmean(queries) if queries else None,
        "sentence_mean": fmean(sentences) if sentences else None,
        "ratio_mean": fmean(ratios) if ratios else None,
        "ratio_low": min(ratios, default=None),
        "ratio_high": max(ratios, default=None),
    }
    return {name: _rounded(length) for name, length in lengths.items()}


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 4)


# Tables and figures of a finished set.

SPLITS = ("test", "train")


@dataclass
class StsResult:
    """Result of writing and confirming."""

    book: Book
    rejected: list[Entry]
    """Dictionary rows without a unanimous yes of the panel."""
    words: dict[int, dict[str, str]]
    """Line of the dictionary -> judge -> answer on its words."""
    choice: Choice
    draft: Draft


def lost(result: StsResult) -> dict[str, str]:
    """Return query -> reason why it has no usable sentence."""
    written = {sentence.task.query_id for sentence in result.draft.sentences}
    usable = {sentence.task.query_id for sentence in result.draft.sentences if sentence.usable}
    reasons: dict[str, str] = {}
    for query in (task.query_id for task in result.choice.tasks if task.query_id not in usable):
        rules = "a sentence held personal data" if query in result.draft.disclosing else "no sentence kept to the rules"
        unwritten = "the generator refused" if query in result.draft.refused else rules
        reasons[query] = "no sentence was confirmed" if query in written else unwritten
    return reasons


def dropped(queries: Mapping[str, str], result: StsResult) -> pl.DataFrame:
    """Return the table `dropped`: queries, and excluded rows of the dictionary, with the reason."""
    rows = [{"table": "queries", "id": query, "stage": "sts", "reason": reason} for query, reason in queries.items()]
    lines = {fault.line: fault.reason for fault in reversed(result.book.faults)}
    lines |= {entry.line: "the panel does not agree that both words mean the same" for entry in result.rejected}
    rows += [
        {"table": "synonyms", "id": f"{result.book.where}:{line}", "stage": "sts", "reason": reason}
        for line, reason in lines.items()
    ]
    return frame("dropped", rows).sort("table", "id")


def sentences(written: Sequence[Sentence], spelled: Mapping[str, str]) -> pl.DataFrame:
    """Return the table `sentences`; `spelled` maps a normalised word to its spelling."""
    rows = (
        {
            "query_id": sentence.task.query_id,
            "kind": sentence.kind,
            "text": sentence.text,
            "term": spelled[sentence.task.term],
            "synonym": spelled[sentence.task.synonym],
            "way": sentence.way,
            "attempt": sentence.attempt,
            "outcome": sentence.outcome,
            "answers": [{"judge": judge, "answer": answer} for judge, answer in sorted(sentence.votes.items())],
        }
        for sentence in written
    )
    return frame("sentences", rows).sort("query_id", "kind")


def facts(
    result: StsResult, pairs: pl.DataFrame, left_out: Mapping[str, str], panel: Sequence[str], seed: int
) -> dict[str, Json]:
    """Return the figures of the set: counts by outcome, agreement of the judges, and `figures` of each split.

    One pair per query is planned; `left_out` is query -> reason why it has none.
    """
    draft = result.draft
    votes = [(sentence.task.query_id, sentence.votes) for sentence in draft.sentences]
    outcomes = {
        kind: Counter(sentence.outcome for sentence in draft.sentences if sentence.kind == kind) for kind in KINDS
    }
    return {
        "planned": len(pairs) + len(left_out),
        "built": len(pairs),
        "dropped": dict(Counter(left_out.values()).most_common()),
        "dictionary": {
            "rows": len(result.book.entries) + len({fault.line for fault in result.book.faults}),
            "faulty": dict(sorted(Counter(fault.reason for fault in result.book.faults).items())),
            "asked": len(result.words),
            "rejected": len(result.rejected),
            "agreement": _agreement([(str(line), word) for line, word in result.words.items()], panel, seed),
        },
        "panel": list(panel),
        "queries_with_a_word": len(result.choice.tasks),
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
    """Return the panel's agreement, yes or no, resampled by query; None with fewer than two judges."""
    if len(panel) < 2 or not votes:
        return None
    code_by_answer = {YES: 1, NO: 0}
    codes = [[code_by_answer.get(query_votes.get(name) or "", -1) for name in panel] for _, query_votes in votes]
    query_index = {name: index for index, name in enumerate(dict.fromkeys(name for name, _ in votes))}
    clusters = [query_index[name] for name, _ in votes]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed).to_json()
