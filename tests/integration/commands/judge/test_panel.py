"""Real grades of three assessors, replayed through the whole pipeline, give the figures published for them."""

import csv
import json
from pathlib import Path

import pytest

from tests.support.pools import said
from tests.support.runs import curate

ASSESSORS = {"first": "assessor-1", "second": "assessor-2", "third": "assessor-3"}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    panel: Path = request.getfixturevalue("shared_data") / "panel"
    folder = tmp_path_factory.mktemp("panel")
    with (panel / "ratings.tsv").open(encoding="utf-8", newline="") as stream:
        pairs = sorted({(row["query_id"], row["doc_id"]) for row in csv.DictReader(stream, delimiter="\t")})
    run = "".join(f"{query_id} Q0 {doc_id} 1 1 rated\n" for query_id, doc_id in pairs)
    (folder / "rated.trec").write_text(run, encoding="utf-8")
    assign = [f"judges.{name}.path={panel / 'ratings.tsv'}" for name in ASSESSORS]
    assign.append(f"ingest.source={panel}")
    words = [word for assignment in assign for word in ("--set", assignment)]
    result = curate(folder, "run", "replay", *words)
    assert result.returncode == 0, result.stderr
    return folder / "runs" / "replay"


def test_every_grade_goes_through_the_ledger_unchanged(replayed: Path, shared_data: Path) -> None:
    report = json.loads((replayed / "judge" / "stage.json").read_text("utf-8"))["report"]
    assert (report["rows_in"], report["rows_out"], report["unfinished"]) == (1800, 1800, "")
    with (shared_data / "panel" / "ratings.tsv").open(encoding="utf-8") as stream:
        rows = csv.DictReader(stream, delimiter="\t")
        recorded = {(row["query_id"], row["doc_id"], row["assessor"]): row["grade"] for row in rows}
    kept = {(*pair, name): grade for judge, name in ASSESSORS.items() for pair, grade in said(replayed, judge).items()}
    assert kept == recorded


def test_the_figures_are_the_published_ones(replayed: Path) -> None:
    figures = json.loads((replayed / "consensus" / "agreement.json").read_text("utf-8"))
    five, cut, counts = figures["all_grades"], figures["cut"], figures["counts"]
    assert (round(five["fleiss"], 3), round(cut["fleiss"], 3)) == (0.828, 0.886)
    assert (cut["items"], cut["unanimous"] / 600) == (600, pytest.approx(0.945, abs=5e-4))
    verdicts = ("relevant", "not relevant", "contested", "incomplete")
    assert [counts[f"{verdict}_per_query"] for verdict in verdicts] == [3.5333, 15.3667, 1.1, 0.0]
    assert counts["queries"] - counts["queries_with_a_positive"] == 4


def test_the_export_holds_what_was_agreed(replayed: Path) -> None:
    qrels = (replayed / "export" / "beir" / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]
    assert len(qrels) == 106
    assert len({line.split("\t")[0] for line in qrels}) == 26
