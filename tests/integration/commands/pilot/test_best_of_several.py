"""What a pilot recommends: the cheapest rule near the best one of several judges, and one judge alone only near it."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests.support.controlled import DOCUMENTS, PAIRS, QUERIES
from tests.support.pools import grades_file
from tests.support.runs import ran

WRONG = {
    "perfect": (),
    "good": (0, 50),
    "alike": (3, 53),
    "first": tuple(range(0, 100, 5)),
    "second": tuple(range(1, 100, 5)),
    "third": tuple(range(2, 100, 5)),
    "poor": tuple(range(0, 100, 3)),
    "like-poor": (*range(0, 100, 3), 1),
}
"""Of a hundred pairs those that a judge gets wrong."""


def graded(pair: tuple[str, str], judge: str) -> str:
    true = DOCUMENTS[pair[1]][-1]
    place = PAIRS.index(pair)
    if (place // 10 * 7 + place) % 100 not in WRONG[judge]:
        return true
    return "D" if true in "SA" else "S"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pool of which people, who are right, read 200 pairs, and judges that replay."""
    folder = tmp_path_factory.mktemp("pilot")
    (folder / "data").mkdir()
    for name, texts in (("queries", QUERIES), ("corpus", DOCUMENTS)):
        rows = [json.dumps({"_id": key, "title": "", "text": text}, ensure_ascii=False) for key, text in texts.items()]
        (folder / "data" / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    ranks = "".join(f"{query} Q0 {doc} 1 {20 - int(doc[-1])} r\n" for query, doc in PAIRS)
    (folder / "ranked.trec").write_text(ranks, encoding="utf-8")
    for name in WRONG:
        grades_file(folder / f"{name}.tsv", [(*pair, graded(pair, name)) for pair in PAIRS])
    settings: dict[str, Any] = {
        "version": 1,
        "name": "t",
        "language": "zh",
        "ingest": {"source": "data"},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"ranked": {"kind": "runfile", "path": "ranked.trec"}},
        "pool": {"retrievers": ["ranked"], "depth": 10, "size": 10},
        "judges": {name: {"kind": "replay", "path": f"{name}.tsv"} for name in WRONG},
        "judge": {"models": ["good", "first"]},
        "export": {"small": True, "rerank": {"negatives": 1}},
    }
    (folder / "t.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    for stage in ("ingest", "mask", "diversify", "pool"):
        ran(folder, stage, "--pipeline", "t.yaml")
    drawn = ("pilot", "export", "--pipeline", "t.yaml", "--assessors", "ann,ben", "--size", "200", "--json")
    sheets = [folder / each for each in json.loads(ran(folder, *drawn).stdout)["data"]["files"][:2]]
    survey = pl.read_parquet(folder / "runs/t/reviews/pilot/survey.parquet")
    ids = dict(survey.select("row_id", "ids").iter_rows())
    for sheet in sheets:
        lines: list[list[str]] = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))
        at = lines[0].index("等级")
        for line in lines[1:]:
            line[at] = DOCUMENTS[ids[line[0]][1]][-1]
        with sheet.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(lines)
    ran(folder, "review", "import", *map(str, sheets), "--run", "runs/t", "--sample", "pilot")
    return folder


def report(folder: Path, judges: str, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what is reported, and its rules of several judges."""
    told = ran(folder, "pilot", "report", "--pipeline", "t.yaml", "--models", judges, *words, "--json").stdout
    found = json.loads(told)["data"]
    return found, [each for each in found["rules"] if len(each["judges"]) > 1]


def test_near_the_best_rule_of_several_is_what_counts_where_one_judge_is_better(folder: Path) -> None:
    """One judge who is far better than every panel does not hide the cheapest panel near the best (today too)."""
    found, several = report(folder, "perfect,poor,like-poor")
    best = max(each["kappa"] for each in several)
    assert max(each["kappa"] for each in found["rules"]) > best + 0.05, "one judge alone is best"
    near = [each for each in several if each["kappa"] >= best - 0.05]
    assert found["proposal"] is not None
    assert found["proposal"]["kappa"] >= best - 0.05
    assert found["proposal"]["calls"] == min(each["calls"] for each in near)
    assert len(found["settings"]["judge.models"]) > 1


def test_two_judges_near_the_best_three_are_cheaper(folder: Path) -> None:
    """Of rules of several judges within .05 of their best one of the fewest calls is proposed (today too)."""
    found, several = report(folder, "good,alike,poor")
    best = max(each["kappa"] for each in several)
    assert found["proposal"]["kappa"] >= best - 0.05
    assert found["proposal"]["calls"] == 2


def test_three_judges_are_proposed_where_no_two_are_near(folder: Path) -> None:
    """A cheaper rule that is further than .05 from the best one is not proposed (today too)."""
    found, several = report(folder, "first,second,third")
    best = max(each["kappa"] for each in several)
    assert max(each["kappa"] for each in several if each["calls"] == 2) < best - 0.05
    assert found["proposal"]["calls"] == 3


def test_one_judge_is_never_proposed_where_several_are_better(folder: Path) -> None:
    """With --single too a panel that is better by more than .05 is what is proposed (today too)."""
    found, several = report(folder, "first,second,third", "--single")
    alone = max(each["kappa"] for each in found["rules"] if len(each["judges"]) == 1)
    best = max(each["kappa"] for each in several)
    assert alone < best - 0.05
    assert len(found["settings"]["judge.models"]) > 1
    assert found["proposal"]["kappa"] >= best - 0.05


def test_one_judge_may_be_proposed_near_the_best_rule_of_several(folder: Path) -> None:
    """With --single a judge within .05 of the best panel saves the calls of the others (today too)."""
    found, several = report(folder, "good,alike,perfect", "--single")
    assert len(found["settings"]["judge.models"]) == 1
    assert found["proposal"]["kappa"] >= max(each["kappa"] for each in several) - 0.05


def test_the_report_says_what_it_recommends(folder: Path) -> None:
    """A reader is told that the proposal is near the best rule of several judges."""
    told = ran(folder, "pilot", "report", "--pipeline", "t.yaml", "--models", "good,alike,poor").stdout
    assert re.search(r"cheapest within 0?\.05 of the best rule of several judges", " ".join(told.split()))
