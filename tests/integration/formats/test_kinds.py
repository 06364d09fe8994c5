"""A kind is a value: one that nobody here knows goes from its table through export and verify to stock mteb."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from curate.core.config import Json, parse_yaml
from curate.core.errors import DataError
from curate.formats import kinds as registry
from curate.formats.exporters import manifest
from curate.formats.kinds import KINDS, kind, kinds
from curate.ledger import Ledger
from curate.runs.pipeline import Pipeline
from curate.runs.run import Run
from curate.system.files import read_json, write_json
from curate.verify.verify import verify
from tests.integration.formats.test_exporters import evaluate
from tests.support.runs import ran, tiny
from tests.support.toy_kind import Fever

TEXTS = {
    f"{split}-{number}": ("热" if number % 2 else "咳") * 9 + "痛疹药"[number % 3] * (number // 2)
    for split in ("train", "test")
    for number in range(24)
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the toy kind, as an entry point would."""
    monkeypatch.setitem(KINDS.builtin, "fever", "tests.support.toy_kind:Fever")
    registry.kind.cache_clear()
    yield
    registry.kind.cache_clear()


@pytest.fixture
def export(known: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the export of a small run in which a stage has made the toy's table."""
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATE_HOME", str(tmp_path / "home"))
    run = tmp_path / "runs" / "tiny"
    (run / "fever").mkdir()
    rows = [
        {"id": key, "text": text, "label": int("热" in text), "split": key.partition("-")[0]}
        for key, text in TEXTS.items()
    ]
    pl.DataFrame(rows).write_parquet(run / "fever" / "fevers.parquet")
    report: dict[str, Json] = {"rows_in": 48, "rows_out": 48}
    write_json(run / "fever" / "stage.json", {"report": report})
    Run(run, Pipeline.load(run / "pipeline.yaml")).execute(["export"], force=True)
    return run / "export"


def said(export: Path) -> list[str]:
    """Return what `verify` says of the format mteb, whose hashes are forged first."""
    body = manifest.read(export / "mteb")
    manifest.write(export / "mteb", {name: body[name] for name in body if name not in ("files", "version")})
    with Ledger(export.parents[2] / "home" / "ledger.db") as ledger:
        [found] = verify(export / "mteb", ledger)
    return found.differences


def test_a_kind_of_a_stranger_goes_all_the_way(export: Path) -> None:
    assert "[fever](fever/README.md) | Classification | `f1`" in (export / "mteb" / "README.md").read_text()
    card = (export / "mteb" / "fever" / "README.md").read_text()
    assert "from mteb.abstasks.classification import AbsTaskClassification" in card
    assert said(export) == []
    assert evaluate(export / "mteb" / "fever")["f1"] > 0.9
    [path] = (export / "mteb" / "fever").glob("texts-train-*.parquet")
    pl.read_parquet(path).with_columns(label=1 - pl.col("label")).write_parquet(path)
    assert any(line.startswith("fever: 24 labels are not what the texts say") for line in said(export))


def again(export: Path, **shortcuts: Json) -> dict[str, Any]:
    """Export again with these settings of `export.shortcuts`, and return what the stage reported."""
    path = export.parent / "pipeline.yaml"
    body = {**parse_yaml(path.read_text(encoding="utf-8")), "export": {"shortcuts": shortcuts}}
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    Run(export.parent, Pipeline.load(path)).execute(["export"], force=True)
    found: dict[str, Any] = read_json(export / "stage.json")["report"]
    return found


def test_a_shortcut_that_solves_a_stranger_s_kind_is_told_and_strict_stops(export: Path) -> None:
    [unknown] = [each for each in read_json(export / "stage.json")["report"]["notes"] if "shortcuts" in each]
    assert "not checked, for the run pools with no encoder" in unknown
    report = again(export, models=["use"])
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
    assert [each.name for each in kinds()] == ["retrieval", "graded", "reranking", "sts"]
    for each in kinds():
        assert kind(each.name) is each
        assert set(each.items) | {each.default} <= set(each.configs)
    assert Fever().present.__doc__
