"""`curate check leaks`: overlap of a training set with a test set."""

from pathlib import Path

from curate.commands.check.leaks import LeaksFigures, check
from curate.core.errors import CheckFailed
from curate.runs.command import Assignments, Command, argument, option
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table


class CheckLeaksCommand(Command):
    """Find leaks into a test set.

    Training queries and positives that resemble those of a test set; exit code 1 if there are any.
    """

    words = "check leaks"
    examples = ("check leaks runs/train runs/demo", "check leaks my-training-set my-benchmark --out leaks")

    train: Path = argument("Run folder, or a folder in BEIR or MTEB layout.")
    test: Path = argument("The same for the test set.")
    encoder: str | None = option(
        "Encoder that compares texts; the thresholds are calibrated for it.", None, key="leaks.encoder", metavar="NAME"
    )
    t: float | None = option("Similarity above which two queries are near-duplicates.", None, key="leaks.queries")
    out: Path | None = option("Folder to write the table of all leaks to.", None, metavar="FOLDER")
    settings: Assignments = option(
        "Change a setting; may be repeated.", (), flag="--set", complete="settings", metavar="SECTION.KEY=VALUE"
    )

    def result(self) -> Result[LeaksFigures]:
        """Return counts of leaks, and the nearest pairs of queries."""
        changes = [*self.assignments(), *self.settings]
        figures = check(self.train, self.test, changes, self.out, self.progress)
        say = RecordWords("check/leaks")
        lines = [say("head", figures), say("leaks", figures)]
        lines += [as_table([say.cells("leak", leak) for leak in figures.nearest])] if figures.nearest else []
        failed = CheckFailed(say("leaking", train=str(self.train), test=str(self.test)))
        return Result(figures, lines, failed=failed if figures.leaking_queries or figures.leaking_pairs else None)
