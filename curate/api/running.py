"""Running pipelines and estimating their cost from Python, with the same rules as the commands."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from curate.api.cost_plan import CostPlan, consenting
from curate.api.run_view import PathLike, RunView
from curate.commands.run import plan as planning
from curate.commands.run.plan import RunPlan
from curate.core.errors import UserError
from curate.core.protocols import PaidProgress, quiet
from curate.runs import opening
from curate.runs.command import Settings, assigned, assignments, silent
from curate.runs.runner import Run

Tell = Callable[[str], None]


@consenting()
def run(
    pipeline: PathLike | None = None,
    *,
    run: PathLike | None = None,
    settings: Settings | None = None,
    stages: Sequence[str] | None = None,
    language: str | None = None,
    force: bool = False,
    max_cost: str | float | None = None,
    yes: bool = False,
    offline: bool = False,
    retry: bool = False,
    batch: bool = False,
    allow_weak_judges: bool = False,
    progress: PaidProgress | None = None,
    tell: Tell | None = None,
) -> RunView:
    """Run the stages of a pipeline that are not up to date, as `curate run` does, and return the run.

    `pipeline` is a file or the name of a packaged one (`demo`); without it, the settings in the run folder are used.
    `run` is the run folder, by default runs/NAME. `settings` override settings: `{"pool.depth": 50}` or
    `{"pool": {"depth": 50}}`. `stages` are those to run, by default all of the pipeline; `force` also runs those that
    are up to date.

    Language models are called within the budget `max_cost`, such as 5 or "5USD", or without a budget if `yes`.
    Otherwise ConsentNeeded, with the cost estimate, is raised before anything is sent. `offline` sends nothing and
    takes all replies from the ledger. `retry` asks again about pairs with a refused or unreadable reply. `batch` uses
    the batch APIs of providers that have one. `allow_weak_judges` accepts judges that fail the qualification test.

    `progress(label, total, done, money)` is called during a step, `tell(line)` when a stage starts or ends
    (`tell=print`). Both may be called from another thread, as in a notebook. Ctrl-C raises KeyboardInterrupt, or
    Interrupted while models are called; completed and paid work is kept, and the same call resumes it.

    UserError, ConfigError or DataError if the input is invalid, RunFailed if the work could not be done.
    """
    changes = [*assignments(settings), *assigned({"language": language})]
    work = _opened(pipeline, run, changes, progress, tell)
    work.consent = opening.consent(
        max_cost, yes, retry=retry, offline=offline, batch=batch, allow_weak_judges=allow_weak_judges
    )
    work.execute(stages, force=force or retry)
    return RunView(work.folder)


@consenting()
def plan(
    pipeline: PathLike | None = None,
    *,
    run: PathLike | None = None,
    settings: Settings | None = None,
    language: str | None = None,
    progress: PaidProgress | None = None,
    tell: Tell | None = None,
) -> CostPlan:
    """Return the calls and cost of judging, per model and in total; nothing is sent, and no run is changed.

    The stages before judging run for this estimate and are discarded, which may take minutes. If a run has completed
    them, `RunView.plan` gives the same at once. The arguments are those of `run`. `bill` estimates all stages that call
    a model.
    """
    changes = [*assignments(settings), *assigned({"language": language})]
    work = _opened(pipeline, run, changes, progress, tell)
    if "judge" not in work.pipeline.head.stages:
        raise UserError(f"{work.pipeline.head.name}: its stages have no 'judge', so there is nothing to plan")
    return CostPlan(opening.quoted(work))


@consenting()
def bill(
    pipeline: PathLike,
    *,
    run: PathLike | None = None,
    settings: Settings | None = None,
    language: str | None = None,
    batch: bool = False,
    progress: PaidProgress | None = None,
    tell: Tell | None = None,
) -> RunPlan:
    """Return the calls and cost of all stages of a pipeline, as `curate run PIPELINE --plan` does.

    Nothing is sent or written. The estimate of a stage is exact if its input exists; else it is forecast from the texts
    of the source. The arguments are those of `run`.
    """
    assign = [*assignments(settings), *assigned({"language": language})]
    folder, notify = None if run is None else Path(run), tell or silent
    work = opening.opened_to_plan(os.fspath(pipeline), folder, assign, tell=notify)
    work.progress, work.tell, work.consent = progress or quiet, notify, opening.consent(None, batch=batch)
    return planning.plan(work)


def _opened(
    pipeline: PathLike | None,
    folder: PathLike | None,
    assign: Sequence[str],
    progress: PaidProgress | None,
    tell: Tell | None,
) -> Run:
    if pipeline is None and folder is None:
        raise UserError("found neither a pipeline nor a run, expected one; name a file, such as run('pipeline.yaml')")
    notify = tell or silent
    file = None if pipeline is None else os.fspath(pipeline)
    work = opening.opened(file, None if folder is None else Path(folder), assign, tell=notify)
    work.progress, work.tell = progress or quiet, notify
    return work
