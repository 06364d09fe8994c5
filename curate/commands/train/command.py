"""`curate train`: an embedding model trained on triples, and what it gained on a test set that it never saw."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.runs.command import Assignments, Command, Names, argument, option, setting
from curate.view.answers import Result
from curate.view.text import as_table

Figures = Mapping[str, Any]


class TrainCommand(Command):
    """Train an encoder.

    On triples; it and its base are scored once on a test set, with a paired test.
    """

    words = "train"
    examples = (
        "train runs/train-my-set --base bge-m3 --test runs/demo --plan",
        "train triples.jsonl --base ./model --test runs/demo --recipe soft",
    )

    triples: Path = argument("Run or folder of `curate train-set`, or a .jsonl, .parquet or .csv file of triples.")
    base: str = option("Model to begin with: a folder, or a name on the hub.", metavar="MODEL")
    test: Path = option("Run or export whose queries score the base and what was trained.", metavar="FOLDER")
    recipe: str | None = option("Default: the pipeline's.", None, metavar="contrastive|align|joint|pairs|soft")
    seeds: int | None = option("Models to train; 3 or more.", None, ge=1)
    legacy: Names = option("Folder or mteb task that shows what the model forgot; may be repeated.", (), metavar="SET")
    device: str | None = option("Where to compute.", None, metavar="cpu|cuda|cuda:1")
    out: Path | None = option("Folder to write to; default: trained/NAME of the test.", None, metavar="FOLDER")
    plan: bool = option("Print steps, memory and time; train nothing.", False)
    pipeline: str | None = option(
        "Pipeline file, or the name of a packaged one.", None, complete="pipelines", metavar="FILE"
    )
    settings: Assignments = option(
        "Change a setting; may be repeated.",
        (),
        flag="--set",
        complete="settings",
        metavar="SECTION.KEY=VALUE",
    )
    force: bool = option("Train again even if up to date.", False)
    few_seeds: bool = setting("Allow fewer than 3 seeds; the card says so.", False)

    def result(self) -> Result[Any]:
        """Return the scores of base and trained model; with `plan`, steps, memory and time."""
        from curate.commands.train.train import TrainRequest, planned, train, train_settings

        options = {"recipe": self.recipe, "seeds": self.seeds}
        changes = [f"train.{name}={chosen}" for name, chosen in options.items() if chosen is not None]
        request = TrainRequest(
            self.triples,
            self.base,
            self.test,
            train_settings(self.pipeline or "train", [*changes, *self.settings]),
            self.out or Path("trained") / self.test.resolve().name,
            self.legacy,
            self.device,
            self.few_seeds,
            self.force,
        )
        if self.plan:
            estimate = planned(request, self.progress)
            rows = [{"what": name, "value": amount} for name, amount in estimate.items()]
            return Result({"plan": estimate}, [as_table(rows)])
        summary: Figures = train(request, self.tell, self.progress)
        return Result(summary, _text(summary), summary["notes"])


def _text(summary: Figures) -> Iterator[str]:
    from curate.commands.train.card import shown

    for row in summary["test"]:
        yield f"{row['task']} {row['measure']}, base -> trained, of 100: {shown(row)}"
    for row in summary["legacy"]:
        yield f"{row['task']} (legacy) {row['measure']}: {shown(row)}"
    yield from summary["notes"]
    yield f"model: {summary['folder']}/model, of seed {summary['chosen']}; all figures: {summary['folder']}/README.md"
