"""Votes of a panel, verdicts under a consensus rule, and sums of grades to which a threshold applies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.config import Json, check
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.records import STOPPED, TABLES, VERDICTS, Columns
from curate.core.scale import Scale
from curate.panel import rules
from curate.panel.rules import ConsensusRule, Sides, VoteThresholds
from curate.stats import dawid_skene

PAIR = ["query_id", "doc_id"]
Policy = Literal["unanimous", "unanimous-grade", "majority", "dawid-skene"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""Ways from votes to verdicts, the strictest of the simple ones first; `unanimous` is the default."""
FITTED: Mapping[str, int] = {"dawid-skene": dawid_skene.LEAST}
"""Policies fitted to all pairs, so that a verdict depends on the other pairs too -> judges that they need."""
SIMPLE: Mapping[str, Callable[[Sequence[str]], VoteThresholds]] = {
    "unanimous": rules.unanimous,
    "majority": rules.majority,
}
"""Policies that are thresholds."""
EXPERTS = "expert-over-panel"
"""Value of the column `policy` for verdicts of experts."""
ACCEPTED = "accepted-by-sum"
"""Value of the column `policy` for verdicts by a reviewed threshold on the sum of grades."""
SETTLED = "settled-by-"
"""Prefix of the value of the column `policy`, before the judge's name, for verdicts of a tie-breaker judge."""
Codes = npt.NDArray[np.int64]


def name_of(policy: Policy | ConsensusRule) -> str:
    """Return a consensus rule in a few words, as tables and reports name it."""
    return policy.name if isinstance(policy, ConsensusRule) else policy


def by_policy() -> pl.Expr:
    """Return whether a row of `verdicts` is the consensus rule's: not of experts, a threshold or a tie-breaker."""
    return ~pl.col("policy").is_in([EXPERTS, ACCEPTED]) & ~pl.col("policy").str.starts_with(SETTLED)


def dumped(policy: Policy | ConsensusRule) -> Json:
    """Return a consensus rule in the form of settings; `loaded` reads it."""
    return policy.model_dump(mode="json") if isinstance(policy, ConsensusRule) else policy


def loaded(dumped_policy: Json) -> Policy | ConsensusRule:
    """Return the consensus rule that `dumped` wrote; ConfigError if it is not one."""
    if isinstance(dumped_policy, Mapping):
        return check(ConsensusRule, dumped_policy, rules.PLACE)
    by_name: dict[str, Policy] = {policy: policy for policy in POLICIES}
    if dumped_policy not in by_name:
        raise ConfigError(
            f"{rules.PLACE}: {suggestion(str(dumped_policy), POLICIES)}, or thresholds under positive and negative"
        )
    return by_name[str(dumped_policy)]


def votes(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> pl.DataFrame:
    """Return one row per pair, sorted: query_id, doc_id, and for each judge of the panel its grade, or None.

    `ratings` has the columns query_id, doc_id, judge, grade, and one row for a pair and a judge. Ratings by others than
    the panel are left out; a judge without any rating has a column of None. A grade that is not on the scale counts as
    None.
    """
    on_scale = pl.when(pl.col("grade").is_in(list(scale.labels))).then(pl.col("grade"))
    return _by_judge(ratings.with_columns(grade=on_scale), panel, "grade").sort(PAIR)


def _by_judge(ratings: pl.DataFrame, panel: Sequence[str], column: str) -> pl.DataFrame:
    return (
        ratings.filter(pl.col("judge").is_in(list(panel)))
        .pivot(on="judge", on_columns=list(panel), index=PAIR, values=column)
        .select(*PAIR, *panel)
    )


def unanimous(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> pl.DataFrame:
    """Return the `verdicts` table of ratings: relevant or not relevant only if all judges agree."""
    return decide(ratings, panel, "unanimous", scale)


def decide(ratings: pl.DataFrame, panel: Sequence[str], policy: Policy | ConsensusRule, scale: Scale) -> pl.DataFrame:
    """Return the `verdicts` table of ratings by a consensus rule; votes for relevant are grades from the threshold on.

    `unanimous`: the whole panel is on one side. `unanimous-grade`: it gives one grade. `majority`: more than half of
    the panel is on one side. `dawid-skene`: the likelier side by `dawid_skene`, fitted to the grades of all pairs; it
    assumes that judges err independently, so two judges with the same errors outvote a third. A ConsensusRule: by its
    thresholds.

    Other pairs are contested if no missing vote could decide them, or if judges already disagree (on the side for
    `unanimous` and `majority`, on the grade for `unanimous-grade`), even if a third is missing. A pair that can no
    longer become relevant, and for which a cascade skipped a judge (status `stopped`), is not positive; any other pair
    without a grade is incomplete. Votes hold every judge of the panel, by name. DataError for `dawid-skene`
    with fewer than three judges, ConfigError for a rule that does not fit the panel.
    """
    panel = sorted(panel)
    table = asked(ratings, panel, scale)
    sides = outcomes(table, panel, policy, scale)
    verdict = (
        pl.when(sides.relevant)
        .then(pl.lit("relevant"))
        .when(sides.against)
        .then(pl.lit("not relevant"))
        .when(sides.contested)
        .then(pl.lit("contested"))
        .when(pl.col(STOPPED) & ~sides.may_be_relevant)
        .then(pl.lit("not positive"))
        .otherwise(pl.lit("incomplete"))
    )
    vote_columns = [pl.struct(judge=pl.lit(judge), grade=pl.col(judge)) for judge in panel]
    decided = table.with_columns(verdict=verdict, votes=pl.concat_list(vote_columns), policy=pl.lit(name_of(policy)))
    schema = pl.Schema(TABLES["verdicts"])
    return decided.select(schema.names()).cast(schema)


def asked(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> pl.DataFrame:
    """Return the table of `votes` with boolean columns: `stopped`, and per judge the one that `silence` names.

    `stopped` is whether a cascade skipped a judge of the pair. Without a column `status` no judge was skipped or
    abstained.
    """
    if "status" not in ratings.columns:
        ratings = ratings.with_columns(status=pl.lit("rated"))
    flagged = ratings.with_columns(
        silent=pl.col("status").is_in(["refused", "unparsed"]), stopped=pl.col("status") == STOPPED
    )
    silent = _by_judge(flagged, panel, "silent").rename({judge: silence(judge) for judge in panel})
    spared = flagged.group_by(PAIR).agg(pl.col("stopped").any())
    table = votes(ratings, panel, scale)
    for columns in (silent, spared):
        table = table.join(columns, on=PAIR, how="left", maintain_order="left")
    return table.with_columns(pl.col(STOPPED, *map(silence, panel)).fill_null(value=False))


def silence(judge: str) -> str:
    """Return the column that holds whether a judge abstained."""
    return f"silent {judge}"


def outcomes(table: pl.DataFrame, panel: Sequence[str], policy: Policy | ConsensusRule, scale: Scale) -> Sides:
    """Return the outcome of a consensus rule for every pair of a `votes` table with the columns of `silence`."""
    if policy == "dawid-skene":
        return _fitted(table, panel, scale)
    if policy == "unanimous-grade":
        return _one_grade(panel, scale)
    rule = policy.bound(panel) if isinstance(policy, ConsensusRule) else SIMPLE[policy](panel)
    return rule.sides(scale, [pl.col(silence(judge)) for judge in panel])


def _one_grade(panel: Sequence[str], scale: Scale) -> Sides:
    grades = pl.concat_list(panel).list.drop_nulls()
    split = grades.list.n_unique() > 1
    unanimous = (grades.list.len() == len(panel)) & ~split
    yes = grades.list.first().is_in(list(scale.relevant))
    return Sides(unanimous & yes, unanimous & ~yes, split, unanimous | split, ~split & yes.fill_null(value=True))


def _fitted(table: pl.DataFrame, panel: Sequence[str], scale: Scale) -> Sides:
    chances = dawid_skene.fit(coded(table, panel, scale), len(scale.labels)).posterior
    relevant = [label in scale.relevant for label in scale.labels]
    chance = pl.lit(pl.Series(chances[:, relevant].sum(axis=1)).round(9))
    sides = [pl.col(judge).is_in(list(scale.relevant)) for judge in panel]
    yes, no = pl.any_horizontal(sides), pl.any_horizontal(~side for side in sides)
    complete = pl.all_horizontal(pl.col(panel).is_not_null())
    for_, against = complete & (chance > 0.5), complete & (chance < 0.5)
    return Sides(for_, against, (yes & no) | complete, complete, pl.lit(value=True))


def counts(verdicts: pl.DataFrame, queries: int) -> dict[str, Json]:
    """Return the pairs of a `verdicts` table by verdict, in all and per query; means are None without queries."""
    by_verdict: dict[str, int] = {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}
    return {
        **by_verdict,
        "queries": queries,
        "queries_with_a_positive": verdicts.filter(pl.col("verdict") == "relevant")["query_id"].n_unique(),
        **{f"{name}_per_query": round(count / queries, 4) if queries else None for name, count in by_verdict.items()},
    }


def refined_out(verdicts: pl.DataFrame) -> list[str]:
    """Return the documents a refined corpus leaves out: contested or incomplete for some query, relevant to none."""
    doubtful = verdicts.filter(pl.col("verdict").is_in(["contested", "incomplete"]))["doc_id"]
    positive = verdicts.filter(pl.col("verdict") == "relevant")["doc_id"]
    return sorted(set(doubtful) - set(positive))


def codes(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> Codes:
    """Return the grades as indexes on the scale, shape (pairs, judges): 0 the best, -1 none; pairs are sorted."""
    return coded(votes(ratings, panel, scale), panel, scale)


def coded(table: pl.DataFrame, panel: Sequence[str], scale: Scale) -> Codes:
    """Return the grades in a table of `votes` as indexes on the scale, like `codes`."""
    codes_by_label = {label: code for code, label in enumerate(scale.labels)}
    return table.select(pl.col(panel).replace_strict(codes_by_label, default=-1, return_dtype=pl.Int64)).to_numpy()


def sides(grades: Codes, scale: Scale) -> Codes:
    """Return codes of grades as sides of the relevance threshold: 0 relevant, 1 not relevant, -1 for none."""
    side = np.array([label not in scale.relevant for label in scale.labels] + [-1])
    return side[grades]


# Sums of a panel's grades: the frame of pairs for which a threshold can be tested, and the labels by a threshold.

FRAME: Columns = {"query_id": pl.String, "doc_id": pl.String, "sum": pl.Int64}
"""Columns of a frame."""
MEAN = 1
"""Mean gain of a judge's grade at the lower end of the frame."""


def with_sums(verdicts: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return a `verdicts` table with `sum`, the sum of the gains; None where a judge gave no grade."""
    worth = dict(zip(scale.labels, scale.gains, strict=True))
    gains = pl.col("votes").list.eval(
        pl.element().struct.field("grade").replace_strict(worth, default=None, return_dtype=pl.Int64)
    )
    complete = gains.list.eval(pl.element().is_null()).list.any().not_() & (gains.list.len() > 0)
    return verdicts.with_columns(sum=pl.when(complete).then(gains.list.sum()))


def lowest(verdicts: pl.DataFrame) -> int:
    """Return the lowest sum of gains that a review samples: `MEAN` per judge of the panel; DataError without votes."""
    judges = verdicts["votes"].list.len().max() if len(verdicts) else None
    if not isinstance(judges, int) or not judges:
        raise DataError("verdicts: found no votes, expected those of a panel; run `curate consensus` again")
    return MEAN * judges


def frame(verdicts: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and sum of the frame: the pairs whose sum of gains is `lowest` or more, sorted by key."""
    return with_sums(verdicts, scale).filter(pl.col("sum") >= lowest(verdicts)).select(*FRAME).sort(PAIR)


def publish(verdicts: pl.DataFrame, scale: Scale, least: int) -> pl.DataFrame:
    """Return the verdicts by a threshold: relevant are exactly the pairs whose grades add up to `least` or more.

    A pair below it that the consensus rule finds relevant becomes contested, or incomplete if a grade is missing: the
    tested error rate is that of the pairs above. All other verdicts stay. DataError for a threshold below the frame,
    where no pair was reviewed.
    """
    if least < lowest(verdicts):
        raise DataError(
            f"accept: found the threshold {least}, below the lowest sum {lowest(verdicts)} of the frame that a review "
            "samples; expected one that a review has proved"
        )
    summed = with_sums(verdicts, scale)
    relevant = (pl.col("sum") >= least).fill_null(value=False)
    fallen = (pl.col("verdict") == "relevant") & ~relevant
    verdict = (
        pl.when(relevant)
        .then(pl.lit("relevant"))
        .when(fallen & pl.col("sum").is_null())
        .then(pl.lit("incomplete"))
        .when(fallen)
        .then(pl.lit("contested"))
        .otherwise("verdict")
    )
    policy = pl.when(relevant | fallen).then(pl.lit(ACCEPTED)).otherwise("policy")
    return summed.with_columns(verdict=verdict, policy=policy).select(verdicts.columns)


def settle(verdicts: pl.DataFrame, grades: pl.DataFrame, scale: Scale, policy: str) -> pl.DataFrame:
    """Return the verdicts with contested pairs decided by one judge's grades (query_id, doc_id, grade).

    Their column `policy` becomes `policy`. A pair without a grade stays contested.
    """
    sides = grades.drop_nulls("grade").select(*PAIR, settling=pl.col("grade").is_in(list(scale.relevant)))
    both = verdicts.join(sides, on=PAIR, how="left", maintain_order="left")
    open_ = (pl.col("verdict") == "contested") & pl.col("settling").is_not_null()
    side = pl.when("settling").then(pl.lit("relevant")).otherwise(pl.lit("not relevant"))
    return both.with_columns(
        verdict=pl.when(open_).then(side).otherwise("verdict"),
        policy=pl.when(open_).then(pl.lit(policy)).otherwise("policy"),
    ).select(verdicts.columns)


def spared(verdicts: pl.DataFrame) -> int:
    """Return the number of pairs that a `positives` cascade skipped, so that the sums of their gains are unknown."""
    return int((verdicts["verdict"] == "not positive").sum())


def open_sums(verdicts: pl.DataFrame, stopped: pl.DataFrame, scale: Scale) -> int:
    """Return the number of pairs that may belong to the frame although a cascade skipped a judge (`stopped`: keys)."""
    if stopped.is_empty():
        return 0
    worth = dict(zip(scale.labels, scale.gains, strict=True))
    top = scale.gains[0]
    gains = pl.col("votes").list.eval(
        pl.element().struct.field("grade").replace_strict(worth, default=top, return_dtype=pl.Int64)
    )
    could = verdicts.join(stopped.select(PAIR).unique(), on=PAIR, how="semi").select(most=gains.list.sum())["most"]
    return int((could >= lowest(verdicts)).sum())
