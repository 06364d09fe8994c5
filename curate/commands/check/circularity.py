"""Circularity: how much a judge's own grades, used as a ranking, gain by the judge sitting on the panel.

A judge's grades order the documents of a query (ties by id). Its score under labels of the panel, less that under
labels in which it has no part, less the same change of rankings that have no part in either, is what it gains by
judging itself. The figure is descriptive: its interval resamples queries, and there is no test. Rankings of models that
share a base with a judge gain too, so that a warning is a reason to look and its absence no proof.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from curate.core.errors import ConfigError
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy
from curate.stats.bootstrap import Figure, divided, measured, resamples
from curate.stats.significance import holm
from curate.stats.tally import Floats

DEPTH = 10
LEAST = 0.05
"""nDCG@10 that an effect must reach to be warned of."""
CHANCE = 0.025
"""Share of resamples without an effect, by Holm over the judges, below which the interval excludes none."""
DRAWS = 2_000


@dataclass(frozen=True)
class SelfFavour:
    """What one judge gains by being on the panel."""

    judge: str
    replaced_by: str | None
    """Judge that took its place; None where it was left out."""
    queries: int
    """That have a relevant document under both panels."""
    within: float
    """nDCG@10 of the judge's own ranking under its panel."""
    without: float
    """The same under the other one."""
    effect: Figure
    """Change of that score, less the mean change of the others."""
    ranks: int
    """Places by which the judge stands higher among all rankings under its own panel."""
    warned: bool
    """Whether the interval, by Holm over the judges, lies above 0 and the effect is at least `LEAST`."""


def self_favour(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    policy: Policy | ConsensusRule,
    scale: Scale,
    seed: int,
    fourth: str | None = None,
) -> list[SelfFavour]:
    """Return a row per judge of the panel, in its order.

    `ratings` has query_id, doc_id, judge, grade, also of judges outside of the panel. With `fourth`, one of those, it
    takes the judge's place; without it the judge is left out, which is blind where the others are stricter or laxer in
    the same way. Rankings subtracted are those by judges outside of both panels; where there are none, by the others of
    the panel. A declared rule is for a number of judges, so it needs a fourth (ConfigError, also for a fourth of the
    panel or one without ratings). Judges that no query can be scored for have no row.
    """
    known = ratings.drop_nulls("grade")["judge"].unique().to_list()
    if fourth is not None and (fourth in panel or fourth not in known):
        raise ConfigError(f"circular: {fourth!r} cannot take a judge's place; name one with ratings, not of the panel")
    if fourth is None and isinstance(policy, ConsensusRule):
        raise ConfigError("circular: a declared rule is for all its judges; name one to take a place: --fourth NAME")
    rankings = _Rankings.of(ratings, known, scale)
    own = rankings.scores(voting.decide(ratings, panel, policy, scale))
    rows = []
    for judge in panel:
        other = [name for name in panel if name != judge] + ([fourth] if fourth else [])
        outside = [name for name in known if name not in {*panel, fourth}] or [n for n in panel if n != judge]
        changed = rankings.scores(voting.decide(ratings, other, policy, scale))
        rows.append(_change(judge, own, changed, rankings.judges, outside, fourth, seed))
    return _warned([row for row in rows if row is not None])


@dataclass(frozen=True)
class _Rankings:
    """Every judge's ranking of every query's documents."""

    judges: list[str]
    ranks: pl.DataFrame
    """query_id, doc_id, and a rank per judge."""

    @classmethod
    def of(cls, ratings: pl.DataFrame, judges: Sequence[str], scale: Scale) -> "_Rankings":
        places = {label: place for place, label in enumerate(scale.labels)}
        table = voting.votes(ratings, sorted(judges), scale)  # sorted by query and document: ties go by id
        ranked = [
            pl.col(judge)
            .replace_strict(places, default=len(places), return_dtype=pl.Int64)
            .rank("ordinal")
            .over("query_id")
            for judge in sorted(judges)
        ]
        return cls(sorted(judges), table.select(*PAIR, *ranked))

    def scores(self, verdicts: pl.DataFrame) -> Floats:
        """Return nDCG@10 of every judge's ranking by query, NaN without a relevant document; (queries, judges)."""
        labels = verdicts.select(*PAIR, gain=(pl.col("verdict") == "relevant").cast(pl.Float64))
        table = self.ranks.join(labels, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("gain").fill_null(0.0)
        )
        gained = [
            pl.when(pl.col(judge) <= DEPTH).then(pl.col("gain") / (pl.col(judge) + 1).log(2)).sum().alias(judge)
            for judge in self.judges
        ]
        found = table.group_by("query_id", maintain_order=True).agg(pl.col("gain").sum(), *gained)
        ideal = np.array([sum(1 / math.log2(r + 1) for r in range(1, DEPTH + 1) if r <= n) for n in found["gain"]])
        return divided(found.select(self.judges).to_numpy(), ideal[:, None])


def _change(
    judge: str,
    own: Floats,
    changed: Floats,
    judges: Sequence[str],
    outside: Sequence[str],
    fourth: str | None,
    seed: int,
) -> tuple[SelfFavour, float] | None:
    """Return a judge's row without its warning, and the share of resamples without an effect; None without a query."""
    both = ~np.isnan(own[:, 0]) & ~np.isnan(changed[:, 0])
    if not both.any():
        return None
    at, others = judges.index(judge), [judges.index(name) for name in outside]
    before, after = own[both], changed[both]
    change = before - after
    effect = change[:, at] - change[:, others].mean(axis=1)
    sums = np.column_stack([np.ones(len(effect)), effect])
    drawn = np.concatenate([resample @ effect for resample in resamples(len(effect), DRAWS, seed)])
    means = before.mean(axis=0), after.mean(axis=0)
    places = [int((mean > mean[at] + 1e-12).sum()) for mean in means]
    found = SelfFavour(
        judge=judge,
        replaced_by=fourth,
        queries=int(both.sum()),
        within=float(means[0][at]),
        without=float(means[1][at]),
        effect=measured(sums, lambda each: divided(each[..., 1:], each[..., :1]), seed)[0],
        ranks=places[1] - places[0],
        warned=False,
    )
    return found, float((1 + (drawn <= 0).sum()) / (1 + DRAWS))


def _warned(rows: Sequence[tuple[SelfFavour, float]]) -> list[SelfFavour]:
    chances = holm([chance for _, chance in rows]) if rows else []
    return [
        replace(row, warned=chance <= CHANCE and (row.effect.value or 0.0) >= LEAST)
        for (row, _), chance in zip(rows, chances, strict=True)
    ]
