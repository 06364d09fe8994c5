"""Contested pairs for people to settle: those of the top tens of the pool's retrievers first, then the others by rank.

Scores are decided in the top tens, so there an answer counts most. The pairs are no random sample: their answers become
labels and are in no estimate of the pool.
"""

from pathlib import Path

import polars as pl

from curate.core.errors import DataError
from curate.panel import grade_sums
from curate.panel.voting import PAIR
from curate.review.drawing import SampleOptions, frozen
from curate.review.sample import Sample, Stratum
from curate.system.files import read_table

OF = "contested"
"""What such a sample is `of`."""
TOP = 10
"""Ranks of a system that count most: nDCG@10 and P@10 see no others."""
TENS, REST = "contested, top tens", "contested, below"


def ranked(run: Path) -> pl.DataFrame:
    """Return query_id, doc_id, stratum and rank of all contested pairs, in the order in which they are to be read.

    `rank` is the best one that a retriever of the pool gives. DataError where it is not known which are contested.
    """
    verdicts = read_table(run / "consensus", "verdicts")
    if hidden := grade_sums.spared(verdicts):
        raise DataError(
            f"{run}: a `positives` cascade gave up {hidden:,} pairs, and which of them are contested is not known; "
            "judge them in full first: `curate judge --set judge.cascade=null`"
        )
    best = read_table(run / "pool", "rankings").group_by(PAIR).agg(pl.col("rank").min().cast(pl.Int64))
    found = verdicts.filter(pl.col("verdict") == "contested").join(best, on=PAIR, how="left")
    if found.is_empty():
        raise DataError(f"{run}: no pair is contested, so there is nothing to settle")
    name = pl.when(pl.col("rank") <= TOP).then(pl.lit(TENS)).otherwise(pl.lit(REST))
    return found.select(*PAIR, "rank", stratum=name).sort("rank", *PAIR, nulls_last=True)


def in_top_tens(run: Path) -> int:
    """Return how many contested pairs lie in a top ten, all contested ones where none does."""
    found = ranked(run)
    return int((found["stratum"] == TENS).sum()) or found.height


def plan(run: Path, size: int) -> list[Stratum]:
    """Return how many contested pairs there are in and below the top tens, and how many of them would be read."""
    found = ranked(run)["stratum"]
    read = found.head(size)
    return [Stratum(name, int((found == name).sum()), int((read == name).sum())) for name in (TENS, REST)]


def draw(run: Path, order: SampleOptions) -> Sample:
    """Freeze the first contested pairs as a sample; none has a probability, for none is drawn by chance."""
    Sample.refuse(run / "reviews" / order.name)
    assert order.size is not None
    chosen = ranked(run).head(order.size).select(*PAIR, "stratum", probability=pl.lit(None, pl.Float64))
    return frozen(run, order, chosen, plan(run, order.size), {"of": OF})
