"""What an answered acceptance review proves: the threshold, or that none holds, and all that would make it void.

Refused is what breaks the promise: another sample, another promise than the sample was drawn for, pairs that were not
in the pool at drawing, answers by whole queries, a sum without answers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.scale import Scale
from curate.panel import sampling_design
from curate.panel.grade_sums import FRAME
from curate.panel.voting import PAIR
from curate.review.acceptance_plan import OF, stratum
from curate.review.agreement import CheckedRow, checked
from curate.review.desk import Desk
from curate.stats import acceptance, acceptance_plan
from curate.stats.acceptance import AcceptedSum
from curate.stats.acceptance_plan import AcceptanceOdds
from curate.stats.sample_estimates import StratumCounts
from curate.system.files import read_table

SILENT = 0.05
"""Share of the drawn pairs without an answer from which on it is warned of."""
DRAW = "draw another one: `curate review export --target accept --size N --sample NAME`, and name it in accept.sample"


class HalfAnsweredError(DataError):
    """So few or such pairs of a review were answered that it proves nothing yet."""


@dataclass(frozen=True)
class ProvedThreshold:
    """What a review says of thresholds."""

    least: int | None
    """All pairs whose grades add up to so much or more are relevant; None if no threshold is announced."""
    facts: Mapping[str, Json]


def judged(
    desk: Desk,
    frame: pl.DataFrame,
    wrong: float,
    confidence: float,
    scale: Scale,
    outdated: frozenset[tuple[str, str]] = frozenset(),
) -> ProvedThreshold:
    """Return what the answers of a review prove for `frame`, the pairs and sums of the pool as they are now.

    `outdated` are pairs whose texts are others than people read: they count as not answered. ConfigError or DataError
    where nothing can be promised.
    """
    planned = _planned(desk, wrong, confidence, scale)
    _refuse_others(desk, frame)
    drawn = checked(desk)
    read = [row for row in drawn if row.settled and (row.ids[0], row.ids[1]) not in outdated]
    _refuse_whole_queries(desk, drawn, read)
    sums = sorted((int(name) for name in planned["rates"]), reverse=True)
    counts = _counts(desk, sums, read)
    if lacking := [f"{total}" for total, count in counts.items() if count.size and not count.answered]:
        raise HalfAnsweredError(
            f"consensus.accept: nobody answered a pair whose grades add up to {', '.join(lacking)}; expected answers "
            f"in every stratum of {desk.sample.design.name!r}; have the other rows read, then `curate resolve`"
        )
    found = acceptance.accept([(float(total), counts[total]) for total in sums], wrong, confidence)
    rates = [float(planned["rates"][str(total)]) for total in sums]
    before = _odds(counts, rates, wrong, confidence)
    learned = [
        sampling_design.learned(rate, counts[total].answered, int(counts[total].hits))
        for total, rate in zip(sums, rates, strict=True)
    ]
    after = _odds(counts, learned, wrong, confidence)
    held = found.threshold if before.enough else None
    facts: dict[str, Json] = {
        "sample": desk.sample.design.name,
        "wrong": wrong,
        "confidence": confidence,
        "drawn": len(drawn),
        "answered": len(read),
        "threshold": _shown(held),
        "best": _shown(found.best),
        "planned": before.to_json(),
        "odds": after.to_json(),
        "silent": _silent(drawn, read, counts, wrong, confidence),
    }
    return ProvedThreshold(int(held.least) if held else None, facts)


def _planned(desk: Desk, wrong: float, confidence: float, scale: Scale) -> Mapping[str, Any]:
    """Return the plan that a sample was drawn by; ConfigError unless it is one for this promise and scale."""
    sample = desk.sample
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


def _refuse_others(desk: Desk, frame: pl.DataFrame) -> None:
    """Raise DataError if the pool holds pairs, or sums, that were not there when the sample was drawn."""
    was = read_table(desk.sample.folder, "frame", FRAME)
    if was.equals(frame.sort(PAIR)):
        return
    new = frame.join(was, on=PAIR, how="anti")
    queries = new.join(was, on="query_id", how="anti")["query_id"].n_unique()
    same = frame.join(was, on=PAIR, suffix="_was")
    other = int((same["sum"] != same["sum_was"]).sum())
    gone = was.join(frame, on=PAIR, how="anti").height
    raise DataError(
        f"consensus.accept: since {desk.sample.design.name!r} was drawn {new.height:,} pairs came into its frame "
        f"({queries:,} queries are new), {gone:,} went and {other:,} have another sum; a threshold holds for the pairs "
        f"that could be drawn, not for new queries or grades; {DRAW}"
    )


def _refuse_whole_queries(desk: Desk, drawn: Sequence[CheckedRow], read: Sequence[CheckedRow]) -> None:
    """Raise DataError if answers lack query by query: more whole queries than chance would leave unread.

    With a share u of pairs unread at random, a query of m drawn pairs has none read with a chance of u^m. Allowed are
    three standard deviations of a Poisson count over that.
    """
    rows, answered = Counter(row.ids[0] for row in drawn), Counter(row.ids[0] for row in read)
    unread = 1 - len(read) / len(drawn)
    several = [name for name, count in rows.items() if count > 1]
    none = sum(not answered[name] for name in several)
    chance = sum(unread ** rows[name] for name in several)
    if none > chance + 3 * chance**0.5 + 1 and read:
        raise HalfAnsweredError(
            f"consensus.accept: of {len(several):,} queries with several drawn pairs {none:,} have no answer at all, "
            f"and {chance:.1f} would by chance: {desk.sample.design.name!r} was read by whole queries, by which the "
            "promise was broken in a quarter of reviews; have the other rows read, then `curate resolve`"
        )


def _counts(desk: Desk, sums: Sequence[int], read: Sequence[CheckedRow]) -> dict[int, StratumCounts]:
    sizes = {each.name: each.size for each in desk.sample.design.strata}
    answered = Counter(row.stratum for row in read)
    wrong = Counter(row.stratum for row in read if not row.relevant)
    return {
        total: StratumCounts(sizes[name], answered[name], wrong[name]) for total in sums for name in [stratum(total)]
    }


def _odds(
    counts: Mapping[int, StratumCounts], rates: Sequence[float], wrong: float, confidence: float
) -> AcceptanceOdds:
    each = list(counts.values())
    return acceptance_plan.odds([one.size for one in each], rates, [one.answered for one in each], wrong, confidence)


def _shown(found: AcceptedSum | None) -> dict[str, Json] | None:
    if found is None:
        return None
    return {
        "least": int(found.least),
        "pairs": found.pairs,
        "answered": found.answered,
        "wrong": round(found.wrong, 4),
        "bound": round(found.bound, 4),
    }


def _silent(
    drawn: Sequence[CheckedRow],
    read: Sequence[CheckedRow],
    counts: Mapping[int, StratumCounts],
    wrong: float,
    confidence: float,
) -> dict[str, Json] | None:
    """Return where many drawn pairs have no answer, and the threshold if all of those were wrong; None if few have."""
    if len(drawn) - len(read) <= SILENT * len(drawn):
        return None
    asked = Counter(row.stratum for row in drawn)
    worst = {
        total: StratumCounts(each.size, count, each.hits + count - each.answered)
        for total, each in counts.items()
        for count in [asked[stratum(total)]]
    }
    held = acceptance.accept([(float(total), each) for total, each in worst.items()], wrong, confidence).threshold
    sums: list[Json] = [
        {"sum": total, "drawn": worst[total].answered, "answered": count.answered} for total, count in counts.items()
    ]
    return {"sums": sums, "worst": int(held.least) if held else None}
