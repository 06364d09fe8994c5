"""Votes and verdicts: what the panel decided on each pair."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json
from curate.core.records import CUT, GRADES, STOPPED, TABLES, VERDICTS
from curate.stats import dawid_skene

PAIR = ["query_id", "doc_id"]
Policy = Literal["unanimous", "unanimous-grade", "majority", "dawid-skene"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""Ways from votes to verdicts, the strictest of the simple ones first; `unanimous` is the default."""
FITTED: Mapping[str, int] = {"dawid-skene": dawid_skene.LEAST}
"""Policies fitted to all pairs, so that a verdict depends on the other pairs too -> judges that they need."""
EXPERTS = "expert-over-panel"
"""Written in the place of a policy where people decided, over the panel."""
Codes = npt.NDArray[np.int64]


def votes(ratings: pl.DataFrame, panel: Sequence[str]) -> pl.DataFrame:
    """Return one row per pair, sorted: query_id, doc_id, and for each judge of the panel its grade, or None.

    `ratings` has the columns query_id, doc_id, judge, grade, and one row for a pair and a judge. Ratings by others
    than the panel are left out; a judge without any rating has a column of None. A grade that is not on the scale is
    none.
    """
    known = pl.when(pl.col("grade").is_in(list(GRADES))).then(pl.col("grade"))
    return (
        ratings.filter(pl.col("judge").is_in(list(panel)))
        .with_columns(grade=known)
        .pivot(on="judge", on_columns=list(panel), index=PAIR, values="grade")
        .select(*PAIR, *panel)
        .sort(PAIR)
    )


def unanimous(ratings: pl.DataFrame, panel: Sequence[str]) -> pl.DataFrame:
    """Return the `verdicts` table of ratings: relevant or not only if the whole panel says so."""
    return decide(ratings, panel, "unanimous")


def decide(ratings: pl.DataFrame, panel: Sequence[str], policy: Policy) -> pl.DataFrame:
    """Return the `verdicts` table of ratings under a policy. The cut is binary: S and A are relevant, the others not.

    `unanimous`: the whole panel is on one side. `unanimous-grade`: it gives one grade. `majority`: more than half of
    the panel is on one side. `dawid-skene`: the likelier side by `dawid_skene`, fitted to the five grades of all pairs;
    it assumes that judges err independently, so that two which err alike outvote a third.

    What is left is contested if the whole panel spoke, or if judges already disagree (on the side; on the grade for
    `unanimous-grade`), even if a third is missing. A pair that a judge found not relevant, nobody relevant, and others
    were not asked for (status `stopped`) is not positive; any other pair that lacks a grade is incomplete. Votes hold
    every judge of the panel, by name. DataError for `dawid-skene` with fewer than three judges.
    """
    panel = sorted(panel)
    spared = ratings.filter(pl.col("status") == STOPPED) if "status" in ratings.columns else ratings.clear()
    asked = votes(ratings, panel).join(
        spared.select(*PAIR, stopped=pl.lit(1)).unique(), on=PAIR, how="left", maintain_order="left"
    )
    grades = pl.concat_list(panel).list.drop_nulls()
    yes = pl.sum_horizontal(pl.col(judge).is_in(list(CUT)) for judge in panel)
    said = grades.list.len().cast(pl.Int64)
    split = (grades.list.n_unique() > 1) if policy == "unanimous-grade" else (yes > 0) & (yes < said)
    relevant, against = _sides(asked, panel, policy, yes, said)
    verdict = (
        pl.when((said > 0) & (yes == 0) & pl.col("stopped").is_not_null())
        .then(pl.lit("not positive"))
        .when(relevant)
        .then(pl.lit("relevant"))
        .when(against)
        .then(pl.lit("not relevant"))
        .when(split | (said == len(panel)))
        .then(pl.lit("contested"))
        .otherwise(pl.lit("incomplete"))
    )
    each = [pl.struct(judge=pl.lit(judge), grade=pl.col(judge)) for judge in panel]
    decided = asked.with_columns(verdict=verdict, votes=pl.concat_list(each), policy=pl.lit(policy))
    schema = pl.Schema(TABLES["verdicts"])
    return decided.select(schema.names()).cast(schema)


def _sides(
    table: pl.DataFrame, panel: Sequence[str], policy: Policy, yes: pl.Expr, said: pl.Expr
) -> tuple[pl.Expr, pl.Expr]:
    """Return for which pairs a policy says relevant, and for which not relevant."""
    size = len(panel)
    if policy == "majority":
        return 2 * yes > size, 2 * (said - yes) > size
    if policy == "dawid-skene":
        chances = dawid_skene.fit(coded(table, panel), len(GRADES)).posterior
        chance = pl.lit(pl.Series(chances[:, [grade in CUT for grade in GRADES]].sum(axis=1)).round(9))
        return (said == size) & (chance > 0.5), (said == size) & (chance < 0.5)
    one = pl.all_horizontal(pl.col(judge) == pl.col(panel[0]) for judge in panel)
    agreed = (said == size) & (one if policy == "unanimous-grade" else pl.lit(True))
    return agreed & (yes == size), agreed & (yes == 0)


def counts(verdicts: pl.DataFrame, queries: int) -> dict[str, Json]:
    """Return the pairs of a `verdicts` table by verdict, in all and per query; means are None without queries."""
    found: dict[str, int] = {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}
    return {
        **found,
        "queries": queries,
        "queries_with_a_positive": verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique(),
        **{f"{name}_per_query": round(count / queries, 4) if queries else None for name, count in found.items()},
    }


def codes(ratings: pl.DataFrame, panel: Sequence[str]) -> Codes:
    """Return the grades as whole numbers, shape (pairs, judges): 0 for S to 4 for D, -1 for none; pairs are sorted."""
    return coded(votes(ratings, panel), panel)


def coded(table: pl.DataFrame, panel: Sequence[str]) -> Codes:
    """Return the grades in a table of `votes` as whole numbers, as `codes` does."""
    places = {grade: place for place, grade in enumerate(GRADES)}
    return table.select(pl.col(panel).replace_strict(places, default=-1, return_dtype=pl.Int64)).to_numpy()


def sides(grades: Codes) -> Codes:
    """Return codes of grades as sides of the cut: 0 relevant, 1 not relevant, -1 for none."""
    side = np.array([grade not in CUT for grade in GRADES] + [-1])
    return side[grades]
