"""The stage `judge`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.ask.billing import PlanRow
from curate.runs.command import Names, option
from curate.runs.running import AskingStage
from curate.view.answers import Result

if TYPE_CHECKING:
    from curate.runs.runner import Run


class JudgeCommand(AskingStage):
    """Grade the pool.

    Every judge of the panel grades every pair.
    """

    words = "judge"
    examples = ("judge --models gpt,qwen,deepseek --plan", "judge --models gpt,qwen,deepseek --max-cost 50")
    answers = "The plan (--plan), a row per judge; empty if nothing is left to send."
    stage = "judge"

    models: Names = option(
        "The panel: names of judges, separated by commas.", (), key="judge.models", complete="judges", metavar="NAMES"
    )
    cascade: str | None = option(
        "Ask expensive judges only about pairs that are still undecided.",
        None,
        key="judge.cascade",
    )
    record: Path | None = option("Write the ratings to a file that `replay` judges read.", None, metavar="FILE")
    allow_weak_judges: bool = option("Continue with judges that did not pass their controls.", False)
    language: str | None = option("Language of the texts, such as zh; default: detected.", None, key="language")

    def planned_calls(self, work: "Run") -> Sequence[PlanRow]:
        """Return the calls of the judges, and remember that they were planned."""
        from curate.ask.quote import quote

        rows = work.look("judge", quote)
        work.remember_plan()
        return rows

    def run_stage(self, work: "Run", *, force: bool = False) -> Result[Any]:
        """Judge; with `record`, write the ratings too."""
        result = super().run_stage(work, force=force)
        if self.record is None or result.failed:
            return result
        from curate.ask.judges.replay import record

        count = record(work.folder, self.record)
        outputs = {**result.data, "ratings": count, "record": str(self.record)}
        return replace(
            result, data=outputs, event=outputs, lines=[*result.lines, f"ratings: {count:,} in {self.record}"]
        )
