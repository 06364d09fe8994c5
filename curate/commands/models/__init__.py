"""`curate models` and `curate models test`: list the available language models, and test one with a tiny call."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from curate.runs import completing
from curate.runs.group import CommandGroup
from curate.runs.options import AsJson, File, Folder
from curate.runs.running import announce_presets, load_head, load_pipeline
from curate.view.answers import answer, notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curate.commands.models.trial import ModelTest
    from curate.core.config import Settings

commands = typer.Typer(cls=CommandGroup, invoke_without_command=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(commands, name="models")


@commands.callback()
def models(context: typer.Context, pipeline: File = None, run: Folder = None, as_json: AsJson = False) -> None:
    """List the language models that can judge: presets, and those of the pipeline; `models test NAME` tries one."""
    from curate.commands.models.trial import listed

    if context.invoked_subcommand is not None:
        return
    judges = cast("Mapping[str, Settings]", load_head(pipeline, run).judges) if _has_pipeline(pipeline, run) else {}
    rows = listed(judges)
    answer(rows, _table(rows), as_json=as_json)


@commands.command("test")
def attempt(
    name: Annotated[str, typer.Argument(help="A model that `curate models` lists.", autocompletion=completing.models)],
    pipeline: File = None,
    run: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Send one tiny prompt to a model, which costs next to nothing, and print its reply, tokens and cost."""
    from curate.commands.models.trial import tried
    from curate.core.errors import RunFailed

    trial = tried(name, load_pipeline(pipeline, run) if _has_pipeline(pipeline, run) else None, notice)
    failed = RunFailed(trial.problem) if trial.problem else None
    answer(asdict(trial), _report(trial), as_json=as_json, failed=failed)


def _has_pipeline(pipeline: str | None, run: Path | None) -> bool:
    """Return whether a pipeline or a run is named, or `runs` has one; if not, print the notice on changed presets."""
    if pipeline is not None or run is not None or any(Path("runs").glob("*/pipeline.yaml")):
        return True
    announce_presets()
    return False


def _table(rows: list[dict[str, str | int | float | bool | None]]) -> list[str]:
    names = [name for name in rows[0] if name not in ("source", "note")]
    cells = [names, *[[_cell(row[name]) for name in names] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells)
    return [*lines, "input and output: price of a million tokens on that date; `--json` has a note on each"]


def _cell(entry: str | int | float | bool | None) -> str:
    if entry is None:
        return "-"
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return entry if isinstance(entry, str) else f"{entry:,}" if isinstance(entry, int) else f"{entry:g}"


def _report(trial: "ModelTest") -> list[str]:
    usage = trial.usage
    tokens = usage and (
        f"{usage.prompt:,} prompt tokens, {usage.cached:,} of them from a cache; "
        f"{usage.output:,} answer tokens, {usage.reasoning:,} of them thoughts"
    )
    lines = {
        "model": trial.model or "not named in the reply",
        "seconds": f"{trial.seconds:.2f}",
        "form": f"{'not as agreed' if trial.problem else 'as agreed'} (json_mode {trial.json_mode})",
        "grades": ", ".join(f"{label} {grade or 'none'}" for label, grade in trial.grades.items()),
        "usage": tokens or "unknown",
        "cost": "unknown" if trial.cost is None else f"{trial.cost:.6f} {trial.currency}",
    }
    return [trial.name, *(f"  {name}: {text}" for name, text in lines.items())]
