"""`curate evaluate`: what models score on a benchmark, and what the scores prove."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.cli.tables import as_table

Figures = Mapping[str, Any]
Several = Annotated[
    list[str] | None,
    typer.Option("--models", "-m", help="bm25, an encoder, a folder, or a model's name; separated by commas."),
]


def add_to(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("evaluate")(evaluate)


def evaluate(
    folder: Annotated[Path, typer.Argument(help="A run folder, an export, its folder mteb, or one task's folder.")],
    others: Annotated[
        list[str] | None, typer.Argument(help="More models, as after --models.", metavar="[MODEL]...")
    ] = None,
    models: Several = None,
    legacy: Annotated[
        list[str] | None, typer.Option("--legacy", help="A folder, or a task that mteb knows, to compare orders with.")
    ] = None,
    baselines: Annotated[bool, typer.Option(help="Score BM25 and the offline encoders too.")] = True,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; on a GPU in half precision.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where it is written; without it `evaluation` in the run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Score models by mteb, compare them, and say what the scores prove."""
    from curate.cli.progress import bars
    from curate.evaluation.models import evaluate as evaluating

    named = [name for each in [*(models or []), *(others or [])] for name in each.split(",") if name]
    old = [name for each in legacy or [] for name in each.split(",") if name]
    order = evaluating.EvaluationOptions(folder, named, old, baselines, device, out)
    with bars() as (_, tell):
        found = evaluating.evaluate(order, tell)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for line in _text(found):
        typer.echo(line)


def _text(found: Figures) -> Iterator[str]:
    from curate.evaluation.models.page import overview

    yield as_table(overview(found, bold="*"))
    yield "points of 100, the best between asterisks"
    for task in found["tasks"]:
        enough, left = task["enough"], task["headroom"]
        apart = f"{enough['told_apart']} of {len(enough['neighbours'])} neighbours in the order told apart"
        yield f"{task['name']}: {apart}; the best leaves {100 * left['left']:.2f} points"
    for each in found["legacy"]:
        value = each["spearman"]
        shown = (
            f"{value['value']:.3f} ({value['low']:.3f} to {value['high']:.3f}), p {value['p']:.4f}"
            if value
            else "not given"
        )
        yield f"{each['new']} against {each['old']}, {each['models']} models: rho {shown}"
    yield from found["notes"]
    yield f"all figures: {found['folder']}/README.md"
