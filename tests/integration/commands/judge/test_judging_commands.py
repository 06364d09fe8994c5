"""`curate judge` with its options, as a user types them: the plan, the cap, offline, recorded, in batches."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests import vendor as fake
from tests.support import machine
from tests.support.asking import paid_twice
from tests.support.runs import curate, tiny
from tests.vendor import Rules, Vendor, vendor

TAB = "\t"
NOWHERE = "http://127.0.0.1:9/v1"
PRICE = {"input": 10.0, "output": 100.0, "date": "2026-01-01", "currency": "EUR"}


def script(_query: str, passage: str) -> str:
    return "S" if "咖啡" in passage else "D"


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(script, batches=Rules(steps=())) as running:
        yield running


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that stands before judging, by the models `m` and `n` of a server at NOWHERE."""
    judges: dict[str, Any] = {
        name: {"kind": "openai", "model": name, "base_url": NOWHERE, "price": PRICE, "batch": name == "m"}
        for name in ("m", "n")
    }
    judges["m"]["requests_per_minute"] = 100
    folder = tmp_path_factory.mktemp("stopped")
    pipeline = tiny(folder)
    plain = (folder / pipeline).read_text("utf-8").replace("models: [lexical, strict]", "models: [m, n]")
    lines = "".join(f"  {name}: {json.dumps(settings)}\n" for name, settings in judges.items())
    (folder / pipeline).write_text(plain.replace("judges:\n", f"judges:\n{lines}"), "utf-8")
    done = curate(folder, "run", pipeline, "--run", "runs/t")
    assert done.returncode == 2
    assert "judging would send" in done.stderr
    return folder


@pytest.fixture
def run(stopped: Path, tmp_path: Path, server: Vendor) -> Path:
    """Return a folder of a test's own with that run, whose server is there."""
    folder = Path(shutil.copytree(stopped, tmp_path / "work"))
    for path in (folder / "tiny.yaml", folder / "runs/t/pipeline.yaml"):
        path.write_text(path.read_text("utf-8").replace(NOWHERE, server.url), "utf-8")
    return folder


def ratings(run: Path, name: str = "t") -> bytes:
    return (run / "runs" / name / "judge" / "ratings.parquet").read_bytes()


def test_a_plan_is_printed_and_nothing_is_sent(run: Path, server: Vendor) -> None:
    done = curate(run, "judge", "--plan")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == [
        *("judge", "calls", "prompt_tokens", "prefix_tokens", "answer_tokens"),
        *("online", "batches", "currency", "minutes", "cascade_least"),
    ]
    rows = [row.replace("in all", "total") for row in rows]
    found = {row.split()[0]: dict(zip(head.split(), row.split(), strict=True)) for row in rows}
    assert set(found) == {"m", "n", "total"}
    assert found["m"]["calls"] == found["n"]["calls"]
    assert float(found["m"]["batches"]) == pytest.approx(float(found["m"]["online"]) / 2, abs=0.1)
    assert found["n"]["batches"] == "-"
    whole = float(found["m"]["online"]) + float(found["n"]["online"])
    assert float(found["total"]["online"]) == pytest.approx(whole, abs=0.02)
    assert float(found["total"]["batches"]) == pytest.approx(whole - float(found["m"]["batches"]), abs=0.02)
    assert (found["total"]["currency"], found["n"]["minutes"], found["total"]["minutes"]) == ("EUR", "0.05", "0.05")
    told = {row["judge"]: row for row in machine.data(curate(run, "judge", "--plan", "--json").stdout)}
    assert told["in all"]["online"] <= float(found["total"]["online"]) < told["in all"]["online"] + 0.01
    assert (told["n"]["batches"], told["n"]["currency"]) == (None, "EUR")
    assert server.calls == []
    assert curate(run, "judge", "--max-cost", "100").returncode == 0
    assert "nothing is left" in curate(run, "judge", "--plan").stdout


RATES = "--set=rates={CNY: {EUR: 0.125, date: 2026-11-01}}"
YUAN = "--set=judges.n.price.currency=CNY"


def test_two_currencies_are_under_one_cap_by_a_stated_rate(run: Path, server: Vendor) -> None:
    """A call to each judge costs 0.02 in its own currency, so 5 calls to both come to 0.1 EUR and 0.1 CNY."""
    server.faults = lambda _call: fake.used(prompt=1000, output=100)
    refused = curate(run, "judge", YUAN, "--max-cost", "5")
    assert refused.returncode == 2
    assert "`rates: {CNY: {EUR: RATE, date: YYYY-MM-DD}}`, or give --yes" in refused.stderr
    plan = curate(run, "judge", YUAN, RATES, "--plan").stdout.splitlines()
    found = {row.split()[0]: row.split() for row in plan[1:]}
    euros = float(found["m"][5]) + 0.125 * float(found["n"][5])
    assert float(found["in"][6]) == pytest.approx(euros, abs=0.02)
    assert "in all: 10 calls" in curate(run, "judge", YUAN, RATES).stderr
    small = curate(run, "judge", YUAN, RATES, "--max-cost", "0.01CNY")
    assert "cap of 0.01 CNY" in small.stderr
    done = curate(run, "judge", YUAN, RATES, "--max-cost", "10")
    assert done.returncode == 0, done.stderr
    assert "cap: 10.00 EUR; 1 CNY = 0.125 EUR (2026-11-01)" in done.stderr
    judge = next(row for row in machine.data(curate(run, "status", "--json").stdout) if row["stage"] == "judge")
    assert (judge["currency"], judge["paid"]) == ("EUR", pytest.approx({"CNY": 0.1, "EUR": 0.1}))
    assert judge["cost"] == pytest.approx(0.1 + 0.125 * 0.1)
    assert "judge: 0.1 CNY and 0.1 EUR paid" in curate(run, "status").stdout
    report = json.loads((run / "runs/t/judge/stage.json").read_text())["report"]["facts"]
    assert report["rates"] == [{"of": "CNY", "into": "EUR", "value": 0.125, "date": "2026-11-01"}]
    assert report["bill"]["n"]["currency"] == "CNY"
    costs = [dict(row["costs"]) for row in machine.data(curate(run, "ledger", "stats", "--json").stdout)]
    assert {name: amount for each in costs for name, amount in each.items()} == pytest.approx({"CNY": 0.1, "EUR": 0.1})
    assert "cost: 0.1000 CNY" in curate(run, "ledger", "stats").stdout


def test_a_plan_is_in_the_currency_of_the_cap_and_says_the_rate(run: Path, server: Vendor) -> None:
    plain = curate(run, "judge", YUAN, RATES, "--plan")
    capped = curate(run, "judge", YUAN, RATES, "--plan", "--max-cost", "5CNY")
    euros, yuan = (done.stdout.splitlines()[-1].split() for done in (plain, capped))
    assert (euros[0], euros[-3], yuan[0], yuan[-3]) == ("in", "EUR", "in", "CNY")
    assert float(yuan[6]) == pytest.approx(8 * float(euros[6]), abs=0.1)
    assert "in all; 1 CNY = 0.125 EUR (2026-11-01)" in plain.stderr
    assert "in all; 1 EUR = 8 CNY (2026-11-01)" in capped.stderr
    asked = next(line for line in curate(run, "judge", YUAN, RATES).stderr.splitlines() if "in all: 10 calls" in line)
    assert asked.endswith("EUR; 1 CNY = 0.125 EUR (2026-11-01)")


def test_a_bill_is_in_the_same_currency_whatever_the_cap_was_in(run: Path, server: Vendor) -> None:
    """Both judges cost CNY; the cap in EUR is of one command, and another one makes the stage again from the ledger."""
    server.faults = lambda _call: fake.used(prompt=1000, output=100)
    yuan = (YUAN, "--set=judges.m.price.currency=CNY", RATES)
    assert curate(run, "judge", *yuan, "--max-cost", "5EUR").returncode == 0
    facts = [json.loads((run / "runs/t/judge/stage.json").read_text())["report"]["facts"]]
    assert curate(run, "judge", *yuan, "--force").returncode == 0
    facts.append(json.loads((run / "runs/t/judge/stage.json").read_text())["report"]["facts"])
    assert [each["currency"] for each in facts] == ["CNY", "CNY"]
    assert facts[0]["total"] == facts[1]["total"] == pytest.approx(0.2)


def test_a_rate_may_stand_in_models_yaml(run: Path, server: Vendor) -> None:
    (run / "models.yaml").write_text("rates: {CNY: {EUR: 0.125, date: 2026-11-01}}\n", encoding="utf-8")
    done = curate(run, "judge", YUAN, "--set=currency=CNY", "--max-cost", "500")
    assert done.returncode == 0, done.stderr
    assert "cap: 500.00 CNY; 1 EUR = 8 CNY (2026-11-01)" in done.stderr
    (run / "models.yaml").write_text("rates: {CNY: {EUR: -1, date: 2026-11-01}}\n", encoding="utf-8")
    wrong = curate(run, "judge", "--plan", YUAN)
    assert (wrong.returncode, "models.yaml: rates.CNY.EUR" in wrong.stderr) == (2, True), wrong.stderr


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


def test_recorded_ratings_are_replayed_byte_for_byte(run: Path, server: Vendor) -> None:
    """Of a panel of two models and a heuristic, one of which refuses some passages and one speaks nonsense of some."""

    def faults(call: fake.Call) -> fake.Fault | None:
        word, fault = ("病因", fake.refusal) if call.model == "m" else ("怎样预防", fake.says("不知道"))
        return fault if any(word in text for text in call.passages.values()) else None

    server.faults = faults
    panel = ("--set=judge.models=[m, n, lexical]", "--set=judges.m.requests_per_minute=6000")
    done = curate(run, "judge", *panel, "--max-cost", "100", "--record", "said.tsv")
    assert done.returncode == 0, done.stderr
    assert f"ratings: {pl.read_csv(run / 'said.tsv', separator=TAB).height} in said.tsv" in done.stdout
    said = set(pl.read_parquet(run / "runs/t/judge/ratings.parquet")["status"])
    assert said == {"rated", "refused", "unparsed"}
    assert curate(run, "consensus", *panel).returncode == 0
    tables = ("judge/ratings", "judge/samples", "consensus/verdicts", "consensus/qrels", "consensus/incomplete")
    before = [(run / f"runs/t/{table}.parquet").read_bytes() for table in tables]
    sent = len(server.calls)
    names = ("m", "n", "lexical")
    kept = [f"--set=judges.{name}={{kind: replay, path: said.tsv, assessor: {name}}}" for name in names]
    done = curate(run, "run", "tiny.yaml", "--run", "runs/again", panel[0], *kept, CURATE_HOME=str(run / "other"))
    assert done.returncode == 0, done.stderr
    assert [(run / f"runs/again/{table}.parquet").read_bytes() for table in tables] == before
    assert len(server.calls) == sent


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
    before = ratings(run)
    again = curate(run, "judge", "--cascade", "positives", "--offline", "--force")
    assert again.returncode == 0, again.stderr
    assert ratings(run) == before
    wrong = curate(run, "judge", "--cascade", "cheap")
    assert wrong.returncode == 2
    assert "'exact' or 'positives'" in wrong.stderr


def test_a_key_is_nowhere(tmp_path: Path) -> None:
    """Not in what the command says, nor in a file that it leaves, nor among its words, though the vendor repeats it."""
    secret = "sk-secret-0123456789abcdef"
    echo = [fake.error(500, "server_error", f"key {secret}"), *[fake.says(f'{{"P1": "S"}} {secret}')] * 3]
    with vendor(script, echo, key=secret) as server:
        judge = {"kind": "openai", "model": "m", "base_url": server.url, "key_env": "MY_KEY", "price": PRICE}
        pipeline = tiny(tmp_path)
        assign = [f"--set=judges.m={json.dumps(judge)}", "--set=judge.models=[m]"]
        command = [sys.executable, "-m", "curate", "run", pipeline, "--run", "runs/t", *assign, "--max-cost", "100"]
        environment = {**os.environ, "CURATE_HOME": str(tmp_path / "home"), "MY_KEY": secret}
        running = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1)
        words = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        said, complained = running.communicate(timeout=120)
    assert running.returncode == 0, complained.decode()
    shown = curate(tmp_path, "status", "--json", MY_KEY=secret).stdout
    shown += curate(tmp_path, "models", "--json", MY_KEY=secret).stdout
    shown += curate(tmp_path, "ledger", "stats", "--json", MY_KEY=secret).stdout
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not any(secret.encode() in text for text in (words, said, complained, shown.encode(), *files))


def test_a_reached_cap_says_what_the_rest_costs_by_the_reported_tokens(run: Path, server: Vendor) -> None:
    """The vendor reports four times the planned prompt tokens; the printed command pays for the rest."""
    server.faults = lambda call: fake.used(prompt=4 * call.prompt_tokens, output=5)
    words = ("judge", "--models", "n", "--set", "judge.batch=1", "--set", "judge.controls=false")
    done = curate(run, *words, "--set", "judges.n.concurrency=1", "--max-cost=0.6")
    assert done.returncode == 2
    assert re.search(r"\njudges\.n: prompts had 2,\d{3} tokens each, planned were about \d{3}: ", done.stderr)
    assert re.search(r"this command paid 0\.5\d EUR for \d+ calls", done.stderr)
    [rest] = re.findall(
        r"what is left, by the tokens of the replies so far:\n  n: .* at most (0\.\d\d EUR)", done.stderr
    )
    status = curate(run, "status").stdout
    assert "not asked yet" in status
    assert "failed" not in status
    [command] = re.findall(r"^try: curate (.*)$", done.stderr, re.MULTILINE)
    assert command.endswith(f" --max-cost {rest.replace(' ', '')}")
    calls = len(server.calls)
    assert curate(run, *shlex.split(command)).returncode == 0
    assert len(server.calls) > calls
