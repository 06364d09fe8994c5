"""Rankings of systems by nDCG@10 under the labels of each consensus rule and graded labels, and their correlation.

A rule with precise positives may still change the ranking of systems: labels without contested pairs, which then count
as not relevant, can reverse a ranking that graded labels preserve.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.stats import rank_correlation
from curate.stats.bootstrap import Figure, divided, measured
from curate.stats.tally import Floats

DEPTH = 10
BASE = "unanimous"
"""Rule whose ranking the others are compared with."""
Labels = Mapping[str, pl.DataFrame]
"""Rule, or another source of labels -> query_id, doc_id and score, a gain; without a row the gain is 0."""


def relevant(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the labels of a `verdicts` table: query_id, doc_id and score 1 of relevant pairs."""
    return verdicts.filter(pl.col("verdict") == "relevant").select("query_id", "doc_id", score=pl.lit(1, pl.Int32))


def compared(labels: Labels, rankings: pl.DataFrame, seed: int) -> dict[str, Json]:
    """Return scores and rank correlations of the systems in a table `rankings`, by source of labels.

    `ndcg_at_10`: source of labels -> system -> mean over the queries with a gain under these labels, linear gain; None
    without such a query. `against_unanimous`: other source -> `tau_b` of the two orders, {value, low, high} with a
    95 % interval from 1,000 samples of the queries (None for fewer than two queries or where it is undefined),
    `tau_ap`, which weights upper ranks more, and `rank_biased_overlap`; None for fewer than two systems.
    """
    systems = rankings["retriever"].unique().sort().to_list()
    queries = sorted({query for table in labels.values() for query in table["query_id"]})
    sums = {name: _sums(table, rankings, queries, systems) for name, table in labels.items()}
    means = {
        name: divided(table_sums[:, :-1].sum(axis=0), table_sums[:, -1:].sum(axis=0))
        for name, table_sums in sums.items()
    }
    scores: dict[str, dict[str, float | None]] = {
        name: {system: None if np.isnan(mean) else float(mean) for system, mean in zip(systems, row, strict=True)}
        for name, row in means.items()
    }
    others = [name for name in labels if name != BASE]
    taus = _taus([sums[BASE], *(sums[name] for name in others)], seed) if BASE in sums and queries else []
    against: dict[str, Json] = {}
    for name, tau in zip(others, taus, strict=False):
        base_scores, other_scores = (
            {system: mean for system, mean in scores[source].items() if mean is not None} for source in (BASE, name)
        )
        against[name] = {
            "tau_b": tau.shown(),
            "tau_ap": _six(rank_correlation.tau_ap(base_scores, other_scores)),
            "rank_biased_overlap": _six(rank_correlation.rank_biased_overlap(base_scores, other_scores)),
        }
    rounded: dict[str, Json] = {
        name: {system: _six(mean) for system, mean in row.items()} for name, row in scores.items()
    }
    return {"ndcg_at_10": rounded, "against_unanimous": against}


def _sums(labels: pl.DataFrame, rankings: pl.DataFrame, queries: Sequence[str], systems: Sequence[str]) -> Floats:
    """Return nDCG by query and system, last column 1 if defined, else 0; shape (queries, systems + 1)."""
    gaining = labels.filter(pl.col("score") > 0)
    order = pl.col("score").rank("ordinal", descending=True).over("query_id")
    best = _dcg(gaining.with_columns(rank=order), "query_id").rename({"dcg": "best"})
    first = rankings.filter(pl.col("rank") <= DEPTH).select("query_id", "retriever", "doc_id", "rank")
    scored = _dcg(first.join(gaining, on=["query_id", "doc_id"]), "query_id", "retriever").join(best, on="query_id")
    table = np.zeros((len(queries), len(systems) + 1))
    row, column = ({name: index for index, name in enumerate(names)} for names in (queries, systems))
    table[[row[query] for query in best["query_id"]], -1] = 1.0
    for query, system, dcg, ideal in scored.select("query_id", "retriever", "dcg", "best").iter_rows():
        table[row[query], column[system]] = dcg / ideal
    return table


def _dcg(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the discounted gain of rows with `score` and `rank`: score / log2(rank + 1), to the depth."""
    gain = pl.col("score") / (pl.col("rank") + 1).log(2)
    return rows.filter(pl.col("rank") <= DEPTH).group_by(by).agg(dcg=gain.sum())


def _taus(sums: Sequence[Floats], seed: int) -> list[Figure]:
    """Return Kendall's tau-b of the first ranking with every other one, with its interval."""
    width, stacked = sums[0].shape[1], np.concatenate(sums, axis=1)

    def statistic(totals: Floats) -> Floats:
        sums_by_source = [totals[..., start : start + width] for start in range(0, totals.shape[-1], width)]
        means = [divided(source_sums[..., :-1], source_sums[..., -1:]) for source_sums in sums_by_source]
        return np.stack([rank_correlation.kendall(means[0], mean) for mean in means[1:]], axis=-1)

    if width < 3:  # fewer than two systems have no order
        return [Figure(None)] * (len(sums) - 1)
    return measured(stacked, statistic, seed) if len(sums) > 1 else []


def _six(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)
