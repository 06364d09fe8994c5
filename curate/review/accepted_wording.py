"""Sentences on the result of an acceptance review, from the facts of `accepted.judged`."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.stats.acceptance_plan import FOUND

Facts = Mapping[str, Any]
PLACE = "consensus.accept"


def sentences(facts: Facts) -> list[str]:
    """Return the threshold, or why there is none and what to do, with a warning if answers are missing."""
    if facts["answered"] == 0:
        warning = (
            f"WARNING: {PLACE}: nobody has answered the sample {facts['sample']!r} yet, so the labels are the policy's"
        )
        return [f"{warning}; `curate review export --target accept --size N` draws it"]
    if unproved := facts.get("unproved"):
        return [f"WARNING: {unproved}. Until then the labels are the policy's"]
    return [*_proved(facts), *_silent(facts)]


def headline(facts: Facts) -> str:
    """Return the threshold and its guarantee in a clause; that there is none, if there is none."""
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
    """Return both error rates: of all reviews, and of those that announce a threshold."""
    of_those = "none" if odds["broken_announced"] is None else f"{odds['broken_announced']:.1%}"
    return (
        f"At shares as they were read {odds['found']:.0%} of such reviews announce a threshold; one that does not hold "
        f"is announced by {odds['broken']:.1%} of all reviews, which is {of_those} of those that announce one"
    )


def _silent(facts: Facts) -> Iterator[str]:
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
