"""Threshold of `consensus.accept` on the sum of a pair's grades, proved by assessors' answers, and sentences on it.

Pairs whose grades add up to the threshold or more are accepted as relevant, with a bound on the share of wrong ones.
Inputs that would invalidate the bound raise an error: a sample drawn for another purpose or another bound, pairs or
sums that changed since drawing, queries left out as a whole, a sum without answers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curate.core.config import Json, check
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.panel.voting import FRAME, PAIR
from curate.pipeline.configs import AcceptConfig, ConsensusConfig
from curate.pipeline.stage import Context
from curate.review.acceptance_plan import OF, frame_of, stratum
from curate.review.agreement import CheckedRow, checked
from curate.review.desk import Desk
from curate.review.drawing import outdated
from curate.review.sample import Sample
from curate.stats import acceptance
from curate.stats import acceptance as acceptance_plan
from curate.stats.acceptance import FOUND, AcceptanceOdds, AcceptedSum
from curate.stats.sample_estimates import StratumCounts
from curate.system.files import read_table
from curate.view.state import SILENT

DRAW = "draw another one: `curate review export --target accept --size N --sample NAME`, and name it in accept.sample"


class HalfAnsweredError(DataError):
    """The answers to a review are too few, or miss whole queries, so that no threshold can be proved yet."""


@dataclass(frozen=True)
class ProvedThreshold:
    """Threshold proved by a review, and the `facts` that `sentences` reports."""

    least: int | None
    """Minimum sum of grades of pairs accepted as relevant; None if no threshold is announced."""
    facts: Mapping[str, Json]


def judged(
    review: Desk,
    frame: pl.DataFrame,
    wrong: float,
    confidence: float,
    scale: Scale,
    outdated: frozenset[tuple[str, str]] = frozenset(),
) -> ProvedThreshold:
    """Return the threshold that the answers prove for `frame` (query_id, doc_id, sum), the pool's current frame.

    `wrong` is the largest allowed share of wrong pairs, `confidence` that of its upper bound. `outdated` are pairs
    whose texts changed since assessors read them; they count as unanswered. ConfigError or DataError if no guarantee is
    possible; HalfAnsweredError, a DataError, if more answers would make it possible.
    """
    planned = _planned(review, wrong, confidence, scale)
    _refuse_others(review, frame)
    drawn = checked(review)
    read = [row for row in drawn if row.settled and (row.ids[0], row.ids[1]) not in outdated]
    _refuse_whole_queries(review, drawn, read)
    sums = sorted((int(name) for name in planned["rates"]), reverse=True)
    counts = _counts(review, sums, read)
    if lacking := [f"{total}" for total, count in counts.items() if count.size and not count.answered]:
        raise HalfAnsweredError(
            f"consensus.accept: nobody answered a pair whose grades add up to {', '.join(lacking)}; expected answers "
            f"in every stratum of {review.sample.design.name!r}; have the other rows read, then `curate resolve`"
        )
    acceptance_result = acceptance.accept([(float(total), counts[total]) for total in sums], wrong, confidence)
    rates = [float(planned["rates"][str(total)]) for total in sums]
    planned_odds = _odds(counts, rates, wrong, confidence)
    learned = [
        sampling_design.learned(rate, counts[total].answered, int(counts[total].hits))
        for total, rate in zip(sums, rates, strict=True)
    ]
    learned_odds = _odds(counts, learned, wrong, confidence)
    held = acceptance_result.threshold if planned_odds.enough else None
    facts: dict[str, Json] = {
        "sample": review.sample.design.name,
        "wrong": wrong,
        "confidence": confidence,
        "drawn": len(drawn),
        "answered": len(read),
        "threshold": _threshold_facts(held),
        "best": _threshold_facts(acceptance_result.best),
        "planned": planned_odds.to_json(),
        "odds": learned_odds.to_json(),
        "silent": _silent(drawn, read, counts, wrong, confidence),
    }
    return ProvedThreshold(int(held.least) if held else None, facts)


def _planned(review: Desk, wrong: float, confidence: float, scale: Scale) -> Mapping[str, Any]:
    """Return the plan stored in a sample; ConfigError if it has another `wrong`, `confidence` or scale."""
    sample = review.sample
    facts: Any = sample.design.facts
    if facts.get("of") != OF:
        raise ConfigError(
            f"consensus.accept.sample: {sample.design.name!r} was not drawn for a threshold, which needs equally many "
            f"pairs of every sum of grades; {DRAW}"
        )
    if sample.scale != scale:
        raise ConfigError(f"consensus.accept.sample: {sample.design.name!r} was graded on another scale; {DRAW}")
    planned: Mapping[str, Any] = facts["accept"]
    if (planned["wrong"], planned["confidence"]) != (wrong, confidence):
        raise ConfigError(
            f"consensus.accept: found wrong {wrong:g} with confidence {confidence:g}, but {sample.design.name!r} was "
            f"drawn for {planned['wrong']:g} with {planned['confidence']:g}, and a promise that is chosen after the "
            f"answers were seen does not hold; set it back, or {DRAW}"
        )
    return planned


def _refuse_others(review: Desk, frame: pl.DataFrame) -> None:
    """Raise DataError if the pool has other pairs or sums than when the sample was drawn."""
    was = read_table(review.sample.folder, "frame", FRAME)
    if was.equals(frame.sort(PAIR)):
        return
    new = frame.join(was, on=PAIR, how="anti")
    queries = new.join(was, on="query_id", how="anti")["query_id"].n_unique()
    same = frame.join(was, on=PAIR, suffix="_was")
    regraded = int((same["sum"] != same["sum_was"]).sum())
    gone = was.join(frame, on=PAIR, how="anti").height
    raise DataError(
        f"consensus.accept: since {review.sample.design.name!r} was drawn {new.height:,} pairs came into its frame "
        f"({queries:,} queries are new), {gone:,} went and {regraded:,} have another sum; a threshold holds for the "
        f"pairs that could be drawn, not for new queries or grades; {DRAW}"
    )


def _refuse_whole_queries(review: Desk, drawn: Sequence[CheckedRow], read: Sequence[CheckedRow]) -> None:
    """Raise HalfAnsweredError if more queries have no answer at all than with pairs unread at random.

    With a share u of pairs unread at random, a query with m drawn pairs is unread with probability u^m. The limit is
    one query and three standard deviations of a Poisson count above the expected number. Only queries with two or more
    drawn pairs count.
    """
    rows, answered = Counter(row.ids[0] for row in drawn), Counter(row.ids[0] for row in read)
    unread = 1 - len(read) / len(drawn)
    several = [name for name, count in rows.items() if count > 1]
    none = sum(not answered[name] for name in several)
    chance = sum(unread ** rows[name] for name in several)
    if none > chance + 3 * chance**0.5 + 1 and read:
        raise HalfAnsweredError(
            f"consensus.accept: of {len(several):,} queries with several drawn pairs {none:,} have no answer at all, "
            f"and {chance:.1f} would by chance: {review.sample.design.name!r} was read by whole queries, by which the "
            "promise was broken in a quarter of reviews; have the other rows read, then `curate resolve`"
        )


def _counts(review: Desk, sums: Sequence[int], read: Sequence[CheckedRow]) -> dict[int, StratumCounts]:
    sizes = {entry.name: entry.size for entry in review.sample.design.strata}
    answered = Counter(row.stratum for row in read)
    wrong = Counter(row.stratum for row in read if not row.relevant)
    return {
        total: StratumCounts(sizes[name], answered[name], wrong[name]) for total in sums for name in [stratum(total)]
    }


def _odds(
    counts: Mapping[int, StratumCounts], rates: Sequence[float], wrong: float, confidence: float
) -> AcceptanceOdds:
    strata = list(counts.values())
    return acceptance_plan.odds(
        [entry.size for entry in strata], rates, [entry.answered for entry in strata], wrong, confidence
    )


def _threshold_facts(accepted: AcceptedSum | None) -> dict[str, Json] | None:
    if accepted is None:
        return None
    return {
        "least": int(accepted.least),
        "pairs": accepted.pairs,
        "answered": accepted.answered,
        "wrong": round(accepted.wrong, 4),
        "bound": round(accepted.bound, 4),
    }


def _silent(
    drawn: Sequence[CheckedRow],
    read: Sequence[CheckedRow],
    counts: Mapping[int, StratumCounts],
    wrong: float,
    confidence: float,
) -> dict[str, Json] | None:
    """Return the number of answers per sum, and the threshold if every unanswered pair counted as wrong.

    None if the share of unanswered pairs is at most `SILENT`.
    """
    if len(drawn) - len(read) <= SILENT * len(drawn):
        return None
    drawn_by_stratum = Counter(row.stratum for row in drawn)
    worst = {
        total: StratumCounts(count_of_sum.size, count, count_of_sum.hits + count - count_of_sum.answered)
        for total, count_of_sum in counts.items()
        for count in [drawn_by_stratum[stratum(total)]]
    }
    held = acceptance.accept(
        [(float(total), count_of_sum) for total, count_of_sum in worst.items()], wrong, confidence
    ).threshold
    sums: list[Json] = [
        {"sum": total, "drawn": worst[total].answered, "answered": count.answered} for total, count in counts.items()
    ]
    return {"sums": sums, "worst": int(held.least) if held else None}


# What an acceptance review proves, in sentences: of the facts that `accepted.judged` gives.

Facts = Mapping[str, Any]
PLACE = "consensus.accept"


def sentences(facts: Facts) -> list[str]:
    """Return sentences on the `facts` of a `ProvedThreshold`: the threshold, or why there is none and what to do.

    A warning is added if many drawn pairs are unanswered.
    """
    if facts["answered"] == 0:
        warning = (
            f"WARNING: {PLACE}: nobody has answered the sample {facts['sample']!r} yet, so the labels are the policy's"
        )
        return [f"{warning}; `curate review export --target accept --size N` draws it"]
    if unproved := facts.get("unproved"):
        return [f"WARNING: {unproved}. Until then the labels are the policy's"]
    return [*_proved(facts), *_silent_sentences(facts)]


def headline(facts: Facts) -> str:
    """Return the threshold and its guarantee as a clause, or a clause that says that there is none."""
    held = facts["threshold"]
    if held is None:
        return "no threshold on the sum of grades"
    return (
        f"the {held['pairs']:,} pairs whose grades add up to {held['least']} or more; people call "
        f"{held['wrong']:.1%} of them wrong, at most {held['bound']:.1%} with a confidence of "
        f"{facts['confidence']:.0%} ({held['answered']:,} answers)"
    )


def _proved(facts: Facts) -> Iterator[str]:
    if facts["planned"]["found"] < FOUND:
        yield (
            f"WARNING: {PLACE}: with these answers {facts['planned']['found']:.0%} of reviews were expected to find a "
            f"threshold, and one is announced only from {FOUND:.0%} on; the labels are the policy's. Have more of the "
            "drawn pairs read, or draw a larger sample"
        )
    elif facts["threshold"] is None:
        yield (
            f"{PLACE}: no threshold keeps the wrong share at {facts['wrong']:.0%} or below; {_best(facts)}. The labels "
            f"are the policy's. To go on: leave {PLACE} out; draw a new sample, larger or for a larger {PLACE}.wrong; "
            "or have people read the positives themselves (`curate review export --target precision`)"
        )
    else:
        yield f"{PLACE}: relevant are {headline(facts)}"
        yield (
            "wrong means that one reader disagrees; it holds for the pairs of this pool, drawn at random, and not for "
            f"new queries. {_errors(facts['odds'])}"
        )


def _best(facts: Facts) -> str:
    best = facts["best"]
    if best is None:
        return "there are too few answers to promise anything"
    late = "; it comes after a stricter one that fails, so it is not proved" if best["bound"] <= facts["wrong"] else ""
    return (
        f"the best share is {best['wrong']:.1%} wrong, at most {best['bound']:.1%}, of the {best['pairs']:,} pairs "
        f"whose grades add up to {best['least']} or more{late}"
    )


def _errors(odds: Facts) -> str:
    """Return a sentence on how often a threshold that does not hold is announced, by simulation.

    Two shares: of all reviews, and of the reviews that announce a threshold.
    """
    of_those = "none" if odds["broken_announced"] is None else f"{odds['broken_announced']:.1%}"
    return (
        f"At shares as they were read {odds['found']:.0%} of such reviews announce a threshold; one that does not hold "
        f"is announced by {odds['broken']:.1%} of all reviews, which is {of_those} of those that announce one"
    )


def _silent_sentences(facts: Facts) -> Iterator[str]:
    """Yield a warning, with the answers by sum, if many drawn pairs have no answer."""
    if (silent := facts["silent"]) is None:
        return
    rates = ", ".join(f"{entry['sum']}: {entry['answered']}/{entry['drawn']}" for entry in silent["sums"])
    worst = silent["worst"]
    most = "no threshold would hold" if worst is None else f"the threshold would be {worst}"
    yield (
        f"WARNING: {PLACE}: {facts['drawn'] - facts['answered']:,} of {facts['drawn']:,} drawn pairs were not answered "
        f"(answers by sum: {rates}). If it depends on relevance what people leave out, nothing is promised; were all "
        f"of those wrong, {most}. Have them read"
    )


# The threshold on the sum of grades that `consensus.accept` asks for, as far as its review proves one.


def wanted(context: Context) -> AcceptConfig | None:
    """Return the setting `consensus.accept`; None if it is not set."""
    return check(ConsensusConfig, context.settings.get("consensus") or {}, "consensus").accept


def desk_of(context: Context, config: AcceptConfig) -> Desk | None:
    """Return the sample named by `consensus.accept.sample`; None if no sample for a threshold has been drawn.

    ConfigError if only samples for a threshold with other names have been drawn.
    """
    folder = context.run / "reviews"
    if (folder / config.sample / "design.json").is_file():
        return Desk(Sample.load(folder / config.sample))
    samples = [Sample.load(path.parent) for path in sorted(folder.glob("*/design.json"))]
    if drawn := [sample.design.name for sample in samples if sample.design.facts.get("of") == OF]:
        raise ConfigError(f"consensus.accept.sample: no sample {config.sample!r} in {folder}; {suggestion('', drawn)}")
    return None


def proved(context: Context) -> ProvedThreshold | None:
    """Return the threshold that the review proves for the current pool; None if `consensus.accept` is not set.

    ConfigError or DataError if no guarantee is possible. Before the first answer and while the review is incomplete,
    `least` is None; an incomplete review is no error, since other samples may be complete.
    """
    config = wanted(context)
    if config is None:
        return None
    review = desk_of(context, config)
    facts: dict[str, Json] = {"sample": config.sample, "wrong": config.wrong, "confidence": config.confidence}
    if review is None or not any(answer for _, _, answer in review.answered()):
        return ProvedThreshold(None, {**facts, "answered": 0, "threshold": None})
    frame = frame_of(context.folder("judge"), context.folder("consensus"))
    old = frozenset(outdated(review.sample, context.folder(FILTERED)))
    try:
        return judged(review, frame, config.wrong, config.confidence, context.scale, old)
    except HalfAnsweredError as lacking:
        answered = sum(bool(answer) for _, _, answer in review.answered())
        return ProvedThreshold(None, {**facts, "answered": answered, "threshold": None, "unproved": str(lacking)})
