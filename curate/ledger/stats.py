"""Totals of a ledger per judge and rubric: calls, ratings, tokens and cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from curate.core.figures import Record, figure
from curate.core.records import STATUSES
from curate.ledger.identities import noted
from curate.ledger.rows import LOST
from curate.ledger.store import Ledger
from curate.ledger.tables import calls, judges, ratings

FIGURES = ("prompt_tokens", "cached_tokens", "written_tokens", "output_tokens", "reasoning_tokens", "cost")


class JudgeTotals(Record, schema_name="row"):
    """A row per judge and rubric."""

    judge: str = figure("digest of the judge")
    identity: str | None = figure("JSON that the digest identifies")
    rubric: str | None = figure("digest of the rubric")
    scale: str | None = figure("grades, with a bar after those that mean relevant")
    models: tuple[str, ...] = figure("model names in the replies")
    calls: int = figure("calls, with or without a reply")
    failed_calls: int = figure("calls without a reply")
    lost_calls: int = figure("calls that may have been charged, without a stored reply")
    rated: int = figure("ratings with a grade")
    refused: int = figure("pairs that a model refused to grade")
    unparsed: int = figure("pairs whose answer could not be read")
    failed: int = figure("pairs without an answer")
    first: str | None = figure("time of the first call")
    last: str | None = figure("time of the last call")
    prompt_tokens: int | None = figure("prompt tokens of all replies; null if a reply does not report them")
    cached_tokens: int | None = figure(
        "prompt tokens read from the provider's cache; null if a reply does not report them"
    )
    written_tokens: int | None = figure("prompt tokens written to that cache; null if a reply does not report them")
    output_tokens: int | None = figure("output tokens of all replies; null if a reply does not report them")
    reasoning_tokens: int | None = figure("output tokens of reasoning; null if a reply does not report them")
    cost: float | None = figure("cost of all replies; null if that of a reply is unknown", digits=4)
    costs: Mapping[str, float] = figure("currency -> sum of the known costs")
    """The key is empty for calls of version 0.1, which recorded no currency."""


def stats(ledger: Ledger) -> list[JudgeTotals]:
    """Return one row per judge and rubric, sorted by both."""
    with ledger.database.transaction("snapshot") as connection:
        scales = noted(connection)
        identities = {row.judge_digest: row.identity for row in connection.execute(sa.select(judges))}
        called = {(row.judge, row.rubric): row._asdict() for row in connection.execute(_calls())}
        costs: dict[tuple[str, str], dict[str, float]] = {}
        for row in connection.execute(_costs()):
            costs.setdefault((row.judge, row.rubric), {})[row.currency] = row.cost
        rated = {(row.judge, row.rubric): row._asdict() for row in connection.execute(_ratings())}
    none: dict[str, Any] = {
        **dict.fromkeys(("calls", "failed_calls", "lost_calls", *STATUSES), 0),
        **dict.fromkeys(("first", "last", *FIGURES)),
    }
    return [
        JudgeTotals(
            **none
            | called.get(key, {})
            | rated.get(key, {})
            | {
                "judge": key[0],
                "rubric": key[1],
                "scale": scale.described() if (scale := scales.of(*key)) else None,
                "identity": identities.get(key[0]),
                "costs": costs.get(key, {}),
                "models": tuple(ledger.models(*key)),
            }
        )
        for key in sorted({*called, *rated})
    ]


def settled(ledger: Ledger, run: str, judge_digests: Sequence[str]) -> int:
    """Return the number of ratings from the calls of a run, in the first replicate and without failed ones."""
    run_calls = sa.select(calls.c.call_id).where(
        calls.c.run == run, calls.c.judge_digest.in_(judge_digests), calls.c.replicate == 0
    )
    query = sa.select(sa.func.count()).where(ratings.c.call_id.in_(run_calls), ratings.c.status != "failed")
    with ledger.database.transaction() as connection:
        return int(connection.execute(query).scalar_one())


def latency(ledger: Ledger, judge_digest: str, most: float, last: int = 200) -> float | None:
    """Return the mean latency in seconds of a judge's `last` replies; None without any.

    Replies that took longer than `most` seconds are excluded, because they are from batches.
    """
    query = (
        sa.select(calls.c.latency_s)
        .where(calls.c.judge_digest == judge_digest, calls.c.finish != "error", calls.c.latency_s <= most)
        .order_by(calls.c.call_id.desc())
        .limit(last)
    )
    with ledger.database.transaction() as connection:
        latencies = list(connection.execute(query).scalars())
    return sum(latencies) / len(latencies) if latencies else None


def prompt_tokens(ledger: Ledger, judge_digest: str, rubric_digest: str, last: int = 200) -> list[tuple[int, int]]:
    """Return (estimated, reported) prompt tokens of a judge's `last` replies under a rubric that have both."""
    call = calls.c
    query = (
        sa.select(call.estimated_tokens, call.prompt_tokens)
        .where(call.judge_digest == judge_digest, call.rubric_digest == rubric_digest)
        .where(call.estimated_tokens.is_not(None), call.prompt_tokens.is_not(None))
        .order_by(call.call_id.desc())
        .limit(last)
    )
    with ledger.database.transaction() as connection:
        return [(estimated, reported) for estimated, reported in connection.execute(query)]


def _calls() -> sa.Select[tuple[object, ...]]:
    call, func = calls.c, sa.func
    answered = call.finish != "error"
    replies, lost = func.count(sa.case((answered, 1))), func.count(sa.case((call.form == LOST, 1)))
    figures = []
    for name in FIGURES:
        # a sum over some of the replies would be too low, so None unless every reply has the figure
        complete = func.count(sa.case((answered, call[name]))) == replies
        figures.append(sa.case((complete, func.coalesce(func.sum(call[name]), 0))).label(name))
    return sa.select(
        call.judge_digest.label("judge"),
        call.rubric_digest.label("rubric"),
        (func.count() - lost).label("calls"),
        (func.count() - replies - lost).label("failed_calls"),
        lost.label("lost_calls"),
        func.min(call.created).label("first"),
        func.max(call.created).label("last"),
        *figures,
    ).group_by(call.judge_digest, call.rubric_digest)


def _costs() -> sa.Select[tuple[object, ...]]:
    call, currency = calls.c, sa.func.coalesce(calls.c.currency, "").label("currency")
    keys = call.judge_digest.label("judge"), call.rubric_digest.label("rubric"), currency
    has_cost = call.cost.is_not(None)
    return sa.select(*keys, sa.func.sum(call.cost).label("cost")).where(has_cost).group_by(*keys).order_by(currency)


def _ratings() -> sa.Select[tuple[object, ...]]:
    row = ratings.c
    counts = (sa.func.count(sa.case((row.status == status, 1))).label(status) for status in STATUSES)
    keys = row.judge_digest.label("judge"), row.rubric_digest.label("rubric")
    return sa.select(*keys, *counts).group_by(row.judge_digest, row.rubric_digest)
