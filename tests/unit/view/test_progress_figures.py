"""Rates, times and lines of progress: pure functions, and steps under a clock that tests set."""

import json
import re
from collections.abc import Callable
from io import StringIO
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from curate.core.progress import WORKING, StepLabel, counting, furthest, in_stage, waiting
from curate.view.progress import ProgressReporter, wording
from curate.view.progress.lines import WINDOW_S, JsonLines, PlainLines, RateMeter, StepBoard, plain
from curate.view.progress.terminal import Bars, line


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def steady(rate: float, seconds: int, base: int = 0) -> tuple[RateMeter, float]:
    """Return a meter that saw units come at a rate, and the time of the last look."""
    meter = RateMeter(base, 0.0)
    for tick in range(1, seconds * 4 + 1):
        meter.look(base + round(rate * tick / 4), tick / 4)
    return meter, float(seconds)


@given(st.floats(5, 1e6), st.integers(3, 60), st.integers(0, 10**6))
def test_a_rate_is_that_of_the_units_after_the_first_look(rate: float, seconds: int, base: int) -> None:
    meter, now = steady(rate, seconds, base)
    assert meter.rate(now) == pytest.approx(rate, rel=0.1), "what was there at first, as from a cache, is in no rate"
    assert meter.seconds_left(base + round(rate * (seconds + 100)), now) == pytest.approx(100, rel=0.15)


def test_a_rate_forgets_what_was_long_ago() -> None:
    meter, now = steady(10.0, 60)
    for tick in range(1, 4 * int(WINDOW_S) + 5):
        meter.look(600 + 25 * tick, now + tick / 4)
    assert meter.rate(now + WINDOW_S + 1) == pytest.approx(100, rel=0.02)


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_a_pause_only_lowers_a_rate(one: float, other: float) -> None:
    meter, now = steady(50.0, 10)
    sooner, later = (meter.rate(now + pause) for pause in sorted((one, other)))
    assert sooner is not None
    assert later is not None
    assert later <= sooner


def test_a_rate_is_unknown_before_there_is_one() -> None:
    meter = RateMeter(0, 0.0)
    assert meter.rate(5.0) is None
    meter.look(3, 0.5)
    assert meter.rate(0.5) is None, "half a second is noise"
    assert meter.seconds_left(10, 0.5) is None


@given(st.floats(0, 1e7), st.floats(0, 1e7))
def test_times_that_are_left_are_round_and_keep_their_order(one: float, other: float) -> None:
    units = {"s": 1, "min": 60, "h": 3600, "day": 86400, "days": 86400}

    def seconds(text: str) -> float:
        words = text.removeprefix("about ").removesuffix(" left").split()
        return (
            5 if words[0] == "a" else sum(int(n) * units[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
        )

    less, more = sorted((one, other))
    assert seconds(wording.left(less)) <= seconds(wording.left(more))
    assert seconds(wording.left(more)) == pytest.approx(more, rel=0.5, abs=8)
    assert wording.left(200) == "about 3 min left"
    assert wording.left(9000) == "about 2 h 30 min left"


def test_rates_have_the_unit_that_suits_them() -> None:
    assert [wording.rate(each) for each in (1234.4, 41.2, 4.14, 0.2, 0.001)] == [
        "1,234/s", "41/s", "4.1/s", "12/min", "4/h",
    ]  # fmt: skip
    assert wording.rate(3_210_000, "bytes") == "3.2 MB/s"
    assert wording.count(1_500_000, 30_000_000, "bytes") == "1.5 of 30.0 MB"
    assert [wording.elapsed(each) for each in (9.9, 200, 7500)] == ["9 s", "3 min 20 s", "2 h 5 min"]


@pytest.mark.slow
@given(
    label=st.text(st.sampled_from("encoding 编码 e5 ，模型/x"), max_size=60),
    unit=st.sampled_from(["", "texts", "bytes"]),
    total=st.integers(1, 10**9),
    share=st.floats(0, 1),
    money=st.sampled_from(["", "CNY 1.20", "CNY 12.20, all CNY 20.10 of 50 CNY"]),
    width=st.integers(10, 160),
)
def test_no_line_is_wider_than_the_terminal(
    label: str, unit: str, total: int, share: float, money: str, width: int
) -> None:
    clock = Clock()
    board = StepBoard(clock)
    board.report(StepLabel(label, unit, "judge"), total, 0)
    clock.now = 30.0
    board.report(StepLabel(label, unit, "judge"), total, min(int(total * share), total - 1), money)
    for step in board.steps():
        drawn = line(step, clock.now, width).plain
        assert cell_len(drawn) <= width
        assert "\n" not in drawn
        if width >= 100 and total > 1:
            assert money in drawn


def test_a_wide_line_has_everything_and_a_narrow_one_keeps_count_and_money() -> None:
    clock = Clock()
    board = StepBoard(clock)
    label = StepLabel("asking judges.gpt-4o", "pairs", "judge")
    board.report(label, 20_000, 0, "CNY 0.00")
    clock.now = 78.0
    board.report(label, 20_000, 3_200, "CNY 1.20")
    [step] = board.steps()
    said = "judge: asking judges.gpt-4o: 3,200 of 20,000 pairs, 41/s, about 7 min left, CNY 1.20"
    assert plain(step, clock.now) == said
    wide = line(step, clock.now, 119, plain_signs=True).plain
    bar = "#" * 3 + "-" * 21
    assert wide == (f"judge: asking judges.gpt-4o  {bar}   3,200 of 20,000 pairs    41/s  about 7 min left  CNY 1.20")
    narrow = line(step, clock.now, 59).plain
    assert "3,200 of 20,000" in narrow
    assert narrow.endswith("CNY 1.20")


def test_steps_that_a_stage_left_are_gone_with_the_next() -> None:
    board = StepBoard(Clock())
    board.report(StepLabel("asking", "pairs", "judge"), 10, 4)
    board.report(StepLabel("measuring", "", "consensus"), 1, 0)
    assert [step.name for step in board.steps()] == ["consensus: measuring"]


def test_a_stage_is_working_only_where_no_step_says_more() -> None:
    clock = Clock()
    board = StepBoard(clock)
    board.report(StepLabel(WORKING, "", "export"), 1, 0)
    clock.now = 8.0
    board.report(StepLabel("writing mteb", "documents", "export"), 4, 0)
    assert [step.label for step in board.steps()] == ["writing mteb"]
    board.report(StepLabel("writing mteb", "documents", "export"), 4, 4)
    clock.now = 9.0
    [step] = board.steps()
    assert plain(step, clock.now) == "export: working: 1 s so far", "not the time of what was shown before"


def plainly() -> tuple[Clock, ProgressReporter, list[str], Callable[[], None]]:
    clock, lines = Clock(), list[str]()
    board, screen = StepBoard(clock), PlainLines(lines.append)
    return clock, ProgressReporter(screen, board), lines, lambda: screen.draw(board.steps(), clock.now)


def test_plain_lines_come_every_ten_seconds() -> None:
    clock, reporter, lines, draw = plainly()
    label = StepLabel("encoding documents, e5", "texts", "pool")
    for tick in range(350):
        clock.now = tick / 10
        reporter.progress(label, 1_000, tick)
        draw()
    reporter.close()
    assert len(lines) == 3
    assert lines[1] == "pool: encoding documents, e5: 200 of 1,000 texts, 10/s, about 1 min left"


def test_a_step_of_one_piece_is_told_by_its_time() -> None:
    clock, reporter, lines, draw = plainly()
    reporter.progress(StepLabel("loading e5", "", "pool"), 1, 0)
    for clock.now in (5.0, 12.0, 15.0, 23.0):
        draw()
    reporter.close()
    assert lines == ["pool: loading e5: 12 s so far", "pool: loading e5: 23 s so far"]


def test_events_are_few_and_the_last_of_a_step_is_never_missing() -> None:
    clock, events = Clock(), list[dict[str, Any]]()
    board, screen = StepBoard(clock), JsonLines(lambda event: events.append(json.loads(json.dumps(event))))
    reporter = ProgressReporter(screen, board)
    label = StepLabel("asking judges.m", "pairs", "judge")
    for done in range(3_001):
        clock.now = done / 1_000
        reporter.progress(label, 3_000, done, "CNY 1.20")
        screen.draw(board.steps(), clock.now)
    reporter.tell("judge: done")
    reporter.close()
    assert len(events) == 4, "one after each whole second, the end among them, and the news"
    assert events[-2] == {
        "event": "progress", "stage": "judge", "label": "asking judges.m", "unit": "pairs", "done": 3_000,
        "total": 3_000, "rate": 1000.0, "seconds_left": 0, "cost": "CNY 1.20",
    }  # fmt: skip
    assert events[-1] == {"event": "line", "text": "judge: done"}


def test_a_step_that_is_begun_a_thousand_times_says_so_ten_times_a_second() -> None:
    clock, ends = Clock(), 0
    board = StepBoard(clock)
    for number in range(1_000):
        clock.now = number / 1_000
        ends += board.report("encoding queries, use", 1, 1) is not None
    assert ends == 10


def test_what_the_drawing_meets_is_raised_where_the_work_is() -> None:
    class Broken(PlainLines):
        period_s = 0.001

        def draw(self, steps: Any, now: float) -> None:
            raise BrokenPipeError("the reader is gone")

    reporter = ProgressReporter(Broken(lambda _line: None))
    reporter.progress("step", 10, 0)
    assert reporter._thread is not None
    reporter._thread.join(5)
    with pytest.raises(BrokenPipeError, match="gone"):
        reporter.progress("step", 10, 1)
    reporter.close()


def test_counting_waiting_and_the_furthest_end_at_their_total() -> None:
    said: list[tuple[str, int, int]] = []
    assert list(counting("abc", lambda *step: said.append(step), "letters", 3)) == ["a", "b", "c"]
    assert said == [("letters", 3, done) for done in range(4)]
    said.clear()
    assert list(counting("ab", lambda *step: said.append(step), "letters", 5)) == ["a", "b"]
    assert said[-1] == ("letters", 5, 5), "fewer than were promised"
    said.clear()
    told = furthest(lambda *step: said.append(step), "queries", 9)
    for done in (3, 2, 5, 9):
        told(done)
    assert [done for _, _, done in said] == [3, 3, 5, 9]
    said.clear()
    with waiting(lambda *step: said.append(step), "loading"):
        assert said == [("loading", 1, 0)]
    assert said == [("loading", 1, 0), ("loading", 1, 1)]


def test_a_label_is_its_text_and_keeps_its_unit_in_a_stage() -> None:
    heard: list[Any] = []
    in_stage(lambda *step: heard.append(step), "pool")(StepLabel("encoding", "texts"), 2, 1)
    [(label, total, done, money)] = heard
    assert (label, label.unit, label.stage, total, done, money) == ("encoding", "texts", "pool", 2, 1, "")
    assert label == "encoding"
    assert hash(label) == hash("encoding")


@pytest.mark.parametrize(("colour", "bar"), [(True, "━" * 24), (False, "#" * 12 + "-" * 12)])
def test_without_colour_a_bar_is_made_of_two_signs(colour: bool, bar: str) -> None:
    clock, shown = Clock(), StringIO()
    board = StepBoard(clock)
    board.report("step", 10, 5)
    clock.now = 9.0
    system: Literal["256"] | None = "256" if colour else None
    screen = Bars(Console(file=shown, force_terminal=True, no_color=not colour, color_system=system, width=80))
    screen.draw(board.steps(), clock.now)
    screen.close()
    assert bar in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert ("\x1b[38;" in shown.getvalue()) == colour
