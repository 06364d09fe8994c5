"""The checklist of a benchmark that is to be published; nothing is asked, sent or scored."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curate.commands.ready import pull_request
from curate.commands.ready.evidence import ReadyEvidence, ReadyPoint, scored
from curate.commands.ready.points import POINTS
from curate.runs.runner import Run


def points(known: ReadyEvidence) -> list[ReadyPoint]:
    """Return every point of a run; UserError unless it has an export that is up to date."""
    _ = known.folders  # first of all, for every other point is of this export
    return [*(point(known) for point in POINTS), *scored(known)]


def checklist(run: Run, out: Path | None = None) -> dict[str, Any]:
    """Return all points as plain values, with how many are open; with `out` the folder for a pull request is written.

    A pull request has points of its own: the upload, and names that mteb has not.
    """
    known = ReadyEvidence(run)
    found = points(known)
    written = None if out is None else pull_request.write(known, found, out)
    found += written.points if written else []
    states = Counter(each.state for each in found)
    return {
        "run": str(run.folder),
        "ready": states["ok"] == len(found),
        "ok": states["ok"],
        "not_ok": states["not ok"],
        "not_measured": states["not measured"],
        "points": [asdict(each) for each in found],
        "folder": None if written is None else str(written.folder),
        "files": written.files if written else [],
        "edited": written.edited if written else [],
    }
