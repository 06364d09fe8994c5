"""Self-preference of judges: how much nDCG@10 a judge's own ranking gains from the judge's vote on the panel.

A difference in differences. A judge's grades rank the documents of each query. Its ranking is scored twice: with labels
of the panel, and with labels of a reference panel in which another judge replaces it, or nobody. The change, less the
mean change of control rankings (by judges that vote in neither panel), is the effect.

The effect is descriptive, with a bootstrap interval over queries. Rankings by models of the judge's family gain as
well; the absence of a warning does not rule self-preference out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from curate.core.errors import ConfigError
from curate.core.figures import Figure, Record, figure
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy
from curate.stats.bootstrap import DIGITS, averages, divided, resamples
from curate.stats.significance import holm
from curate.stats.tally import Floats

DEPTH = 10
"""Cutoff of nDCG."""
LEAST = 0.05
"""Smallest effect with a warning, in nDCG@10."""
CHANCE = 0.025
"""Largest Holm-adjusted p with a warning: one-sided, the lower tail of a 95 % interval."""
DRAWS = 2_000


class SelfFavour(Record, schema_name="favour"):
    """Self-preference of one judge."""

    judge: str = figure("name of the judge")
    replaced_by: str | None = figure("judge that replaces it; null if it is left out")
    queries: int = figure("queries with a relevant document under both panels")
    within: float = figure("nDCG@10 of its own ranking, under its panel")
    without: float = figure("nDCG@10 of its own ranking, under the other panel")
    effect: Figure = figure(
        "the change less the mean change of the others; without a value, two estimates between which it lies"
    )
    ranks: int = figure("ranks gained under its own panel")
    warned: bool = figure("lower bound above 0 by Holm over the judges, and an effect from 0.05")
    family: str | None = figure("family of its model", default=None)


def self_favour(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    policy: Policy | ConsensusRule,
    scale: Scale,
    seed: int,
    fourth: str | None = None,
) -> list[SelfFavour]:
    """Return the self-preference of the judges in `panel`, in this order, without those that no query can score.

    `ratings` has the columns query_id, doc_id, judge and grade, also of judges outside the panel. `fourth` is a judge
    outside the panel, with grades, that replaces each judge in turn. Without it, the judge is left out. If then no
    judge is outside the panel, the effect has no value and no warning, only bounds: the raw change (too low, because
    the reference panel decides otherwise) and that less the mean change of the remaining members (too high, because
    each gains where the judge lost).

    Control rankings are those of judges outside both panels, or of the other panel members if there are none.
    ConfigError if `fourth` is on the panel or unrated, or if `policy` is a ConsensusRule and `fourth` is missing: a
    rule fixes the number of judges.
    """
    rated_judges = ratings.drop_nulls("grade")["judge"].unique().to_list()
    if fourth is not None and (fourth in panel or fourth not in rated_judges):
        raise ConfigError(f"circular: {fourth!r} cannot take a judge's place; name one with ratings, not of the panel")
    if fourth is None and isinstance(policy, ConsensusRule):
        raise ConfigError("circular: a declared rule is for all its judges; name one to take a place: --fourth NAME")
    rankings = _Rankings.of(ratings, rated_judges, scale)
    panel_ndcg = rankings.scores(voting.decide(ratings, panel, policy, scale))
    rows = []
    for judge in panel:
        reference_panel = [name for name in panel if name != judge] + ([fourth] if fourth else [])
        outside = [name for name in rated_judges if name not in {*panel, fourth}]
        controls = outside or [name for name in panel if name != judge]
        reference_ndcg = rankings.scores(voting.decide(ratings, reference_panel, policy, scale))
        row = _self_favour(judge, panel_ndcg, reference_ndcg, rankings.judges, controls, fourth, seed)
        if row is not None:
            rows.append(row if outside or fourth else _bounded(*row))
    adjusted = holm([p for _, p in rows]) if rows else []
    return [
        replace(row, warned=p <= CHANCE and (row.effect.value or 0.0) >= LEAST)
        for (row, _), p in zip(rows, adjusted, strict=True)
    ]


def _bounded(row: SelfFavour, _p: float) -> tuple[SelfFavour, float]:
    """Return a row with bounds instead of an effect, and a p-value that warns of nothing."""
    raw, estimate = row.within - row.without, row.effect.value or 0.0
    bounds = (round(bound, DIGITS) for bound in sorted((raw, estimate)))
    return replace(row, effect=Figure(None, *bounds)), 1.0


@dataclass(frozen=True)
class _Rankings:
    """Rankings of the rated documents of each query, one by each judge."""

    judges: list[str]
    ranks: pl.DataFrame
    """query_id, doc_id, and a column per judge: the document's rank, from 1."""

    @classmethod
    def of(cls, ratings: pl.DataFrame, judges: Sequence[str], scale: Scale) -> "_Rankings":
        grade_index = {label: index for index, label in enumerate(scale.labels)}
        votes = voting.votes(ratings, sorted(judges), scale)  # sorted by query and document: ties go by id
        ranks = [
            pl.col(judge)
            .replace_strict(grade_index, default=len(grade_index), return_dtype=pl.Int64)
            .rank("ordinal")
            .over("query_id")
            for judge in sorted(judges)
        ]
        return cls(sorted(judges), votes.select(*PAIR, *ranks))

    def scores(self, verdicts: pl.DataFrame) -> Floats:
        """Return nDCG@10 of binary gains, shape (queries, judges); NaN for a query without a relevant document."""
        gains = verdicts.select(*PAIR, gain=(pl.col("verdict") == "relevant").cast(pl.Float64))
        table = self.ranks.join(gains, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("gain").fill_null(0.0)
        )
        dcg = [
            pl.when(pl.col(judge) <= DEPTH).then(pl.col("gain") / (pl.col(judge) + 1).log(2)).sum().alias(judge)
            for judge in self.judges
        ]
        by_query = table.group_by("query_id", maintain_order=True).agg(pl.col("gain").sum(), *dcg)
        ideal_dcg = np.array(
            [sum(1 / math.log2(r + 1) for r in range(1, DEPTH + 1) if r <= n) for n in by_query["gain"]]
        )
        return divided(by_query.select(self.judges).to_numpy(), ideal_dcg[:, None])


def _self_favour(
    judge: str,
    panel_ndcg: Floats,
    reference_ndcg: Floats,
    judges: Sequence[str],
    controls: Sequence[str],
    replaced_by: str | None,
    seed: int,
) -> tuple[SelfFavour, float] | None:
    """Return a judge's row, `warned` not yet set, and the one-sided bootstrap p of its effect; None without a query."""
    # a query without a relevant document is NaN for every judge, so one column tells
    is_scored = ~np.isnan(panel_ndcg[:, 0]) & ~np.isnan(reference_ndcg[:, 0])
    if not is_scored.any():
        return None
    column, control_columns = judges.index(judge), [judges.index(name) for name in controls]
    scored_panel, scored_reference = panel_ndcg[is_scored], reference_ndcg[is_scored]
    change = scored_panel - scored_reference
    effect = change[:, column] - change[:, control_columns].mean(axis=1)
    resampled_effects = np.concatenate([weights @ effect for weights in resamples(len(effect), DRAWS, seed)])
    means = scored_panel.mean(axis=0), scored_reference.mean(axis=0)
    # 1e-12: means that differ in their last bits are tied
    positions = [int((mean > mean[column] + 1e-12).sum()) for mean in means]
    row = SelfFavour(
        judge=judge,
        replaced_by=replaced_by,
        queries=int(is_scored.sum()),
        within=round(float(means[0][column]), DIGITS),
        without=round(float(means[1][column]), DIGITS),
        effect=averages([effect], seed)[0],
        ranks=positions[1] - positions[0],
        warned=False,
    )
    return row, float((1 + (resampled_effects <= 0).sum()) / (1 + DRAWS))  # add-one: an estimate from draws is never 0
