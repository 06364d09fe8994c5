"""Control pairs with known answers, to qualify a judge before a pool is paid for.

Positives were planted or confirmed by an assessor. Negatives are half pairs that an assessor rejected among the first
20 of a pool, and half random documents that nobody pooled; if few were rejected, random ones replace them.
Balanced accuracy on the cut is the mean of the two classes' shares of right answers, so it does not depend on how many
controls each class has, and a judge that says the same of everything has 0.5.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from curate.core.sampling import generator, shuffled
from curate.core.scale import Scale
from curate.panel import adversarial
from curate.panel.adversarial import FamilyResult
from curate.stats.sample_estimates import Estimate, wilson

PAIR = ["query_id", "doc_id"]
FLOOR = 0.8
LEAST = 50
TOP = 20
"""Rejected pairs are drawn from the first TOP positions of a pool, where negatives are hard."""
_TRIES = 50
"""Maximum random documents tried for one outside of the pool."""

State = Literal["passed", "weak", "not enough"]


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of a judge on controls; shares of right answers, 0 to 1, are None without answers."""

    state: State
    value: float | None
    """Balanced accuracy: the mean of the two shares."""
    low: float | None
    high: float | None
    positives: Estimate | None
    negatives: Estimate | None
    random: Estimate | None
    rejected: Estimate | None
    unanswered: int
    """Controls without a grade: refused, unparsed or failed. They are in no share."""
    adversarial: Mapping[str, FamilyResult] = field(default_factory=dict)
    """Family of adversarial controls -> result; a failed family makes a judge weak."""

    @property
    def fooled(self) -> list[str]:
        """Return the failed families."""
        return [family for family, family_result in self.adversarial.items() if family_result.failed]


def draw(
    known: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], size: int, seed: int, scale: Scale
) -> pl.DataFrame:
    """Return controls, at most `size` of each class: query_id, doc_id, kind (positive, rejected, random), sorted.

    `known` has query_id, doc_id, grade by people, a row per pair; `pool` query_id, doc_id, position from 1; `documents`
    all ids of the corpus. Random negatives use the queries with positives in turn, so that a query does not reveal the
    class.
    """
    known_of_pool = known.filter(pl.col("query_id").is_in(pool["query_id"].unique().implode()))
    relevant = pl.col("grade").is_in(list(scale.relevant))
    good = _drawn_pairs(known_of_pool.filter(relevant), size, seed, "positive")
    near = pool.filter(pl.col("position") <= TOP).select(PAIR)
    bad = _drawn_pairs(known_of_pool.filter(~relevant).join(near, on=PAIR, how="semi"), size // 2, seed, "rejected")
    queries = good["query_id"].unique().sort().to_list() or pool["query_id"].unique().sort().to_list()
    excluded = {*pool.select(PAIR).iter_rows(), *known.select(PAIR).iter_rows()}
    random = strangers(queries, documents, excluded, size - len(bad), seed)
    return pl.concat([good, bad, random]).sort(PAIR)


def without_people(
    likely: pl.DataFrame, pool: pl.DataFrame, documents: Sequence[str], size: int, seed: int
) -> pl.DataFrame:
    """Return controls at `size` queries that nobody graded: query_id, doc_id, kind (likely, swapped, random), sorted.

    `likely` are probably relevant pairs: every query gets one of its own, one of another query unless that is in its
    pool, and a random document outside of its pool.
    """
    by_query = {str(name): sorted(group["doc_id"]) for (name,), group in likely.group_by("query_id")}
    chosen = shuffled(sorted(by_query), seed, "controls", "likely")[:size]
    likely_doc = {query: shuffled(by_query[query], seed, "controls", "likely", query)[0] for query in chosen}
    pooled = set(pool.select(PAIR).iter_rows())
    pairs = [
        (query, likely_doc[other_query]) for query, other_query in zip(chosen, [*chosen[1:], *chosen[:1]], strict=True)
    ]
    swapped = [pair for pair in pairs if pair not in pooled]
    random = strangers(chosen, documents, {*pooled, *swapped}, len(chosen), seed)
    return pl.concat([_frame(list(likely_doc.items()), "likely"), _frame(swapped, "swapped"), random]).sort(PAIR)


def among(controls: pl.DataFrame, pool: pl.DataFrame, batch: int, seed: int) -> pl.DataFrame:
    """Return the pairs of the prompts with controls, sorted: at most half of a prompt are controls.

    The others are drawn at random from the query's pool, so that the prompts are as large as ordinary ones; fewer if
    the pool is too small.
    """
    pooled = {str(name): sorted(group["doc_id"]) for (name,), group in pool.group_by("query_id")}
    rows: list[tuple[str, str]] = []
    for (name,), group in controls.group_by("query_id", maintain_order=True):
        query_id, control_ids = str(name), set(group["doc_id"])
        room = math.ceil(len(control_ids) / max(batch // 2, 1)) * batch - len(control_ids)
        others = [doc_id for doc_id in pooled.get(query_id, []) if doc_id not in control_ids]
        fillers = shuffled(others, seed, "controls", "beside", query_id)[:room]
        over = (len(control_ids) + len(fillers)) % batch  # a smaller prompt could be told from ordinary ones
        used_fillers = fillers[: len(fillers) - over] if over <= len(fillers) else fillers
        rows += [(query_id, doc_id) for doc_id in (*control_ids, *used_fillers)]
    return pl.DataFrame(rows, dict.fromkeys(PAIR, pl.String), orient="row").sort(PAIR)


def measure(said: pl.DataFrame, scale: Scale, floor: float = FLOOR, least: int = LEAST) -> Accuracy:
    """Return the accuracy from rows of `kind` and `grade` (None without one), and whether it passes the gate.

    Adversarial controls have kinds of their own and are in no other share. A judge passes if the lower end of the 95 %
    interval is at least `floor` and no adversarial family is failed. With fewer than `least` answers in a class it is
    `not enough`, or `weak` if even the upper end is below `floor`.

    The shares have Wilson's intervals, their mean the one that Newcombe (1998) gives the difference of two proportions,
    here for a mean: value -+ sqrt(d1^2 + d2^2) / 2, d the distances to Wilson's ends.
    """
    rated = said.drop_nulls("grade").with_columns(relevant=pl.col("grade").is_in(list(scale.relevant)))
    kinds = {
        kind: rated.filter(pl.col("kind") == kind)["relevant"].to_list() for kind in ("positive", "random", "rejected")
    }
    yes, random, rejected = kinds["positive"], kinds["random"], kinds["rejected"]
    good = wilson(sum(yes), len(yes))
    bad = wilson(sum(not relevant for relevant in (*random, *rejected)), len(random) + len(rejected))
    balanced, low, high = _balanced(good, bad) if good and bad else (None, None, None)
    short = min(len(yes), len(random) + len(rejected)) < least
    families = adversarial.measure(said, scale)
    weak = low is not None and high is not None and (high < floor or (low < floor and not short))
    weak = weak or any(family.failed for family in families.values())
    return Accuracy(
        state="weak" if weak else "not enough" if short else "passed",
        value=balanced,
        low=low,
        high=high,
        positives=good,
        negatives=bad,
        random=wilson(sum(not relevant for relevant in random), len(random)),
        rejected=wilson(sum(not relevant for relevant in rejected), len(rejected)),
        unanswered=len(said) - len(rated),
        adversarial=families,
    )


def _balanced(good: Estimate, bad: Estimate) -> tuple[float, float, float]:
    """Return the mean of two shares, and the ends of its interval."""
    mean = (good.value + bad.value) / 2
    below = math.hypot(good.value - good.low, bad.value - bad.low) / 2
    above = math.hypot(good.high - good.value, bad.high - bad.value) / 2
    return mean, max(mean - below, 0.0), min(mean + above, 1.0)


def _drawn_pairs(pairs: pl.DataFrame, size: int, seed: int, kind: str) -> pl.DataFrame:
    rows = shuffled(sorted(pairs.select(PAIR).iter_rows()), seed, "controls", kind)[:size]
    return _frame(rows, kind)


def strangers(
    queries: Sequence[str], documents: Sequence[str], taken: set[tuple[str, ...]], size: int, seed: int
) -> pl.DataFrame:
    """Return random pairs that are not `taken`; fewer if that holds nearly all documents."""
    chance, drawn = generator(seed, "controls", "random"), dict[tuple[str, str], None]()
    for number in range(size * _TRIES if queries and documents else 0):
        if len(drawn) == size:
            break
        pair = (queries[(len(drawn) + number // _TRIES) % len(queries)], chance.choice(documents))
        if pair not in taken:
            drawn[pair] = None
    return _frame(list(drawn), "random")


def _frame(rows: Sequence[tuple[str, ...]], kind: str) -> pl.DataFrame:
    frame = pl.DataFrame(list(rows), dict.fromkeys(PAIR, pl.String), orient="row")
    return frame.with_columns(kind=pl.lit(kind))
