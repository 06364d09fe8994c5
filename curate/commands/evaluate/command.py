"""`curate evaluate`: scores of models on a benchmark, with significance tests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table

Figures = Mapping[str, Any]
Several = Annotated[
    list[str] | None,
    typer.Option("--models", "-m", help="bm25, an encoder, a folder, or the name of a model; separated by commas."),
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1, or several separated by commas; default: every GPU.")
]
Dtype = Annotated[
    str, typer.Option(help="auto (bfloat16 where the GPU has it), float32, bfloat16 or float16.", metavar="DTYPE")
]
Dims = Annotated[str | None, typer.Option(help="Widths such as 768,512,256: vectors are cut to them and scored again.")]


@reporting
def evaluate(
    folder: Annotated[Path, typer.Argument(help="A run folder, an export, its folder mteb, or one task's folder.")],
    others: Annotated[
        list[str] | None, typer.Argument(help="More models, as after --models.", metavar="[MODEL]...")
    ] = None,
    models: Several = None,
    legacy: Annotated[
        list[str] | None,
        typer.Option("--legacy", help="Folder or mteb task whose ranking of the models is compared with this one."),
    ] = None,
    baselines: Annotated[bool, typer.Option(help="Score BM25 and the offline encoders too.")] = True,
    floors: Annotated[
        bool, typer.Option(help="Score what needs no meaning too: length, shared characters, a keyword per class.")
    ] = True,
    reviews: Annotated[
        Path | None,
        typer.Option(help="Run whose reviewed sample (--for-scores) corrects the scores; default: the folder's."),
    ] = None,
    average: Annotated[
        list[str] | None,
        typer.Option(
            help="Group of tasks to average, as NAME=TASK,TASK; several groups are compared.", metavar="GROUP"
        ),
    ] = None,
    results: Annotated[
        list[Path] | None, typer.Option(help="Folder of mteb results, whose models are compared without queries.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Model to test every other one against, with Holm over these pairs alone.")
    ] = None,
    device: Device = None,
    dtype: Dtype = "auto",
    dims: Dims = None,
    speed: Annotated[
        bool, typer.Option("--speed", help="Time the models in turn on the queries, search apart.")
    ] = False,
    speed_queries: Annotated[int, typer.Option(min=1, help="Queries that --speed takes.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: `evaluation` in the run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score models with mteb, and test which differences between them are significant.

    On graded labels nDCG@10 is given with linear and with exponential gain, and with the mean of the judges' gains.
    """
    from curate.commands.evaluate import evaluation as evaluating
    from curate.commands.evaluate.averages import ComparisonOptions
    from curate.commands.evaluate.scoring import widths_of
    from curate.view.progress import bars

    names = [name for option in [*(models or []), *(others or [])] for name in option.split(",") if name]
    old = [name for option in legacy or [] for name in option.split(",") if name]
    comparison = ComparisonOptions(average or (), results or (), against)
    order = evaluating.EvaluationOptions(folder, names, old, baselines, device, out, reviews, floors=floors)
    order = replace(
        order, speed=speed_queries if speed else None, compared=comparison, dtype=dtype, dims=widths_of(dims)
    )
    with bars() as (progress, tell):
        figures = evaluating.evaluate(order, tell, progress)
    answer(figures, _text(figures), as_json=as_json, warnings=figures["notes"])


def _text(figures: Figures) -> Iterator[str]:
    from curate.commands.evaluate.page import overview
    from curate.commands.evaluate.page_sections import average_line, correlations

    yield as_table(overview(figures, bold="*"))
    yield "points of 100, the best between asterisks"
    for task in figures["tasks"]:
        enough, headroom = task["enough"], task["headroom"]
        apart = f"{enough['told_apart']} of {len(enough['neighbours'])} neighbours in the order told apart"
        yield f"{task['name']}: {apart}; the best leaves {100 * headroom['left']:.2f} points of mteb's score"
        if levels := task["levels"]:
            corrected = [model for model in levels["models"] if model["precision_at_10"]]
            scores = ", ".join(
                f"{model['model']} P@10 {100 * score['value']:.1f} ± {100 * score['half']:.1f}"
                for model in corrected
                for score in [model["precision_at_10"]]
            )
            scores = scores or "no model"
            yield f"{task['name']}: {scores} by the sample {levels['sample']}"
        elif task["verdicts"] and task["judged"]:
            yield f"{task['name']}: no level: nobody read the top tens; `curate review export --for-scores` draws them"
        if against := task["against_floors"]:
            above = sum(model["above"] for model in against["models"])
            yield (
                f"{task['name']}: {above} of {len(against['models'])} models above the {against['sort']} "
                f"{against['best']} ({100 * against['score']:.2f}), the best without meaning"
            )
        if task["speed"]:
            yield from _speed(task)
    for comparison in figures["legacy"]:
        rho = comparison["spearman"]
        printed = (
            f"{rho['value']:.3f} ({rho['low']:.3f} to {rho['high']:.3f}), p {rho['p']:.4f}" if rho else "not given"
        )
        yield f"{comparison['new']} against {comparison['old']}, {comparison['models']} models: rho {printed}"
    yield from map(average_line, figures["averages"])
    for order in figures["orders"]:
        yield from (f"{order['one']} against {order['other']}: {sentence}" for sentence in correlations(order))
    yield from figures["notes"]
    yield f"all figures: {figures['folder']}/README.md"


def _speed(task: Figures) -> Iterator[str]:
    from curate.commands.evaluate import page_sections

    yield f"{task['name']}, speed:"
    yield as_table(page_sections.speed_overview(task["speed"]))
    yield from page_sections.speed_ratios(task["speed"])
    yield page_sections.speed_machine(task["speed"])
