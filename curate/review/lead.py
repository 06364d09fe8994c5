"""Key facts on a run's labels, shown first in the HTML report and the dataset card, and what to do with the labels.

The effective number of judges, the agreement of assessors with the panel, the errors of its consensus rule by a review
of all judged pairs, the scoring to use, and the self-preference of judges. None is shown as not measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel.judge_dependence import Dependence
from curate.review import flags, published
from curate.review.desk import Desk, graded_desks, relevance_desks
from curate.review.proof import SampleProof, prove
from curate.system.files import read_json
from curate.view import state
from curate.view.state import ReadCounts

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
    judged = judged_pairs(agreed)
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
    most_read, flagged = main_sample(run, judged), len(flags.personal_rows(run))
    if most_read is None or most_read[1].agreement is None:
        unread = {"sample": None, "read": 0, "twice": 0, "people": None, "drawn": most_read is not None}
        return {**unread, "flagged": flagged, **dict.fromkeys(_FROM_PEOPLE)}
    best: Any = most_read[1].to_json()
    between = [kappas["cut"] for kappas in best["kappa"]["people"].values() if kappas["cut"]]
    return {
        "sample": best["sample"],
        "read": best["read"],
        "twice": best["twice"],
        "drawn": True,
        "flagged": flagged,
        "people": max(between, key=lambda kappa: kappa["answered"], default=None),
        "kappa": best["kappa"]["panel"],
        "precision": best["confirmed"]["relevant"],
        "recall": best["recall"],
        "negative_precision": best["confirmed"]["not relevant"],
        "negative_recall": best["negative_recall"],
        "relevant": best["relevant"].get("contested"),
        "held": best["held"],
    }


def judged_pairs(agreed: Mapping[str, Any]) -> int:
    """Return the number of judged pairs, from the content of agreement.json."""
    return sum(agreed["counts"].get(verdict, 0) for verdict in VERDICTS)


def main_sample(run: Path, judged: int) -> tuple[Desk, SampleProof] | None:
    """Return the sample with the most answers of those drawn from all `judged` pairs, with its figures; None if none.

    Samples with an answer to a decided pair come first.
    """
    drawn = [(review, proof) for review in relevance_desks(run) if (proof := prove(review)).pairs == judged]

    def answers(sample: tuple[Desk, SampleProof]) -> tuple[bool, int, int]:
        return sample[1].agreement is not None, sample[1].read, sample[1].twice

    return max(drawn, key=answers, default=None)


# What to do with the labels: of the published ones where these differ from the panel's.


@dataclass(frozen=True)
class Recommendation:
    """What to do with a run's labels by a sample of all judged pairs, and the figures that decide it."""

    sample: str
    labels: Literal["panel", "published"]
    """Labels that `precision` is of."""
    precision: Mapping[str, Any] | None
    """Share of the positives that assessors confirm: value, low, high; None if no positive was read."""
    reading: ReadCounts

    @property
    def obstacle(self) -> str:
        """Return the first condition of publication that the labels do not meet, else `ready`."""
        return state.obstacle(self.precision, self.reading)

    @property
    def sentence(self) -> str:
        """Return what to do with the labels."""
        return state.advice(self.precision, self.reading, self.labels)


def recommendation(proof: SampleProof, final: Mapping[str, Any] | None, flagged: int) -> Recommendation:
    """Return what to do with labels by the figures of a sample, and those of the published labels (`published.prove`).

    Published labels count if they differ from the panel's and the sample says something of them. `flagged` is the
    number of rows of the run with an open flag of personal data.
    """
    of_published = published_precision(final)
    of_panel = proof.confirmed["relevant"]
    return Recommendation(
        proof.sample,
        "published" if of_published else "panel",
        of_published or (of_panel.to_json() if of_panel else None),
        ReadCounts(proof.rows, proof.read, proof.twice, proof.disagreements_between_people, flagged),
    )


def published_precision(final: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the precision of published positives in the result of `published.prove`; None if it has none."""
    precision: Mapping[str, Any] | None = final["confirmed"]["relevant"] if final else None
    return precision


def of_run(run: Path) -> tuple[Desk, Recommendation] | None:
    """Return the sample with the most answers, and what it recommends; None without a sample of the judged pairs."""
    most_read = main_sample(run, judged_pairs(read_json(run / "consensus" / "agreement.json")))
    if most_read is None:
        return None
    review, proof = most_read
    return review, recommendation(proof, published.prove(run), len(flags.personal_rows(run)))
