"""A command that is refused, planned or failed leaves runs, ledger and the newest run as they were."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests import vendor as fake
from tests.conftest import need
from tests.integration.cli.test_kill import KILLER
from tests.support import machine
from tests.support.auditing import OPTIONS, labelled
from tests.support.runs import curate, tiny
from tests.vendor import Vendor, vendor

NOWHERE = "http://127.0.0.1:9/v1"
EUR = {"input": 1000.0, "output": 1000.0, "date": "2026-01-01", "currency": "EUR"}
JUDGES: dict[str, dict[str, Any]] = {
    "euro": {"price": EUR, "local": True},
    "yuan": {"price": {**EUR, "currency": "CNY"}},
    "priceless": {},
    "keyless": {"price": EUR, "key_env": "NO_SUCH_KEY"},
}
RUN = ("run", "tiny.yaml", "--run", "runs/t")
STS = ("sts", "--set", "sts.generator=euro", "--set", "sts.panel=[yuan]")
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown judge": (("judge", "--models", "nobody", "--max-cost", "5"), "nobody"),
    "bad value": (("judge", "--set", "judge.batch=0"), "judge.batch"),
    "bad key": (("judge", "--set", "judge.bach=1"), "did you mean 'batch'"),
    "no key in the environment": (("judge", "--models", "keyless", "--max-cost", "5"), "NO_SUCH_KEY"),
    "no consent": (("judge", "--models", "euro"), "judging would send"),
    "cap too small": (("judge", "--models", "euro", "--max-cost", "0.01"), "raise --max-cost"),
    "two currencies": (("judge", "--models", "euro,yuan", "--max-cost", "5"), "rates: {CNY: {EUR: RATE"),
    "no price": (("judge", "--models", "euro,priceless", "--max-cost", "5"), "judges.priceless.price"),
    "no rate into the cap": (("judge", "--models", "euro", "--max-cost", "5USD"), "rates: {EUR: {USD: RATE"),
    "no amount": (("judge", "--models", "euro", "--max-cost", "five"), "such as 50 or 50USD"),
    "offline": (("judge", "--models", "euro", "--offline"), "--offline sends none"),
    "plan": (("judge", "--models", "euro,yuan", "--plan"), ""),
    "all again": ((*RUN, "--force", "--set", "judge.models=[euro]", "--max-cost", "0.01"), "raise --max-cost"),
    "all stages": ((*RUN, "--set", "judge.models=[euro]"), "judging would send"),
    "behind a new pool": ((*RUN, "--set", "pool.depth=2", "--set", "judge.models=[euro]"), "judging would send"),
    "a broken source": ((*RUN, "--set", "ingest.source=broken"), "broken"),
    "ingest": (("ingest", "--set", "ingest.source=no/where"), "no/where"),
    "mask": (("mask", "--model", "euro"), "masking would send"),
    "mask, no server": (("mask", "--model", "euro", "--max-cost", "0.001"), "no server listens"),
    "diversify": (("diversify", "--set", "diversify={enabled: true, encoder: nobody, queries: {t: 0.9}}"), "nobody"),
    "diversify, plan": (("diversify", "--plan", "--set", "diversify.queries.t=0.5"), ""),
    "pool": (("pool", "--retrievers", "nobody"), "nobody"),
    "consensus": (("consensus", "--set", "consensus.policy=nope"), "consensus.policy"),
    "resolve": (("resolve", "--set", "resolve.samples=[nope]", "--set", "resolve.policy=expert-over-panel"), "nope"),
    "sts": ((*STS,), "would send"),
    "sts, plan": ((*STS, "--plan"), ""),
    "export": (("export", "--set", "export.formats=[nope]"), "nope"),
    "report": (("report", "--set", "report.lenghts=3"), "did you mean"),
    "analyze": (("analyze", "--model", "euro"), "analyzing would send"),
    "analyze, plan": (("analyze", "--model", "euro", "--plan"), ""),
    "check judge": (("check", "judge", "--again", "repeat"), "no language model"),
    "check judge, plan": (("check", "judge", "--controls", "--plan"), "controls"),
    "review, plan": (("review", "export", "--size", "30", "--plan"), ""),
    "embed": (("embed", "--encoder", "nobody"), "nobody"),
}


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the bytes of every file of the runs, hidden ones too, and when the settings, which name the newest run."""
    files = sorted(path for path in (folder / "runs").rglob("*") if path.is_file())
    times = {path: path.stat().st_mtime_ns if path.name == "pipeline.yaml" else 0 for path in files}
    return {str(path.relative_to(folder)): (path.read_bytes(), times[path]) for path in files}


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return what the ledger keeps."""
    with closing(sqlite3.connect(folder / "home/ledger.db")) as ledger:
        names = ("judges", "calls", "ratings", "passages", "claims", "batches")
        return {name: sorted(ledger.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that is finished, and its settings, which name judges that cost."""
    folder = tmp_path_factory.mktemp("finished")
    judges = {name: {"kind": "openai", "model": name, "base_url": NOWHERE, **more} for name, more in JUDGES.items()}
    lines = "".join(f"  {name}: {json.dumps(settings)}\n" for name, settings in judges.items())
    tiny(folder)
    plain = (folder / "tiny.yaml").read_text("utf-8")
    (folder / "tiny.yaml").write_text(plain.replace("judges:\n", f"judges:\n{lines}"), "utf-8")
    shutil.copytree(folder / "data", folder / "broken")
    (folder / "broken/corpus.jsonl").write_text('{"_id": "d1", "text": "whole"}\n{"_id": \n', "utf-8")
    done = curate(folder, *RUN)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("kind", REFUSED)
def test_a_finished_run_stays_as_it_was(finished: Path, kind: str) -> None:
    words, said = REFUSED[kind]
    words = words if words[0] == "run" else (*words, "--run", "runs/t")
    before, kept = tree(finished), rows(finished)
    done = curate(finished, *words)
    assert done.returncode == (2 if said else 0), done.stdout + done.stderr
    assert said in done.stderr
    assert tree(finished) == before
    assert rows(finished) == kept


def test_it_is_finished_still(finished: Path) -> None:
    states = machine.data(curate(finished, "status", "--json").stdout)
    assert {row["state"] for row in states} == {"done"}


@pytest.mark.parametrize(
    "words",
    [
        ("run", "tiny.yaml", "--run", "runs/new/deep", "--set", "ingest.source=broken"),
        ("run", "tiny.yaml", "--run", "runs/new", "--set", "judge.models=[nobody]"),
        ("audit", "no/where", *OPTIONS, "--models", "lexical"),
        ("audit", "data", *OPTIONS, "--models", "lexical", "--plan"),
        ("train-set", "data", *OPTIONS[:4], "--retrievers", "words", "--judge", "lexical", "--test", "none", "--plan"),
        ("audit", "data", *OPTIONS, "--models", "deepseek-v3", "--plan"),
    ],
)
def test_a_new_run_that_never_began_leaves_no_folder(finished: Path, words: tuple[str, ...]) -> None:
    before, folders = tree(finished), sorted((finished / "runs").iterdir())
    done = curate(finished, *words)
    assert (done.returncode == 0) == ("--plan" in words), done.stderr
    assert ("deepseek-v3" in done.stdout) == ("deepseek-v3" in words)
    assert sorted((finished / "runs").iterdir()) == folders
    assert tree(finished) == before


def test_an_audit_that_is_refused_is_not_the_newest_run(finished: Path) -> None:
    words = ("audit", "data", *OPTIONS, "--models")
    done = curate(finished, *words, "deepseek-v3", LKEAP_API_KEY="none-such-key")
    assert (done.returncode, "judging would send" in done.stderr) == (2, True), done.stderr
    assert (finished / "runs/audit-data/pool/pool.parquet").is_file()
    assert "working in runs/t" in curate(finished, "status").stderr
    assert curate(finished, *words, "lexical").returncode == 0
    assert "working in runs/audit-data" in curate(finished, "status").stderr
    shutil.rmtree(finished / "runs/audit-data")


def test_the_plan_of_an_audit_leaves_the_audit(tmp_path: Path) -> None:
    labelled(tmp_path)
    words = ("audit", "data", *OPTIONS, "--models", "lexical")
    assert curate(tmp_path, *words).returncode == 0
    before = tree(tmp_path)
    plan = curate(tmp_path, *words[:-1], "deepseek-v3", "--plan", "--set", "pool.size=3")
    assert plan.returncode == 0, plan.stderr
    assert "deepseek-v3" in plan.stdout
    assert tree(tmp_path) == before


# What was paid


@pytest.fixture
def server() -> Iterator[Vendor]:
    """Return a vendor whose calls cost 1.1 each at the prices of JUDGES."""
    with vendor(
        lambda _query, passage: "S" if "咖啡" in passage else "D", lambda _call: fake.used(prompt=1000, output=100)
    ) as running:
        yield running


@pytest.fixture
def at(finished: Path, tmp_path: Path, server: Vendor) -> Callable[..., Any]:
    """Return how to type a command in a folder of a test's own, where the judges are there."""
    folder = Path(shutil.copytree(finished, tmp_path / "work"))
    for path in (folder / "tiny.yaml", folder / "runs/t/pipeline.yaml"):
        path.write_text(path.read_text("utf-8").replace(NOWHERE, server.url), "utf-8")

    def typed(*words: str) -> Any:
        return curate(folder, *words)

    typed.folder = folder  # type: ignore[attr-defined]
    return typed


def test_a_finished_run_is_not_lost_to_a_cap_that_was_reached(at: Any, server: Vendor) -> None:
    before = tree(at.folder)
    words = ["judge", "--run", "runs/t", "--models", "euro", "--set", "judge.batch=1"]
    words += ["--set", "judges.euro.concurrency=1", "--set", "judge.controls=off"]
    stopped = at(*words, "--max-cost", "8")
    assert stopped.returncode == 2
    assert "runs/t is left as it was; what was paid lies in the ledger" in stopped.stderr
    assert tree(at.folder) == before
    paid = len(server.calls)
    assert 0 < paid < 40
    done = at(*words, "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    assert len(server.calls) == 40
    assert "euro" in (at.folder / "runs/t/pipeline.yaml").read_text("utf-8").partition("\njudge:\n")[2]


def test_a_new_run_that_a_cap_stopped_goes_on_with_a_bare_command(at: Any, server: Vendor) -> None:
    new = ("run", "tiny.yaml", "--run", "runs/new", "--set", "judge={models: [lexical, euro], batch: 1, controls: off}")
    stopped = at(*new, "--set", "judges.euro.concurrency=1", "--max-cost", "8")
    assert stopped.returncode == 2
    assert "cap: 8.00 EUR" in stopped.stderr
    assert "may pass the cap of 8.00 EUR, after calls that cost 6.60 EUR" in stopped.stderr
    judge = next(row for row in machine.data(at("status", "--json").stdout) if row["stage"] == "judge")
    assert (judge["state"], judge["currency"], judge["judged"]) == ("partial", "EUR", (40 + 6) / 80)
    assert judge["cost"] == judge["paid"]["EUR"] == pytest.approx(6.6)
    assert "judge: 57% of the ratings are there, 6.60 EUR paid" in at("status").stdout
    done = at("judge", "--max-cost", "100")
    assert done.returncode == 0, done.stderr
    assert len(server.calls) == 40


def test_a_stage_that_fails_behind_one_that_was_made_again_costs_neither(at: Any, server: Vendor) -> None:
    server.faults = lambda _call: fake.error(401, "authentication_error", "wrong key")
    before = tree(at.folder)
    done = at(*RUN, "--set", "pool.depth=2", "--set", "judge.models=[euro]", "--max-cost", "100")
    assert done.returncode == 2, done.stderr
    assert "runs/t is left as it was; not kept of this command: pool" in done.stderr
    assert tree(at.folder) == before


# Killed


@pytest.mark.parametrize("step", [14, 33, 40])
def test_a_killed_command_leaves_the_old_run_or_one_to_go_on_with(at: Any, step: int) -> None:
    need(sys.platform == "linux", "Linux")
    assert at(*RUN).returncode == 0
    old = {path: text for path, (text, _) in tree(at.folder).items()}
    command = [sys.executable, str(KILLER), "before", str(step), *RUN, "--set", "pool.depth=2"]
    environment = {"CURATE_HOME": str(at.folder / "home"), "PYTHONPATH": str(ROOT), "PATH": ""}
    killed = subprocess.run(command, cwd=at.folder, env=environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    states = [row["state"] for row in machine.data(at("status", "--json").stdout)]
    new = {path: text for path, (text, _) in tree(at.folder).items()}
    if set(states) == {"done"}:
        hidden = {path for path in new if path not in old}
        assert all("/." in path for path in hidden)
        assert {path: new[path] for path in old} == old
    else:
        assert "depth: 2" in new["runs/t/pipeline.yaml"].decode()
    again = at(*RUN, "--set", "pool.depth=2")
    assert again.returncode == 0, again.stderr
    assert {row["state"] for row in machine.data(at("status", "--json").stdout)} == {"done"}
    assert not [path for path in tree(at.folder) if ".new" in path or ".old" in path]
