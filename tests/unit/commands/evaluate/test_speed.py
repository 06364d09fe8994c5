"""Timing in turn: the order, what is counted, what a noisy moment may do; machines are not mixed; the page."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from curate.commands.evaluate import page_sections
from curate.commands.evaluate import speed as contestants
from curate.commands.evaluate import speed as passes
from curate.commands.evaluate import timing as machine
from curate.commands.evaluate.speed import QueryBatch, Speed, TimedModel, of_vectors
from curate.commands.evaluate.timing import (
    BATCH,
    REPEATS,
    WARM_UPS,
    Clock,
    Machine,
    SpeedSpread,
    Timings,
    in_turn,
    ratio,
)
from curate.view import charts
from curate.view.record_words import RecordWords

SAY = RecordWords("evaluate/evaluate")


class World:
    """A clock that goes on only by what is asked, a query at a time, more slowly at busy moments."""

    def __init__(self, busy: Iterator[float]) -> None:
        self.now, self.busy, self.asked = 0.0, busy, list[tuple[str, int]]()

    def ask(self, name: str, seconds: float) -> Any:
        def asked(places: range) -> None:
            self.asked.append((name, len(places)))
            self.now += seconds * len(places) * next(self.busy)

        return asked

    def clock(self) -> tuple[float, float]:
        return self.now, self.now / 2


def test_models_are_asked_in_turn_and_warm_ups_are_not_timed() -> None:
    world = World(iter([1.0] * 10_000))
    found = in_turn({"a": world.ask("a", 1), "b": world.ask("b", 4)}, 100, timed=world.clock)
    warm = 2 * WARM_UPS * 2
    assert [size for _, size in world.asked[:warm]] == [BATCH, 1] * WARM_UPS * 2
    batches = [name for name, size in world.asked[warm:] if size > 1]
    assert batches[:4] == ["a", "b", "b", "a"], "the one that begins changes from chunk to chunk"
    assert [size for _, size in world.asked[warm : warm + 3]] == [BATCH, BATCH, 1], "one right after another"
    assert len(batches) == 2 * 2 * REPEATS
    assert found["a"].figures().to_json() == {
        "queries": 100,
        "qps": 1,
        "qps_low": 1,
        "qps_high": 1,
        "per_cpu_second": 2,
        "p50_ms": 1000,
        "p95_ms": 1000,
        "single_per_cpu_second": 2,
    }
    assert ratio(found["a"], found["b"])["wall"] == SpeedSpread(4, 4, 4)


def test_the_ratio_holds_on_a_machine_whose_speed_changes() -> None:
    """Within a chunk all are disturbed alike; one chunk of five that is not moves a median no more."""
    tides = (1 + 0.8 * np.sin(at / 40) for at in count())
    world = World(tides)
    found = in_turn({"a": world.ask("a", 1), "b": world.ask("b", 3)}, 640, timed=world.clock)
    assert ratio(found["a"], found["b"])["wall"].value == pytest.approx(3, rel=0.1)
    spike = found["a"].batched.copy()
    spike[2, :, 0] *= 50
    spoilt = Timings(spike, found["a"].single)
    assert ratio(spoilt, found["b"])["wall"].value == pytest.approx(3, rel=0.1)
    assert spoilt.figures().qps_low < found["a"].figures().qps_low


def test_p95_is_of_slow_queries() -> None:
    single = np.ones((REPEATS, 100, 2))
    single[:, :10] = 9
    single[0] = 700  # one busy repeat
    shown = Timings(np.ones((REPEATS, 2, 2)), single).figures()
    assert (shown.p50_ms, shown.p95_ms) == (1000, 9000)


def test_progress_ends_with_all_queries_of_all_models() -> None:
    told: list[int] = []
    clock: Clock = World(iter(())).clock
    in_turn({"a": len, "b": len}, 70, told.append, clock)
    assert told[-1] == 2 * 70 * REPEATS
    assert told == sorted(told)


def test_an_index_that_is_too_large_is_searched_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    small = of_vectors(4, 100, 8, 0)
    monkeypatch.setattr(contestants, "LARGEST", 160)
    large = of_vectors(4, 100, 8, 0)
    assert (small.rows, large.rows, large.index_bytes) == (100, 10, small.index_bytes)
    assert small.index_bytes == 1600
    hits = small.ask(range(2, 4))
    assert [len(rows) for rows, _ in hits] == [10, 10]  # type: ignore[attr-defined]


def test_mteb_reads_a_batch_like_a_loader() -> None:
    batch = QueryBatch(["a", "b"])
    assert (list(batch), len(batch), "text" in batch.dataset.features) == ([{"text": ["a", "b"]}], 1, True)


@pytest.mark.slow
def test_a_machine_is_told_by_what_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = machine.identity()
    assert machine.identity() == before
    assert before.processor
    (tmp_path / "cpuinfo").write_text("model name\t: Other 9000\n", encoding="utf-8")
    monkeypatch.setattr(machine, "CPU", tmp_path / "cpuinfo")
    assert machine.identity().processor == "Other 9000"
    assert machine.identity().id != before.id
    monkeypatch.delattr("os.getloadavg")
    assert machine.load() is None


def speed(**changes: Any) -> Speed:
    timing = Timings(np.full((REPEATS, 1, 2), 0.5), np.full((REPEATS, 64, 2), 0.01)).figures()
    row = TimedModel("minilm", "cpu", ("float32",), 256, 384, timing, timing, 9, 15_360, 64.0)
    bm25 = replace(row, model="bm25", encoding=None, dtypes=(), dim=None, qps=128.0)
    found = Speed(
        version=1,
        task="small",
        measured="2026-11-23",
        machine=Machine("EPYC", 2, (), "Linux x86_64", "m"),
        threads={"torch": 2},
        load={"before": 0.1, "after": None},
        queries=64,
        wanted=64,
        characters={"median": 9, "p95": 20},
        batch=64,
        warm_ups=3,
        repeats=5,
        searched=64,
        documents=9,
        models=(row, bm25),
        ratios=(),
    )
    return replace(found, **changes)


def test_the_table_is_ordered_by_speed() -> None:
    rows = page_sections.speed_overview(speed(), SAY)
    assert [row["model"] for row in rows] == ["bm25", "minilm"]
    assert (rows[0]["encoding p50, ms"], rows[0]["search p50, ms"], rows[1]["encoding p50, ms"]) == (
        "-",
        "10.00",
        "10.00",
    )
    text = "\n".join(page_sections.speed_section(speed(), "small-speed.svg", SAY))
    for said in ("EPYC, 2 cores", "load average 0.1 before and not known after", "another machine", "small-speed.svg"):
        assert said in text
    assert list(page_sections.speed_section(None, None, SAY)) == []


def test_what_is_said_of_few_queries_of_load_and_of_parts() -> None:
    assert passes.notes(speed()) == []
    said = passes.notes(speed(wanted=1000, load={"before": 6.2, "after": 1}, documents=20))
    assert [
        any(word in each for each in said)
        for word in ("not of 1,000", "under load (6.2 on 2 cores)", "per processor second", "9 of 20")
    ] == [True] * 4


def test_quality_is_drawn_against_the_logarithm_of_speed() -> None:
    assert page_sections.speed_chart("small", None, [("minilm", 0.5)], "nDCG@10", SAY) is None
    chart = page_sections.speed_chart("small", speed(), [("minilm", 0.5), ("bm25", 0.4)], "nDCG@10", SAY)
    assert chart is not None
    assert SAY("speed_axis") in chart
    wide = charts.scatter("t", [("a", 1, 0.1), ("b", 10, 0.2), ("c", 1000, 0.3)], "x", "y", logarithmic=True)
    places = [float(part.split("%")[0]) for part in wide.split('cx="')[1:]]
    assert places[1] - places[0] == pytest.approx((places[2] - places[1]) / 2, abs=0.2), "a decade, then two"
    for tick in ("1", "10", "100", "1,000"):
        assert f">{tick}</text>" in wide


@pytest.mark.slow
def test_where_an_encoder_computes_is_read_from_its_weights() -> None:
    import torch

    weights = [torch.zeros(1, device="meta", dtype=torch.bfloat16)]
    ours, service = (SimpleNamespace(of_queries=SimpleNamespace(egress=each)) for each in ("local", "remote"))
    assert contestants._place(ours, weights) == ("meta", ["bfloat16"])
    assert contestants._place(ours, []) == contestants._place(SimpleNamespace(), []) == ("cpu", ["float32"])
    assert contestants._place(service, []) == ("elsewhere", [])
