"""The checklist of a benchmark that is to be published; nothing is asked, sent or scored."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from curate.evaluation.publish.difficulty import scored
from curate.evaluation.publish.evidence import ReadyEvidence, ReadyPoint
from curate.evaluation.publish.points import POINTS
from curate.runs.run import Run


def points(run: Run) -> list[ReadyPoint]:
    """Return every point; UserError unless the run has an export that is up to date."""
    known = ReadyEvidence(run)
    _ = known.folders  # first of all, for every other point is of this export
    return [*(point(known) for point in POINTS), *scored(known)]


def checklist(run: Run) -> dict[str, Any]:
    """Return all points as plain values, with how many are open."""
    found = points(run)
    states = Counter(each.state for each in found)
    return {
        "run": str(run.folder),
        "ready": states["ok"] == len(found),
        "ok": states["ok"],
        "not_ok": states["not ok"],
        "not_measured": states["not measured"],
        "points": [asdict(each) for each in found],
    }
