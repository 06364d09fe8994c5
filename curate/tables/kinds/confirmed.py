"""Kinds whose labels a panel confirmed: review questions for pairs of sentences, and comparison with the ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.ledger import Ledger
from curate.llm.recorded_votes import NONE, Answers, Verdict, verdict, votes
from curate.tables.kinds import benchmark_kind
from curate.tables.kinds.benchmark_kind import ReviewItems, listed


def of_pairs(table: pl.DataFrame) -> ReviewItems:
    """Return a table's pairs for review: do both sentences mean the same (label 1: yes)? Stratum: split and kind."""
    label = pl.when(pl.col("label") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    stratum = pl.concat_str("split", "kind", separator=", ")
    words_of = benchmark_kind.translated("same")
    return ReviewItems(
        table.select(item_id="pair_id", text1="sentence1", text2="sentence2", label=label, stratum=stratum),
        ("yes", "no"),
        {language: words["question"] for language, words in words_of.items()},
        {language: words["answers"] for language, words in words_of.items()},
    )


# Items that a panel confirmed, held against the ledger: a kind says what was asked of each and what was wanted.


@dataclass(frozen=True)
class PublishedItem:
    """An exported item: its texts, and the answer, verdict and votes published for it."""

    texts: tuple[str, ...]
    """Texts shown to the panel: query and passage, or one text."""
    wanted: str
    """Answer that the published label requires."""
    verdict: Verdict = "confirmed"
    votes: Answers | None = None
    """Judge -> published answer; None if votes are not published."""


def otherwise(
    kind: str, question: Mapping[str, Json], items: Mapping[str, PublishedItem], ledger: Ledger
) -> Iterator[str]:
    """Yield one sentence per difference between a kind's items (id -> item) and the panel's answers in the ledger.

    `question` is the manifest's entry of one question. Differences are texts without an answer, votes, and verdicts. A
    vote published as missing counts as missing, even if the ledger contains an answer by now.
    """
    panel: Any = question["panel"]
    answers_of = votes(question, {name: published.texts for name, published in items.items()}, ledger)
    for judge in panel:
        lacking = [name for name, replies in answers_of.items() if judge not in replies]
        if lacking:
            yield (
                f"{kind}: the ledger holds no answer by {judge} about {len(lacking):,} items, for example "
                f"{listed(lacking)}: a text was changed, or they were asked with another ledger"
            )
    answers: dict[str, Answers] = {}
    for name, replies in answers_of.items():
        if len(replies) == len(panel):
            gaps = {judge: answer for judge, answer in (items[name].votes or {}).items() if answer in NONE}
            answers[name] = {**replies, **gaps}
    for what, others in (
        ("votes", [name for name, answer in answers.items() if items[name].votes not in (None, answer)]),
        (
            "labels",
            [name for name, answer in answers.items() if verdict(answer, items[name].wanted) != items[name].verdict],
        ),
    ):
        if others:
            spelled = ", ".join(f"{judge} {answer}" for judge, answer in sorted(answers[others[0]].items()))
            yield (
                f"{kind}: {len(others):,} {what} are others in the ledger, for example {listed(others)}: there "
                f"the first has {spelled}"
            )
