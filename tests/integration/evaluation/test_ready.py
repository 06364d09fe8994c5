"""`curate ready` on a finished run: what is open, why, and what to type."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import machine
from tests.support.publishing import finished
from tests.support.runs import complaint, curate, ran


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run with all metadata, scored by BM25 and the random encoder."""
    made = finished(tmp_path_factory.mktemp("ready"))
    models = "bm25,mteb/baseline-random-encoder"
    ran(made.parents[1], "evaluate", str(made), "--models", models, "--no-baselines", "--no-floors")
    return made


def _points(run: Path) -> dict[str, Any]:
    done = curate(run.parents[1], "ready", str(run), "--json")
    assert done.returncode == 1
    data: dict[str, Any] = machine.data(done.stdout)
    assert not data["ready"]
    assert data["ok"] + data["not_ok"] + data["not_measured"] == len(data["points"])
    return {each["name"]: each for each in data["points"]}


def test_what_settings_give_is_ok_and_what_nobody_did_is_not(run: Path) -> None:
    found = _points(run)
    states = {name: each["state"] for name, each in found.items()}
    assert [states[name] for name in ("licence", "metadata", "texts", "privacy")] == ["ok"] * 4
    assert states["judge gate"] == states["families"] == "not ok", "heuristics alone judged"
    assert [states[name] for name in ("people", "leaks", "circularity")] == ["not measured"] * 3
    difficulty = found["neither trivial nor random: full-retrieval"]
    assert difficulty["state"] in ("not ok", "not measured")
    assert "floors were not scored" in found["floors: full-retrieval"]["found"]
    assert all((each["next"] is None) == (each["state"] == "ok") for each in found.values())
    done = curate(run.parents[1], "ready", str(run))
    assert f"next: curate review export --run {run} --plan" in done.stdout
    assert "is not ready" in done.stderr


def test_scores_of_another_export_do_not_count(run: Path) -> None:
    assert _points(run)["neither trivial nor random: full-retrieval"]["found"] != "no evaluation of this export"
    ran(run.parents[1], "export", "--run", str(run), "--set", "export.mteb.contributed_by=Others")
    assert _points(run)["neither trivial nor random: full-retrieval"]["found"] == "no evaluation of this export"
    ran(run.parents[1], "export", "--run", str(run), "--set", "export.formats=[beir]")
    assert "has the format mteb" in complaint(run.parents[1], "ready", str(run))
