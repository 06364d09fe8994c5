"""Judge cascade: expensive judges are asked only for pairs that cheap ones leave open.

`exact` leaves out pairs on which earlier judges already disagree: they are contested in any case, so the
verdicts stay the same. `positives` leaves out pairs that an earlier judge finds not relevant: they cannot become
positives, so the positives stay the same, and no more is known of what was left out. Both hold for judges whose grade
of a passage does not depend on what else stands in the prompt. A random sample is judged in full in any case, and
drawn before any judge is asked: agreement is measured on it.
"""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from curate.core.records import CUT
from curate.core.sampling import generator

PAIR = ["query_id", "doc_id"]
Mode = Literal["exact", "positives"]


def sample(pairs: pl.DataFrame, share: float, least: int, seed: int) -> pl.DataFrame:
    """Return the pairs that every judge rates: a random share, at least `least`, all if there are no more; sorted."""
    ordered = pairs.select(PAIR).sort(PAIR)
    size = min(max(round(share * len(ordered)), least), len(ordered))
    places = sorted(generator(seed, "cascade").sample(range(len(ordered)), size))
    return ordered[places]


def wanted(pairs: pl.DataFrame, earlier: Sequence[pl.DataFrame], mode: Mode, always: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs that the next judge has to rate, in the order given.

    `earlier` has a frame of query_id, doc_id, grade for each judge before; a pair that lacks a grade there stays open.
    """
    relevant = pl.col("grade").is_in(list(CUT))
    said = pl.concat(
        [
            pl.DataFrame(schema={**dict.fromkeys(PAIR, pl.String), "grade": pl.String}),
            *(each.select(*PAIR, "grade") for each in earlier),
        ]
    ).drop_nulls("grade")
    votes = said.group_by(PAIR).agg(yes=relevant.any(), no=(~relevant).any())
    closed = votes.filter(pl.col("yes") & pl.col("no") if mode == "exact" else pl.col("no")).select(PAIR)
    open_ = pairs.join(closed, on=PAIR, how="anti", maintain_order="left")
    chosen = pl.concat([open_.select(PAIR), always.select(PAIR)]).unique()
    return pairs.join(chosen, on=PAIR, how="semi", maintain_order="left")


def saved(pairs: int, asked: Sequence[int]) -> float | None:
    """Return the share of ratings that was not needed, from 0 to 1, given what each judge was asked; None for none."""
    whole = pairs * len(asked)
    return 1 - sum(asked) / whole if whole else None
