"""`curate check judge`: diagnostics of the judges of a run."""

from pathlib import Path
from typing import Any

from curate.commands.check.warnings import effective, tables
from curate.core.errors import CheckFailed
from curate.runs.command import Names, option, setting
from curate.runs.options import LedgerFirst, OnPipeline, Plannable
from curate.view.answers import Result
from curate.view.text import as_table, too_few


class CheckJudgeCommand(OnPipeline, Plannable, LedgerFirst):
    """Measure the judges.

    Controls, position bias, repeatability, strictness, shared errors; nothing is sent unasked.
    """

    words = "check judge"
    examples = ("check judge", "check judge --controls --again reversed,alone --plan")

    controls: bool = option("Have every judge answer pairs of known grade.", False)
    positives: Path | None = option(
        "Those pairs: query_id, doc_id, grade; default: the run's reviews.", None, metavar="FILE"
    )
    again: Names = option("Repeat prompts in other forms.", (), metavar="reversed,alone,repeat")
    rubric: tuple[str, ...] = option("Repeat prompts under another rubric; may be repeated.", (), metavar="NAME")
    allow_weak_judges: bool = option("Continue with judges that did not pass their controls.", False)
    prompts: int = setting("Prompts per judge that are repeated.", 50, ge=1)

    def result(self) -> Result[Any]:
        """Return the figures of every judge and of the panel; with `plan`, what the judges would be asked."""
        from curate.commands.check import judge as checks

        work = self.open_run()
        work.consent = self.consent()
        options = checks.JudgeOptions(self.controls, self.positives, list(self.again), list(self.rubric), self.prompts)
        if self.plan:
            return self.cost_estimate(checks.planned(work, options))
        figures = checks.check(work, options)
        warnings = [*figures["warnings"], *too_few(figures["queries"])]
        lines = [f"{title}\n{as_table(rows, digits=3)}\n" for title, rows in tables(figures)]
        lines += [*effective(figures), *warnings]
        gate = figures["gate"]
        failed = None
        if gate["failed"] and not (self.allow_weak_judges or gate["allow_weak_judges"]):
            failed = CheckFailed(
                f"judges did not pass the gate: {', '.join(gate['failed'])}; take other judges, or go on with "
                "--allow-weak-judges"
            )
        return Result(figures, lines, warnings, failed)
