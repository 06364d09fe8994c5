"""Values of `extra_body` and of the environment: sent to the vendor, and written nowhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curate.core.config import Json, digest
from curate.ledger import Ledger, Rating
from curate.ledger.exchange import export, import_
from curate.llm.providers.presets import presets
from curate.runs.ledger_check import check
from curate.system import sealed_values
from tests.integration.cli.test_secrets import words
from tests.support.runs import curate, tiny
from tests.vendor import Vendor, error, says, vendor

LITERAL, SPOKEN, OTHER = "tok-4f9a81c7e2", "open sesame if you please", "env-77b1c0ffee"


@pytest.fixture(scope="module")
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, passage: "S" if "咖啡" in passage else "D") as running:
        yield running


def found(folder: Path, *secrets: str) -> dict[str, list[str]]:
    """Return secret -> the files below a folder in which it can be read, but for what the user wrote."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "mine.yaml"]
    return {
        secret: hits
        for secret in secrets
        if (hits := [str(path.relative_to(folder)) for path in files if any(secret in text for text in words(path))])
    }


def pipeline(folder: Path, server: Vendor, extra: str) -> None:
    tiny(folder)
    judge = f"{{kind: openai, model: m, base_url: '{server.url}', price: null, extra_body: {extra}}}"
    text = (folder / "tiny.yaml").read_text("utf-8").replace("[lexical, strict]", "[lexical, m]")
    (folder / "mine.yaml").write_text(text.replace("judges:\n", f"judges:\n  m: {judge}\n"), "utf-8")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, server: Vendor) -> Path:
    """Return the folder of a run whose judge is sent two texts, a number and a variable."""
    folder = tmp_path_factory.mktemp("extra")
    body = f"{{metadata: {{user: {LITERAL}, said: [{SPOKEN}]}}, pin: 4711047110, seat: '${{MY_SEAT}}', think: false}}"
    pipeline(folder, server, body)
    done = curate(folder, "run", "mine.yaml", "--run", "runs/t", "--yes", MY_SEAT=OTHER)
    assert done.returncode == 0, done.stderr
    return folder


def test_values_are_sent_and_no_file_holds_one(work: Path, server: Vendor) -> None:
    sent = server.calls[-1].body
    assert sent["metadata"] == {"user": LITERAL, "said": [SPOKEN]}
    assert (sent["pin"], sent["seat"], sent["think"]) == (4711047110, OTHER, False)
    assert curate(work, "ledger", "export", "parts").returncode == 0
    assert found(work, LITERAL, SPOKEN, "4711047110", OTHER) == {}
    panel = json.loads((work / "runs/t/judge/panel.json").read_text())["m"]["model"]["extra_body"]
    assert re.fullmatch("sha256:[0-9a-f]{64}", panel["metadata"]["user"])
    assert panel["think"] is False, "a digest of one of two values hides nothing"
    assert "seat: ${MY_SEAT}" in (work / "runs/t/pipeline.yaml").read_text()
    assert "extra_body.metadata.user" in (work / "runs/t/export/mteb/README.md").read_text()


def test_a_run_goes_on_from_digests_and_sends_none(work: Path, server: Vendor) -> None:
    """The same values given again are the same judge; a value that was kept as a digest alone is never sent."""
    before = len(server.calls)
    again = ["--run", "runs/t"]
    for command in (["run", "mine.yaml", *again], ["run", "runs/t/pipeline.yaml", *again], ["judge"]):
        done = curate(work, *command, MY_SEAT=OTHER)
        assert done.returncode == 0, done.stderr
        assert "judge: up to date" in done.stderr
    assert curate(work, "judge", "--run", "runs/t", "--force", "--offline", MY_SEAT=OTHER).returncode == 0
    assert curate(work, "run", "runs/t/pipeline.yaml", "--run", "runs/t", MY_SEAT=OTHER).returncode == 0
    refused = curate(work, "judge", "--run", "runs/t", "--force", "--yes", MY_SEAT=OTHER)
    assert refused.returncode == 2
    assert "extra_body.metadata.user: a run folder keeps a digest of this value alone; give the pipe" in refused.stderr
    assert len(server.calls) == before
    assert found(work, LITERAL, SPOKEN, OTHER) == {}


def test_a_variable_that_holds_nothing_is_named_before_anything_is_done(work: Path, tmp_path: Path) -> None:
    for command in (["run", str(work / "mine.yaml"), "--run", str(tmp_path / "runs/t")], ["judge"]):
        done = curate(work, *command)
        assert done.returncode == 2
        assert "extra_body.seat: the environment variable MY_SEAT holds nothing; type `export MY_SEAT=" in done.stderr
    assert not (tmp_path / "runs").exists()
    for command in (["status"], ["report", "--run", "runs/t"], ["agree", "--run", "runs/t"], ["models"]):
        assert curate(work, *command).returncode == 0, "what sends nothing needs no variable"


def test_a_push_refuses_what_holds_a_value_of_the_environment(work: Path) -> None:
    """Cells of compressed tables, too."""
    push = ["export", "--run", "runs/t", "--push", "lab/tiny", "--dry-run"]
    assert curate(work, *push, MY_SEAT=OTHER).returncode == 0
    nested = pl.DataFrame({"id": ["q"], "votes": [[{"judge": OTHER, "grade": "S"}]]})
    for value, more in (("高血压患者能喝咖啡吗", None), (OTHER, nested)):
        path = work / "runs/t/export/mteb/retrieval/grades-0.parquet"
        if more is not None:
            more.write_parquet(path)
        done = curate(work, *push, MY_SEAT=OTHER, OPENAI_API_KEY=value)
        path.unlink(missing_ok=True)
        assert done.returncode == 2, value
        assert re.search(r"holds the value of the environment variable (OPENAI_API_KEY|MY_SEAT); take it", done.stderr)
        assert value not in done.stderr


def test_what_a_vendor_repeats_is_not_kept(tmp_path: Path) -> None:
    echo = says(f'{{"P1": "D", "why": "{LITERAL} {OTHER} {SPOKEN}"}}')
    with vendor(
        lambda _query, _passage: "D", [error(400, "bad", f"no field {LITERAL}, {OTHER}"), *[echo] * 99]
    ) as server:
        pipeline(tmp_path, server, f"{{user: {LITERAL}, said: {SPOKEN}, seat: '${{MY_SEAT}}', kind: deep}}")
        done = curate(tmp_path, "run", "mine.yaml", "--run", "runs/t", "--yes", MY_SEAT=OTHER)
    assert "no field ***, ***" in done.stdout + done.stderr + "".join(words(tmp_path / "home/ledger.db"))
    assert not any(secret in done.stdout + done.stderr for secret in (LITERAL, OTHER, SPOKEN))
    assert found(tmp_path, LITERAL, OTHER, SPOKEN) == {}


@pytest.mark.parametrize(
    "settings",
    [
        "base_url: 'https://me:hunter2hunter2@api.example.com/v1'",
        "base_url: 'https://api.example.com/v1?key=hunter2hunter2'",
        "base_url: 'https://api.example.com/v1#hunter2hunter2'",
        "base_url: 'me:hunter2hunter2@api.example.com'",
        "base_url: 'https://me:hunter2hunter2'",
        "base_url: 'https://me:hunter2hunter2@[::1/v1'",
        "base_url: 'https://me:hunter2hunter2@\u2100.example.com/v1'",
        "base_url: 'https://api.example.com/v1/me:hunter2hunter2@x'",
        "base_url: [hunter2hunter2]",
        "key_env: 'sk-hunter2hunter2'",
        "extra_body: hunter2hunter2",
        "extra_body: {seat: 'hunter2hunter2 ${MY_SEAT}'}",
        "extra_body: {seat: '${hunter2-hunter2hunter2}'}",
    ],
)
def test_what_is_refused_is_not_shown(tmp_path: Path, settings: str) -> None:
    tiny(tmp_path)
    text = (tmp_path / "tiny.yaml").read_text("utf-8").replace("[lexical, strict]", "[m]")
    judge = f"judges:\n  m: {{kind: openai, model: m, {settings}}}\n"
    (tmp_path / "mine.yaml").write_text(text.replace("judges:\n", judge), "utf-8")
    done = curate(tmp_path, "run", "mine.yaml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert f"judges.m.{settings.partition(':')[0]}" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()


def test_values_that_an_earlier_version_wrote_are_sealed_and_nothing_is_paid_again(tmp_path: Path) -> None:
    body: dict[str, Json] = {"user": LITERAL, "thinking": {"type": "disabled"}}
    model: dict[str, Json] = {"kind": "openai", "model": "m", "extra_body": body}
    before: dict[str, Json] = {"model": model, "thinking_tokens": 0}
    rating = Rating("q" * 64, "p" * 64, digest(before), "r", 0, "S", "rated", 0, 1)
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.register(before)
        ledger.append([rating])
        export(ledger, tmp_path / "parts")
    sealed: dict[str, Json] = {**body, "user": f"sha256:{digest(LITERAL)}"}
    after = digest({**before, "model": {**model, "extra_body": sealed}})
    with Ledger(path) as ledger, Ledger(tmp_path / "other.db") as other:
        import_(other, tmp_path / "parts")
        for each in (ledger, other):
            assert each.ratings(after, "r")["grade"].to_list() == ["S"]
            assert each.current(digest(before)) == after == each.current(after)
            assert [finding.what for finding in check(each)] == ["ratings under a rubric without a call"]
    assert found(tmp_path, LITERAL).keys() <= {LITERAL}
    assert all(place.startswith("parts") for places in found(tmp_path, LITERAL).values() for place in places)
    assert LITERAL.encode() not in path.read_bytes()


def test_what_presets_say_keeps_the_name_of_its_judge() -> None:
    """A digest of what everybody can read hides nothing, and would have every grade of such a judge paid again."""
    for name, preset in presets().items():
        body = preset.get("extra_body", {})
        assert sealed_values.sealed(body) == body, name
    assert sealed_values.sealed({"effort": "low"}) != {"effort": "low"}, "at its place alone"
