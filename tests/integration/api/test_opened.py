"""`curate.open`: tables, states and cost of a run as frames, nothing written, every text escaped."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import curate
from curate.api.run_view import RunView
from curate.api.tables import StageTable
from curate.ask.billing import PlanRow
from curate.core.records import TABLES
from curate.system.files import digests, read_table
from tests.support.runs import ran

HOSTILE = "<script>alert(1)</script>&\"'"
TABLE_NAMES = [name for name, each in vars(RunView).items() if isinstance(each, StageTable)]
OF_OTHERS = {
    "compared",
    "audited",
    "pairs",
    "sentences",
    "classified",
    "paraphrases",
    "originals",
    "gradients",
    "edited",
}
"""Tables of stages that the tiny pipeline does not run."""


@pytest.fixture
def run(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> curate.RunView:
    monkeypatch.chdir(tiny_run.parent.parent)
    return curate.open("runs/tiny")


def seen(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder, *sorted(folder.rglob("*")))}


def test_tables_are_those_that_show_prints(run: curate.RunView) -> None:
    for name in {*TABLE_NAMES} - OF_OTHERS - {"labels"}:
        found = getattr(run, name)
        assert dict(found.schema) == dict(pl.Schema(TABLES[name]))
        said = ran(Path(), "show", name, "--run", "runs/tiny", CURATE_HOME=os.environ["CURATE_HOME"]).stdout
        assert f"{len(found):,} rows" in said.splitlines()[0]
        assert_frame_equal(found, run.table(name))
        assert_frame_equal(found, run.scan(name).collect())


def test_labels_are_the_published_ones(run: curate.RunView) -> None:
    assert_frame_equal(run.labels, read_table(run.folder / "resolve", "qrels"))
    assert (
        run.labels["query_id"].to_list() == run.verdicts.filter(pl.col("verdict") == "relevant")["query_id"].to_list()
    )


def test_a_frame_becomes_one_of_pandas(run: curate.RunView) -> None:
    assert list(run.labels.to_pandas().columns) == ["query_id", "doc_id", "score"]


def test_status_has_the_rows_of_the_command(run: curate.RunView) -> None:
    rows = json.loads(ran(Path(), "status", "--json", CURATE_HOME=os.environ["CURATE_HOME"]).stdout)
    rows = rows["data"] if isinstance(rows, dict) else rows
    assert run.status().to_dicts() == [{name: row[name] for name in run.status().columns} for row in rows]
    assert run.spent == {}


def test_what_was_dropped_is_told_by_stage_or_in_all(run: curate.RunView) -> None:
    assert_frame_equal(run.dropped("diversify"), read_table(run.folder / "diversify", "dropped"))
    assert len(run.dropped()) == sum(len(run.dropped(each)) for each in run.status()["stage"])
    assert run.dropped("judge").is_empty()
    with pytest.raises(curate.UserError, match="did you mean 'mask'"):
        run.dropped("msk")
    with pytest.raises(curate.UserError, match="run `curate train-set --run"):
        run.dropped("train_set")


def test_a_table_that_is_not_there_names_the_command(run: curate.RunView) -> None:
    shutil.rmtree(run.folder / "pool")
    with pytest.raises(curate.UserError, match=r"stage 'pool' has not run; run `curate pool --run runs/tiny`"):
        run.rankings  # noqa: B018 - the attribute is what is tried
    assert not hasattr(run, "pool")
    with pytest.raises(curate.UserError, match="did you mean 'verdicts'"):
        run.table("verdict")
    with pytest.raises(curate.UserError, match="found figures in JSON"):
        run.table("consensus/agreement")
    (run.folder / "resolve" / "verdicts.parquet").write_bytes(b"half")
    with pytest.raises(curate.UserError, match="damaged; make it again with `curate resolve --force`"):
        run.verdicts  # noqa: B018


def test_paths_are_there_once_they_are_written(run: curate.RunView) -> None:
    assert run.report_path.is_file()
    assert (run.export_path / "beir").is_dir()
    run.report_path.unlink()
    with pytest.raises(curate.UserError, match="run `curate report --run runs/tiny`"):
        run.report_path  # noqa: B018


@pytest.mark.parametrize(
    ("path", "words"),
    [("runs/tny", "did you mean 'tiny'"), ("data", "not a run folder"), ("tiny.yaml", "no such folder")],
)
def test_what_is_no_run_is_refused(run: curate.RunView, path: str, words: str) -> None:
    with pytest.raises(curate.UserError, match=words):
        curate.open(path)


def test_str_and_path_and_nothing_open_the_same_run(run: curate.RunView) -> None:
    assert curate.open(Path("runs/tiny")) == curate.open() == run


def test_to_look_writes_nothing_and_takes_no_lock(run: curate.RunView, home: Path) -> None:
    before, kept = seen(run.folder), digests(home)
    for name in {*TABLE_NAMES} - OF_OTHERS:
        getattr(run, name)
    assert run.name == "tiny"
    assert run.settings["name"] == "tiny"
    looked = (run.status(), run.spent, run.dropped(), run.agreement(), run.plan(), run.tables, run.report_path)
    assert all(each is not None for each in (*looked, repr(run), run._repr_html_()))
    assert seen(run.folder) == before
    assert digests(home) == kept


def test_texts_of_others_are_escaped(run: curate.RunView) -> None:
    folder = Path(shutil.copytree(run.folder, run.folder.with_name(HOSTILE.replace("/", ""))))
    rows = [{"id": "1", HOSTILE: "a", "b": HOSTILE}, {"id": "2", HOSTILE: HOSTILE, "b": "a"}]
    shown = [
        curate.open(folder),
        curate.agree(pl.DataFrame(rows)),
        curate.anonymise([HOSTILE]),
        curate.CostPlan([PlanRow.from_json({"judge": HOSTILE, "calls": 1, "prompt_tokens": 1, "online": None})]),
    ]
    for each in shown:
        page = each._repr_html_()  # type: ignore[attr-defined]
        assert "<script" not in page
        assert "&lt;script" in page
        assert "http" not in page
