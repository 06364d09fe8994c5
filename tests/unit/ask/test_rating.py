"""From work to ledger rows, without a network: what is asked, what a reply comes to, and how it is keyed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from curate.ask.judges import llm
from curate.ask.judges.llm import LlmJudge
from curate.ask.rating import Key, Work, prompts, rate, ratings, snapshot, tasks
from curate.core.config import Json, text_digest
from curate.core.errors import ProviderError, RunFailed
from curate.core.messages import Reply
from curate.core.records import Document, Outcome, Query
from curate.core.scale import FIVE, Scale
from curate.ledger import Ledger
from curate.llm.client import Task
from curate.llm.parse import Parsed, parse
from tests.support.asking import QUERY, RUBRIC, cut, passages, work

JUDGE = LlmJudge("m", RUBRIC, {"model": "m-1"})
KEY = Key("judge", "rubric")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def one(grades: str) -> Task:
    [task] = tasks(JUDGE, work(grades), KEY)
    return task


def replied(text: str | None, finish: str = "stop") -> Reply:
    return Reply(text, finish, "m-1", None)  # type: ignore[arg-type]


def asked(task: Task) -> list[str]:
    """Return which of the passages 段落0, 段落1, ... a request holds."""
    user = task.request.messages[1].content
    return [name for n in range(20) if (name := f"段落{n} ") in user]


def test_a_prompt_holds_at_most_a_batch_of_one_query() -> None:
    jobs = [*work("S" * 7), *work("D" * 2, Query("q2", "痛风能吃豆腐吗"))]
    batches = list(tasks(JUDGE, cut(jobs, 3), KEY))
    assert [task.weight for task in batches] == [3, 3, 1, 2]
    assert [asked(task) for task in batches[:3]] == [
        ["段落0 ", "段落1 ", "段落2 "],
        ["段落3 ", "段落4 ", "段落5 "],
        ["段落6 "],
    ]
    assert QUERY.text in batches[2].request.messages[1].content
    assert "豆腐" in batches[3].request.messages[1].content


def test_what_was_rated_moves_no_passage_into_another_prompt() -> None:
    documents = passages("S" * 8)
    left = {each.doc_id for each in documents} - {"段落0", "段落4", "段落6", "段落7"}
    found = [[each.doc_id for each in one.passages] for one in prompts(QUERY, documents, 3, left)]
    assert found == [["段落1", "段落2"], ["段落3", "段落5"]]


def digests(query: Query, shown: Sequence[Document]) -> tuple[str, list[str]]:
    return text_digest(query.text), [text_digest(each.shown()) for each in shown]


def test_a_pair_without_a_rating_is_in_the_snapshot_as_failed(ledger: Ledger) -> None:
    rated, other = passages("SA")
    ledger.append(ratings(KEY, *digests(QUERY, [rated]), [Outcome("S")]))
    rows = [("q1", each.doc_id, text_digest(QUERY.text), text_digest(each.shown())) for each in (rated, other)]
    pairs = pl.DataFrame(rows, ["query_id", "doc_id", "query_digest", "passage_digest"], orient="row")
    assert snapshot(pairs, ledger.ratings("judge", "rubric")).rows() == [
        ("q1", "段落0", "S", "rated", 0, 1),
        ("q1", "段落1", None, "failed", None, None),
    ]


def test_a_reply_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def counting(text: str | None, labels: Sequence[str], scale: Scale, *, cut: bool = False) -> Parsed:
        seen.append(text)
        return parse(text, labels, scale, cut=cut)

    monkeypatch.setattr(llm, "parse", counting)
    assert [row.grade for row in one("SA").read(replied('{"P1":"S","P2":"A"}')).ratings] == ["S", "A"]
    assert len(seen) == 1


def test_the_same_texts_make_the_same_request() -> None:
    assert one("SAB").request == one("SAB").request
    assert one("SAB").request != one("SBA").request


def test_a_rating_is_keyed_by_text_not_by_id() -> None:
    here, there = Document("d1", "标题", "正文"), Document("d2", "", "标题\n正文")
    [first] = ratings(KEY, *digests(QUERY, [here]), [Outcome("S")])
    [second] = ratings(KEY, *digests(Query("another id", QUERY.text), [there]), [Outcome("S")])
    assert first == second
    assert first.query_digest == text_digest(QUERY.text)
    assert first.passage_digest == text_digest("标题\n正文")


def test_rows_say_where_a_passage_stood() -> None:
    rows = ratings(
        Key("j", "r", replicate=2), *digests(QUERY, passages("SB")), [Outcome("S"), Outcome(None, "unparsed")]
    )
    assert [(row.grade, row.status, row.slot, row.batch_size, row.replicate) for row in rows] == [
        ("S", "rated", 0, 2, 2),
        (None, "unparsed", 1, 2, 2),
    ]


def test_outcomes_must_be_one_a_passage() -> None:
    with pytest.raises(RunFailed, match="1 outcomes for 2 passages"):
        ratings(KEY, *digests(QUERY, passages("SB")), [Outcome("S")])


READINGS: list[tuple[str, Reply, str, list[int]]] = [
    # form, reply to four passages -> grades written, sizes of the calls that follow
    ("whole", replied('{"P1":"S","P2":"A","P3":"B","P4":"D"}'), "SABD", []),
    ("partial", replied('{"P1":"S","P4":"D"}'), "SD", [2]),
    ("partial", replied('{"P1":"S","P2":"A","P3":"B"}'), "SAB", [1]),
    ("foreign", replied("{}"), "", [2, 2]),
    ("unreadable", replied("P1: S"), "", [2, 2]),
    ("empty", replied(None), "", [2, 2]),
    ("empty", replied(" \n"), "", [2, 2]),
    ("thoughts", replace(replied(None), thoughts=True), "", [2, 2]),
    ("whole", replace(replied('{"P1":"S","P2":"A","P3":"B","P4":"D"}'), thoughts=True), "SABD", []),
    ("refused", replied('{"P1":"S","P2":"A","P3":"B","P4":"D"}', "refusal"), "", [2, 2]),
    ("cut", replied('{"P1', "length"), "", [2, 2]),
    ("partial", replied('{"P1":"S","P2":"A","P3', "length"), "SA", [2]),
    ("partial", replied('```json\n{"P1":"S","P2"', "length"), "S", [3]),
]


@pytest.mark.parametrize(("form", "reply", "written", "follow"), READINGS)
def test_what_a_reply_comes_to(form: str, reply: Reply, written: str, follow: list[int]) -> None:
    reading = one("SABD").read(reply)
    assert reading.form == form
    assert "".join(row.grade or "-" for row in reading.ratings) == written
    assert [task.weight for task in reading.again] == follow
    settled = {row.passage_digest for row in reading.ratings}
    assert len(settled) + sum(follow) == 4
    assert all(
        text_digest(f"{name}{grade}") not in settled
        for task in reading.again
        for name in asked(task)
        for grade in "SABD"
    )


@pytest.mark.parametrize(
    ("reply", "status"),
    [(replied("{}"), "unparsed"), (replied(None, "refusal"), "refused"), (replied("", "length"), "unparsed")],
)
def test_a_passage_asked_alone_is_not_asked_again(reply: Reply, status: str) -> None:
    reading = one("S").read(reply)
    assert [(row.grade, row.status) for row in reading.ratings] == [(None, status)]
    assert reading.again == ()


def test_a_failure_is_written_down_and_a_long_request_is_halved() -> None:
    failed = one("SAB").failed(ProviderError("no answer"))
    assert [(row.grade, row.status) for row in failed.ratings] == [(None, "failed")] * 3
    assert failed.again == ()
    long = ProviderError("too long", useless=True, too_long=True)
    halved = one("SAB").failed(long)
    assert (halved.ratings, [asked(task) for task in halved.again]) == ((), [["段落0 ", "段落1 "], ["段落2 "]])
    assert [row.status for row in one("S").failed(long).ratings] == ["refused"]


class LastLetter:
    """An offline judge that reads the grade at the end of a passage."""

    name = "letters"
    identity: Mapping[str, Json] = {}

    def __init__(self, fail_at: int | None = None) -> None:
        self.fail_at, self.asked = fail_at, 0

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        self.asked += 1
        if self.asked == self.fail_at:
            raise RunFailed("the encoder broke")
        known: Mapping[str, Outcome] = {grade: Outcome(grade) for grade in ("S", "A", "B", "C", "D")}
        return [known[each.text[-1]] for each in passages]


def test_an_offline_judge_writes_query_by_query(ledger: Ledger) -> None:
    jobs: list[Work] = [*work("SA"), *work("BCD", Query("q2", "痛风能吃豆腐吗")), *work("D", Query("q3", "别的"))]
    seen: list[tuple[int, int]] = []
    with pytest.raises(RunFailed, match="broke"):
        rate(LastLetter(fail_at=3), jobs, ledger, KEY, FIVE, lambda _label, total, done: seen.append((total, done)))
    assert seen == [(6, 0), (6, 2), (6, 5)]
    assert sorted(ledger.ratings("judge", "rubric")["grade"]) == list("ABCDS")
    assert ledger.count("calls") == 0
