"""Corrected scores of models on a task: precision and scaled discounted gain at 10, by what people read of top tens.

The samples are those of `curate review export --for-scores` in the run. A model whose first ten documents are not all
in a sample's frame gets no score from it. nDCG and average precision are not corrected: they divide by the number of
all relevant documents, which nobody has counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from curate.commands.evaluate.board import Board
from curate.commands.evaluate.scoring import Scored
from curate.core.config import Json
from curate.core.errors import DataError
from curate.review.agreement import checked
from curate.review.desk import Desk, graded_desks
from curate.review.sample import Sample
from curate.review.top_pairs import state
from curate.stats.bootstrap import DIGITS
from curate.stats.corrected_scores import FEW, LEVEL, WEIGHTS, CorrectedScore, Frame, corrected, nonresponse, weights
from curate.stats.significance import holm
from curate.stats.tally import Floats, Ints
from curate.system.files import read_table

CLEAR = 0.05
Pair = tuple[str, str]


@dataclass(frozen=True)
class ScoreReview:
    """A sample for scores as far as it was read."""

    sample: Sample
    strata: Mapping[Pair, str]
    """Pair of the frame -> its stratum."""
    answers: Mapping[Pair, int]
    """Pair that was read -> 1 if people find it relevant, else 0."""

    @classmethod
    def read(cls, desk: Desk) -> "ScoreReview":
        """Return the review of a sample; DataError if its frame is not the one that it was drawn from."""
        table, told = read_table(desk.sample.folder, "frame"), desk.sample.design.facts["frame"]
        if not isinstance(told, dict) or told["digest"] != state(table):
            raise DataError(
                f"{desk.sample.folder}/frame.parquet: found other pairs than the sample was drawn from, expected those "
                "that its design names; put a copy of the file back"
            )
        strata = {(query, doc): name for query, doc, name in table.iter_rows()}
        rows = [row for row in checked(desk) if row.settled]
        return cls(desk.sample, strata, {(row.ids[0], row.ids[1]): int(bool(row.relevant)) for row in rows})

    @cached_property
    def names(self) -> list[str]:
        """Return the strata in order."""
        return sorted(set(self.strata.values()))

    @cached_property
    def read_of(self) -> dict[str, int]:
        """Return stratum -> pairs that were read."""
        return {name: sum(self.strata[pair] == name for pair in self.answers) for name in self.names}

    @property
    def usable(self) -> bool:
        """Say whether something was read in every stratum."""
        return bool(self.names) and all(self.read_of.values())

    def outside(self, scored: Scored) -> float:
        """Return the share of a model's first ten documents that is not in the frame."""
        pairs = [(query, doc) for query, top in zip(scored.queries, scored.top, strict=True) for doc in top]
        return sum(pair not in self.strata for pair in pairs) / len(pairs) if pairs else 0.0

    def frame(self, queries: Sequence[str]) -> Frame:
        """Return the frame over some queries; pairs of others count in their strata alone, as their weight is 0."""
        numbers, places = {query: at for at, query in enumerate(queries)}, {n: at for at, n in enumerate(self.names)}
        return Frame(
            np.array([numbers.get(query, 0) for query, _ in self.strata]),
            np.array([places[name] for name in self.strata.values()]),
            np.array([self.answers.get(pair, -1) for pair in self.strata]),
            len(queries),
        )

    def ranks(self, scored: Scored) -> Ints:
        """Return the rank of every pair of the frame in a model's first ten, 0 if it is not there."""
        known = {
            (query, doc): rank
            for query, top in zip(scored.queries, scored.top, strict=True)
            for rank, doc in enumerate(top, start=1)
        }
        return np.array([known.get(pair, 0) for pair in self.strata])


def score_reviews(run: Path | None) -> list[ScoreReview]:
    """Return the samples for scores of a run that people have read something of, by name."""
    desks = graded_desks(run) if run else []
    found = [ScoreReview.read(desk) for desk in desks if desk.sample.design.facts.get("of") == "scores"]
    return [review for review in found if review.answers]


def levels(board: Board, reviews: Sequence[ScoreReview]) -> dict[str, Json] | None:
    """Return the corrected scores and differences of a task's models; None without a review that can correct one.

    Of several reviews the one counts whose frame holds most models, then the one of which most was read.
    """
    searched = board.task.scorer.searched and board.task.kind.judged
    if not searched or not any(review.usable for review in reviews):
        return None
    inside = {
        id(review): sum(not review.outside(scored) for scored in board.scored) for review in reviews if review.usable
    }
    review = max((r for r in reviews if r.usable), key=lambda each: (inside[id(each)], len(each.answers)))
    known = [each for each in board.scored if not review.outside(each)]
    frame = review.frame(board.scored[0].queries)
    drawn = sum(each.drawn for each in review.sample.design.strata)
    return {
        "sample": review.sample.design.name,
        "read": len(review.answers),
        "drawn": drawn,
        "pairs": len(review.strata),
        "strata": [_stratum(review, name) for name in review.names],
        "models": [_model(review, frame, each) for each in board.ranked],
        "pairs_of_models": _differences(review, frame, known),
    }


def _stratum(review: ScoreReview, name: str) -> Json:
    design = next(each for each in review.sample.design.strata if each.name == name)
    said = [answer for pair, answer in review.answers.items() if review.strata[pair] == name]
    return {"stratum": name, "pairs": design.size, "drawn": design.drawn, "read": len(said), "relevant": sum(said)}


def _model(review: ScoreReview, frame: Frame, scored: Scored) -> Json:
    """Return a model's corrected scores; none where a document of its first ten lies outside the frame."""
    outside = review.outside(scored)
    row: dict[str, Json] = {"model": scored.model, "outside": round(outside, DIGITS)}
    if outside:
        return row | dict.fromkeys(WEIGHTS) | {"unanswered": None}
    ranks = review.ranks(scored)
    given = {name: weights(ranks, name, frame.queries) for name in WEIGHTS}
    missing = nonresponse(frame, given["precision_at_10"], _drawn(review))
    return {
        **row,
        **{name: _shown(corrected(frame, weight)) for name, weight in given.items()},
        "unanswered": None if missing is None else [round(each, DIGITS) for each in missing],
    }


def _differences(review: ScoreReview, frame: Frame, known: Sequence[Scored]) -> list[Json]:
    """Return every two models' difference by measure, the better one first, p by Holm over the pairs of models.

    A difference of which nothing is left to read is exact and has no p.
    """
    ranks = {each.model: review.ranks(each) for each in known}
    rows: list[Json] = []
    for measure in WEIGHTS:
        given = {model: weights(rank, measure, frame.queries) for model, rank in ranks.items()}
        found = list(_compared(frame, given))
        tested = [p for *_, p in found if p is not None]
        adjusted = iter(holm(tested) if tested else [])
        for one, other, apart, p in found:
            chances = {"p": None, "adjusted": None} if p is None else {"p": p, "adjusted": next(adjusted)}
            shown = {name: None if chance is None else round(chance, DIGITS) for name, chance in chances.items()}
            rows.append({"measure": measure, "one": one, "other": other, **_shown(apart), **shown})
    return rows


def _compared(frame: Frame, given: Mapping[str, Floats]) -> Iterator[tuple[str, str, CorrectedScore, float | None]]:
    normal = NormalDist()
    for one, other in combinations(given, 2):
        found = corrected(frame, given[one] - given[other])
        high, low = (one, other) if found.value >= 0 else (other, one)
        spread = found.half / normal.inv_cdf((1 + LEVEL) / 2)
        p = 2 * (1 - normal.cdf(abs(found.value) / spread)) if spread else None
        yield high, low, replace(found, value=abs(found.value)), p


def _drawn(review: ScoreReview) -> Floats:
    named = {each.name: each.drawn for each in review.sample.design.strata}
    return np.array([named[name] for name in review.names], dtype=float)


def _shown(found: CorrectedScore) -> dict[str, Json]:
    new = None if found.new_queries is None else round(found.new_queries, DIGITS)
    return {"value": round(found.value, DIGITS), "half": round(found.half, DIGITS), "new_queries": new}


def unread(reviews: Sequence[ScoreReview]) -> Iterator[str]:
    """Yield a sentence on every review that corrects nothing yet, as a stratum has no answer."""
    for review in reviews:
        if not review.usable:
            lacking = ", ".join(name for name, read in review.read_of.items() if not read)
            yield (
                f"sample {review.sample.design.name}: no answer of {lacking}, so no score is corrected; have some read"
            )


def warnings(task: str, found: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what must be known of a task's corrected scores: few answers, missing ones, models outside the frame."""
    if found is None:
        return
    strata, models = found["strata"], found["models"]
    if few := [str(each["stratum"]) for each in strata if each["read"] < min(FEW, each["pairs"])]:
        yield f"{task}: fewer than {FEW} answers of {', '.join(few)}: the intervals of corrected scores are too narrow"
    if (read := sum(each["read"] for each in strata)) < (drawn := sum(each["drawn"] for each in strata)):
        yield (
            f"{task}: {drawn - read:,} of the {drawn:,} pairs drawn for corrected scores are not answered: if that "
            f"depends on relevance, the intervals do not hold, and a score may be off by {_most(models)} points"
        )
    if beyond := [f"{model['model']} ({100 * model['outside']:.1f} %)" for model in models if model["outside"]]:
        yield (
            f"{task}: no corrected score of {', '.join(beyond)}: that share of the first ten documents was not in what "
            "was sampled; draw anew with `curate review export --for-scores`"
        )


def _most(models: Sequence[Mapping[str, Any]]) -> str:
    """Return by how many points the scores may be off if none or all of the missing answers were relevant."""
    bounds = [model["unanswered"] for model in models if model["unanswered"]]
    if not bounds:
        return "any number of"
    return f"{100 * min(low for low, _ in bounds):+.1f} to {100 * max(high for _, high in bounds):+.1f}"
