"""`curate run`: all stages of a pipeline, or with `--plan` a cost estimate of them."""

from collections.abc import Iterator
from dataclasses import replace

from curate.commands.run.plan import RunPlan, plan
from curate.llm.exchange_rates import bound, rounded_up, shown
from curate.runs.command import RUN, argument, option
from curate.runs.opening import opened_to_plan
from curate.runs.options import OnPipeline, Plannable
from curate.runs.running import stages_result
from curate.view.answers import Result, only_plans
from curate.view.record_words import RecordWords
from curate.view.text import as_table


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

    def result(self) -> Result[RunPlan]:
        """Run the stages; with `plan`, return what they would ask of models, and the cost."""
        if self.plan:
            return self._cost_estimate()
        only_plans()
        work = self.open_run()
        work.consent = self.consent()
        work.execute(None, force=self.force)
        return stages_result(work, None)

    @classmethod
    def answer(cls) -> type[RunPlan]:
        """Return the type of the plan: a run of stages has no answer in JSON."""
        return RunPlan

    def _cost_estimate(self) -> Result[RunPlan]:
        work = opened_to_plan(self.pipeline, self.run, [*self.settings, *self.assignments()], tell=self.notify)
        work.progress, work.tell, work.consent = self.progress, self.tell, self.consent()
        run_plan = plan(work)
        return Result(run_plan, _text(run_plan), [*run_plan.unknown, *run_plan.assumed])


def _text(run_plan: RunPlan) -> Iterator[str]:
    say = RecordWords("run/run")
    if not run_plan.rows:
        yield say("nothing")
        return
    rows = [row if row.most is None else replace(row, most=rounded_up(row.most)) for row in run_plan.rows]
    keys = ["calls", *(["least"] if any(row.least != row.most for row in run_plan.rows) else []), "most"]
    yield as_table([dict(cell for key in keys for cell in say.cells(key, row).items()) for row in rows])
    yield _total(run_plan, say)
    if run_plan.prices:
        yield say("per_million")
        yield as_table([say.cells("price", price) for price in run_plan.prices])
    for title, sentences in (("unknown", run_plan.unknown), ("assumed", run_plan.assumed)):
        if sentences:
            yield say(title)
            yield from (f"  {sentence}" for sentence in sentences)


def _total(run_plan: RunPlan, say: RecordWords) -> str:
    most, known = (
        None if amount is None else bound(amount, run_plan.currency) for amount in (run_plan.most, run_plan.known)
    )
    if run_plan.most is None or run_plan.least is None:
        return say("total_unknown", priced="" if known is None else say("priced", known=known))
    least = shown(run_plan.least, run_plan.currency)
    return say("total_range" if run_plan.least < run_plan.most else "total", least=least, most=most)
