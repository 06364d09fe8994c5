"""`curate train`: an embedding model trained on triples, and what it gained on a test set that it never saw."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson, Assign, File, Force
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table

Figures = Mapping[str, Any]


@reporting
def train(
    triples: Annotated[
        Path, typer.Argument(help="Run or folder of `curate train-set`, or a .jsonl, .parquet or .csv file of triples.")
    ],
    base: Annotated[str, typer.Option(help="Model to begin with: a folder, or a name on the hub.")],
    test: Annotated[Path, typer.Option(help="Run or export whose queries score the base and what was trained.")],
    recipe: Annotated[
        str | None, typer.Option(help="contrastive, align, joint, pairs or soft; default: the pipeline's.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Models to train; 3 or more.")] = None,
    few_seeds: Annotated[bool, typer.Option("--few-seeds", help="Allow fewer than 3 seeds; the card says so.")] = False,
    legacy: Annotated[
        list[str] | None, typer.Option(help="Folder or mteb task that shows what the model forgot; may be repeated.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: trained/NAME of the test.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print steps, memory and time; train nothing.")] = False,
    pipeline: File = None,
    assign: Assign = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train an embedding model on triples; score it and its base once on a test set, with a paired test."""
    from curate.commands.train.train import TrainRequest, planned, train_settings
    from curate.commands.train.train import train as training
    from curate.view.progress import bars

    options = {"recipe": recipe, "seeds": seeds}
    changes = [f"train.{name}={setting}" for name, setting in options.items() if setting is not None]
    settings = train_settings(pipeline or "train", [*changes, *(assign or [])])
    order = TrainRequest(
        triples,
        base,
        test,
        settings,
        out or Path("trained") / test.resolve().name,
        [name for names in legacy or [] for name in names.split(",") if name],
        device,
        few_seeds,
        force,
    )
    with bars() as (progress, tell):
        summary: Figures = planned(order, progress) if plan else training(order, tell, progress)
    if plan:
        rows = [{"what": name, "value": amount} for name, amount in summary.items()]
        answer({"plan": summary}, [as_table(rows)], as_json=as_json)
        return
    answer(summary, _text(summary), as_json=as_json, warnings=summary["notes"])


def _text(summary: Figures) -> Iterator[str]:
    from curate.commands.train.card import shown

    for row in summary["test"]:
        yield f"{row['task']} {row['measure']}, base -> trained, of 100: {shown(row)}"
    for row in summary["legacy"]:
        yield f"{row['task']} (legacy) {row['measure']}: {shown(row)}"
    yield from summary["notes"]
    yield f"model: {summary['folder']}/model, of seed {summary['chosen']}; all figures: {summary['folder']}/README.md"
