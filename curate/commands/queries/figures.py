"""What a set of synthetic queries came to: its tables, its file for `ingest`, and how like real queries it is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import polars as pl

from curate.ask.llm_questions import AskedModel
from curate.commands.queries import Config
from curate.commands.queries.drawing import DrawnTexts, LengthClasses
from curate.commands.queries.making import FilteredQuery, QueriesResult
from curate.commands.queries.rules import longest_run
from curate.core import synthetic
from curate.core.config import Json
from curate.system.files import frame

DIGITS = 4
QUESTIONS = ("?", "？", "吗", "呢")
"""Ends of what reads as a question."""


def mark(writer: AskedModel) -> str:
    """Return the mark of the writer's queries in the column `source`."""
    return synthetic.marked(writer.settings.model, writer.settings.family)


def table(made: QueriesResult, writer: AskedModel) -> pl.DataFrame:
    """Return the table `synthetic`: every query that was written, what the filters said, and what became of it."""
    rows = (
        {
            "query_id": each.query_id,
            "text": each.query.text,
            "source": mark(writer),
            "doc_id": each.query.document.doc_id,
            "asked_length": each.query.document.length,
            "copied": round(longest_run(each.query.text, each.query.document.text), DIGITS),
            "attempt": each.query.attempt,
            "outcome": each.outcome,
            "answers": [{"judge": name, "answer": answer} for name, answer in sorted(each.votes.items())],
        }
        for each in made.queries
    )
    return frame("synthetic", rows).sort("query_id")


def dropped(made: QueriesResult) -> pl.DataFrame:
    """Return the table `dropped`: every document that was drawn and of which no query is in the set, by reason."""
    rows = [
        {"table": "corpus", "id": doc_id, "stage": "queries", "reason": reason}
        for doc_id, reason in reasons(made).items()
    ]
    return frame("dropped", rows).sort("table", "id")


def reasons(made: QueriesResult) -> dict[str, str]:
    """Return document -> why no query of it is in the set."""
    lost = dict(made.writer.lost)
    return lost | {each.query.document.doc_id: each.outcome for each in made.queries if each not in made.kept}


def lines(made: QueriesResult, asked: Sequence[AskedModel], prompts: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield the rows of queries.jsonl, sorted by id: what `ingest` reads, and where a query comes from."""
    writer, *panel = asked
    filters: Json = {each.name: each.settings.model for each in panel}
    for each in sorted(made.kept, key=lambda one: one.query_id):
        yield {
            "_id": each.query_id,
            "text": each.query.text,
            "source": mark(writer),
            "metadata": {
                "doc_id": each.query.document.doc_id,
                "writer": writer.settings.model,
                "family": writer.family,
                "filters": filters,
                "prompts": dict(prompts),
                "attempt": each.query.attempt,
            },
        }


def facts(made: QueriesResult, asked: Sequence[AskedModel], config: Config) -> dict[str, Json]:
    """Return the figures of the set."""
    kept, writer = made.kept, made.writer
    return {
        "planned": len(made.drawn.documents),
        "built": len(kept),
        "dropped": dict(sorted(Counter(reasons(made).values()).items())),
        "broken_rules": dict(sorted(writer.broken.items())),
        "documents": {"corpus": made.drawn.corpus, "too_short": made.drawn.too_short},
        "families": {each.name: each.family for each in asked},
        "filters": _filters(made.queries, [each.name for each in asked[1:]]),
        "style": style(made.drawn, kept, config.deciles),
    }


def _filters(queries: Sequence[FilteredQuery], panel: Sequence[str]) -> dict[str, Json]:
    """Return filter -> answer -> how many queries got it."""
    return {name: dict(sorted(Counter(each.votes[name] for each in queries if each.votes).items())) for name in panel}


def style(drawn: DrawnTexts, kept: Sequence[FilteredQuery], deciles: int) -> dict[str, Json]:
    """Return how like the real queries the synthetic ones are; figures of either are None where there are none.

    `apart` is half the sum of the differences between both sides' shares in classes of length, 0 to 1: the total
    variation distance. `copied` is the median of the longest piece that a query has in common with its document.
    """
    real, texts = list(drawn.real.values()), [each.query.text for each in kept]
    classes = LengthClasses([len(text) for text in real], deciles)
    sides = [classes.shares([len(text) for text in some]) for some in (real, texts)]
    both = bool(real and texts)
    runs = [longest_run(each.query.text, each.query.document.text) for each in kept]
    return {
        "real": _side(real),
        "synthetic": _side(texts),
        "classes": [
            {"from": start, "real": round(one, DIGITS), "synthetic": round(other, DIGITS)}
            for start, one, other in zip([0, *classes.bounds], *sides, strict=True)
        ]
        if both
        else [],
        "apart": round(sum(abs(one - other) for one, other in zip(*sides, strict=True)) / 2, DIGITS) if both else None,
        "copied": round(median(runs), DIGITS) if runs else None,
    }


def _side(texts: Sequence[str]) -> dict[str, Json]:
    """Return number, median of the characters, and share of questions of some queries."""
    asked = sum(text.rstrip().endswith(QUESTIONS) for text in texts)
    return {
        "queries": len(texts),
        "characters": float(median(map(len, texts))) if texts else None,
        "questions": round(asked / len(texts), DIGITS) if texts else None,
    }
