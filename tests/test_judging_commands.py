"""`curate judge` with its options, as a user types them: the plan, the cap, offline, recorded, in batches."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ledger import Ledger
from tests.asking import paid_twice
from tests.runs import curate, tiny
from tests.vendor import Rules, Vendor, vendor

PRICE = {"input": 10.0, "output": 100.0, "date": "2026-01-01", "currency": "EUR"}


def script(_query: str, passage: str) -> str:
    return "S" if "咖啡" in passage else "D"


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(script, batches=Rules(steps=())) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, server: Vendor) -> Path:
    """Return a folder with a run that stands before judging, by the models `m` and `n`."""
    judges: dict[str, Any] = {
        name: {"kind": "openai", "model": name, "base_url": server.url, "price": PRICE, "batch": name == "m"}
        for name in ("m", "n")
    }
    judges["m"]["requests_per_minute"] = 100
    pipeline = tiny(tmp_path)
    plain = (tmp_path / pipeline).read_text("utf-8").replace("models: [lexical, strict]", "models: [m, n]")
    lines = "".join(f"  {name}: {json.dumps(settings)}\n" for name, settings in judges.items())
    (tmp_path / pipeline).write_text(plain.replace("judges:\n", f"judges:\n{lines}"), "utf-8")
    stopped = curate(tmp_path, "run", pipeline, "--run", "runs/t")
    assert stopped.returncode == 2
    assert "judging would send" in stopped.stderr
    return tmp_path


def ratings(run: Path, name: str = "t") -> bytes:
    return (run / "runs" / name / "judge" / "ratings.parquet").read_bytes()


def calls(run: Path) -> int:
    with Ledger(run / "home" / "ledger.db") as ledger:
        return ledger.count("calls")


def test_a_plan_is_printed_and_nothing_is_sent(run: Path, server: Vendor) -> None:
    done = curate(run, "judge", "--plan")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == [
        *("judge", "calls", "prompt_tokens", "prefix_tokens", "answer_tokens"),
        *("online", "batches", "currency", "minutes", "cascade_least"),
    ]
    found = {row.split()[0]: dict(zip(head.split(), row.split(), strict=True)) for row in rows}
    assert set(found) == {"m", "n"}
    assert found["m"]["calls"] == found["n"]["calls"]
    assert float(found["m"]["batches"]) == pytest.approx(float(found["m"]["online"]) / 2, abs=0.1)
    assert (found["n"]["batches"], found["n"]["minutes"]) == ("-", "-")
    assert server.calls == []
    assert curate(run, "judge", "--max-cost", "100").returncode == 0
    assert "nothing is left" in curate(run, "judge", "--plan").stdout


def test_a_run_is_replayed_from_its_ledger_without_a_call(run: Path, server: Vendor) -> None:
    refused = curate(run, "judge", "--offline")
    assert refused.returncode == 2
    assert "--offline sends none" in refused.stderr
    assert curate(run, "judge", "--max-cost", "100").returncode == 0
    sent = len(server.calls)
    again = curate(run, "run", "tiny.yaml", "--run", "runs/again", "--set", "name=again")
    assert again.returncode == 0, again.stderr
    assert ratings(run, "again") == ratings(run)
    assert curate(run, "judge", "--run", "runs/again", "--offline", "--force").returncode == 0
    assert ratings(run, "again") == ratings(run)
    assert len(server.calls) == sent


def test_recorded_grades_are_replayed(run: Path) -> None:
    done = curate(run, "judge", "--max-cost", "100", "--record", "grades.tsv")
    assert done.returncode == 0, done.stderr
    assert "in grades.tsv" in done.stdout
    kept = [f"--set=judges.{name}={{kind: replay, path: grades.tsv, assessor: {name}}}" for name in ("m", "n")]
    before = pl.read_parquet(run / "runs/t/judge/ratings.parquet").select("query_id", "doc_id", "judge", "grade")
    done = curate(run, "judge", *kept, CURATE_HOME=str(run / "other"))
    assert done.returncode == 0, done.stderr
    after = pl.read_parquet(run / "runs/t/judge/ratings.parquet").select("query_id", "doc_id", "judge", "grade")
    assert after.equals(before)


def test_a_batch_costs_half_and_who_has_none_is_asked_online(run: Path, server: Vendor) -> None:
    done = curate(run, "judge", "--batch", "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    assert "judges.n: its address offers no batch API" in done.stderr
    assert {call.model for call in server.calls} == {"n"}
    assert paid_twice(server) == {}
    bill = json.loads((run / "runs/t/judge/stage.json").read_text())["report"]["facts"]["bill"]
    assert bill["m"]["calls"] == bill["n"]["calls"]
    assert bill["m"]["cost"] == pytest.approx(bill["n"]["cost"] / 2)


def test_a_cascade_by_its_option(run: Path, server: Vendor) -> None:
    done = curate(run, "judge", "--cascade", "positives", "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    facts = json.loads((run / "runs/t/judge/stage.json").read_text())["report"]["facts"]
    assert facts["cascade"]["mode"] == "positives"
    wrong = curate(run, "judge", "--cascade", "cheap")
    assert wrong.returncode == 2
    assert "'exact' or 'positives'" in wrong.stderr
