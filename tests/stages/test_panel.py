"""Real grades of three assessors, replayed through the whole pipeline, give the figures published for them."""

import csv
import json
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def agreed(replayed: Path) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = json.loads((replayed / "consensus" / "agreement.json").read_text("utf-8"))
    return figures


def test_all_600_pairs_are_rated_by_all_three(replayed: Path) -> None:
    report = json.loads((replayed / "judge" / "stage.json").read_text("utf-8"))["report"]
    assert report["rows_in"] == report["rows_out"] == 1800


def test_kappa(agreed: dict[str, dict[str, float]]) -> None:
    assert round(agreed["five_grades"]["fleiss"], 3) == 0.828
    assert round(agreed["cut"]["fleiss"], 3) == 0.886


def test_verdicts_a_query(agreed: dict[str, dict[str, float]]) -> None:
    counts = agreed["counts"]
    assert round(counts["relevant_per_query"], 2) == 3.53
    assert round(counts["not relevant_per_query"], 2) == 15.37
    assert round(counts["contested_per_query"], 2) == 1.10
    assert counts["incomplete"] == 0
    assert counts["queries"] - counts["queries_with_a_positive"] == 4


def test_the_export_holds_what_was_agreed(replayed: Path) -> None:
    qrels = (replayed / "export" / "beir" / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]
    assert len(qrels) == 106
    assert len({line.split("\t")[0] for line in qrels}) == 26
