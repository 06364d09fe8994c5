"""From ratings to verdicts: what the panel decided on each pair."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.records import CUT, GRADES, STOPPED, TABLES

PAIR = ["query_id", "doc_id"]
Codes = npt.NDArray[np.int64]


def votes(ratings: pl.DataFrame, panel: Sequence[str]) -> pl.DataFrame:
    """Return one row a pair, sorted: query_id, doc_id, and for each judge of the panel its grade, or None.

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
    """Return the `verdicts` table of ratings: relevant or not only if the whole panel says so.

    The cut is binary: S and A are relevant, B, C and D are not. Two judges on different sides make a pair
    contested, even if a third is missing. A pair that a judge found not relevant and others were not asked for
    (status `stopped`) is not positive; any other pair that lacks a grade is incomplete. Votes hold every judge of the
    panel, by name.
    """
    panel = sorted(panel)
    spared = ratings.filter(pl.col("status") == STOPPED) if "status" in ratings.columns else ratings.clear()
    stopped = spared.select(*PAIR, stopped=pl.lit(1)).unique()
    yes = pl.sum_horizontal(pl.col(judge).is_in(list(CUT)) for judge in panel)
    said = pl.sum_horizontal(pl.col(judge).is_not_null() for judge in panel)
    verdict = (
        pl.when((yes > 0) & (yes < said))
        .then(pl.lit("contested"))
        .when((said > 0) & (yes == 0) & pl.col("stopped").is_not_null())
        .then(pl.lit("not positive"))
        .when(said < len(panel))
        .then(pl.lit("incomplete"))
        .when(yes > 0)
        .then(pl.lit("relevant"))
        .otherwise(pl.lit("not relevant"))
    )
    each = [pl.struct(judge=pl.lit(judge), grade=pl.col(judge)) for judge in panel]
    asked = votes(ratings, panel).join(stopped, on=PAIR, how="left", maintain_order="left")
    decided = asked.with_columns(verdict=verdict, votes=pl.concat_list(each), policy=pl.lit("unanimous"))
    schema = pl.Schema(TABLES["verdicts"])
    return decided.select(schema.names()).cast(schema)


def codes(ratings: pl.DataFrame, panel: Sequence[str]) -> Codes:
    """Return the grades as whole numbers, shape (pairs, judges): 0 for S to 4 for D, -1 for none; pairs are sorted."""
    places = {grade: place for place, grade in enumerate(GRADES)}
    grades = votes(ratings, panel).select(panel)
    return grades.select(pl.all().replace_strict(places, default=-1, return_dtype=pl.Int64)).to_numpy()


def sides(grades: Codes) -> Codes:
    """Return codes of grades as sides of the cut: 0 relevant, 1 not relevant, -1 for none."""
    side = np.array([grade not in CUT for grade in GRADES] + [-1])
    return side[grades]
