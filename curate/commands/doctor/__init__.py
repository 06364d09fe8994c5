"""`curate doctor`: check what is installed on this machine, and print remedies for what is missing."""

import os

from curate.commands.doctor import examination
from curate.core.errors import CheckFailed
from curate.pipeline.stage import home, ledger_place
from curate.runs.command import Command, option
from curate.view.answers import Result

MARKS = {"good": "ok", "missing": "--", "bad": "!!"}


class DoctorCommand(Command):
    """Check the installation.

    Python, extras, encoders, keys, disk, memory, GPU and ledger. Exit code 1 if anything prevents a run.
    """

    words = "doctor"
    examples = ("doctor", "doctor --try")

    cluster: str | None = option(
        "Also look at each machine of the Ray cluster at this address.", None, metavar="HOST:PORT|auto"
    )
    try_: bool = option("Also load the packaged encoders and torch, and try both; takes seconds.", False, flag="--try")

    def result(self) -> Result[list[examination.Finding]]:
        """Return a finding per thing that was looked at."""
        findings = list(examination.examine(home(), ledger_place(), os.environ, self.try_))
        if self.cluster is not None:
            findings += examination.examine_cluster(self.cluster, home())
        bad = [finding.what for finding in findings if finding.state == "bad"]
        width = max(len(finding.what) for finding in findings)
        lines = [
            f"{MARKS[finding.state]} {finding.what:{width}}  {finding.found}"
            + (f"\n   {'':{width}}  {finding.remedy}" if finding.remedy else "")
            for finding in findings
        ]
        failed = CheckFailed(f"found what prevents a run: {', '.join(bad)}") if bad else None
        return Result(findings, lines, failed=failed)
