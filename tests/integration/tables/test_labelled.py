"""Labelled texts in mteb's layout: stock mteb loads and scores them offline, with all labels and the confirmed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.tables.exporters.mteb_tasks import load
from curate.tables.kinds import kind
from tests.integration.commands.label.test_label import WORDS, honest, texts
from tests.integration.tables.test_exporters import evaluate
from tests.support.runs import ran, tiny
from tests.vendor import vendor

KINDS = ("classification", "classification-confirmed", "clustering", "clustering-confirmed")


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return an export of queries with labels, of which a panel does not confirm a few."""
    folder = tmp_path_factory.mktemp("labelled")
    tiny(folder)
    given = [(name, text, "骨科" if name in ("a00", "b03") else own) for name, text, own, _ in texts()]
    queries = (folder / "data" / "queries.jsonl").read_text(encoding="utf-8")
    more = "".join(json.dumps({"_id": name, "text": text, "ward": own}) + "\n" for name, text, own in given)
    (folder / "data" / "queries.jsonl").write_text(queries + more, encoding="utf-8")
    with vendor(lambda _query, _text: "S", honest) as server:
        words = [
            "stages=[ingest, mask, diversify, pool, judge, consensus, resolve, label, export]",
            "ingest.labels={columns: {label: ward}}",
            "label={panel: [a, b], near: 0.95}",
            *(f"judges.{name}={{kind: openai, model: {name}-1, base_url: '{server.url}'}}" for name in "ab"),
        ]
        ran(folder, "run", "tiny.yaml", "--yes", *[word for each in words for word in ("--set", each)])
        yield folder / "runs" / "tiny" / "export" / "mteb"


@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_stock_mteb_loads_and_scores_every_task(export: Path) -> None:
    tasks: dict[str, Any] = {each.metadata.name.removeprefix("tiny-"): each for each in load(export)}
    assert set(KINDS) <= set(tasks)
    given, confirmed = tasks["clustering"], tasks["clustering-confirmed"]
    assert (given.max_fraction_of_documents_to_embed, given.max_document_to_embed) == (None, 2048)
    assert (given.max_documents_per_cluster, confirmed.max_documents_per_cluster) == (54, 52)
    assert tasks["classification"].samples_per_label == 8
    for name in (KINDS[0], KINDS[3]):
        scores = evaluate(export / name)
        assert scores[kind(name).mteb.main_score] > 0.4, name


def test_confirmed_labels_stand_apart_under_the_same_numbers(export: Path) -> None:
    both = [kind(name).read(_tables(export / name)) for name in KINDS[:2]]
    given, confirmed = both
    assert (given.height, confirmed.height) == (54, 52)
    assert set(given["item_id"]) - set(confirmed["item_id"]) == {"a00", "b03"}
    assert given.filter(pl.col("verdict") == "confirmed").equals(confirmed)
    assert dict(given.select("label", "label_id").iter_rows()) == {name: at for at, name in enumerate(sorted(WORDS))}
    card = (export / "classification-confirmed" / "README.md").read_text(encoding="utf-8")
    assert "'0': 心血管科" in card
    assert "labels: confirmed" in card
    assert kind("clustering").read(_tables(export / "clustering")).equals(given)


def _tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {path.stem.rpartition("-")[0]: pl.read_parquet(path) for path in folder.glob("*.parquet")}


def test_people_choose_from_all_classes(export: Path) -> None:
    table = kind("classification").read(_tables(export / "classification"))
    items = kind("classification").to_review(table)
    assert items is not None
    assert items.answers == (*sorted(WORDS), "none", "several")
    assert set(items.rows["label"]) <= set(items.answers)
    assert kind("classification-confirmed").to_review(table) is None
