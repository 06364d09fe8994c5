"""10,000 ratings from vendors that fail in every way: none wrong, none lost, and the ledger says what was paid."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pytest

from curate.ask.rating import Work
from curate.core.config import text_digest
from curate.core.errors import ProviderError
from curate.core.records import Query
from curate.ledger import Ledger
from curate.llm.client.limits import TRAVEL
from tests import vendor as fake
from tests.support.asking import FAST, judged, passages, script, standing
from tests.vendor import KINDS, Call, Chaos, Fault, Vendor, chaos, vendor

QUERIES, PASSAGES, BATCH = 50, 100, 5
MINUTE_S, REQUESTS = 8.0, 800
LIMITS = replace(
    FAST,
    concurrency=64,
    attempts=2,  # so that some requests fail for good and are left to the next asking
    wait_s=0.02,
    mixed_models=True,
    requests_per_minute=REQUESTS,
    minute_s=MINUTE_S,
)
GRADES = "SABCDDCBA" * PASSAGES
WORK = [Work(Query(f"q{n}", f"问题{n}"), passages(GRADES[n : n + PASSAGES], f"第{n}组段落")) for n in range(QUERIES)]
DIGESTS = {
    passage.shown()[:-1]: (text_digest(work.query.text), text_digest(passage.shown()))
    for work in WORK
    for passage in work.passages
}
"""Text without its grade -> digests of the pair."""
TRUTH = {DIGESTS[passage.shown()[:-1]]: passage.text[-1] for work in WORK for passage in work.passages}
STUBBORN = {"第3组段落7 ": fake.refusal, "第4组段落8 ": fake.says("无法评级")}
"""Passages that no try brings to a grade."""


@dataclass
class Job:
    """All work for one judge, asked for again and again until every pair is settled, as a user would."""

    server: Vendor
    ledger: Ledger
    faults: Chaos
    kind: str
    ends: list[str]
    """How each asking ended."""
    failed: int = 0
    """Pairs that had failed at the end of an asking."""
    heaviest: int = 0
    """Most requests that came in a minute of one asking, less the way that is reckoned with.

    Vendor and caller share a busy machine here, where a request may be under way for longer than that of so short a
    minute; test_limits.py looks at whole ones, with a clock of its own.
    """

    def run(self) -> None:
        while left := self.left():
            assert len(self.ends) < 30, f"{len(left)} queries are left after {self.ends}"
            self.server.arrivals.clear()
            try:
                judged(self.server, self.ledger, left, LIMITS, BATCH, kind=self.kind, concurrency=64)
                self.ends.append("done")
            except ProviderError as error:
                self.ends.append(str(error))
            self.heaviest = max(self.heaviest, self.server.heaviest(MINUTE_S * (1 - TRAVEL))[0])
            self.failed += self.standing().filter(pl.col("status") == "failed").height

    def standing(self) -> pl.DataFrame:
        return standing(self.server, self.ledger, kind=self.kind)

    def left(self) -> list[Work]:
        """Return the work on pairs that have no status, or failed."""
        settled = set(self.standing().filter(pl.col("status") != "failed")["query_digest", "passage_digest"].rows())
        found = []
        for work in WORK:
            query = text_digest(work.query.text)
            still = [each for each in work.passages if (query, text_digest(each.shown())) not in settled]
            found += [Work(work.query, tuple(still))] if still else []
        return found

    def answers(self, columns: str) -> list[tuple[Any, ...]]:
        """Return columns of the calls that got an answer; a filtered prompt got none, and is not billed."""
        connection = sqlite3.connect(self.ledger.path)
        try:
            return connection.execute(f"SELECT {columns} FROM calls WHERE finish <> 'error' AND model <> ''").fetchall()
        finally:
            connection.close()


@pytest.fixture(scope="module", params=["openai", "anthropic"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    faults, path = chaos(seed=6), tmp_path_factory.mktemp("chaos") / "ledger.db"

    def drawn(call: Call) -> Fault | None:
        shown = " ".join(call.passages.values())
        return next((fault for name, fault in STUBBORN.items() if name in shown), None) or faults(call)

    with vendor(script, drawn, keep=False) as server, Ledger(path) as ledger:
        whole = Job(server, ledger, faults, request.param, [])
        whole.run()
        yield whole


def test_no_grade_is_wrong(job: Job) -> None:
    grades = {row[:2]: row[2] for row in job.standing()["query_digest", "passage_digest", "grade"].rows()}
    assert {pair: (grade, TRUTH[pair]) for pair, grade in grades.items() if grade not in (None, TRUTH[pair])} == {}
    assert sum(grade is not None for grade in grades.values()) > 0.95 * len(TRUTH)


def test_every_pair_has_one_status_and_what_failed_is_settled_later(job: Job) -> None:
    found = job.standing()
    assert found.height == len(TRUTH) == QUERIES * PASSAGES
    assert set(found["query_digest", "passage_digest"].rows()) == set(TRUTH)
    assert set(found["status"]) == {"rated", "refused", "unparsed"}
    statuses = {row[:2]: row[2] for row in found["query_digest", "passage_digest", "status"].rows()}
    assert [statuses[DIGESTS[name]] for name in STUBBORN] == ["refused", "unparsed"]
    assert job.failed > 0
    assert job.ends[-1] == "done"
    assert all(end == "done" or "may spend no more" in end for end in job.ends), job.ends


def test_the_ledger_says_what_was_paid(job: Job) -> None:
    paid = Counter((query, text) for query, slots in job.answers("query_digest, slots") for text in json.loads(slots))
    billed = Counter(
        {(text_digest(query), text_digest(text)): times for (_, query, text), times in job.server.paid.items()}
    )
    assert paid == billed
    [totals] = job.answers("count(*), sum(prompt_tokens), sum(output_tokens)")
    assert totals == (job.server.answers, job.server.usage["prompt"], job.server.usage["output"])


def test_the_vendor_failed_in_every_way(job: Job) -> None:
    assert set(job.faults.drawn) == set(KINDS)
    assert 0.15 < job.faults.drawn.total() / job.faults.tries.total() < 0.25
    assert job.server.lost.total() > 0
    assert 8 < job.server.peak <= 64


def test_no_window_of_time_holds_more_requests_than_allowed(job: Job) -> None:
    assert REQUESTS / 2 < job.heaviest <= REQUESTS
