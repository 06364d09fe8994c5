"""The command line: help, start-up, exit codes."""

import json
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from curate.cli.main import app
from curate.config import parse_yaml
from curate.context import Context
from curate.pipeline import Pipeline, find
from curate.stages import NAMES, build, judge
from curate.stages.judge import load_rubric
from tests.runs import curate, tiny

COMMANDS = ["run", *NAMES, "status", "show"]
HEAVY = {"torch", "sentence_transformers", "polars", "numpy", "statsmodels", "openai", "anthropic", "mteb", "faiss"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "--run" in result.output


def test_help_lists_the_stages_in_order() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    places = [output.index(f" {name} ") for name in NAMES]
    assert places == sorted(places)


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['curate', '--help']\nfrom curate.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('LOADED', *sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.partition(".")[0] for name in output.rpartition("LOADED")[2].split()}
    assert not loaded & HEAVY


def test_no_argument_prints_help() -> None:
    assert "Usage" in CliRunner().invoke(app, []).output


def test_run_then_again_skips_every_stage(tmp_path: Path) -> None:
    first = curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    assert first.returncode == 0, first.stderr
    started = time.monotonic()
    second = curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    assert second.returncode == 0
    assert second.stderr.count("up to date") == len(NAMES), time.monotonic() - started


def test_status_and_show_work_on_the_newest_run(tmp_path: Path) -> None:
    curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    rows = json.loads(curate(tmp_path, "status", "--json").stdout)
    assert [row["stage"] for row in rows] == list(NAMES)
    assert {row["state"] for row in rows} == {"done"}
    assert [row["currency"] for row in rows] == [None] * len(NAMES), "nothing was paid"
    shown = curate(tmp_path, "show", "pool")
    assert "hits: List" in shown.stdout
    assert "working in" not in shown.stdout
    first, *figures = curate(tmp_path, "show", "agreement").stdout.splitlines()
    assert first == "runs/t/consensus/agreement.json"
    assert "panel: [lexical, strict]" in figures
    assert any(line.startswith("  fleiss: ") for line in figures)
    assert curate(tmp_path, "show", "judge/panel").stdout.startswith("runs/t/judge/panel.json\nlexical:")


def test_a_changed_setting_redoes_what_depends_on_it(tmp_path: Path) -> None:
    pipeline = tiny(tmp_path)
    curate(tmp_path, "run", pipeline, "--run", "runs/t")
    again = curate(tmp_path, "run", pipeline, "--run", "runs/t", "--set", "pool.depth=2")
    skipped = [line.partition(":")[0] for line in again.stderr.splitlines() if "up to date" in line]
    assert skipped == ["ingest", "mask", "diversify"]
    assert "depth: 2" in (tmp_path / "runs/t/pipeline.yaml").read_text()


def test_one_command_a_stage(tmp_path: Path) -> None:
    pipeline = tiny(tmp_path)
    for name in NAMES:
        result = curate(tmp_path, name, "--pipeline", pipeline, "--run", "runs/t")
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "runs/t/manifest.json").exists()


def test_a_bare_command_says_which_run_it_works_in(tmp_path: Path) -> None:
    curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    result = curate(tmp_path, "pool", "--retrievers", "bm25", "--depth", "3")
    assert result.returncode == 0, result.stderr
    assert "working in runs/t" in result.stderr
    settings = (tmp_path / "runs/t/pipeline.yaml").read_text()
    assert "depth: 3" in settings


def test_models_by_name(tmp_path: Path) -> None:
    curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    result = curate(tmp_path, "judge", "--models", "lexical,bigram")
    assert result.returncode == 2
    assert "unknown judge 'bigram'" in result.stderr


def test_status_and_export_need_no_key_once_everything_is_judged(tmp_path: Path) -> None:
    grades = "query_id\tdoc_id\tgrade\n"
    pipeline = tiny(tmp_path)
    curate(tmp_path, "run", pipeline, "--run", "runs/t")
    judged = pl.read_parquet(tmp_path / "runs/t/judge/ratings.parquet").filter(pl.col("judge") == "strict")
    for query_id, doc_id, grade in judged.select("query_id", "doc_id", "grade").iter_rows():
        grades += f"{query_id}\t{doc_id}\t{grade}\n"
    (tmp_path / "grades.tsv").write_text(grades)
    assign = ("--set", "judges.kept={kind: replay, path: grades.tsv}", "--set", "judge.models=[lexical, kept]")
    assert curate(tmp_path, "run", pipeline, "--run", "runs/t", *assign).returncode == 0
    (tmp_path / "grades.tsv").unlink()  # as a key would be: needed to judge, not to go on
    states = {row["stage"]: row["state"] for row in json.loads(curate(tmp_path, "status", "--json").stdout)}
    assert states["judge"] == "unchecked"
    result = curate(tmp_path, "export", "--set", "export.formats=[trec]")
    assert result.returncode == 0, result.stderr


def test_a_partial_or_stale_stage_is_not_built_upon(tmp_path: Path) -> None:
    curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    curate(tmp_path, "pool", "--depth", "2")
    result = curate(tmp_path, "consensus")
    assert result.returncode == 2
    assert "run `curate judge`" in result.stderr
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td01\t1\n")
    result = curate(tmp_path, "pool", "--depth", "3")
    assert result.returncode == 2
    assert "run `curate ingest`" in result.stderr


def test_a_stage_says_why_it_runs_again(tmp_path: Path) -> None:
    curate(tmp_path, "run", tiny(tmp_path), "--run", "runs/t")
    again = curate(tmp_path, "pool", "--depth", "2").stderr
    assert "pool: started again, changed: settings" in again


def test_every_pipeline_in_the_readme_loads() -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert blocks
    for block in blocks:
        settings = parse_yaml(block)
        assert isinstance(settings, dict)
        pipeline = Pipeline.check(settings, "README.md")
        context = Context(run=Path(), out=Path(), home=Path(), definitions=settings)
        for name in pipeline.head.judges:
            build.judge(context, name, partial(load_rubric, judge.Config(), context))


@pytest.mark.parametrize("name", ["demo", "zh-legacy", "cmedteb", "replay"])
def test_packaged_pipelines_load(name: str) -> None:
    assert Pipeline.load(find(name)).head.name == name
