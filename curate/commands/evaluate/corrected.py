"""Corrected scores of models: precision and scaled discounted gain at 10, from assessors' answers on sampled top tens.

The samples are those of `curate review export --for-scores`. A model with a top-ten document outside the sampling frame
gets no corrected score. nDCG and average precision are not corrected, because they divide by the number of all relevant
documents, which is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Self

import numpy as np

from curate.commands.evaluate.board import Board
from curate.commands.evaluate.scoring import Scored
from curate.core.errors import DataError
from curate.core.figures import Record, figure
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


class LevelStratum(Record):
    """Answers in one stratum of the sample."""

    stratum: str = figure("name of the stratum")
    pairs: int = figure("its pairs in the top tens")
    drawn: int = figure("pairs that were drawn")
    read: int = figure("pairs that were answered")
    relevant: int = figure("pairs that people find relevant")


class CorrectedEstimate(Record, schema_name="corrected"):
    """A corrected score; half widths are of 95 % intervals."""

    value: float = figure("the score", digits=2, percent=True)
    half: float = figure("half width for these queries", digits=2, percent=True)
    new_queries: float | None = figure("half width for new queries of the same kind", digits=2, percent=True)

    @classmethod
    def of(cls, score: CorrectedScore) -> Self:
        """Return a score with `DIGITS` decimals."""
        new_queries = None if score.new_queries is None else round(score.new_queries, DIGITS)
        return cls(round(score.value, DIGITS), round(score.half, DIGITS), new_queries)


class ModelLevel(Record, schema_name="level"):
    """Corrected scores of one model; None if a top-ten document is outside the sampling frame."""

    model: str = figure("name of the model")
    outside: float = figure(
        "share of its top-ten documents outside the sampling frame; above 0, its scores are null",
        digits=1,
        percent=True,
    )
    precision_at_10: CorrectedEstimate | None = figure("share of the first ten documents that is relevant")
    scaled_dcg_at_10: CorrectedEstimate | None = figure("discounted gain over that of ten relevant documents")
    unanswered: tuple[float, ...] | None = figure(
        "change of precision if no unanswered pair is relevant, and if all are"
    )


class CorrectedDifference(Record, schema_name="level_pair"):
    """Difference of two models' corrected scores."""

    measure: str = figure("precision_at_10 or scaled_dcg_at_10")
    one: str = figure("the better model")
    other: str = figure("the other model")
    value: float = figure("the difference", digits=2, percent=True)
    half: float = figure("half width for these queries", digits=2, percent=True)
    new_queries: float | None = figure("half width for new queries of the same kind", digits=2, percent=True)
    p: float | None = figure("p-value; null if every pair of the difference was read", digits=4)
    adjusted: float | None = figure("p-value adjusted by Holm over the pairs of models that have one", digits=4)


class CorrectedScores(Record, schema_name="levels"):
    """Scores of a task's models that people's answers correct."""

    sample: str = figure("name of the sample")
    read: int = figure("pairs that were answered")
    drawn: int = figure("pairs that were drawn")
    pairs: int = figure("pairs in the top tens")
    strata: tuple[LevelStratum, ...] = figure("a row per stratum")
    models: tuple[ModelLevel, ...] = figure("a row per model, best first")
    pairs_of_models: tuple[CorrectedDifference, ...] = figure("differences of every two models with corrected scores")


@dataclass(frozen=True)
class ScoreReview:
    """A review sample for corrected scores, with the answers so far."""

    sample: Sample
    strata: Mapping[Pair, str]
    """Pair (query, document) of the sampling frame -> its stratum."""
    answers: Mapping[Pair, int]
    """Answered pair -> 1 if relevant, else 0."""

    @classmethod
    def read(cls, sample_answers: Desk) -> "ScoreReview":
        """Return the review of a sample; DataError if its frame was changed after it was drawn."""
        table = read_table(sample_answers.sample.folder, "frame")
        frame_facts = sample_answers.sample.design.facts["frame"]
        if not isinstance(frame_facts, dict) or frame_facts["digest"] != state(table):
            raise DataError(
                f"{sample_answers.sample.folder}/frame.parquet: found other pairs than the sample was drawn from, "
                "expected those that its design names; put a copy of the file back"
            )
        strata = {(query, doc): name for query, doc, name in table.iter_rows()}
        rows = [row for row in checked(sample_answers) if row.settled]
        return cls(sample_answers.sample, strata, {(row.ids[0], row.ids[1]): int(bool(row.relevant)) for row in rows})

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the strata, sorted."""
        return sorted(set(self.strata.values()))

    @cached_property
    def read_of(self) -> dict[str, int]:
        """Return stratum -> number of answered pairs."""
        return {name: sum(self.strata[pair] == name for pair in self.answers) for name in self.names}

    @property
    def usable(self) -> bool:
        """Return whether every stratum has an answer."""
        return bool(self.names) and all(self.read_of.values())

    def outside(self, scored: Scored) -> float:
        """Return the share of a model's top-ten documents outside the sampling frame, 0 to 1."""
        pairs = [(query, doc) for query, top in zip(scored.queries, scored.top, strict=True) for doc in top]
        return sum(pair not in self.strata for pair in pairs) / len(pairs) if pairs else 0.0

    def frame(self, queries: Sequence[str]) -> Frame:
        """Return the frame for some queries; pairs of other queries count only in their strata, with weight 0."""
        query_index = {query: index for index, query in enumerate(queries)}
        stratum_index = {name: index for index, name in enumerate(self.names)}
        return Frame(
            np.array([query_index.get(query, 0) for query, _ in self.strata]),
            np.array([stratum_index[name] for name in self.strata.values()]),
            np.array([self.answers.get(pair, -1) for pair in self.strata]),
            len(queries),
        )

    def ranks(self, scored: Scored) -> Ints:
        """Return each frame pair's rank in a model's top ten, 0 if absent."""
        rank_by_pair = {
            (query, doc): rank
            for query, top in zip(scored.queries, scored.top, strict=True)
            for rank, doc in enumerate(top, start=1)
        }
        return np.array([rank_by_pair.get(pair, 0) for pair in self.strata])


def score_reviews(run: Path | None) -> list[ScoreReview]:
    """Return a run's review samples for corrected scores that have answers; [] without a run."""
    reviewed = graded_desks(run) if run else []
    reviews = [ScoreReview.read(answers) for answers in reviewed if answers.sample.design.facts.get("of") == "scores"]
    return [review for review in reviews if review.answers]


def levels(board: Board, reviews: Sequence[ScoreReview]) -> CorrectedScores | None:
    """Return the corrected scores and differences of a task's models; None without a usable review.

    Of several usable reviews, the one that covers the top tens of most models is used, then the one with most answers.
    """
    searched = board.task.scorer.searched and board.task.kind.judged
    if not searched or not any(review.usable for review in reviews):
        return None
    inside = {
        id(review): sum(not review.outside(scored) for scored in board.scored) for review in reviews if review.usable
    }
    review = max(
        (candidate for candidate in reviews if candidate.usable),
        key=lambda candidate: (inside[id(candidate)], len(candidate.answers)),
    )
    covered = [scored for scored in board.scored if not review.outside(scored)]
    frame = review.frame(board.scored[0].queries)
    drawn = sum(stratum.drawn for stratum in review.sample.design.strata)
    return CorrectedScores(
        sample=review.sample.design.name,
        read=len(review.answers),
        drawn=drawn,
        pairs=len(review.strata),
        strata=tuple(_stratum(review, name) for name in review.names),
        models=tuple(_model(review, frame, scored) for scored in board.ranked),
        pairs_of_models=tuple(_differences(review, frame, covered)),
    )


def _stratum(review: ScoreReview, name: str) -> LevelStratum:
    design = next(stratum for stratum in review.sample.design.strata if stratum.name == name)
    answers = [answer for pair, answer in review.answers.items() if review.strata[pair] == name]
    return LevelStratum(name, design.size, design.drawn, len(answers), sum(answers))


def _model(review: ScoreReview, frame: Frame, scored: Scored) -> ModelLevel:
    outside = review.outside(scored)
    if outside:
        return ModelLevel(scored.model, round(outside, DIGITS), None, None, None)
    ranks = review.ranks(scored)
    weights_by_measure = {name: weights(ranks, name, frame.queries) for name in WEIGHTS}
    drawn_by_stratum = {stratum.name: stratum.drawn for stratum in review.sample.design.strata}
    drawn = np.array([drawn_by_stratum[name] for name in review.names], dtype=float)
    missing = nonresponse(frame, weights_by_measure["precision_at_10"], drawn)
    return ModelLevel(
        scored.model,
        0.0,
        **{name: CorrectedEstimate.of(corrected(frame, weight)) for name, weight in weights_by_measure.items()},
        unanswered=None if missing is None else tuple(round(error, DIGITS) for error in missing),
    )


def _differences(review: ScoreReview, frame: Frame, models: Sequence[Scored]) -> Iterator[CorrectedDifference]:
    """Yield the differences of each two models per measure, the better model first, with p and Holm-adjusted p.

    A difference on completely answered pairs is exact and has no p.
    """
    ranks = {scored.model: review.ranks(scored) for scored in models}
    for measure in WEIGHTS:
        weights_by_model = {model: weights(rank, measure, frame.queries) for model, rank in ranks.items()}
        differences = list(_compared(frame, weights_by_model))
        tested = [p for *_, p in differences if p is not None]
        adjusted = iter(holm(tested) if tested else [])
        for better, worse, difference, p in differences:
            chances = (None, None) if p is None else (round(p, DIGITS), round(next(adjusted), DIGITS))
            estimate = CorrectedEstimate.of(difference)
            yield CorrectedDifference(measure, better, worse, *vars(estimate).values(), *chances)


def _compared(
    frame: Frame, weights_by_model: Mapping[str, Floats]
) -> Iterator[tuple[str, str, CorrectedScore, float | None]]:
    normal = NormalDist()
    for first, second in combinations(weights_by_model, 2):
        difference = corrected(frame, weights_by_model[first] - weights_by_model[second])
        better, worse = (first, second) if difference.value >= 0 else (second, first)
        standard_error = difference.half / normal.inv_cdf((1 + LEVEL) / 2)
        p = 2 * (1 - normal.cdf(abs(difference.value) / standard_error)) if standard_error else None
        yield better, worse, replace(difference, value=abs(difference.value)), p


def unread(reviews: Sequence[ScoreReview]) -> Iterator[str]:
    """Yield a sentence per review that is unusable because a stratum has no answer."""
    for review in reviews:
        if not review.usable:
            lacking = ", ".join(name for name, read in review.read_of.items() if not read)
            yield (
                f"sample {review.sample.design.name}: no answer of {lacking}, so no score is corrected; have some read"
            )


def warnings(task: str, summary: CorrectedScores | None) -> Iterator[str]:
    """Yield warnings on a task's corrected scores: few answers, missing answers, models outside the frame."""
    if summary is None:
        return
    strata, models = summary.strata, summary.models
    if short := [stratum.stratum for stratum in strata if stratum.read < min(FEW, stratum.pairs)]:
        names = ", ".join(short)
        yield f"{task}: fewer than {FEW} answers of {names}: the intervals of corrected scores are too narrow"
    if (read := sum(stratum.read for stratum in strata)) < (drawn := sum(stratum.drawn for stratum in strata)):
        bounds = [model.unanswered for model in models if model.unanswered]  # if none, or all, were relevant
        errors = "any number of"
        if bounds:
            errors = f"{100 * min(low for low, _ in bounds):+.1f} to {100 * max(high for _, high in bounds):+.1f}"
        yield (
            f"{task}: {drawn - read:,} of the {drawn:,} pairs drawn for corrected scores are not answered: if that "
            f"depends on relevance, the intervals do not hold, and a score may be off by {errors} points"
        )
    if beyond := [f"{model.model} ({100 * model.outside:.1f} %)" for model in models if model.outside]:
        yield (
            f"{task}: no corrected score of {', '.join(beyond)}: that share of the first ten documents was not in what "
            "was sampled; draw anew with `curate review export --for-scores`"
        )
