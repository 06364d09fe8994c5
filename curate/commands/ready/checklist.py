"""Checklist of a benchmark before publication; nothing is sent or scored."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curate.commands.ready import pull_request
from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint, scored
from curate.commands.ready.points import POINTS
from curate.runs.runner import Run


def points(evidence: ReadyEvidence) -> list[ReadyPoint]:
    """Return the points of a run; UserError without an up-to-date export."""
    _ = evidence.folders  # first, because it raises without an export, which all other points are about
    return [*(point(evidence) for point in POINTS), *scored(evidence)]


def checklist(run: Run, out: Path | None = None) -> dict[str, Any]:
    """Return all points and their counts by state; with `out`, also write the folder for a pull request.

    A pull request adds two points: the upload of the texts, and task names that are free in mteb.
    """
    evidence = ReadyEvidence(run)
    run_points = points(evidence)
    written = None if out is None else pull_request.write(evidence, run_points, out)
    run_points += written.points if written else []
    states = Counter(point.state for point in run_points)
    return {
        "run": str(run.folder),
        "ready": states["ok"] == len(run_points),
        "ok": states["ok"],
        "not_ok": states["not ok"],
        "not_measured": states["not measured"],
        "points": [asdict(point) for point in run_points],
        "folder": None if written is None else str(written.folder),
        "files": written.files if written else [],
        "edited": written.edited if written else [],
    }
