"""Sample of contested pairs: first those in the top tens of the pool's retrievers, then the others by rank.

Scores depend on the top tens, so answers there matter most. The pairs are not a random sample: answers become labels,
but no estimate for the pool uses them.
"""

from pathlib import Path

import polars as pl

from curate.core.errors import DataError
from curate.core.figures import Record, figure
from curate.panel import voting
from curate.panel.voting import PAIR
from curate.review.drawing import SampleOptions, frozen
from curate.review.sample import Sample, Stratum
from curate.system.files import read_table

OF = "contested"
"""Value of the fact `of` of such a sample's design."""
TOP = 10
"""Number of ranks that nDCG@10 and P@10 use."""
TENS, REST = "contested, top tens", "contested, below"


def ranked(run: Path) -> pl.DataFrame:
    """Return query_id, doc_id, stratum and rank of all contested pairs, sorted by rank, the order of reading.

    `rank` is the best rank by a retriever of the pool, null without one. DataError if it is unknown which pairs are
    contested.
    """
    verdicts = read_table(run / "consensus", "verdicts")
    if hidden := voting.spared(verdicts):
        raise DataError(
            f"{run}: a `positives` cascade gave up {hidden:,} pairs, and which of them are contested is not known; "
            "judge them in full first: `curate judge --set judge.cascade=null`"
        )
    best = read_table(run / "pool", "rankings").group_by(PAIR).agg(pl.col("rank").min().cast(pl.Int64))
    pairs = verdicts.filter(pl.col("verdict") == "contested").join(best, on=PAIR, how="left")
    if pairs.is_empty():
        raise DataError(f"{run}: no pair is contested, so there is nothing to settle")
    name = pl.when(pl.col("rank") <= TOP).then(pl.lit(TENS)).otherwise(pl.lit(REST))
    return pairs.select(*PAIR, "rank", stratum=name).sort("rank", *PAIR, nulls_last=True)


def in_top_tens(run: Path) -> int:
    """Return the number of contested pairs in some retriever's top ten; if there are none, of all contested pairs."""
    pairs = ranked(run)
    return int((pairs["stratum"] == TENS).sum()) or pairs.height


class ContestedStratum(Record):
    """Contested pairs inside or below the top tens."""

    stratum: str = figure("place in the rankings")
    size: int = figure("pairs of the stratum")
    drawn: int = figure("pairs that are drawn")


class ContestedPlan(Record, schema_name="contested"):
    """Design of a sample of contested pairs."""

    strata: tuple[ContestedStratum, ...] = figure("a row per stratum")


def plan(run: Path, size: int) -> ContestedPlan:
    """Return the strata inside and below the top tens, with the number of pairs of each in a sample of `size`."""
    strata = ranked(run)["stratum"]
    read = strata.head(size)
    return ContestedPlan(
        tuple(ContestedStratum(name, int((strata == name).sum()), int((read == name).sum())) for name in (TENS, REST))
    )


def draw(run: Path, order: SampleOptions) -> Sample:
    """Freeze the first `order.size` contested pairs as a sample; not drawn at random, they have no probability."""
    Sample.refuse(run / "reviews" / order.name)
    assert order.size is not None
    chosen = ranked(run).head(order.size).select(*PAIR, "stratum", probability=pl.lit(None, pl.Float64))
    strata = [Stratum(entry.stratum, entry.size, entry.drawn) for entry in plan(run, order.size).strata]
    return frozen(run, order, chosen, strata, {"of": OF})
