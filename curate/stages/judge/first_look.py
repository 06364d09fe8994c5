"""First look: the panel judges a few whole queries, and signs of trouble are shown before the rest is paid.

In batches, whose answers come within a day, and in a cascade, whose judges are asked one after the other, there is no
first look: the ratings are looked at in the end.
"""

from typing import Protocol

import polars as pl

from curate.core.errors import UserError
from curate.panel import sanity, voting
from curate.panel.sanity import Sanity
from curate.stages.asking import consent
from curate.stages.asking.panel_state import JudgeState, PanelState, paid
from curate.stages.context import Context


class FirstLookSettings(consent.AskingSettings, Protocol):
    """What the settings of the judge stage say of it."""

    sanity: Sanity


def taken(table: PanelState, panel: list[JudgeState], config: FirstLookSettings, context: Context) -> list[JudgeState]:
    """Have the panel rate a first part of the pool and tell what it shows; return what is left to rate.

    UserError if fewer than a tenth of the queries would have a positive, and `sanity.stop` is set.
    """
    pairs = sanity.first(table.pool.pairs, config.sanity.ratings, context.seed)
    if pairs.is_empty() or config.cascade or context.consent.batch or not any(seat.work for seat in paid(panel)):
        return panel
    consent.rate(table, [table.left(seat, pairs) for seat in panel], config, context)
    _look(pl.concat([table.snapshot(seat) for seat in panel]).join(pairs, on=voting.PAIR, how="semi"), config, context)
    return [table.left(seat, table.pool.pairs) for seat in panel]


def _look(ratings: pl.DataFrame, config: FirstLookSettings, context: Context) -> None:
    names = ratings["judge"].unique().sort().to_list()
    verdicts = voting.unanimous(ratings, names)
    kept = verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique()
    few = sanity.surely_few(kept, verdicts["query_id"].n_unique())
    if few and config.sanity.stop:
        raise UserError(
            f"judge: {few}, of those judged first; every answer is kept. Look at the pool and the rubric, or go on "
            "with --set judge.sanity.stop=false"
        )
    least = min(sanity.LEAST, config.sanity.ratings)
    for line in (*sanity.judges(ratings, least), *sanity.panel(ratings, names, least), *([few] if few else [])):
        context.tell(f"judge: after {len(verdicts):,} pairs: {line}")
