"""Orders of batches for the judge of `tests.support.asking`, whose passages end with their true grade."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.ask.rating import Key, Work
from curate.core import config as settings
from curate.core.config import text_digest
from curate.core.errors import ProviderError
from curate.core.messages import Reply
from curate.ledger import Ledger
from curate.ledger.claims import Batches
from curate.llm.budget import Budget, CapPolicy
from curate.llm.client import Account, Bill, ReplyResult, Task
from curate.llm.client.accounting import SentRequest
from curate.llm.client.batch import BatchJob, PollingPolicy, ask_batches
from curate.llm.cost import Price
from curate.llm.providers.batch import batch_provider
from curate.llm.providers.settings import ProviderConfig
from tests.support.asking import RUBRIC
from tests.support.rows import sql

FAST = PollingPolicy(first_s=0.01, longest_s=0.05)
PRICE = Price(input=2.0, output=10.0, cached=1.0, written=3.0, date=dt.date(2026, 1, 1))


def configured(url: str, **more: Any) -> ProviderConfig:
    """Return settings of a model at an address with a batch API, which is one vendor on every port."""
    data = {"model": "m-1", "base_url": url, "batch": True, "vendor": "v", "timeout_s": 20.0, **more}
    return settings.check(ProviderConfig, data, "judges.m")


def order(url: str, ledger: Ledger, jobs: Sequence[Work], size: int = 2, **more: Any) -> BatchJob:
    """Return the order of what the ledger lacks of these jobs, in prompts of at most `size` passages."""
    asked = batch_provider(configured(url, **more))
    assert asked is not None
    judge = LlmJudge("m", RUBRIC, asked.identity)
    key = Key(settings.digest(judge.identity), RUBRIC.digest)
    account = Account(**vars(key), run="bench")

    def tasks() -> Iterator[Task]:
        standing = ledger.ratings(key.judge_digest, key.rubric_digest)
        known = set(standing.select("query_digest", "passage_digest").iter_rows())
        vain = ledger.replied(key.judge_digest, key.rubric_digest, key.replicate)
        for each in jobs:
            query = text_digest(each.query.text)
            left = {one.doc_id for one in each.passages if (query, text_digest(one.shown())) not in known}
            yield from rating.tasks(judge, rating.prompts(each.query, each.passages, size, left), key, vain)

    def read(sent: SentRequest, reply: Reply) -> ReplyResult:
        return rating.reading(judge, key, sent.query_digest, sent.slots, reply)

    def failed(sent: SentRequest, error: ProviderError) -> ReplyResult:
        return rating.failure(key, sent.query_digest, sent.slots, error)

    return BatchJob(tasks, read, asked, account, failed, PRICE)


def collected(
    url: str,
    ledger: Ledger,
    jobs: Sequence[Work],
    pace: PollingPolicy = FAST,
    max_cost: float | None = None,
    **more: Any,
) -> Bill:
    """Ask by batches for what the ledger lacks."""
    orders = [order(url, ledger, jobs, **more)]
    [found] = ask_batches(orders, ledger, budget=Budget(CapPolicy(max_cost)), pace=pace)
    return found


def book(ledger: Ledger) -> Batches:
    """Return the table of batches of a ledger."""
    return Batches(ledger)


def states(ledger: Ledger) -> list[str]:
    """Return the state of every batch that was written down, in order."""
    return [state for (state,) in sql(ledger, "SELECT state FROM batches ORDER BY rowid")]


def age(ledger: Ledger, days: int) -> None:
    """Let every batch be so many days old."""
    created = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    sql(ledger, f"UPDATE batches SET created = '{created.isoformat(timespec='seconds')}'")
