"""Judge cascade: expensive judges are asked only for pairs that cheap ones leave open.

`exact` skips pairs whose verdict no missing vote can change, so the verdicts stay the same. `positives` skips pairs
that can no longer become relevant, so the positives stay the same, but skipped pairs get no further verdict. The
consensus rule decides: under unanimity these are pairs on which earlier judges disagree or one of them finds not
relevant. Both assume that a grade does not depend on the other passages of the prompt. A random sample, drawn before
any judge is asked, is judged in full: agreement is measured on it.
"""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from curate.core.errors import ConfigError
from curate.core.sampling import generator
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy

Mode = Literal["exact", "positives"]


def sample(pairs: pl.DataFrame, share: float, least: int, seed: int) -> pl.DataFrame:
    """Return the pairs that every judge rates: a random share, at least `least`, all if there are no more; sorted."""
    ordered = pairs.select(PAIR).sort(PAIR)
    size = min(max(round(share * len(ordered)), least), len(ordered))
    rows = sorted(generator(seed, "cascade").sample(range(len(ordered)), size))
    return ordered[rows]


def refuse(mode: Mode | None, policy: Policy | ConsensusRule) -> None:
    """Raise ConfigError for a consensus rule whose verdicts a cascade cannot keep."""
    if mode is None:
        return
    if policy == "dawid-skene":
        raise ConfigError(
            "judge.cascade: dawid-skene weighs every vote of every pair, so no pair is settled early; leave the "
            "cascade out, or take another consensus.policy"
        )
    if mode == "exact" and isinstance(policy, ConsensusRule) and policy.weights:
        raise ConfigError(
            "judge.cascade: `exact` keeps verdicts for votes that count alike, and consensus.policy has weights; leave "
            "the cascade or the weights out"
        )


def wanted(
    pairs: pl.DataFrame,
    earlier: Sequence[pl.DataFrame],
    mode: Mode,
    always: pl.DataFrame,
    panel: Sequence[str],
    policy: Policy | ConsensusRule,
    scale: Scale,
) -> pl.DataFrame:
    """Return the pairs that the next judge has to rate, in the order given.

    `earlier` has the ratings (query_id, doc_id, judge, grade, status) of the judges before; a pair without a grade of
    one of them stays open if that vote could decide it.
    """
    columns = dict.fromkeys([*PAIR, "judge", "grade", "status"], pl.String)
    ratings = pl.concat([pl.DataFrame(schema=columns), *(of_judge.select(*columns) for of_judge in earlier)])
    table = voting.asked(ratings, panel, scale)
    sides = voting.outcomes(table, panel, policy, scale)
    enough = sides.settled if mode == "exact" else sides.relevant | ~sides.may_be_relevant
    closed = table.filter(enough).select(PAIR)
    open_ = pairs.join(closed, on=PAIR, how="anti", maintain_order="left")
    chosen = pl.concat([open_.select(PAIR), always.select(PAIR)]).unique()
    return pairs.join(chosen, on=PAIR, how="semi", maintain_order="left")


def saved(pairs: int, asked: Sequence[int]) -> float | None:
    """Return the share of ratings saved, 0 to 1; `asked` are the pairs per judge; None without pairs."""
    all_ratings = pairs * len(asked)
    return 1 - sum(asked) / all_ratings if all_ratings else None
