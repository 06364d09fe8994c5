"""Run stages for a command, and return what they wrote; open the ledger."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from curate.ask.billing import PlanRow
from curate.core.errors import Incomplete
from curate.runs.command import RUN, option
from curate.runs.options import AskingModels, OnPipeline, Plannable
from curate.view.answers import Result, only_plans

if TYPE_CHECKING:
    from curate.ledger import Ledger
    from curate.runs.runner import Run


class StageCommand(OnPipeline):
    """A command that runs one stage."""

    speaks_json: ClassVar[bool] = False
    stage: ClassVar[str]
    force: bool = option("Run again even if up to date.", False, group=RUN)

    def result(self) -> Result[Any]:
        """Run the stage, and return the run folder and what the stage wrote for people."""
        return self.run_stage(self.open_run())

    def run_stage(self, work: "Run", *, force: bool = False) -> Result[Any]:
        """Run the stage in an opened run; with `force` also if it is up to date."""
        work.named = self.pipeline is not None or self.run is not None
        work.execute([self.stage], force=force or self.force)
        return stages_result(work, [self.stage])


class AskingStage(StageCommand, Plannable, AskingModels):
    """A command that runs one stage, which asks models."""

    speaks_json: ClassVar[bool] = True

    def result(self) -> Result[Any]:
        """Run the stage; with `plan`, return what it would ask and what that would cost."""
        work = self.open_run()
        work.consent = self.consent()
        if self.plan:
            return self.cost_estimate(self.planned_calls(work))
        only_plans()
        return self.run_stage(work, force=self.retry)

    @classmethod
    def answer(cls) -> Any:  # noqa: ANN401
        """Return the type of the plan: a run of stages has no answer in JSON."""
        return list[PlanRow]

    def planned_calls(self, work: "Run") -> Sequence[PlanRow]:
        """Return the calls that are left to send, as rows, with their cost."""
        from curate.pipeline import stages

        return work.look(self.stage, stages.module(self.stage).planned)


def all_stages(command: "Plannable", work: "Run", *, force: bool) -> Result[Any] | None:
    """Run all stages of an opened run, and return None; with `plan`, return the cost of judging instead.

    A new run that fails does not become the newest run; only the same command resumes it. Incomplete if a judge left
    more pairs without a grade than its settings allow.
    """
    from curate.pipeline.folder import newest_when_done
    from curate.runs.opening import quoted

    work.consent = command.consent()
    if command.plan:
        return command.cost_estimate(quoted(work))
    with newest_when_done(work.folder):
        work.execute(None, force=force)
    if error := lacking_grades(work, None):
        raise error
    return None


def stages_result(work: "Run", names: Sequence[str] | None) -> Result[Any]:
    """Return what finished stages wrote for people; `names` are those that ran, None for all of the pipeline.

    The result failed if a judge left more pairs without a grade than its settings allow.
    """
    from curate.runs.status import next_lines, summary

    outputs, last = written(work, names), (names or work.pipeline.head.stages)[-1]
    lines = [f"{label.replace('_', ' ')}: {path}" for label, path in outputs.items()]
    if last in ("export", "report"):
        outputs["summary"] = summary(work)
        lines += outputs["summary"]
    elif last == "resolve":
        lines += next_lines(work)
    lines += [work.warning] if work.warning else []
    return Result(outputs, lines, failed=lacking_grades(work, names), event=outputs)


def written(work: "Run", names: Sequence[str] | None) -> dict[str, Any]:
    """Return the run folder and, if the last stage writes files for people, label -> path of those up to date."""
    last = (names or work.pipeline.head.stages)[-1]
    paths = {"benchmark": work.folder / "export"}
    if last == "report" or "report" not in work.stale():
        paths["report"] = work.folder / "report.html"
    if last == "audit":
        paths = {"report": work.folder / "audit.html"}
    outputs = {"run_folder": str(work.folder)}
    if last in ("export", "report", "audit"):
        outputs |= {label: str(path) for label, path in paths.items() if path.exists()}
    return outputs


def lacking_grades(work: "Run", names: Sequence[str] | None) -> Incomplete | None:
    """Return the error of a judge that left more pairs without a grade than its settings allow; None if none did."""
    mark = work.mark("judge") if "judge" in (names or work.pipeline.head.stages) else None
    if mark and (judges := mark.report.facts.get("too_many_lost")):
        return Incomplete(
            f"judge: more pairs have no grade than judge.sanity.missing allows, of {judges}; what was graded is kept"
        )
    return None


@contextmanager
def opened(where: str | None = None, *, new: bool = False) -> Iterator["Ledger"]:
    """Yield the ledger at a file or URL, by default that of the environment; NotFound if missing, unless `new`."""
    from curate.core.errors import NotFound
    from curate.ledger import Ledger
    from curate.pipeline.stage import ledger_place

    location = ledger_place() if where is None else where if "://" in where else Path(where)
    if isinstance(location, Path) and not location.exists() and not new:
        raise NotFound(f"{location}: no ledger yet; judge something first, or set CURATE_HOME or CURATE_LEDGER")
    with Ledger(location) as ledger:
        yield ledger
