"""Pairs in the top tens of evaluated models: the sampling frame for correcting the models' scores.

The frame is the union of the models' first ten documents per query, stratified by the number of judges that call a pair
relevant. It is stored with the sample, since a model evaluated later has no corrected score if any of its first ten
documents is outside the frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from curate.core.config import digest
from curate.core.errors import ConfigError
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.panel.voting import PAIR
from curate.review.planning import SCORES
from curate.stats.corrected_scores import AnticipatedScore, Frame, weights
from curate.stats.tally import Floats

NONE, SOME, ALL = 0.3, 0.5, 0.45
"""Anticipated standard deviation of assessors' answers (0 or 1) if no, some or all judges call a pair relevant."""
GUESSES = {NONE: 0.1, SOME: 0.5, ALL: 0.72}
"""Anticipated standard deviation of a stratum -> its anticipated share of relevant pairs."""
UNJUDGED, INCOMPLETE = "not judged", "votes missing"
ENOUGH = 1.05
"""Ratio of a half width for new queries to its limit, with all pairs answered, below which more answers do not help."""


@dataclass(frozen=True)
class TopPairs:
    """Sampling frame: the pairs with their strata, and the models' rankings of them."""

    pairs: pl.DataFrame
    """query_id, doc_id, stratum; sorted by key."""
    tops: pl.DataFrame
    """The `tops` table of an evaluation."""

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Return stratum -> pairs, sorted by name."""
        return sampling_design.counts(self.pairs)

    @cached_property
    def spreads(self) -> dict[str, float]:
        """Return stratum -> anticipated standard deviation of an answer."""
        return {name: _spread(name) for name in self.sizes}

    def allocate(self, size: int) -> dict[str, int]:
        """Return stratum -> pairs to draw: in proportion to size times standard deviation, at least five or all."""
        return sampling_design.apportion(
            self.sizes, {name: count * self.spreads[name] for name, count in self.sizes.items()}, size
        )

    @cached_property
    def anticipated(self) -> dict[str, list[AnticipatedScore]]:
        """Return the anticipated scores by figure: precision at 10 of each model, and all differences within a task."""
        scores: dict[str, list[AnticipatedScore]] = {name: [] for name in SCORES}
        names = list(self.sizes)
        strata = self.pairs["stratum"].replace_strict({name: index for index, name in enumerate(names)}).to_numpy()
        queries = self.pairs["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
        guess = np.array([GUESSES[self.spreads[name]] for name in names])
        for task in sorted(self.tops["task"].unique()):
            ranked = self.tops.filter(task=task)
            frame = Frame(queries, strata, np.zeros(len(strata), np.int64), int(queries.max()) + 1)
            weights_of = {
                model: self._weights(rows) for (model,), rows in ranked.group_by("model", maintain_order=True)
            }
            scores["level"] += [AnticipatedScore(frame, weights, guess) for weights in weights_of.values()]
            apart = (first - second for first, second in combinations(weights_of.values(), 2))
            scores["difference"] += [AnticipatedScore(frame, difference, guess) for difference in apart]
        return scores

    def widest(self, size: int) -> dict[str, tuple[float, float | None] | None]:
        """Return figure of `planning.SCORES` -> its widest anticipated half widths, with a sample of `size` pairs.

        The first is for these queries, the second for new queries of the same kind (None if not defined). None for a
        figure without scores.
        """
        drawn = np.array(list(self.allocate(size).values()), dtype=float)
        return {name: _widest(expected, drawn) for name, expected in self.anticipated.items()}

    def needed(self, margins: Mapping[str, float]) -> int:
        """Return the smallest sample size whose half widths for these queries are within `margins`, by bisection."""

        def fits(size: int) -> bool:
            widths = self.widest(size)
            return all((width := widths[name]) is None or width[0] <= margin for name, margin in margins.items())

        return sampling_design.smallest(self.least, self.pairs.height, fits)

    @property
    def least(self) -> int:
        """Return the minimum sample size: five pairs per stratum, or all of a smaller stratum."""
        return sum(min(sampling_design.LEAST, count) for count in self.sizes.values())

    @cached_property
    def enough(self) -> int:
        """Return the smallest sample size whose half widths for new queries are at most `ENOUGH` times their limit.

        Beyond it, only more queries narrow them.
        """
        limits = self.widest(self.pairs.height)

        def near(size: int) -> bool:
            widths = self.widest(size)
            return all(_new_query_width(widths[name]) <= ENOUGH * _new_query_width(limits[name]) for name in SCORES)

        return sampling_design.smallest(self.least, self.pairs.height, near)

    def _weights(self, ranked: pl.DataFrame) -> Floats:
        ranks = self.pairs.join(ranked, on=PAIR, how="left", maintain_order="left")["rank"].fill_null(0).to_numpy()
        return weights(ranks.astype(np.int64), "precision_at_10", ranked["query_id"].n_unique())


def strata(pairs: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of pairs: the number of judges that call a pair relevant.

    Unjudged pairs and pairs that lack a vote are separate strata. ConfigError if a cascade left out votes, since the
    number of votes would then depend on where it stopped.
    """
    grades = pl.col("votes").list.eval(pl.element().struct.field("grade"))
    yes = grades.list.eval(pl.element().is_in(list(scale.relevant))).list.sum()
    placed = pairs.join(verdicts, on=PAIR, how="left", maintain_order="left")
    if stopped := placed.filter(verdict="not positive").height:
        raise ConfigError(
            f"--for-scores: found {stopped:,} pairs of which a cascade asked only some judges, expected all votes of "
            "every pair; judge with judge.cascade: exact"
        )
    name = (
        pl.when(pl.col("verdict").is_null())
        .then(pl.lit(UNJUDGED))
        .when(pl.col("verdict") == "incomplete")
        .then(pl.lit(INCOMPLETE))
        .otherwise(pl.format("{} of {} votes", yes, grades.list.len()))
    )
    return placed.select(*PAIR, stratum=name)


def state(pairs: pl.DataFrame) -> str:
    """Return a digest of the pairs and strata of a frame."""
    return digest([list(row) for row in pairs.select(*PAIR, "stratum").sort(PAIR).rows()])


def _spread(stratum: str) -> float:
    yes, of, count = stratum.partition(" of ")
    if not of:
        return NONE if stratum == UNJUDGED else SOME
    votes = int(count.removesuffix(" votes"))
    return {0: NONE, votes: ALL}.get(int(yes), SOME)


def _widest(every: Sequence[AnticipatedScore], drawn: Floats) -> tuple[float, float | None] | None:
    if not every:
        return None
    new = [width for expected in every if (width := expected.new_queries(drawn)) is not None]
    return max(expected.half(drawn) for expected in every), max(new, default=None)


def _new_query_width(widths: tuple[float, float | None] | None) -> float:
    return (widths[1] or 0.0) if widths else 0.0
