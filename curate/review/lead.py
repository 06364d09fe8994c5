"""What must be known of a run's labels before a score on them is read: page and card begin with it.

How many judges the panel is worth, how far people agree with it, what its rule costs by a sample that people read of
all judged pairs, which score to read, and what judges gain by judging themselves. None is shown as not measured.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.review.desk import graded_desks, relevance_desks
from curate.review.proof import prove

FOR_SCORES = "scores"
"""What samples are of that were drawn for corrected scores."""
_FROM_PEOPLE = ("kappa", "precision", "recall", "negative_precision", "negative_recall", "relevant", "held")


def lead(
    run: Path,
    agreed: Mapping[str, Any],
    dependence: Mapping[str, Any],
    circular: Mapping[str, Any] | None,
    scale: Scale,
) -> dict[str, Json]:
    """Return the figures; those from people are of the sample of all judged pairs of which most was read.

    `agreed` is the content of agreement.json, `dependence` what judges have in common, `circular` what `curate check
    circular` found. Orders go by the gain of the median grade, or by condensed scores where the scale has no gains or a
    cascade left out votes.
    """
    counts = agreed["counts"]
    judged = sum(counts[verdict] for verdict in VERDICTS if verdict in counts)
    return {
        "effective": dependence["effective"],
        "not_measured": dependence["not_measured"],
        "policy": agreed["policy"],
        "judged": judged,
        "contested": counts["contested"],
        **_of_people(run, judged),
        "orders": "median" if scale.gains and not counts.get("not positive") else "condensed",
        "levels": "corrected" if _for_scores(run) else "none",
        "circular": None if circular is None else [_favour(each) for each in circular["judges"]],
    }


def _of_people(run: Path, judged: int) -> dict[str, Json]:
    """Return what people said of the panel's verdicts; every figure is None where nobody read a sample of all pairs."""
    proofs: list[Any] = [prove(desk) for desk in relevance_desks(run)]
    fitting = [proof for proof in proofs if proof["pairs"] == judged and proof["agreement"]]
    if not fitting:
        return {"sample": None, "read": 0, "people": None, **dict.fromkeys(_FROM_PEOPLE)}
    best = max(fitting, key=lambda each: each["read"])
    between = [each["cut"] for each in best["kappa"]["people"].values() if each["cut"]]
    return {
        "sample": best["sample"],
        "read": best["read"],
        "people": max(between, key=lambda each: each["answered"], default=None),
        "kappa": best["kappa"]["panel"],
        "precision": best["confirmed"]["relevant"],
        "recall": best["recall"],
        "negative_precision": best["confirmed"]["not relevant"],
        "negative_recall": best["negative_recall"],
        "relevant": best["relevant"].get("contested"),
        "held": best["held"],
    }


def _for_scores(run: Path) -> bool:
    """Say whether people read some of a sample that was drawn for corrected scores."""
    desks = [desk for desk in graded_desks(run) if desk.sample.design.facts.get("of") == FOR_SCORES]
    return any(grade for desk in desks for _, _, grade in desk.answered())


def _favour(each: Mapping[str, Any]) -> dict[str, Json]:
    return {name: each[name] for name in ("judge", "family", "effect", "ranks", "queries", "replaced_by", "warned")}
