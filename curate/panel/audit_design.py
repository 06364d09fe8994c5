"""Sampling designs of an audit: strata, and the number of pairs to read per stratum.

`strata` and the default allocation are for false negatives and false positives; in simulations they halve the interval
of the false negatives where a quarter of the sample per cell (`cells`, `--target fp`) is spent on rare claims. The
false positives get a slightly wider interval.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import polars as pl

from curate.core.errors import ConfigError
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.panel.sampling_design import verdict_of
from curate.panel.voting import PAIR

LABELLED, UNLABELLED = ", legacy +", ", legacy -"
"""Suffixes of stratum names, after the verdict."""
NEAR, REST = f"not relevant, near{UNLABELLED}", f"not relevant, rest{UNLABELLED}"
"""The strata without a label that the panel does not claim as relevant; see `strata`."""
CLAIMED = f"relevant{UNLABELLED}"
"""The stratum of the false negatives that the panel claims."""
FP = "fp"
"""The `--target` of an audit sample for false positives: a quarter of the sample for each of the four `cells`."""
NEAR_TOP, GRADED_TOP = 10, 50
"""Last ranks of near pairs: of all, and of those with a grade above the worst."""


class _Group(NamedTuple):
    """Strata with a common share of the sample; groups are sorted by `order`."""

    order: int
    share: float
    least: int
    """Minimum pairs of each of its strata."""


def cells(verdicts: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every judged pair, sorted: its verdict, and whether it has a legacy label.

    The four cells of an audit, with or without legacy label x judged positive or not; the pairs not judged positive are
    further split by verdict, since far more of the contested ones are relevant. Samples for false positives are drawn
    from them, as all samples were before version 0.3.
    """
    return _named(verdicts, labels, pl.col("verdict"))


def strata(
    verdicts: pl.DataFrame, labels: pl.DataFrame, pool: pl.DataFrame, lexical: Collection[str], scale: Scale
) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every judged pair, sorted; at most seven strata.

    With a legacy label: relevant, contested, not relevant. Without one: relevant, contested, and not relevant `near` or
    `rest`. A near pair is in the top 10 of a lexical retriever, or in its top 50 with a grade above the worst of the
    scale. `lexical` are names of lexical retrievers; if the pool has no hit of one, a near pair is in the top 10 of any
    retriever. Incomplete pairs count as contested, and pairs of which a cascade left out votes
    (`not positive`) as not relevant.
    """
    hit, vote = (pl.element().struct.field(name) for name in ("rank", "grade"))
    of_lexical = pl.element().struct.field("retriever").is_in(sorted(lexical))
    ranks = pool.select(
        *PAIR,
        lexical=pl.col("hits").list.eval(hit.filter(of_lexical)).list.min(),
        any=pl.col("hits").list.eval(hit).list.min(),
    )
    has_lexical = ranks["lexical"].count() > 0
    rank, graded_top = ("lexical", GRADED_TOP) if has_lexical else ("any", NEAR_TOP)
    graded = pl.col("votes").list.eval(vote != scale.labels[-1]).list.any().fill_null(value=False)
    near = (pl.col(rank) <= NEAR_TOP) | (graded & (pl.col(rank) <= graded_top))
    negative = pl.col("verdict").is_in(["not relevant", "not positive"])
    name = (
        pl.when(pl.col("verdict") == "relevant")
        .then(pl.lit("relevant"))
        .when(negative)
        .then(pl.lit("not relevant"))
        .otherwise(pl.lit("contested"))
    )
    band = pl.when(near).then(pl.lit(", near")).otherwise(pl.lit(", rest"))
    ranked = verdicts.join(ranks, on=PAIR, how="left", maintain_order="left")
    return _named(ranked, labels, name, pl.when(negative).then(band).otherwise(pl.lit("")))


def _named(
    verdicts: pl.DataFrame, labels: pl.DataFrame, name: pl.Expr, unlabelled: pl.Expr | None = None
) -> pl.DataFrame:
    """Return the pairs with a stratum: `name`, then for pairs without label `unlabelled`, then the suffix."""
    marked = verdicts.join(labels.select(*PAIR, ending=pl.lit(LABELLED)), on=PAIR, how="left", maintain_order="left")
    suffix = pl.col("ending").fill_null((pl.lit("") if unlabelled is None else unlabelled) + UNLABELLED)
    return marked.select(*PAIR, stratum=name + suffix).sort(PAIR)


def allocate(
    sizes: Mapping[str, int], guesses: Mapping[str, float], size: int, target: str | None = None
) -> dict[str, int]:
    """Return stratum -> number of pairs to draw: shares of the sample for groups of strata, then Neyman's allocation.

    15 % of the sample is for pairs with a label, 25 % for those without one that are relevant or contested, the others
    for the negatives without one; with the target `fp` each of the four cells has a quarter. Pairs that a group lacks
    are drawn from the last group, the negatives without a label, where most errors are. ConfigError if the sample is
    too small for all strata.
    """
    members: dict[_Group, dict[str, int]] = {}
    for name, pairs in sizes.items():
        members.setdefault(_group(name, target), {})[name] = pairs
    *groups, last = sorted(members)
    drawn = {
        group: sum(min(group.least, pairs) for pairs in group_sizes.values()) for group, group_sizes in members.items()
    }
    remaining = min(size, sum(sizes.values())) - (fits := sum(drawn.values()))
    if remaining < 0:
        raise ConfigError(
            f"--size: found {size}, expected at least {fits} for the strata of this audit; use --size {fits}"
        )
    goals = [(group, int(group.share * size)) for group in groups]
    goals += [(group, size) for group in (last, *groups)]  # what the last group cannot use goes to the others
    for group, goal in goals:
        more = min(max(0, min(goal, sum(members[group].values())) - drawn[group]), remaining)
        drawn[group], remaining = drawn[group] + more, remaining - more
    return {
        name: pairs
        for group, group_sizes in members.items()
        for name, pairs in sampling_design.allocate(group_sizes, guesses, drawn[group], group.least).items()
    }


def _group(stratum: str, target: str | None) -> _Group:
    unlabelled, verdict = stratum.endswith(UNLABELLED), verdict_of(stratum)
    if target == FP:
        return _Group(2 * unlabelled + (verdict != "relevant"), 0.25, sampling_design.LEAST)
    if not unlabelled:
        return _Group(0, 0.15, sampling_design.LEAST)
    # twice as many: a hit in few rows of a large stratum would dominate the mean
    return _Group(*((2, 0.60) if verdict == "not relevant" else (1, 0.25)), 2 * sampling_design.LEAST)
