"""`curate check leaks`: overlap of a training set with a test set."""

from pathlib import Path

from curate.commands.check.leaks import LeaksFigures, check
from curate.core.errors import CheckFailed
from curate.runs.command import Assignments, Command, argument, option
from curate.view.answers import Result
from curate.view.text import as_table, leaking


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
        lines = [
            f"{figures.train_queries:,} training queries, {figures.test_queries:,} test queries",
            leaking(figures.to_json()),
        ]
        lines += [as_table([leak.to_json() for leak in figures.nearest], digits=3)] if figures.nearest else []
        message = f"{self.train} leaks into {self.test}; `curate train-set` removes such queries and pairs"
        return Result(
            figures, lines, failed=CheckFailed(message) if figures.leaking_queries or figures.leaking_pairs else None
        )
