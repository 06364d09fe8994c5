"""What an STS set came to, in tables and figures: sentences, what gave none and why, agreement, balance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask.edits.dictionary import Book
from curate.ask.edits.synonyms import Entry
from curate.commands.sts import balance
from curate.commands.sts.llm_rewriting import KINDS
from curate.commands.sts.sentences import NO, YES, Choice, Draft, Sentence
from curate.core.config import Json
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.system.files import frame

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
    written = {each.task.query_id for each in made.draft.sentences}
    usable = {each.task.query_id for each in made.draft.sentences if each.usable}
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
    votes = [(each.task.query_id, each.votes) for each in draft.sentences]
    outcomes = {kind: Counter(each.outcome for each in draft.sentences if each.kind == kind) for kind in KINDS}
    return {
        "planned": len(pairs) + len(left_out),
        "built": len(pairs),
        "dropped": dict(Counter(left_out.values()).most_common()),
        "dictionary": {
            "rows": len(made.book.entries) + len({fault.line for fault in made.book.faults}),
            "faulty": dict(sorted(Counter(fault.reason for fault in made.book.faults).items())),
            "asked": len(made.words),
            "rejected": len(made.rejected),
            "agreement": _agreement([(str(line), said) for line, said in made.words.items()], panel, seed),
        },
        "panel": list(panel),
        "queries_with_a_word": len(made.choice.tasks),
        "sentences": {kind: dict(sorted(found.items())) for kind, found in outcomes.items()},
        "ways": dict(sorted(Counter(each.way for each in draft.sentences).items())),
        "attempts": {str(n): count for n, count in sorted(Counter(each.attempt for each in draft.sentences).items())},
        "broken_rules": dict(sorted(draft.broken.items())),
        "refused": len(draft.refused),
        "agreement": _agreement(votes, panel, seed),
        "splits": {name: balance.figures(pairs.filter(pl.col("split") == name)) for name in SPLITS},
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
