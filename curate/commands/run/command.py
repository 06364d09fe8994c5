"""`curate run`: all stages of a pipeline, or with `--plan` a cost estimate of them."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from curate.runs.command import RUN, argument, option
from curate.runs.options import OnPipeline, Plannable
from curate.runs.running import stages_result
from curate.view.answers import Result, only_plans
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.commands.run.plan import RunPlan


class RunCommand(OnPipeline, Plannable):
    """Run or resume a pipeline.

    Stages that are up to date are skipped.
    """

    words = "run"
    examples = ("run demo", "run my.yaml --plan")

    pipeline: str = argument("Pipeline file, or the name of a packaged one (demo).", complete="pipelines")
    language: str | None = option("Language of the texts, such as zh; default: detected.", None, key="language")
    force: bool = option("Run again even if up to date.", False, group=RUN)
    allow_weak_judges: bool = option("Continue with judges that did not pass their controls.", False)

    def result(self) -> Result[Any]:
        """Run the stages; with `plan`, return what they would ask of models, and the cost."""
        if self.plan:
            return self._cost_estimate()
        only_plans()
        work = self.open_run()
        work.consent = self.consent()
        work.execute(None, force=self.force)
        return stages_result(work, None)

    def _cost_estimate(self) -> Result[Any]:
        from curate.commands.run.plan import plan
        from curate.runs.opening import opened_to_plan

        work = opened_to_plan(self.pipeline, self.run, [*self.settings, *self.assignments()], tell=self.notify)
        work.progress, work.tell, work.consent = self.progress, self.tell, self.consent()
        run_plan = plan(work)
        return Result(asdict(run_plan), _lines(run_plan), [*run_plan.unknown, *run_plan.assumed])


def _lines(run_plan: "RunPlan") -> Iterator[str]:
    if not run_plan.rows:
        yield "nothing is left to send"
        return
    hidden = {"exact"} if any(row["least"] != row["most"] for row in run_plan.rows) else {"exact", "least"}
    yield as_table(
        [{name: cell for name, cell in row.items() if name not in hidden} for row in run_plan.rows], digits=2
    )
    yield _total(run_plan)
    if run_plan.prices:
        yield "\nper million tokens"
        yield as_table(run_plan.prices, digits=4)
    for title, sentences in (("not known", run_plan.unknown), ("assumed", run_plan.assumed)):
        if sentences:
            yield f"\n{title}:"
            yield from (f"  {sentence}" for sentence in sentences)


def _total(run_plan: "RunPlan") -> str:
    from curate.llm.exchange_rates import shown

    if run_plan.most is not None and run_plan.least is not None:
        fewest = f"{shown(run_plan.least, run_plan.currency)} to " if run_plan.least < run_plan.most else ""
        return f"in all: {fewest}{shown(run_plan.most, run_plan.currency)} at most"
    priced = "" if run_plan.known is None else f"; what has a price: at most {shown(run_plan.known, run_plan.currency)}"
    return f"in all: not known{priced}"
