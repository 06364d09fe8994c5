"""Key facts on a run's labels, shown first in the HTML report and the dataset card.

The effective number of judges, the agreement of assessors with the panel, the errors of its consensus rule by a review
of all judged pairs, the scoring to use, and the self-preference of judges. None is shown as not measured.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel.judge_dependence import Dependence
from curate.review.desk import graded_desks, relevance_desks
from curate.review.proof import prove

FOR_SCORES = "scores"
"""Value of the fact `of` of samples drawn to correct models' scores."""
_CIRCULAR = ("judge", "family", "effect", "ranks", "queries", "replaced_by", "warned")
_FROM_PEOPLE = ("kappa", "precision", "recall", "negative_precision", "negative_recall", "relevant", "held")


def lead(
    run: Path,
    agreed: Mapping[str, Any],
    dependence: Dependence,
    circular: Mapping[str, Any] | None,
    scale: Scale,
) -> dict[str, Json]:
    """Return the key facts; those from assessors are of the sample of all judged pairs with the most answers.

    `agreed` is the content of agreement.json, `dependence` the result of `agreement.dependence`, `circular` that of
    `curate check circular`. `orders`, the scoring to rank systems by, is `median` (graded), or `condensed` if the scale
    has no gains or a cascade left out votes. `levels`, that of absolute scores, is `corrected` if assessors answered a
    sample for scores, else `none`.
    """
    counts = agreed["counts"]
    judged = sum(counts[verdict] for verdict in VERDICTS if verdict in counts)
    for_scores = [review for review in graded_desks(run) if review.sample.design.facts.get("of") == FOR_SCORES]
    corrected = any(grade for review in for_scores for _, _, grade in review.answered())
    return {
        "effective": dependence.effective and dependence.effective.to_json(),
        "not_measured": dependence.not_measured,
        "policy": agreed["policy"],
        "judged": judged,
        "contested": counts["contested"],
        **of_people(run, judged),
        "orders": "median" if scale.gains and not counts.get("not positive") else "condensed",
        "levels": "corrected" if corrected else "none",
        "circular": None
        if circular is None
        else [{name: judge[name] for name in _CIRCULAR} for judge in circular["judges"]],
    }


def of_people(run: Path, judged: int) -> dict[str, Json]:
    """Return the figures from assessors' answers; None, and 0 rows read, if no sample of all pairs has an answer."""
    proofs: list[Any] = [prove(review).to_json() for review in relevance_desks(run)]
    drawn = [proof for proof in proofs if proof["pairs"] == judged]
    fitting = [proof for proof in drawn if proof["agreement"]]
    if not fitting:
        unread = {"sample": None, "read": 0, "twice": 0, "people": None, "drawn": bool(drawn)}
        return {**unread, **dict.fromkeys(_FROM_PEOPLE)}
    best = max(fitting, key=lambda proof: (proof["read"], proof["twice"]))
    between = [kappas["cut"] for kappas in best["kappa"]["people"].values() if kappas["cut"]]
    return {
        "sample": best["sample"],
        "read": best["read"],
        "twice": best["twice"],
        "drawn": True,
        "people": max(between, key=lambda kappa: kappa["answered"], default=None),
        "kappa": best["kappa"]["panel"],
        "precision": best["confirmed"]["relevant"],
        "recall": best["recall"],
        "negative_precision": best["confirmed"]["not relevant"],
        "negative_recall": best["negative_recall"],
        "relevant": best["relevant"].get("contested"),
        "held": best["held"],
    }
