"""`curate.ask_models`: a user-defined task for language models, with the ledger, budget and checks of the stages."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from curate.api.cost_plan import consenting
from curate.api.run_view import PathLike
from curate.api.running import Tell
from curate.ask.panel import Panel
from curate.ask.task import TASKS, AskedModel, Item, LLMTask
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger, default_path
from curate.llm.recorded_votes import Answer
from curate.runs import opening
from curate.runs.command import silent
from curate.system.run_lock import locked

PURPOSE = "task"


@consenting()
def ask_models(
    task: LLMTask[Item, Answer] | str,
    items: Mapping[str, Item],
    models: Sequence[str],
    *,
    run: PathLike | None = None,
    max_cost: str | float | None = None,
    yes: bool = False,
    offline: bool = False,
    retry: bool = False,
    batch: bool = False,
    progress: PaidProgress | None = None,
    tell: Tell | None = None,
) -> dict[str, dict[str, Answer]]:
    """Return item -> model -> answer to a task; answers in the ledger are not requested again.

    `task` is a task or the name of a plugin's task, `items` is id -> item. `run` is the run folder that the items come
    from, by default the newest: its models, prices and ledger are used, and remote models are called only after its
    texts were masked and filtered. All other arguments are as for `curate.run`: without `max_cost` or `yes` nothing is
    sent, and ConsentNeeded has the cost estimate.
    """
    notify = tell or silent
    work = opening.opened(None, None if run is None else Path(run), detect=False, tell=notify)
    work.progress, work.tell = progress or quiet, notify
    work.consent = opening.consent(max_cost, yes, offline=offline, retry=retry, batch=batch)
    context = work.beside("pool")
    found: LLMTask[Item, Answer] = TASKS.load(task)() if isinstance(task, str) else task
    asked = [AskedModel.named(context, name, "models", PURPOSE) for name in models]
    with locked(work.folder), Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = Panel(ledger, context, asked, command="the same call with batch=True")
        return panel.permitted("the task", lambda panel: panel.ask(found, items))
