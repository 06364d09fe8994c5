"""Pages of the adjudicator, who rules on rows on which readers differ, and of the lead, who follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curate.core.sampling import shuffled
from curate.review import ADJUDICATED, Answer, flags
from curate.review.access import Invitation
from curate.review.desk import history
from curate.review.proof import disagreements
from curate.web.pages import fields
from curate.web.review_pages import SOURCE, ReadingOrder, ReadingProgress, ReviewPages, keys, seen

_PAUSE_S = 600
"""Seconds between two answers from which the second does not count as the time that a row took."""


@dataclass(frozen=True)
class PersonProgress:
    """An assessor's progress, as the lead sees it."""

    person: str
    progress: ReadingProgress
    cannot: Sequence[flags.Flag]
    """Open flags of rows that the person cannot judge."""
    personal: Sequence[flags.Flag]
    """Open flags of personal data."""
    seconds: float | None
    """Median time of an answer; None before the second one."""
    controls: tuple[int, int]
    """(Planted controls answered as expected, planted controls answered)."""
    last: str
    """Time of the last answer; empty without one."""
    invitation: Invitation | None
    """The newest link; None without one."""


class DecidePages:
    """Handlers of both pages."""

    def __init__(self, review: ReviewPages) -> None:
        self._review, self._desk = review, review.desk

    def routes(self) -> list[Route]:
        """Return the addresses and their handlers."""
        return [
            Route("/review/decide", self.queue),
            Route("/review/decide/{row_id}", self.item),
            Route("/review/decide/{row_id}", self.decide, methods=["POST"]),
            Route("/review/progress", self.progress),
        ]

    def queue(self, request: Request) -> Response:
        """Redirect to the first row to decide, or show that there is none."""
        waiting = self._waiting()
        if waiting:
            return self._review.see(f"/review/decide/{waiting[0]}")
        return self._review.shown("decided", 200, {"rows": list(self._desk.said(ADJUDICATED))}, request)

    def item(self, request: Request) -> Response:
        """Show a row with the answers of its unnamed readers."""
        return self._item(request, request.path_params["row_id"])

    async def decide(self, request: Request) -> Response:
        """Store a final answer, or show whose answers they were; 409 if another browser has answered meanwhile."""
        typed, row_id = await fields(request), request.path_params["row_id"]
        return await run_in_threadpool(self._decided, request, row_id, typed)

    def _decided(self, request: Request, row_id: str, typed: Mapping[str, str]) -> Response:
        with self._review.one_at_a_time:
            stored = self._desk.said(ADJUDICATED).get(row_id)
            if "reveal" in typed:
                if stored is None:
                    raise HTTPException(409)
                self._review.access.log("revealed", request.state.visitor.person, row_id)
                return self._review.see(f"/review/decide/{row_id}")
            if self._revealed(row_id) or typed.get("seen", "") != seen(stored):
                self._review.access.log("conflict", request.state.visitor.person, row_id)
                return self._item(request, row_id, 409)
            answer = Answer(row_id, typed.get("answer"), typed.get("note", "").strip(), source=SOURCE)
            self._desk.record(ADJUDICATED, [answer])
        return self._review.see(f"/review/decide/{row_id}")

    def _item(self, request: Request, row_id: str, status: int = 200) -> Response:
        row = self._desk.sample.rows.get(row_id)
        final = self._desk.said(ADJUDICATED).get(row_id)
        waiting = self._waiting()
        if row is None or not (final or row_id in waiting):
            raise HTTPException(404)
        answers = {person: self._desk.said(person).get(row_id) for person in self._desk.assessors}
        given = [(person, answer) for person, answer in answers.items() if answer]
        revealed = self._revealed(row_id)
        labels = next(labels for labels in self._desk.sample.survey.iter_rows(named=True) if labels["row_id"] == row_id)
        return self._review.shown(
            "decide",
            status,
            {
                **self._review.item(row, self._review.language(request)),
                "address": f"{self._review.base}/review/decide/{row_id}",
                "readers": shuffled(given, self._desk.sample.design.seed, "decide", row_id),
                "keys": keys(self._review.form.answers, taken="RUX"),
                "final": final,
                "seen": seen(final),
                "revealed": revealed,
                "asks": not final or "change" in request.query_params or status != 200,
                "labels": labels if revealed else None,
                "conflict": status != 200,
                "following": next((name for name in waiting if name != row_id), None),
                "remaining": len(waiting),
                "proof": request.state.proof,
            },
            request,
        )

    def progress(self, request: Request) -> Response:
        """Show how far every assessor is, and what is open."""
        open_flags = flags.open_flags(self._desk)
        people = [self._person(person, open_flags) for person in self._desk.assessors]
        newest = {one.person: one for one in self._review.access.invitations() if one.role != "assessor"}
        return self._review.shown(
            "progress",
            200,
            {
                "people": people,
                "others": list(newest.values()),
                "waiting": self._waiting(),
                "personal": len({flag.row_id for flag in open_flags if flag.flag == flags.PERSONAL}),
            },
            request,
        )

    def _person(self, person: str, open_flags: list[flags.Flag]) -> PersonProgress:
        own = [flag for flag in open_flags if flag.person == person]
        said = self._desk.said(person)
        expected = dict(self._desk.sample.survey.select("row_id", "expected").drop_nulls().iter_rows())
        controls = [said[row].answer == answer for row, answer in expected.items() if row in said and said[row].answer]
        times = [datetime.fromisoformat(answer.time) for answer in history(self._desk.sample.folder, person)]
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        typical = [gap for gap in gaps if 0 <= gap < _PAUSE_S]
        invitations = [one for one in self._review.access.invitations() if one.person == person]
        return PersonProgress(
            person,
            ReadingOrder.of(self._desk, person).progress,
            [flag for flag in own if flag.flag == flags.CANNOT],
            [flag for flag in own if flag.flag == flags.PERSONAL],
            median(typical) if typical else None,
            (sum(controls), len(controls)),
            max((answer.time for answer in said.values()), default=""),
            invitations[-1] if invitations else None,
        )

    def _waiting(self) -> list[str]:
        """Return the rows to decide: readers differ, or none of them can judge it."""
        differing = [row.row_id for row in disagreements(self._desk)]
        answered = {row["row_id"] for row, grades, _ in self._desk.answered() if grades}
        unjudged = dict.fromkeys(
            flag.row_id
            for flag in flags.open_flags(self._desk)
            if flag.flag == flags.CANNOT and flag.row_id not in answered
        )
        return [*dict.fromkeys([*differing, *unjudged])]

    def _revealed(self, row_id: str) -> bool:
        return any(event.event == "revealed" and event.item == row_id for event in self._review.access.events())
