"""What people are asked of pairs of sentences: whether both mean the same."""

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
    """Return the pairs of a table with the label 1 for the same meaning; a stratum per split and kind."""
    label = pl.when(pl.col("label") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    stratum = pl.concat_str("split", "kind", separator=", ")
    said = benchmark_kind.translated("same")
    return ReviewItems(
        table.select(item_id="pair_id", text1="sentence1", text2="sentence2", label=label, stratum=stratum),
        ("yes", "no"),
        {language: each["question"] for language, each in said.items()},
        {language: each["answers"] for language, each in said.items()},
    )


# Items that a panel confirmed, held against the ledger: a kind says what was asked of each and what was wanted.


@dataclass(frozen=True)
class PublishedItem:
    """One item as an export has it."""

    texts: tuple[str, ...]
    """What the panel's question showed: query and passage, or one text."""
    wanted: str
    """The answer that the published label needs."""
    verdict: Verdict = "confirmed"
    votes: Answers | None = None
    """Judge -> answer as published; None where votes are not."""


def otherwise(
    kind: str, asked: Mapping[str, Json], items: Mapping[str, PublishedItem], ledger: Ledger
) -> Iterator[str]:
    """Yield what the ledger says otherwise of a kind's items (id -> item) that were put to a panel, a sentence each.

    `asked` is what the manifest says of one question. Differences are texts that nobody was asked about, votes, and
    verdicts. A vote that was published as no answer stays one, also if the ledger has learnt it since.
    """
    panel: Any = asked["panel"]
    said = votes(asked, {name: item.texts for name, item in items.items()}, ledger)
    for judge in panel:
        lacking = [name for name, each in said.items() if judge not in each]
        if lacking:
            yield (
                f"{kind}: the ledger holds no answer by {judge} about {len(lacking):,} items, for example "
                f"{listed(lacking)}: a text was changed, or they were asked with another ledger"
            )
    answers = {name: _with_gaps(each, items[name].votes) for name, each in said.items() if len(each) == len(panel)}
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


def _with_gaps(said: Answers, published: Answers | None) -> Answers:
    return {**said, **{judge: each for judge, each in (published or {}).items() if each in NONE}}
