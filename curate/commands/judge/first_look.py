"""First look: the panel judges a few whole queries, and signs of trouble are shown before the rest is paid.

In batches, whose answers come within a day, and in a cascade, whose judges are asked one after the other, there is no
first look: the ratings are looked at in the end.
"""

import polars as pl

from curate.ask import collection
from curate.ask.panel_run import PanelRun
from curate.core.errors import UserError
from curate.core.scale import Scale
from curate.panel import sanity, voting
from curate.panel.sanity import Sanity
from curate.pipeline.stage import Context


def taken(run: PanelRun) -> PanelRun:
    """Have the panel rate a first part of the pool and tell what it shows; return the run with what is left to rate.

    UserError if fewer than a tenth of the queries would have a positive, and `sanity.stop` is set.
    """
    table, config = run.table, run.config
    pairs = sanity.first(table.pool.pairs, config.sanity.ratings, run.context.seed)
    if pairs.is_empty() or config.cascade or run.context.consent.batch or not run.asked():
        return run
    collection.rate(run.of(pairs))
    _look(run.ratings().join(pairs, on=voting.PAIR, how="semi"), config.sanity, run.context, table.rubric.scale)
    return run.of(table.pool.pairs)


def _look(ratings: pl.DataFrame, limits: Sanity, context: Context, scale: Scale) -> None:
    names = ratings["judge"].unique().sort().to_list()
    verdicts = voting.decide(ratings, names, context.policy, scale)
    kept = verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique()
    few = sanity.surely_few(kept, verdicts["query_id"].n_unique())
    if few and limits.stop:
        raise UserError(
            f"judge: {few}, of those judged first; every answer is kept. Look at the pool and the rubric, or go on "
            "with --set judge.sanity.stop=false"
        )
    least = min(sanity.LEAST, limits.ratings)
    signs = [*sanity.judges(ratings, scale, least), *sanity.panel(ratings, names, scale, least)]
    for line in (*signs, *([few] if few else [])):
        context.tell(f"judge: after {len(verdicts):,} pairs: {line}")
