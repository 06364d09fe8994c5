"""`curate ready`: checklist of a benchmark before publication."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from curate.commands.ready.points import Checklist, checklist
from curate.core.errors import CheckFailed
from curate.runs.command import argument, option
from curate.runs.opening import KEPT
from curate.runs.options import OnRun
from curate.view.answers import Result
from curate.view.text import as_table


class ReadyCommand(OnRun):
    """Run the release checklist.

    Nothing is sent or scored. Exit code 0 only if every point is ok; each open point names the command to type. --out
    writes the folder all the same, and its text says what is open.
    """

    words = "ready"
    examples = ("ready", "ready runs/demo --out pull-request")

    run: Path | None = argument("Run folder; default: the newest run.", None, complete="runs")
    out: Path | None = option(
        "Folder to write a pull request to mteb into: its text, tasks, statistics and results.", None, metavar="FOLDER"
    )

    def result(self) -> Result[Checklist]:
        """Return the points with their states; with `out`, write the pull request."""
        if self.run is not None:
            self.folder("give the run: an export does not hold who judged, read and compared what is in it")
        contents = checklist(self.open_run(), self.out)
        open_points = contents.not_ok + contents.not_measured
        message = f"{contents.run} is not ready: {open_points} of {len(contents.points)} points are open"
        return Result(contents, _lines(contents), failed=CheckFailed(message) if open_points else None)


def _lines(contents: Checklist) -> Iterator[str]:
    yield as_table([{"point": point.name, "state": point.state} for point in contents.points])
    names_by_finding = defaultdict[tuple[str, str], list[str]](list)
    for point in contents.points:
        if point.next:
            names_by_finding[point.found, point.next].append(point.name)
    for (finding, command), names in names_by_finding.items():
        yield f"{'; '.join(names)}: {finding}\n  next: {command}"
    if any(" --set " in command for _, command in names_by_finding):
        yield KEPT
    for path in contents.edited:
        yield f"{contents.folder}/{path}: was edited and stays; the new content is next to it, named .new"
    if contents.folder:
        yield f"for the pull request: {contents.folder}, {len(contents.files)} files; begin with PULL_REQUEST.md"
    if contents.ready:
        yield f"{contents.run} is ready to be published"
