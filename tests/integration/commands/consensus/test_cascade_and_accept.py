"""Three paid judges in a cascade: what it spares, when it cannot, and that no threshold is proved after it."""

import json
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from curate.ask import panel_run
from curate.core.errors import DataError
from curate.review import acceptance_plan
from curate.runs.runner import Run
from curate.system.files import read_table
from tests.support.controlled import PAIRS, executed, model, truth
from tests.vendor import vendor

STAGES = ["ingest", "mask", "diversify", "pool", "judge", "consensus"]


def strict(query: str, passage: str) -> str:
    return {"A": "B"}.get(grade := truth(query, passage), grade)


def judged(folder: Path) -> tuple[Run, dict[str, int]]:
    """Return a run of three judges of three prices in a cascade, and how many pairs each was asked."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(vendor(strict if name == "mid" else truth)) for name in ["low", "mid", "top"]
        }
        price = {"low": 0.01, "mid": 1.0, "top": 50.0}
        judges = {
            name: model(server, model=name, price={"input": price[name], "output": price[name], "date": "2026-01-01"})
            for name, server in servers.items()
        }
        run = executed(folder, judges, STAGES, cascade="positives")
        return run, {name: sum(len(call.passages) for call in server.calls) for name, server in servers.items()}


def test_a_cascade_spares_dear_judges_and_then_no_threshold_can_be_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panel_run, "LEAST", 20)
    run, asked = judged(tmp_path)
    assert asked["low"] == len(PAIRS) > asked["mid"] > asked["top"]
    ratings = read_table(run.folder / "judge", "ratings")
    spared = ratings.filter(pl.col("status") == "stopped")
    assert len(spared) == 3 * len(PAIRS) - sum(asked.values())
    assert "cascade" not in " ".join(
        json.loads((run.folder / "judge/stage.json").read_text("utf-8"))["report"]["notes"]
    )
    with pytest.raises(DataError, match=r"a cascade spared judges on [\d,]+ pairs whose sum of grades may lie"):
        acceptance_plan.plan(run.folder, 60, 0.4, 0.9)


def test_a_pool_below_the_pairs_that_all_judges_rate_is_judged_in_full_and_that_is_said(tmp_path: Path) -> None:
    run, asked = judged(tmp_path)
    assert set(asked.values()) == {len(PAIRS)}
    notes = json.loads((run.folder / "judge/stage.json").read_text("utf-8"))["report"]["notes"]
    assert any("spared no rating" in note and "rates 1,000 pairs at least" in note for note in notes)
    assert acceptance_plan.plan(run.folder, 60, 0.4, 0.9).strata
