"""A kind is a value: one that nobody here knows goes from its table through export and verify to stock mteb."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from curate.cli.app import app
from curate.commands.verify.verification import verify
from curate.core.config import Json, parse_yaml
from curate.core.errors import DataError
from curate.ledger import Ledger
from curate.pipeline.pipeline import Pipeline
from curate.review import Answer, Desk, Sample, relevance_desks
from curate.runs.runner import Run
from curate.system.files import frame, read_json, write_json, write_table
from curate.tables import kinds as registry
from curate.tables.exporters import manifest
from curate.tables.kinds import KINDS, kind, kinds
from curate.view.words import strings
from tests import ROOT
from tests.integration.commands.report.test_report import Read
from tests.integration.tables.test_exporters import evaluate
from tests.support import machine
from tests.support.runs import ran, tiny
from tests.support.toy_kind import Fever

TEXTS = {
    f"{split}-{number}": ("热" if number % 2 else "咳") * 9 + "痛疹药"[number % 3] * (number // 2)
    for split in ("train", "test")
    for number in range(24)
}


LABELLED = ("classification", "clustering")
PAIRED = ("paraphrase", "sentence-retrieval", "gradient-edit", "gradient-mix")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the toy kind, as an entry point would."""
    monkeypatch.setitem(KINDS.builtin, "fever", "tests.support.toy_kind:Fever")
    registry.kind.cache_clear()
    yield
    registry.kind.cache_clear()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run that knows no toy."""
    folder = tmp_path_factory.mktemp("finished")
    tiny(folder)
    ran(folder, "run", "tiny.yaml")
    return folder


@pytest.fixture
def export(known: None, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the export of a small run in which a stage has made the toy's table."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATE_HOME", str(tmp_path / "home"))
    run = tmp_path / "runs" / "tiny"
    (run / "fever").mkdir()
    rows = [
        {"id": key, "text": text, "label": int("热" in text), "split": key.partition("-")[0]}
        for key, text in TEXTS.items()
    ]
    pl.DataFrame(rows).write_parquet(run / "fever" / "fevers.parquet")
    lost = [{"table": "texts", "id": f"t{n}", "stage": "fever", "reason": "no fever"} for n in range(2)]
    write_table(run / "fever", "dropped", frame("dropped", lost))
    labels = {"yes": 24, "no": 24}
    facts: Json = {"planned": 50, "built": 48, "dropped": {"no fever": 2}, "labels": labels, "writer": "nobody"}
    report: dict[str, Json] = {"rows_in": 50, "rows_out": 48, "dropped": 2, "facts": facts}
    write_json(run / "fever" / "stage.json", {"report": report})
    Run(run, Pipeline.load(run / "pipeline.yaml")).execute(["export"], force=True)
    return run / "export"


def of(run: Path, stage: str) -> str:
    """Run the last stage again, and return its page."""
    Run(run, Pipeline.load(run / "pipeline.yaml")).execute([stage])
    return (run / f"{stage}.html").read_text(encoding="utf-8")


def said(export: Path) -> list[str]:
    """Return what `verify` says of the format mteb, whose hashes are forged first."""
    body = manifest.read(export / "mteb")
    manifest.write(export / "mteb", {name: body[name] for name in body if name not in ("files", "version")})
    with Ledger(export.parents[2] / "home" / "ledger.db") as ledger:
        [found] = verify(export / "mteb", ledger)
    return found.differences


def test_a_kind_of_a_stranger_goes_all_the_way(export: Path) -> None:
    card = (export / "mteb" / "README.md").read_text()
    assert "[fever](fever/README.md) | [fever](#fever), Classification | `f1`" in card
    assert said(export) == []
    assert evaluate(export / "mteb" / "fever")["f1"] > 0.9
    [path] = (export / "mteb" / "fever").glob("texts-train-*.parquet")
    pl.read_parquet(path).with_columns(label=1 - pl.col("label")).write_parquet(path)
    assert any(line.startswith("fever: 24 labels are not what the texts say") for line in said(export))


def test_a_stranger_s_kind_is_on_card_and_page(export: Path) -> None:
    card = (export / "mteb" / "README.md").read_text()
    assert "| planned | 50 |\n| built | 48 |\n| dropped: no fever | 2 |" in card
    assert "| writer | nobody |" in card
    assert "Nobody has checked these items." in card
    pages = of(export.parent, "report").split("<main ")
    assert len(pages) == 3, "in both languages"
    for page, none in zip(pages[1:], (strings("zh")["checked"]["none"], strings("en")["checked"]["none"]), strict=True):
        section = page.partition('<details id="fever">')[2].partition("</details>")[0]
        read = Read(section)
        assert read.row("yes") == ["24"]
        assert [row[1] for row in read.rows[-3:]] == ["50", "48", "2"]
        assert none in section
    assert "<summary><h2>Fever</h2></summary>" in pages[1]
    assert any(row[:2] == ["fever", "texts"] and row[2:] == ["50", "48", "2"] for row in Read(pages[2]).rows)
    assert ["fever", "texts", "speaks of no fever", "2"] in Read(pages[2]).rows


def test_people_check_a_stranger_s_kind(export: Path) -> None:
    run = export.parent
    order = ["--of", "fever", "--size", "20", "--assessors", "wang,li", "--overlap", "1", "--run", str(run)]
    done = CliRunner().invoke(app, ["review", "export", *order])
    assert done.exit_code == 0, done.output
    desk = Desk(Sample.load(run / "reviews" / "fever"))
    assert {len(row.texts) for row in desk.rows("wang")} == {1}
    for person in desk.assessors:
        desk.record(person, [Answer(row.row_id, "yes" if "热" in row.texts[0] else "no") for row in desk.rows(person)])
    found = machine.data(CliRunner().invoke(app, ["review", "report", "--run", str(run), "--json"]).stdout)
    assert (found["of"], found["read"], found["precision"]["value"]) == ("fever", 20, 1.0)
    assert found["kappa"]["people"]["wang, li"]["grades"]["value"] == 1.0
    assert relevance_desks(run) == []
    Run(run, Pipeline.load(run / "pipeline.yaml")).execute(["export"])
    card = (export / "mteb" / "README.md").read_text()
    assert "| sample fever: published labels that people confirm (precision) | 1.000 (" in card
    assert "wang" not in card
    read = Read(of(run, "report").partition('<details id="fever">')[2].partition("</details>")[0])
    assert read.row(strings("zh")["checked"]["precision"])[0] == "20"
    assert read.row(strings("zh")["checked"]["people"])[0] == "20"


def test_a_further_kind_touches_four_files_of_ours() -> None:
    """Of sts, which is made like any other: rows in tables, and nothing that asks for its name."""
    own = ("commands/sts/", "tables/kinds/sts.py")
    naming = {
        place
        for path in sorted((ROOT / "curate").rglob("*.py"))
        if not (place := path.relative_to(ROOT / "curate").as_posix()).startswith(own)
        if '"sts"' in (code := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and node.value == "sts"
    }
    tables = "core/records.py"  # the columns of its tables
    assert naming | {tables} == {"tables/kinds/__init__.py", "pipeline/stages.py", "api/run_view.py", tables}
    templates = [path for path in (ROOT / "curate").rglob("*.j2") if "sts" not in path.name]
    assert not [path.name for path in templates if re.search(r"\bsts\b", path.read_text(encoding="utf-8"))]


def test_the_page_on_extending_names_the_kind_that_is_tested() -> None:
    page = (ROOT / "docs" / "integrate.md").read_text(encoding="utf-8")
    [name] = re.findall(r"`(tests/support/\w+\.py)`", page)
    assert (ROOT / name).is_file()


def again(export: Path, **shortcuts: Json) -> dict[str, Any]:
    """Export again with these settings of `export.shortcuts`, and return what the stage reported."""
    path = export.parent / "pipeline.yaml"
    body = {**parse_yaml(path.read_text(encoding="utf-8")), "export": {"small": True, "shortcuts": shortcuts}}
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    Run(export.parent, Pipeline.load(path)).execute(["export"], force=True)
    found: dict[str, Any] = read_json(export / "stage.json")["report"]
    return found


def test_a_shortcut_that_solves_a_stranger_s_kind_is_told_and_strict_stops(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr("curate.commands.export.shortcuts.installed", lambda _: False)
        [unknown] = [each for each in again(export)["notes"] if "shortcuts" in each]
        assert "fever not checked, for the run pools with no encoder of its own; pip install" in unknown
        with pytest.raises(DataError, match="not checked"):
            again(export, strict=True)
    report = again(export)
    tried = report["facts"]["shortcuts"]["fever"]
    assert (tried["shortcuts"]["keyword"], tried["floor"]) == (1, pytest.approx(1 / 3, abs=1e-6))
    assert tried["models"].keys() == {"use"}
    [note] = [each for each in report["notes"] if "shortcuts: fever" in each]
    assert note.startswith("WARNING: shortcuts: fever: keyword takes 1.")
    assert not any("keyword takes" in each for each in again(export, models=["use"], limit=2)["notes"])
    assert any("has 24 texts" in each for each in again(export, models=["use"], texts=10)["notes"])
    with pytest.raises(DataError, match=r"keyword takes 1.*more than 0\.9"):
        again(export, models=["use"], strict=True)


def test_a_stranger_s_kind_that_must_not_be_exported_is_refused(export: Path) -> None:
    path = export.parent / "fever" / "fevers.parquet"
    pl.read_parquet(path).with_columns(text=pl.lit(" ")).write_parquet(path)
    run = Run(export.parent, Pipeline.load(export.parent / "pipeline.yaml"))
    with pytest.raises(Exception, match="fevers: 48 rows have an empty text"):
        run.execute(["export"], force=True)


def test_every_kind_answers() -> None:
    labelled = [f"{name}{end}" for name in LABELLED for end in ("", "-confirmed")]
    assert [each.name for each in kinds()] == ["retrieval", "graded", "reranking", "sts", *labelled, *PAIRED]
    for each in kinds():
        assert kind(each.name) is each
        assert set(each.items) | {each.default} <= set(each.configs)
    assert Fever().present.__doc__
