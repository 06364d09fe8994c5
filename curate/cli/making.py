"""One command per stage that builds the items of a task type and asks a panel, such as `curate sts`."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from curate.pipeline import stages
from curate.runs.options import Assign, Batch, File, Folder, Force, MaxCost, Offline, Plan, PlanAsJson, Retry, Yes
from curate.runs.running import allowed, assigned, go, listed, open_run, print_plan
from curate.view.answers import only_plans
from curate.view.output_mode import reporting

Confirming = Annotated[
    str | None, typer.Option("--panel", help="Models that confirm what was made, separated by commas.")
]


def add_to(app: typer.Typer, name: str) -> None:
    """Add the command of one stage to the program."""
    app.command(name, help=stages.KIND_COMMANDS[name].help)(reporting(_command(name)))


def _command(name: str) -> Callable[..., None]:
    """Return the command of a stage; it has the option `--generator` only if the stage has this setting."""

    def command(
        pipeline: File = None,
        run: Folder = None,
        assign: Assign = None,
        force: Force = False,
        generator: str | None = None,
        panel: Confirming = None,
        plan: Plan = False,
        retry: Retry = False,
        max_cost: MaxCost = None,
        yes: Yes = False,
        batch: Batch = False,
        offline: Offline = False,
        as_json: PlanAsJson = False,
    ) -> None:
        changes = [
            *(assign or []),
            *listed(f"{name}.panel", panel),
            *assigned({f"{name}.generator": generator}),
        ]
        if plan:
            planned = stages.module(name).planned
            work = open_run(pipeline, run, changes)
            spend = allowed(max_cost, yes, retry=retry, batch=batch)
            print_plan(work, spend, lambda: work.look(name, planned), 4, as_json)
            return
        only_plans(as_json)
        spend = allowed(max_cost, yes, retry=retry, offline=offline, batch=batch)
        go([name], pipeline, run, changes, force or retry, spend)

    _fit(command, stages.KIND_COMMANDS[name].generator)
    return command


def _fit(command: Callable[..., None], generator: str) -> None:
    """Set the help of the option `--generator` to `generator`; if that is empty, remove the option."""
    signature = inspect.signature(command)
    parameters = dict(signature.parameters)
    if generator:
        kind = Annotated[str | None, typer.Option(help=generator)]
        parameters["generator"] = parameters["generator"].replace(annotation=kind)
        command.__annotations__["generator"] = kind
    else:
        del parameters["generator"], command.__annotations__["generator"]
    command.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
