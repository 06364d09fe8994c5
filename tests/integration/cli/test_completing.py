"""What Tab offers, asked as a shell asks the program."""

from pathlib import Path

import pytest

from curate.pipeline import stages
from curate.retrieval.retrievers import RETRIEVERS
from tests.support.runs import curate, tiny


def offered(folder: Path, typed: str) -> list[str]:
    """Return what bash is offered for the last word of a line, which may be empty."""
    line = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = curate(folder, _CURATE_COMPLETE="complete_bash", **line)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs, one of which has tables."""
    folder = tmp_path_factory.mktemp("work")
    pipeline = tiny(folder)
    for name in ("one", "two"):
        done = curate(folder, "run", pipeline, "--run", f"runs/{name}", "--set", "stages=[ingest, mask]")
        assert done.returncode == 0, done.stderr
    return folder


def test_stages_are_offered_as_the_commands_that_they_are(work: Path) -> None:
    assert {"run", "show", *stages.NAMES} <= set(offered(work, "curate "))
    assert offered(work, "curate div") == ["diversify"]


def test_runs(work: Path) -> None:
    assert offered(work, "curate status --run ") == ["runs/one", "runs/two"]
    assert offered(work, "curate pool --run runs/t") == ["runs/two"]


def test_tables_of_the_run_that_was_typed_or_the_newest(work: Path) -> None:
    found = offered(work, "curate show ")
    assert {"queries", "mask/queries", "ingest/dropped"} <= set(found)
    assert offered(work, "curate show --run runs/one mask/co") == ["mask/corpus"]
    assert offered(work, "curate show --run runs/three ") == []


def test_nothing_is_offered_where_there_is_no_run(tmp_path: Path) -> None:
    assert offered(tmp_path, "curate show ") == []
    assert offered(tmp_path, "curate status --run ") == []


def test_models_and_judges(work: Path) -> None:
    presets = offered(work, "curate models test ")
    assert "gpt-4o" in presets
    assert "lexical" not in presets
    assert offered(work, "curate judge --models lexical,similarity,lex") == []
    assert offered(work, "curate judge --models e5,lex") == ["e5,lexical"]
    assert {f"e5,{name}" for name in presets} < set(offered(work, "curate judge --models e5,"))


def test_retrievers(work: Path) -> None:
    assert set(RETRIEVERS.names()) < set(offered(work, "curate pool --retrievers "))
    assert offered(work, "curate pool --retrievers bm25,us") == ["bm25,use"]


def test_pipelines_packaged_and_here(work: Path) -> None:
    assert {"demo", "tiny.yaml", "data/"} <= set(offered(work, "curate run "))
    assert offered(work, "curate run runs/o") == ["runs/one/"]
    assert offered(work, "curate run runs/one/p") == ["runs/one/pipeline.yaml"]


def test_settings(work: Path) -> None:
    assert offered(work, "curate run demo --set ") == [f"{name}." for name in stages.KNOWN]
    assert offered(work, "curate run demo --set po") == ["pool."]
    assert offered(work, "curate run demo --set pool.dep") == ["pool.depth="]
    assert offered(work, "curate run demo --set seed.") == []


def test_another_shell(work: Path) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "curate pool --retrievers bm", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert curate(work, _CURATE_COMPLETE="complete_fish", **line).stdout.split() == ["bm25"]
