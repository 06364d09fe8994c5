"""A judge that asks the vendor on loopback about passages whose grade stands at their end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.ask.panel_run import JudgeOrder
from curate.ask.panel_state import LlmState, PanelState
from curate.ask.rating import Key, Pool, Work
from curate.core import config as settings
from curate.core.config import read_yaml, text_digest
from curate.core.protocols import Provider
from curate.core.records import Document, Query
from curate.ledger import Ledger
from curate.llm import client
from curate.llm.budget import Budget, CapPolicy, Meter
from curate.llm.cost import EstimatedUsage, Price, estimate
from curate.llm.prompts import rubric
from curate.llm.providers import provider
from curate.llm.providers.presets import LanguageModel
from curate.llm.providers.settings import ProviderConfig
from tests import ROOT
from tests.support.rows import sql
from tests.vendor import Remote, Vendor

RUBRIC = rubric(read_yaml(ROOT / "prompts" / "rubric-zh.yaml"), "rubric-zh")
QUERY = Query("q1", "高血压患者能喝咖啡吗")
FAST = client.RequestLimits(concurrency=4, wait_s=0.01)
PRICE = Price(input=2.0, output=10.0, date=date(2026, 1, 1))
PRICED = replace(FAST, price=PRICE)
Server = Vendor | Remote


def script(_query: str, passage: str) -> str:
    """Read the grade at the end of a passage."""
    return passage[-1]


def passages(grades: str, name: str = "段落") -> tuple[Document, ...]:
    """Return a document for each letter, which is its true grade: `passages("SB")` are 段落0 S and 段落1 B."""
    return tuple(Document(f"{name}{n}", "", f"{name}{n} {grade}") for n, grade in enumerate(grades))


def work(grades: str, query: Query = QUERY, name: str = "段落") -> list[Work]:
    """Return the work on one query."""
    return [Work(query, passages(grades, name))]


def llm(server: Server, **more: Any) -> tuple[LlmJudge, Provider]:
    """Return a judge and the provider that it asks."""
    data = {"kind": "openai", "model": "m-1", "base_url": server.url, "timeout_s": 20.0, **more}
    asked = provider(settings.check(ProviderConfig, data, "judges.m"))
    return LlmJudge("m", RUBRIC, asked.identity), asked


def judged(
    server: Server,
    ledger: Ledger,
    jobs: Sequence[Work],
    limits: client.RequestLimits = FAST,
    batch: int = 10,
    max_cost: float | None = None,
    **more: Any,
) -> client.Bill:
    """Ask for all of it, also for what the ledger holds."""
    one = job(server, jobs, limits, batch, **more)
    return client.ask([one], ledger, budget=Budget(CapPolicy(max_cost)))[one.name]


def job(
    server: Server, jobs: Sequence[Work], limits: client.RequestLimits = FAST, batch: int = 10, **more: Any
) -> client.Job:
    """Return all that a judge of this model is asked, also what the ledger holds."""
    judge, asked = llm(server, **more)
    found = key(server, **more)
    tasks = rating.tasks(judge, cut(jobs, batch), found)
    return client.Job(asked.name, tasks, asked, client.Account(**vars(found), run="bench"), limits)


def cut(jobs: Sequence[Work], batch: int) -> list[Work]:
    """Return the work in prompts of at most `batch` passages."""
    return [
        prompt
        for each in jobs
        for prompt in rating.prompts(each.query, each.passages, batch, {one.doc_id for one in each.passages})
    ]


def order(ledger: Ledger, jobs: Sequence[Work], found: Key, url: str = "http://127.0.0.1:9") -> JudgeOrder:
    """Return the order of a judge for prompts that were cut before, under a key."""
    model = settings.check(LanguageModel, {"kind": "openai", "model": "m-1", "base_url": url}, "judges.m")
    table = PanelState(Pool(pl.DataFrame(), {}, {}), ledger, RUBRIC, batch=2, seed=1)
    state = LlmState("m", LlmJudge("m", RUBRIC, {}), found, list(jobs), model)
    return JudgeOrder(
        name="judges.m",
        label="judges.m",
        command="`curate judge --batch`",
        settings=model,
        account=client.Account(**vars(found)),
        work=jobs,
        table=table,
        state=state,
        watched=False,
    )


def key(server: Server, **more: Any) -> Key:
    """Return the key of that judge's ratings."""
    judge, _ = llm(server, **more)
    return Key(settings.digest(judge.identity), RUBRIC.digest)


def standing(server: Server, ledger: Ledger, **more: Any) -> pl.DataFrame:
    """Return what the ledger holds of that judge."""
    found = key(server, **more)
    return ledger.ratings(found.judge_digest, found.rubric_digest)


def said(server: Server, ledger: Ledger, jobs: Sequence[Work], **more: Any) -> list[str | None]:
    """Return grade or status of every passage, in order; None where the ledger holds nothing."""
    rows = standing(server, ledger, **more).iter_rows(named=True)
    found = {(row["query_digest"], row["passage_digest"]): row["grade"] or row["status"] for row in rows}
    return [
        found.get((text_digest(each.query.text), text_digest(passage.shown())))
        for each in jobs
        for passage in each.passages
    ]


def sizes(server: Vendor) -> list[int]:
    """Return the number of passages in every call, in order of arrival."""
    return [len(call.passages) for call in server.calls]


def paid_twice(server: Vendor) -> Counter[tuple[str, str, str]]:
    """Return what was paid more than once, with how often too much."""
    return Counter({pair: times - 1 for pair, times in server.paid.items() if times > 1})


def rows(ledger: Ledger, columns: str) -> list[tuple[Any, ...]]:
    """Return columns of the ledger's calls, oldest first."""
    return sql(ledger, f"SELECT {columns} FROM calls ORDER BY call_id")


def guess(server: Server, grades: str = "S") -> EstimatedUsage:
    """Return the estimate of a call with these passages."""
    judge, _ = llm(server)
    return estimate(judge.build(QUERY.text, [each.shown() for each in passages(grades)]))


def bound(server: Server, grades: str = "S") -> float:
    """Return what a call with these passages may cost at most."""
    return Meter(PRICE).bound(guess(server, grades))
