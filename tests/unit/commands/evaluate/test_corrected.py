"""Corrected scores of models in an evaluation: real systems, models outside the frame, missing answers, orders."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from curate.commands.evaluate import corrected, figures, page_sections
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.corrected import ScoreReview
from curate.commands.evaluate.figures import lead
from curate.commands.evaluate.scorers import RerankingScorer, RetrievalScorer
from curate.commands.evaluate.scoring import Scored
from curate.core.errors import DataError
from curate.review import Design, Desk, Sample
from curate.review.sample import Stratum
from curate.system.files import frame, write_table
from curate.tables.kinds import kind
from curate.view.record_words import RecordWords
from tests.support.assessed import Assessed


def scored(model: str, top: Mapping[str, list[str]], **values: list[float]) -> Scored:
    return Scored(model, "", "", None, 0.0, {}, None, list(top), values, [], top=list(top.values()))


def board(*models: Scored, **of_task: Any) -> Board:
    parts = dict.fromkeys(("retriever", "judge", "generator"), frozenset[str]())
    given = {
        "kind": kind("retrieval"),
        "scorer": RetrievalScorer(),
        "verdicts": {"q": {"d": "contested"}},
        "gains": {},
        "parts": parts,
    }
    return Board(cast("Any", SimpleNamespace(**{**given, **of_task})), models)


def review(
    strata: Mapping[tuple[str, str], str], answers: Mapping[tuple[str, str], int], drawn: int = 0
) -> ScoreReview:
    """Return a review in which the answered pairs were drawn, and so many more of every stratum."""
    sizes = {name: sum(each == name for each in strata.values()) for name in sorted(set(strata.values()))}
    read = {name: sum(strata[pair] == name for pair in answers) for name in sizes}
    parts = [Stratum(name, size, min(read[name] + drawn, size)) for name, size in sizes.items()]
    design = Design("scores", "relevance", "zh", 0, ("wang",), parts)
    return ScoreReview(Sample(Path(), design, frame("survey")), strata, answers)


@pytest.fixture(scope="module")
def real(shared_data: Path) -> tuple[Board, ScoreReview]:
    """Return four systems, and the review of every third pair of each stratum of their top tens."""
    slice_ = Assessed.read(shared_data)
    olz, nist = slice_.grades["Olz-gpt4o"], slice_.grades["NISTRetrieval-reason0"]
    keys = {"Olz": -olz, "NIST": -nist, "id": 0 * olz, "down": olz}
    ranks = {name: slice_.ranks(key) for name, key in keys.items()}
    ids = list(slice_.table.select("query_id", "doc_id").cast(pl.String).iter_rows())
    models = []
    for name, each in ranks.items():
        top: dict[str, list[str]] = {}
        for at in np.argsort(each, kind="stable"):
            if each[at] <= 10:
                top.setdefault(ids[at][0], []).append(ids[at][1])
        models.append(scored(name, top))
    places = np.flatnonzero(np.any([each <= 10 for each in ranks.values()], axis=0))
    strata = {ids[at]: f"{slice_.votes[at]} of 3 votes" for at in places}
    read = [at for votes in range(4) for at in places[slice_.votes[places] == votes][::3]]
    return board(*models), review(strata, {ids[at]: int(slice_.relevant[at]) for at in read})


def test_levels_and_differences_of_real_systems(real: tuple[Board, ScoreReview]) -> None:
    found: Any = corrected.levels(real[0], [real[1]])
    shown = {each.model: each.precision_at_10 for each in found.models}
    assert {name: (round(each.value, 4), round(each.half, 4)) for name, each in shown.items()} == {
        "Olz": (0.6129, 0.1336),
        "NIST": (0.4381, 0.1235),
        "id": (0.2190, 0.0911),
        "down": (0.0434, 0.0637),
    }
    pairs = [each for each in found.pairs_of_models if each.measure == "scaled_dcg_at_10"]
    first = next(each for each in pairs if {each.one, each.other} == {"Olz", "NIST"})
    assert (first.one, round(first.value, 4), round(first.half, 4)) == ("Olz", 0.2045, 0.1254)
    assert len(pairs) == 6
    assert all(each.adjusted >= each.p for each in pairs)
    assert max(pairs, key=lambda each: each.p).adjusted < 1
    assert (found.read, found.pairs) == (72, 210)
    few = list(corrected.warnings("t", found))
    assert few == ["t: fewer than 5 answers of 2 of 3 votes: the intervals of corrected scores are too narrow"]


def test_a_difference_of_which_every_pair_was_read_is_exact_and_has_no_p(
    real: tuple[Board, ScoreReview], shared_data: Path
) -> None:
    partly, slice_ = real[1], Assessed.read(shared_data)
    ids = slice_.table.select("query_id", "doc_id").cast(pl.String).iter_rows()
    truth = dict(zip(ids, slice_.relevant.tolist(), strict=True))
    found: Any = corrected.levels(real[0], [review(partly.strata, {pair: truth[pair] for pair in partly.strata})])
    assert {(each.half, each.p, each.adjusted) for each in found.pairs_of_models} == {(0.0, None, None)}
    task: Any = SimpleNamespace(verdicts=True, levels=found, undecided=0, queries=8)
    page = "".join(page_sections.levels(task, RecordWords("evaluate/evaluate")))
    assert "| Olz | NIST | 18.75 ± 0.00 |" in page
    assert page.count("| read whole |") == len(found.pairs_of_models)
    assert "0.0000" not in page
    some: Any = corrected.levels(real[0], [partly])
    assert all(each.p is not None for each in some.pairs_of_models)


def test_a_model_with_a_document_outside_the_frame_gets_no_score(real: tuple[Board, ScoreReview]) -> None:
    one = real[0].scored[0]
    strange = replace(one, model="new", top=[["nowhere", *top[1:]] for top in one.top])
    found: Any = corrected.levels(board(strange, *real[0].scored), [real[1]])
    by_name = {each.model: each for each in found.models}
    assert (by_name["new"].precision_at_10, by_name["new"].outside) == (None, 0.1)
    assert by_name["Olz"].precision_at_10 is not None
    assert not any("new" in (each.one, each.other) for each in found.pairs_of_models)
    assert any("no corrected score of new (10.0 %)" in each for each in corrected.warnings("t", found))


@pytest.mark.slow
def test_answers_that_depend_on_relevance_bias_a_score_and_are_warned_of() -> None:
    """Of 1,000 pairs, 60 % relevant, 300 are drawn; of the relevant ones half are not answered."""
    random = np.random.default_rng(11)
    pairs = [(f"q{at // 10}", f"d{at}") for at in range(1000)]
    top = {f"q{query}": [f"d{10 * query + at}" for at in range(10)] for query in range(100)}
    held = within = 0
    for _ in range(200):
        truth = random.random(1000) < 0.6
        chosen = random.choice(1000, 300, replace=False)
        kept = [at for at in chosen if not truth[at] or random.random() < 0.5]
        answers = {pairs[at]: int(truth[at]) for at in kept}
        made = review(dict.fromkeys(pairs, "1 of 3 votes"), answers, drawn=300 - len(kept))
        found: Any = corrected.levels(board(scored("m", top)), [made])
        (model,) = found.models
        score, (low, high) = model.precision_at_10, model.unanswered
        held += abs(score.value - truth.mean()) <= score.half
        within += score.value + low - score.half <= truth.mean() <= score.value + high + score.half
        assert any("are not answered: if that depends on relevance" in each for each in corrected.warnings("t", found))
    assert held < 20, "the interval alone is wrong"
    assert within >= 190, "with what the missing answers could change it is not"


def test_of_several_reviews_the_one_with_most_models_counts_and_an_unread_stratum_corrects_nothing() -> None:
    models = [scored("a", {"q": ["x", "y"]}), scored("b", {"q": ["z"]})]
    narrow = review({("q", "x"): "s", ("q", "y"): "s"}, {("q", "x"): 1, ("q", "y"): 0})
    wide = review({("q", "x"): "s", ("q", "y"): "s", ("q", "z"): "s"}, {("q", "z"): 1})
    found: Any = corrected.levels(board(*models), [narrow, wide])
    assert (found.read, found.pairs) == (1, 3)
    unread = review({("q", "x"): "s", ("q", "y"): "other"}, {("q", "x"): 1})
    assert corrected.levels(board(*models), [unread]) is None
    assert list(corrected.unread([unread, wide])) == [
        "sample scores: no answer of other, so no score is corrected; have some read"
    ]
    assert corrected.levels(board(*models, scorer=RerankingScorer()), [wide]) is None


def test_a_frame_that_is_not_the_drawn_one_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path, "frame", frame("frame", [{"query_id": "q", "doc_id": "d", "stratum": "s"}]))
    facts = {"of": "scores", "frame": {"digest": "another"}}
    design = Design("scores", "relevance", "zh", 0, ("wang",), [], facts=facts)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="found other pairs than the sample was drawn from"):
        ScoreReview.read(Desk(Sample(tmp_path, design, frame("survey"))))


@pytest.mark.parametrize(
    ("readings", "role", "expected"),
    [
        (("stock", "condensed", "optimistic", "median"), "judge", "median"),
        (("stock", "condensed", "optimistic"), None, "condensed"),
        (("stock", "condensed", "optimistic"), "judge", "stock"),
        (("stock", "condensed", "optimistic"), "retriever", "stock"),
        (("stock", "condensed", "optimistic"), "generator", "stock"),
    ],
)
def test_condensed_never_leads_for_a_model_with_a_part_in_the_task(
    readings: tuple[str, ...], role: str | None, expected: str
) -> None:
    parts = {each: frozenset({"m"} if each == role else ()) for each in ("retriever", "judge", "generator")}
    task = board(scored("m", {}), readings=readings, parts=parts).task
    assert lead(task, ["other", "m"]) == expected
    assert lead(board(verdicts={}, readings=readings).task, ["m"]) == "stock"


def test_readings_that_reverse_the_models_have_a_tau_of_minus_one() -> None:
    values = {"a": (0.9, 0.1, 0.9), "b": (0.5, 0.5, 0.5), "c": (0.1, 0.9, 0.1)}
    names = ("stock", "condensed", "median")
    models = [
        scored(model, {"q": []}, **{name: [each] for name, each in zip(names, given, strict=True)})
        for model, given in values.items()
    ]
    rows: Any = figures.orders(board(*models, readings=(*names, "optimistic")))
    assert [(each.one, each.other, each.tau_b, each.tau_ap) for each in rows] == [
        ("stock", "condensed", -1, -1),
        ("stock", "median", 1, 1),
        ("condensed", "median", -1, -1),
    ]
    assert figures.orders(board(models[0], readings=names)) == []
