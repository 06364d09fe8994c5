"""`curate train`: an embedding model trained on triples, and what it gained on a test set that it never saw."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from curate.commands.evaluate import tasks
from curate.commands.evaluate.scoring import Scored
from curate.commands.train import FEWEST_SEEDS, TrainSettings, scores, triples
from curate.commands.train import origin as provenance
from curate.commands.train.fitting import explained
from curate.commands.train.loading import TrainModels
from curate.commands.train.origin import TriplesOrigin
from curate.commands.train.recipes import RecipeData
from curate.commands.train.scores import ModelScores, TaskGain
from curate.commands.train.seeds import TrainedSeed, TrainPlan, plan, trained
from curate.core import config
from curate.core.config import Json, digest
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.pipeline.pipeline import Pipeline, find
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.runs.command import Assignments, Command, Names, argument, option, setting
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW
from curate.system.files import read_json, write_json, write_text
from curate.tables.exporters.card import environment, front_matter, markdown
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table

BEGUN = "begun.json"
VERSION = 2
OTHER = {
    "version": "version",
    "settings": "settings",
    "triples": "triples",
    "base": "base",
    "documents": "document model",
    "test": "test set (a model is scored on more of them by `curate evaluate`)",
}
"""Key of `_identity` -> name in messages."""
LIBRARIES = ("curate-ir", "sentence-transformers", "transformers", "torch", "accelerate", "mteb")
WORDS = "train/train"


class PlannedTraining(Record, schema_name="planned"):
    """What a training takes."""

    plan: TrainPlan = figure("estimate of the training")


class TriplesRead(Record, schema_name="triples"):
    """Numbers of the triples."""

    name: str = figure("name of the file")
    digest: str = figure("digest of the file")
    queries: int = figure("distinct queries")
    positives: int = figure("relevant pairs of a query and a document")
    documents: int = figure("distinct documents")
    examples: int = figure("training rows that the recipe makes of the triples")


class TrainFigures(Record, schema_name="found"):
    """What a model that was trained on triples gained on a test set; with --plan what training takes."""

    version: int = figure("version of the stored figures")
    base: str = figure("base model")
    documents_by: str = figure("model that encodes documents")
    compared_with: str = figure("model whose scores are `base` in the rows of `test` and `legacy`")
    identity: str = figure("digest of settings, triples and models")
    triples: TriplesRead = figure("numbers of the triples")
    dev_queries: int = figure("queries held back to choose the step")
    origin: TriplesOrigin = figure("provenance of the triples")
    settings: Any = figure("settings of the section `train`")
    few_seeds: bool = figure(f"whether fewer than {FEWEST_SEEDS} seeds were trained")
    versions: Mapping[str, str] = figure("library -> version")
    seeds: tuple[TrainedSeed, ...] = figure("a row per seed")
    chosen: int = figure("seed with the best dev score, whose model is published")
    test: tuple[TaskGain, ...] = figure("scores on the tasks of the test set")
    legacy: tuple[TaskGain, ...] = figure("scores on the legacy tasks")
    notes: tuple[str, ...] = figure("caveats, one sentence each")
    folder: str = figure("folder of model, card and figures")


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
    recipe: str | None = option(
        "Default: the pipeline's.", None, key="train.recipe", metavar="contrastive|align|joint|pairs|soft"
    )
    seeds: int | None = option("Models to train; 3 or more.", None, key="train.seeds", ge=1)
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

    def result(self) -> Result[TrainFigures | PlannedTraining]:
        """Return the scores of base and trained model; with `plan`, steps, memory and time."""
        if self.plan:
            estimate = plan(_prepared(self).recipe)
            rows = [{"what": name, "value": amount} for name, amount in estimate.to_json().items()]
            return Result(PlannedTraining(estimate), [as_table(rows)])
        figures = train(self)
        return Result(figures, _text(figures), figures.notes)

    def train_settings(self) -> TrainSettings:
        """Return the settings `train` of the pipeline, with those that are given; ConfigError lists all mistakes."""
        if foreign := [assignment for assignment in self.settings if not assignment.startswith("train.")]:
            raise ConfigError(f"--set {foreign[0]}: expected a setting of train, for example train.batch=64")
        path = find(self.pipeline or "train")
        pipeline = Pipeline.load(path, [*self.assignments(), *self.settings])
        return config.check(TrainSettings, pipeline.head.train, f"{path.name}: train")


@dataclass(frozen=True)
class _Work:
    """A command with its inputs, read and checked."""

    command: TrainCommand
    out: Path
    recipe: RecipeData
    origin: TriplesOrigin
    scoring: ModelScores
    tested: int
    """Number of tasks at the beginning that belong to the test set; legacy tasks follow."""


def train(command: TrainCommand) -> TrainFigures:
    """Train and score the models, and return all figures; writes `model/`, `train.json` and `README.md` to the folder.

    An interrupted training resumes from its last checkpoint; finished seeds are not trained again.
    """
    work = _prepared(command)
    _begin(work)
    say, settings, results = RecordWords(WORDS), work.recipe.settings, list[TrainedSeed]()
    for seed in range(settings.seed, settings.seed + settings.seeds):
        result = trained(work.recipe, seed, work.out / "seeds" / str(seed), command.progress)
        command.tell(say("trained_seed", result))
        results.append(result)
    gains = _task_gains(work, results)
    best = max(results, key=lambda result: (result.dev_after, -result.seed))
    _publish(work.out, str(best.seed))
    figures = _figures(work, results, best.seed, gains)
    write_json(work.out / "train.json", figures.to_json("folder"))
    write_text(work.out / "README.md", readme(figures))
    return figures


def _prepared(command: TrainCommand) -> _Work:
    """Return all inputs, read and checked before anything is trained."""
    settings = command.train_settings()
    if settings.seeds < FEWEST_SEEDS and not command.few_seeds:
        raise ConfigError(
            f"--seeds {settings.seeds}: found fewer than {FEWEST_SEEDS}, and one training says little about the next; "
            "give more, or allow it with --set few_seeds=true, which is written on the card"
        )
    examples = triples.read(command.triples, graded=settings.recipe == "soft")
    origin = provenance.origin(examples, command.test)
    tested = scores.test_tasks(command.test)
    models = TrainModels(command.base, settings, command.device, command.progress)
    models.check()
    provenance.no_test_query(examples, (text for task in tested for text in scores.asked(task)), command.test)
    legacy_tasks = [task for source in command.legacy for task in tasks.legacy(source)]
    recipe = RecipeData(examples, triples.held_back(examples, settings.dev, settings.seed), models)
    recipe.check()
    out = command.out or Path("trained") / command.test.resolve().name
    return _Work(command, out, recipe, origin, ModelScores(models, [*tested, *legacy_tasks]), len(tested))


def _identity(work: _Work) -> dict[str, Json]:
    """Return the values that all seeds of a folder share: settings, and digests of triples, models and test set."""
    recipe = work.recipe
    return {
        "version": VERSION,
        "settings": recipe.settings.model_dump(mode="json", exclude={"seeds"}),
        "triples": recipe.triples.digest,
        "base": _revision(recipe.models.query, recipe.settings),
        "documents": _revision(recipe.models.document, recipe.settings),
        "test": [task.content for task in work.scoring.tasks[: work.tested]],
    }


def _revision(name: str, settings: TrainSettings) -> str:
    return DenseEncoder("model", Config(model=name, max_length=settings.max_length)).revision


def _begin(work: _Work) -> None:
    """Start or resume a folder; ConfigError if it was started with other inputs, unless `force` is set."""
    folder, identity = work.out, _identity(work)
    begun = free_place(folder, [BEGUN]) / BEGUN
    if begun.is_file() and (earlier := read_json(begun)) != identity:
        if not work.command.force:
            changed = next(name for name in identity if earlier.get(name) != identity[name])
            raise ConfigError(
                f"{folder}: a training with other {OTHER[changed]} lies there; give another folder with --out, or "
                "begin anew with --force"
            )
        shutil.rmtree(folder / "seeds", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(begun, identity)


def _task_gains(work: _Work, results: Sequence[TrainedSeed]) -> list[TaskGain]:
    """Return the scores of the base and every seed's model, on the test set, then on legacy tasks."""
    models, settings = work.recipe.models, work.recipe.settings
    document_vectors = models.vectors(models.document) if settings.frozen else None
    base = work.scoring.of("base", _compared_with(work), documents=document_vectors)
    say, seed_scores = RecordWords(WORDS), list[list[Scored]]()
    for result in results:
        folder = work.out / "seeds" / str(result.seed) / "model"
        seed_scores.append(work.scoring.of(f"seed-{result.seed}", str(folder), documents=document_vectors))
        work.command.tell(say("scored_seed", result, score=seed_scores[-1][0].main, base=base[0].main))
    return [
        scores.compared(before, after, task, settings.seed)
        for before, task, *after in zip(base, work.scoring.tasks, *seed_scores, strict=True)
    ]


def _compared_with(work: _Work) -> str:
    """Return the model for comparison: the document model, for queries and documents, if it differs; else the base."""
    models = work.recipe.models
    both = models.settings.documents and not models.shared
    return models.document if both else models.base


def _publish(folder: Path, seed: str) -> None:
    """Copy the model of a seed to `model/`."""
    temporary = folder / ".model"
    shutil.rmtree(temporary, ignore_errors=True)
    with explained(folder):
        shutil.copytree(folder / "seeds" / seed / "model", temporary)
    shutil.rmtree(folder / "model", ignore_errors=True)
    temporary.rename(folder / "model")


def _figures(work: _Work, results: Sequence[TrainedSeed], chosen: int, gains: Sequence[TaskGain]) -> TrainFigures:
    examples, recipe = work.recipe.triples, work.recipe
    figures = TrainFigures(
        version=VERSION,
        base=work.command.base,
        documents_by=recipe.models.document,
        compared_with=_compared_with(work),
        identity=digest(_identity(work)),
        triples=TriplesRead(
            name=examples.place.name,
            digest=examples.digest,
            queries=len(examples.queries),
            positives=examples.pairs,
            documents=len(examples.documents),
            examples=recipe.count,
        ),
        dev_queries=len(recipe.held.dev),
        origin=work.origin,
        settings=recipe.settings.model_dump(mode="json"),
        few_seeds=recipe.settings.seeds < FEWEST_SEEDS,
        versions={name: version(name) for name in LIBRARIES},
        seeds=tuple(results),
        chosen=chosen,
        test=tuple(gains[: work.tested]),
        legacy=tuple(gains[work.tested :]),
        notes=(*examples.notes, *work.origin.notes),
        folder=str(work.out),
    )
    return replace(figures, notes=(*figures.notes, *_notes(figures)))


def _notes(figures: TrainFigures) -> Iterator[str]:
    """Yield caveats: few seeds or dev queries, gains that are not significant, losses on legacy tasks."""
    say = RecordWords(WORDS)
    if figures.few_seeds:
        yield say("few_seeds", trained=len(figures.seeds), fewest=FEWEST_SEEDS)
    if figures.dev_queries < FEW:
        yield say("few_dev_queries", figures, few=FEW)
    if not figures.legacy:
        yield say("no_legacy")
    for gain in figures.test:
        low = gain.difference.low if gain.difference else None
        if low is None or low <= 0:
            yield say("no_gain", gain)
    yield from (say("lower", gain) for gain in figures.legacy if gain.trained < gain.base)
    if all(result.best_step == 0 for result in figures.seeds):
        yield say("no_step")


def _text(figures: TrainFigures) -> Iterator[str]:
    say = RecordWords(WORDS)
    for key, gains in (("test", figures.test), ("legacy", figures.legacy)):
        yield from (say(key, gain, scores=_scores(gain)) for gain in gains)
    yield from figures.notes
    yield say("model", figures)


def _scores(gain: TaskGain) -> str:
    """Return base and trained score, times 100; with a paired test, also the difference, its 95 % interval and p."""
    return RecordWords(WORDS)("gain" if gain.difference else "scores", gain)


def readme(figures: TrainFigures) -> str:
    """Return the README of a trained model."""
    front = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "text"],
    }
    card = environment().get_template("commands/train/card.md.j2")
    return card.render(front=front_matter(front), figures=figures, named=_named, scores=_scores)


def _named(model: str) -> str:
    """Return a model's name for display, escaped for Markdown; for a folder, the last two parts of its path."""
    path = Path(model).expanduser()
    return markdown("/".join(path.resolve().parts[-2:]) if path.is_dir() else model)
