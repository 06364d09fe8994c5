"""`curate evaluate`: scores of models on a benchmark, with significance tests."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.runs.command import Command, Names, argument, option, setting
from curate.view.answers import Result
from curate.view.text import as_table

Figures = Mapping[str, Any]


class EvaluateCommand(Command):
    """Score models.

    With mteb, and with tests of which differences between them are significant. On graded labels nDCG@10 is given with
    linear and with exponential gain, and with the mean of the judges' gains.
    """

    words = "evaluate"
    examples = ("evaluate runs/demo --models e5,minilm", "evaluate runs/demo --models ./my-model --against e5")

    folder: Path = argument("A run folder, an export, its folder mteb, or one task's folder.")
    others: Names = argument("More models, as after --models.", (), metavar="[MODEL]...")
    models: Names = option(
        "bm25, an encoder, a folder, or the name of a model; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    legacy: Names = option(
        "Folder or mteb task whose ranking of the models is compared with this one.", (), metavar="SET"
    )
    baselines: bool = option("Score BM25 and the offline encoders too.", True)
    floors: bool = option("Score what needs no meaning too: length, shared characters, a keyword per class.", True)
    reviews: Path | None = setting(
        "Run whose reviewed sample (--for-scores) corrects the scores; default: the folder's.", None
    )
    average: tuple[str, ...] = option(
        "Group of tasks to average; several groups are compared.", (), metavar="NAME=TASK,TASK"
    )
    results: tuple[Path, ...] = option(
        "Folder of mteb results, whose models are compared without queries.", (), metavar="FOLDER"
    )
    against: str | None = option(
        "Model to test every other one against, with Holm over these pairs alone.", None, metavar="MODEL"
    )
    device: str | None = option("Several separated by commas; default: every GPU.", None, metavar="cpu|cuda|cuda:1")
    speed: bool = option("Time the models in turn on the queries, search apart.", False)
    out: Path | None = option("Folder to write to; default: `evaluation` in the run.", None, metavar="FOLDER")
    dtype: str = setting("auto (bfloat16 where the GPU has it), float32, bfloat16 or float16.", "auto")
    dims: str | None = setting("Widths such as 768,512,256: vectors are cut to them and scored again.", None)
    speed_queries: int = setting("Queries that --speed takes.", 1000, ge=1)

    def result(self) -> Result[Any]:
        """Return the scores of every model, and the tests of their differences."""
        from curate.commands.evaluate import evaluation as evaluating
        from curate.commands.evaluate.averages import ComparisonOptions
        from curate.commands.evaluate.scoring import widths_of

        request = evaluating.EvaluationOptions(
            self.folder,
            [*self.models, *self.others],
            self.legacy,
            self.baselines,
            self.device,
            self.out,
            self.reviews,
            floors=self.floors,
            speed=self.speed_queries if self.speed else None,
            compared=ComparisonOptions(self.average, self.results, self.against),
            dtype=self.dtype,
            dims=widths_of(self.dims),
        )
        figures = evaluating.evaluate(request, self.tell, self.progress)
        return Result(figures, _text(figures), figures["notes"])


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
