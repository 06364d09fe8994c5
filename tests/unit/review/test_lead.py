"""What page and card begin with: figures of the right sample, scores to read, and lines in both languages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.core.scale import FIVE
from curate.panel.judge_dependence import Dependence
from curate.review import Answer, Desk
from curate.review.drawing import SampleOptions, draw
from curate.review.lead import lead, main_sample, recommendation
from curate.view.charts import fitted
from curate.view.run_figures import lead_rows
from curate.view.words import strings
from tests.support.judged import judged
from tests.support.records import partly

COMMON = partly(Dependence, not_measured="people")
FAVOUR = {"family": "gpt", "ranks": 2, "queries": 30, "replaced_by": None}
WARNED = {**FAVOUR, "judge": "two", "effect": {"value": 0.125, "low": 0.0611, "high": 0.302}, "warned": True}
QUIET = {**FAVOUR, "judge": "one", "effect": {"value": 0.014, "low": -0.01, "high": 0.06}, "warned": False}


def found(run: Path, circular: Mapping[str, Any] | None = None, **counts: int) -> dict[str, Any]:
    verdicts = pl.read_parquet(run / "consensus" / "verdicts.parquet")["verdict"]
    known = dict(verdicts.value_counts().iter_rows()) | {"queries": 40, **counts}
    return lead(run, {"policy": "unanimous", "counts": known}, COMMON, circular, FIVE)


def said(figures: Mapping[str, Any], language: str = "en") -> dict[str, str]:
    rows = lead_rows(figures, fitted(strings(language), FIVE))
    return {row.title: "; ".join(row.lines) for row in rows}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose sample of all pairs one person read without a fault, and another sample that nobody read."""
    folder = tmp_path_factory.mktemp("lead") / "run"
    names = judged(folder, 40, 40)
    truth = {(query, doc): grade for query, doc, grade in names.iter_rows()}
    desk = Desk(draw(folder, SampleOptions("whole", size=400, controls=0)))
    rows = desk.sample.survey.select("row_id", "ids").iter_rows()
    desk.record("assessor", [Answer(row_id, truth[ids[0], ids[1]]) for row_id, ids in rows])
    draw(folder, SampleOptions("later", size=200, controls=0))
    return folder


@pytest.mark.slow
def test_figures_are_of_the_sample_that_was_read_and_of_all_pairs(run: Path) -> None:
    figures = found(run)
    assert (figures["sample"], figures["read"], figures["judged"]) == ("whole", 400, 1600)
    assert figures["contested"] == found(run)["contested"] > 0
    names = ("kappa", "precision", "recall", "negative_precision", "negative_recall", "relevant", "held")
    assert all(0 < figures[name]["value"] <= 1 for name in names)
    assert found(run, contested=figures["contested"] + 1)["sample"] is None, "a sample of other pairs proves nothing"


def test_orders_go_by_the_median_unless_a_cascade_left_out_votes(run: Path) -> None:
    assert found(run)["orders"] == "median"
    spared = found(run, None, **{"not positive": 3})
    assert (spared["orders"], spared["levels"]) == ("condensed", "none")


def test_lines_say_what_was_measured_and_what_was_not(run: Path) -> None:
    whole, bare = said(found(run)), said({**found(run), "sample": None, "effective": None})
    assert "sample whole, 400 pairs read" in whole["κ of panel and people, at the cut"]
    assert "people with each other: not measured" in whole["κ of panel and people, at the cut"]
    assert "positives: precision 0." in whole["What unanimity costs here"]
    assert bare["κ of panel and people, at the cut"].startswith("not measured: nobody has read")
    assert bare["What unanimity costs here"].endswith("precision and recall: not measured")
    assert "{" not in str([*said(found(run), "zh").items(), *whole.items(), *bare.items()])


@pytest.mark.parametrize(
    ("judges", "line"),
    [
        ([QUIET, WARNED], "warning: two +0.125 (0.06–0.30) nDCG@10"),
        ([QUIET], "none is warned of; the largest gain is one +0.014 (-0.01 – 0.06) nDCG@10"),
        ([], "no query can be scored"),
    ],
)
def test_circularity_is_told_by_the_judges_that_are_warned_of(run: Path, judges: list[Any], line: str) -> None:
    assert said(found(run, {"judges": judges}))["Judges that judge themselves"].startswith(line)


def test_the_recommendation_is_of_published_labels_where_they_differ(run: Path) -> None:
    most_read = main_sample(run, 1600)
    assert most_read is not None
    review, proof = most_read
    assert review.sample.design.name == "whole"
    of_panel = recommendation(proof, None, 0)
    assert of_panel.labels == "panel"
    assert "of the panel's positives" in of_panel.sentence
    better = {"value": 0.97, "low": 0.93, "high": 0.99}
    of_published = recommendation(proof, {"confirmed": {"relevant": better}}, 0)
    assert (of_published.labels, of_published.obstacle) == ("published", "twice")
    assert "97 % (93–99) of the published positives" in of_published.sentence
    unknown = recommendation(proof, {"confirmed": {"relevant": None}}, 0)
    assert unknown == of_panel, "labels of other answers say nothing"
