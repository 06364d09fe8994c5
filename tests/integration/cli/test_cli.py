"""The command line: help, start-up, exit codes."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from curate.ask import build
from curate.ask.seating import load_rubric
from curate.cli.app import app
from curate.cli.main import complain
from curate.commands.schema import contract
from curate.core.config import parse_yaml
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.pipeline import Pipeline, find
from curate.pipeline.stage import Context
from curate.pipeline.stages import BUILDING, KNOWN, NAMES
from curate.system.files import write_text
from tests import ROOT
from tests.support import machine
from tests.support.runs import curate, ran, tiny

COMMANDS = ["run", *NAMES, *BUILDING, "status", "show"]
HEAVY = {"torch", "sentence_transformers", "polars", "numpy", "statsmodels", "openai", "anthropic", "mteb", "faiss"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    done = curate(folder, "run", tiny(folder), "--run", "runs/t")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def work(finished: Path, tmp_path: Path) -> Path:
    """Return a folder of a test's own with a run that is finished."""
    return Path(shutil.copytree(finished, tmp_path / "work"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "--run" in result.output


def test_help_lists_the_stages_in_order() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    building = (name for name in KNOWN if name not in ("export", "audit", "train_set"))  # those have other headings
    places = [output.index(f"\n  {name} ") for name in building]
    assert places == sorted(places)


def test_every_stage_that_builds_items_asks_under_the_same_options() -> None:
    group: Any = typer.main.get_command(app)
    shared = {"pipeline", "run", "settings", "force", "plan", "retry", "max_cost", "yes", "batch", "offline"}
    for name in BUILDING:
        assert {parameter.name for parameter in group.get_command(None, name).params} >= shared
        assert contract.schema(name)["type"] == "array", "what --plan answers is the same for all of them"


def test_help_says_whole_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["check"], ["review"], ["ledger"], ["models"]):
        shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout
        assert "..." not in shown.replace("[ARGS]...", "")


def test_ctrl_c_says_where_it_stopped_and_how_to_go_on(tmp_path: Path) -> None:
    tiny(tmp_path)
    rows = (json.dumps({"_id": f"d{n:06}", "text": f"text {n}"}) for n in range(200_000))
    (tmp_path / "data" / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "data" / "qrels" / "test.tsv").unlink()
    command = [sys.executable, "-m", "curate", "run", "tiny.yaml"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("language: en (queries zh, corpus en), detected in the texts")
    assert process.stderr.readline() == "ingest: started\n"
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    kept = "what was finished is kept, and the same command goes on from there"
    assert said == f"curate: stopped in the stage 'ingest' of runs/tiny; {kept}\n"
    assert process.returncode == 130


def test_an_error_of_a_file_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none" / "mine.yaml"
    with pytest.raises(FileNotFoundError) as raised:
        write_text(path, "version: 1\n")
    complain(raised.value)
    assert capsys.readouterr().err == f"error: {path}: No such file or directory\n"


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("version: 1\npool: {size: 9}\njudge: {batch: 3}\npool: {depth: 3}\n")
    done = curate(tmp_path, "run", "mine.yaml")
    said = "error: mine.yaml:4: not valid YAML (the key 'pool' stands twice)\n"
    assert (done.returncode, done.stderr) == (2, said)


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the packages that a command imports."""
    code = f"import sys; sys.argv = ['curate', *{words}]\nfrom curate.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('LOADED', *sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder).stdout
    return {name.partition(".")[0] for name in output.rpartition("LOADED")[2].split()}


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded(tmp_path, "--help") & HEAVY


def test_commands_that_read_a_run_load_no_database_and_no_client(work: Path) -> None:
    for command in ("status", "show"):
        packages = loaded(work, command)
        assert "polars" in packages
        assert not packages & {"sqlalchemy", "aiohttp", "openai", "anthropic", "torch", "faiss"}


def test_no_argument_prints_help() -> None:
    assert "Usage" in CliRunner().invoke(app, []).output


def test_run_again_skips_every_stage(work: Path) -> None:
    second = curate(work, "run", tiny(work), "--run", "runs/t")
    assert second.returncode == 0
    assert second.stderr.count("up to date") == len(NAMES)


def test_status_and_show_work_on_the_newest_run(work: Path) -> None:
    rows = machine.data(curate(work, "status", "--json").stdout)
    assert [row["stage"] for row in rows] == list(NAMES)
    assert {row["state"] for row in rows} == {"done"}
    assert [row["currency"] for row in rows] == [None] * len(NAMES), "nothing was paid"
    shown = curate(work, "show", "pool")
    assert re.search(r"^hits +List", shown.stdout, re.MULTILINE)
    assert "working in" not in shown.stdout
    first, *figures = curate(work, "show", "agreement").stdout.splitlines()
    assert first == "runs/t/consensus/agreement.json"
    assert "panel: [lexical, strict]" in figures
    assert any(line.startswith("  fleiss: ") for line in figures)
    names = curate(work, "show").stdout.splitlines()
    assert {"pool/pool", "judge/panel", "consensus/agreement"} <= {*names}
    assert curate(work, "show", "judge/panel").stdout.startswith("runs/t/judge/panel.json\nlexical:")


def test_a_changed_setting_redoes_what_depends_on_it(work: Path) -> None:
    again = curate(work, "run", "tiny.yaml", "--run", "runs/t", "--set", "pool.depth=2")
    skipped = [line.partition(":")[0] for line in again.stderr.splitlines() if "up to date" in line]
    assert skipped == ["ingest", "mask", "diversify"]
    assert "depth: 2" in (work / "runs/t/pipeline.yaml").read_text()


def test_one_command_a_stage(tmp_path: Path) -> None:
    pipeline = tiny(tmp_path)
    for name in NAMES:
        result = curate(tmp_path, name, "--pipeline", pipeline, "--run", "runs/t")
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "runs/t/manifest.json").exists()


def test_a_bare_command_says_which_run_it_works_in(work: Path) -> None:
    result = curate(work, "resolve", "--set", "resolve.policy=expert-over-panel")
    assert result.returncode == 0, result.stderr
    assert "working in runs/t" in result.stderr
    settings = (work / "runs/t/pipeline.yaml").read_text()
    assert "policy: expert-over-panel" in settings


def test_models_by_name(work: Path) -> None:
    result = curate(work, "judge", "--models", "lexical,bigram")
    assert result.returncode == 2
    assert "unknown judge 'bigram'" in result.stderr


def test_status_and_export_need_no_key_once_everything_is_judged(work: Path) -> None:
    grades = "query_id\tdoc_id\tgrade\n"
    judged = pl.read_parquet(work / "runs/t/judge/ratings.parquet").filter(pl.col("judge") == "strict")
    for query_id, doc_id, grade in judged.select("query_id", "doc_id", "grade").iter_rows():
        grades += f"{query_id}\t{doc_id}\t{grade}\n"
    (work / "grades.tsv").write_text(grades)
    assign = ("--set", "judges.kept={kind: replay, path: grades.tsv}", "--set", "judge.models=[lexical, kept]")
    assert curate(work, "run", "tiny.yaml", "--run", "runs/t", *assign).returncode == 0
    (work / "grades.tsv").unlink()  # as a key would be: needed to judge, not to go on
    states = {row["stage"]: row["state"] for row in machine.data(curate(work, "status", "--json").stdout)}
    assert states["judge"] == "unchecked"
    result = curate(work, "export", "--set", "export.formats=[trec]")
    assert result.returncode == 0, result.stderr


def test_a_partial_or_stale_stage_is_not_built_upon(work: Path) -> None:
    curate(work, "pool", "--depth", "2", "--run", "runs/t")
    result = curate(work, "consensus")
    assert result.returncode == 2
    assert "run `curate judge --run runs/t`" in result.stderr
    (work / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td01\t1\n")
    result = curate(work, "pool", "--depth", "3")
    assert result.returncode == 2
    assert "run `curate ingest --run runs/t`" in result.stderr


def test_a_stage_says_why_it_runs_again(work: Path) -> None:
    again = curate(work, "pool", "--depth", "2", "--run", "runs/t").stderr
    assert "pool: started again, changed: settings" in again
    assert not re.search(r"changed: (stage|head|outside|inputs|schemas)\b", again)


def test_every_pipeline_of_the_page_on_pipeline_files_loads() -> None:
    guide = (ROOT / "docs" / "integrate.md").read_text(encoding="utf-8").partition("## Write a plugin")[0]
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert blocks
    for block in blocks:
        settings = parse_yaml(block)
        assert isinstance(settings, dict)
        whole = settings if "version" in settings else {"version": 1, "name": "fragment", **settings}
        pipeline = Pipeline.check(whole, "integrate.md")
        context = Context(run=Path(), out=Path(), home=Path(), definitions=whole)
        for name in pipeline.head.judges:
            build.judge(context, name, load_rubric(JudgeConfig(), context))


@pytest.mark.parametrize("name", ["demo", "zh-legacy", "cmedteb", "replay"])
def test_packaged_pipelines_load(name: str) -> None:
    assert Pipeline.load(find(name)).head.name == name


def test_a_run_says_which_of_its_settings_a_pipeline_would_change(tmp_path: Path) -> None:
    """A setting that was given with `--set` is not lost in silence when the file is run again without it."""
    name = tiny(tmp_path)
    ran(tmp_path, "run", name, "--set", "export.license=cc-by-4.0", "--set", "resolve.policy=expert-over-panel")
    plain = ran(tmp_path, "run", name).stderr
    kept = "--set 'export.license=\"cc-by-4.0\"' --set 'resolve.policy=\"expert-over-panel\"'"
    assert 'runs/tiny: the pipeline changes settings of this run: export.license was "cc-by-4.0", is null' in plain
    assert kept in plain
    assert "changes settings" not in ran(tmp_path, "run", name).stderr
