"""Figures of a sample on any scale: the five grades under other names, distances by the gains, none without a cut."""

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.scale import FIVE, Scale
from curate.review import Answer, Desk, Sample
from curate.review.drawing import SampleOptions, draw, known
from curate.review.proof import prove
from curate.review.sample import Stratum
from curate.review.showing import lines
from curate.system.files import read_table, write_scale, write_table
from tests.support.judged import judged
from tests.support.reviewing import TEXTS, sample

WORDS = Scale(("完全, 相关", "yes", "1.5", "top 50", "D"), "yes", FIVE.gains)
UNEVEN = Scale(FIVE.labels, "A", (10, 6, 3, 1, 0))
CLASSES = Scale(("heart", "lung", "none"), order="nominal", none="none")
PEOPLE = ("wang", "li")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[tuple[str, str], str]]:
    """Return a judged run on the five grades, and what a person finds."""
    run = tmp_path_factory.mktemp("scales") / "run"
    return run, {(query, doc): grade for query, doc, grade in judged(run, queries=20, depth=60).iter_rows()}


def on(run: Path, scale: Scale, folder: Path) -> Path:
    """Return a copy of a run whose grades are called by the labels of another scale of five."""
    copy = Path(shutil.copytree(run, folder / "copy"))
    names = dict(zip(FIVE.labels, scale.labels, strict=True))
    verdicts = read_table(copy / "consensus", "verdicts").to_dicts()
    for row in verdicts:
        row["votes"] = [{**vote, "grade": names.get(vote["grade"])} for vote in row["votes"]]
    write_table(
        copy / "consensus", "verdicts", pl.DataFrame(verdicts, schema=read_table(run / "consensus", "verdicts").schema)
    )
    (copy / "judge").mkdir()
    write_scale(copy / "judge", scale, {"en": dict.fromkeys(scale.labels, "meaning")})
    return copy


def read_by_two(drawn: Sample, truth: Mapping[tuple[str, str], str]) -> Desk:
    """Have two people read a sample who err on a fifth of the rows, each by chance of their own."""
    desk, labels = Desk(drawn), drawn.scale.labels
    ids = dict(drawn.survey.select("row_id", "ids").iter_rows())
    for person in PEOPLE:
        chance = random.Random(person)
        said = []
        for row in desk.rows(person):
            place = FIVE.place(truth.get(tuple(ids[row.row_id]), "D"))
            said.append(chance.randrange(5) if chance.random() < 0.2 else place)
        desk.record(person, [Answer(row.row_id, labels[at]) for row, at in zip(desk.rows(person), said, strict=True)])
    return desk


def figures(run: Path, truth: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    drawn = draw(run, SampleOptions("both", size=200, assessors=PEOPLE, overlap=0.5, controls=10))
    return prove(read_by_two(drawn, truth)).to_json()


@pytest.mark.slow
def test_labels_change_no_figure(pool: tuple[Path, Mapping[tuple[str, str], str]], tmp_path: Path) -> None:
    run, truth = pool
    found = [figures(folder, truth) for folder in (on(run, FIVE, tmp_path / "a"), on(run, WORDS, tmp_path / "b"))]
    assert [tuple(each.pop("scale")["labels"]) for each in found] == [FIVE.labels, WORDS.labels]
    assert found[0]["kappa"]["people"]["wang, li"]["grades"]["value"] < 0.9
    assert found[0] == found[1]


def test_two_people_are_as_far_apart_as_the_gains_say(
    pool: tuple[Path, Mapping[tuple[str, str], str]], tmp_path: Path
) -> None:
    run, truth = pool
    drawn = draw(on(run, UNEVEN, tmp_path), SampleOptions("both", size=200, assessors=PEOPLE, overlap=1, controls=0))
    desk = read_by_two(drawn, truth)
    table = np.zeros((5, 5))
    for row_id in drawn.rows:
        one, other = (UNEVEN.place(str(desk.said(person)[row_id].answer)) for person in PEOPLE)
        table[one, other] += 1
    cost = np.subtract.outer(UNEVEN.gains, UNEVEN.gains) ** 2
    by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    kappa: Any = prove(desk).to_json()["kappa"]
    assert kappa["people"]["wang, li"]["grades"]["value"] == pytest.approx(
        1 - (table * cost).sum() / (by_chance * cost).sum(), abs=1e-4
    )


def test_without_a_cut_there_is_no_figure_that_needs_one(tmp_path: Path) -> None:
    drawn = sample(tmp_path / "classes", TEXTS, PEOPLE, "en", CLASSES, {"en": dict.fromkeys(CLASSES.labels, "class")})
    planted = pl.Series([*["heart"] * 2, *[None] * (len(TEXTS) - 2)], dtype=pl.String)
    design = replace(drawn.design, strata=[Stratum("all", 2 * len(TEXTS), len(TEXTS) - 2)])
    desk = Desk(Sample(drawn.folder, design, drawn.survey.with_columns(expected=planted)))
    rows = list(drawn.rows)
    for person, shift in zip(PEOPLE, (0, 1), strict=True):
        given = [CLASSES.labels[(at + (at > 4) * shift) % 3] for at in range(len(rows))]
        desk.record(person, [Answer(row_id, label) for row_id, label in zip(rows, given, strict=True)])
    found: dict[str, Any] = prove(desk).to_json()
    assert [found[name] for name in ("agreement", "recall", "plain")] == [None] * 3
    assert {*found["confirmed"].values(), *found["relevant"].values()} == {None}
    assert found["kappa"]["panel"] is None
    assert found["kappa"]["people"]["wang, li"]["cut"] is None
    same = sum(at <= 4 for at in range(2, len(rows)))
    assert found["disagreements_between_people"] == len(rows) - 2 - same
    assert -1 < found["kappa"]["people"]["wang, li"]["grades"]["value"] < 1
    assert found["alpha"]["value"] < 1
    assert found["people"]["wang"]["controls"]["value"] == 0.5
    shown = {row["figure"]: row["value"] for row in lines(found)}
    assert shown["alpha of all people, grades, nominal"] == found["alpha"]["value"]
    assert shown["agreement with the panel, of all decided pairs"] is None


def test_no_sample_is_drawn_of_labels_without_a_cut(
    pool: tuple[Path, Mapping[tuple[str, str], str]], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(pool[0], tmp_path / "copy"))
    (copy / "judge").mkdir()
    write_scale(copy / "judge", CLASSES, {})
    with pytest.raises(ConfigError, match="nominal, but a sample goes by labels that are relevant or not"):
        draw(copy, SampleOptions(size=50))
    assert not (copy / "reviews").exists()


def test_known_grades_are_read_like_typed_ones(tmp_path: Path) -> None:
    scale = Scale(("3", "yes", "0"), "3", (2, 1, 0))
    file = tmp_path / "known.csv"
    file.write_text("query_id,doc_id,grade\nq1,d1,３\nq1,d2, YES\n", encoding="utf-8")
    assert known(file, scale)["expected"].to_list() == ["3", "yes"]
    file.write_text("query_id,doc_id,grade\nq1,d1,\nq1,d2,S\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: found the grade None, expected one of 3, yes, 0"):
        known(file, scale)


@pytest.mark.parametrize(
    ("language", "meanings", "shown"),
    [
        ("zh", {"zh": "甲", "en": "a"}, "甲"),
        ("zh-CN", {"zh": "甲", "en": "a"}, "甲"),
        ("fr", {"zh": "甲", "en": "a"}, "a"),
        ("fr", {"fr": "le", "en": "a"}, "le"),
        ("en", {"zh": "甲", "de": "ein"}, "ein"),
    ],
)
def test_meanings_are_in_the_language_of_the_sample_if_there_are_any(
    tmp_path: Path, language: str, meanings: dict[str, str], shown: str
) -> None:
    said = {each: {label: f"{text} {label}" for label in UNEVEN.labels} for each, text in meanings.items()}
    drawn = sample(tmp_path / "page", TEXTS[:2], ("anna",), language, UNEVEN, said)
    assert list(drawn.meanings.items()) == [(label, f"{shown} {label}") for label in UNEVEN.labels]
    assert drawn.form.meanings == drawn.meanings


def test_a_sample_keeps_its_scale_whatever_the_run_is_judged_on_now(
    pool: tuple[Path, Mapping[tuple[str, str], str]], tmp_path: Path
) -> None:
    from curate.review.desk import settled

    copy = on(pool[0], WORDS, tmp_path)
    drawn = draw(copy, SampleOptions("kept", size=50, controls=0))
    row = drawn.of("assessor")[0]
    Desk(drawn).record("assessor", [Answer(row.row_id, "yes")])
    assert settled(copy)["grade"].to_list() == ["yes"]
    write_scale(copy / "judge", UNEVEN, {})
    again = Sample.load(drawn.folder)
    assert again.scale == WORDS
    assert again.form.answers == WORDS.labels
    assert settled(copy).is_empty(), "grades of two scales are never mixed"
    old: dict[str, Json] = json.loads((drawn.folder / "design.json").read_text(encoding="utf-8"))
    del old["scale"], old["meanings"]
    (drawn.folder / "design.json").write_text(json.dumps(old), encoding="utf-8")
    assert Sample.load(drawn.folder).scale == FIVE, "as samples of 0.1 are"
