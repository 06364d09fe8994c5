"""Training of models with several seeds: cost estimate, fitting, choice of steps by dev score, one test per seed."""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from curate.commands.evaluate import tasks
from curate.commands.evaluate.scoring import Scored
from curate.commands.train import FEWEST_SEEDS, TrainSettings, card, scores, triples
from curate.commands.train import card as provenance
from curate.commands.train import triples as splitting
from curate.commands.train.fitting import FitOptions, Fitted, explained, fit
from curate.commands.train.loading import TrainModels
from curate.commands.train.recipes import RecipeData, Trainee
from curate.commands.train.scores import ModelScores
from curate.core import config
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Progress, quiet
from curate.pipeline.pipeline import Pipeline, find
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.runs.outputs import free_place
from curate.system.files import read_json, sha256, write_json, write_text

SAMPLE = 16
"""Number of documents encoded to estimate the time."""
TIMES = 3
"""Duration of a training step, in encodings of its texts: one forward pass, and a backward pass of about two."""
WEIGHT, TRAINED = 4, 16
"""Bytes per weight in float32, and per trained weight: weight, gradient, and AdamW's two moments."""


def steps(settings: TrainSettings, examples: int) -> int:
    """Return the number of steps per seed: `settings.steps`, or that of the epochs."""
    return settings.steps or max(math.ceil(settings.epochs * examples / settings.batch), 1)


def plan(recipe: RecipeData) -> dict[str, Json]:
    """Return the estimated steps, weights, memory and seconds of a training, without running it."""
    settings = recipe.settings
    query = recipe.models.load(recipe.models.query)
    per_text = _seconds(recipe, query)
    count = steps(settings, recipe.count)
    columns = 1 if settings.frozen else 2 + settings.listed
    step = 0.0 if settings.part == "map" else TIMES * settings.batch * columns * per_text
    fixed = len(recipe.triples.documents) * per_text if settings.frozen else 0.0
    dev = len(recipe.held.dev) + (0 if settings.frozen else len(recipe.held.documents))
    rounds = count // every(settings, count) + 2
    seeds = settings.seeds * (count * step + rounds * dev * (0 if settings.part == "map" else per_text))
    return {
        "recipe": settings.recipe,
        "base": recipe.models.base,
        "documents_by": recipe.models.document,
        "queries": len(recipe.held.train),
        "dev_queries": len(recipe.held.dev),
        "documents": len(recipe.triples.documents),
        "examples": recipe.count,
        "steps": count,
        "seeds": settings.seeds,
        "weights": _weights(query),
        "trained_weights": _trained(query, settings),
        "memory_bytes": WEIGHT * _weights(query) + TRAINED * _trained(query, settings),  # without activations
        "seconds": round(fixed + seeds, 1),
    }


def every(settings: TrainSettings, count: int) -> int:
    """Return the number of steps between dev scores."""
    return min(settings.eval_every or max(count // 10, 1), count)


def _seconds(recipe: RecipeData, model: Any) -> float:  # noqa: ANN401 - a model has no type here
    """Return the seconds per text, timed on `SAMPLE` documents after a warm-up."""
    texts = list(recipe.triples.documents[:SAMPLE])
    model.encode(texts[:2], show_progress_bar=False)
    began = time.perf_counter()
    model.encode(texts, show_progress_bar=False)
    return (time.perf_counter() - began) / len(texts)


def _weights(model: Any) -> int:  # noqa: ANN401
    return sum(parameter.numel() for parameter in model.parameters())


def _trained(model: Any, settings: TrainSettings) -> int:  # noqa: ANN401
    if settings.part == "map":
        return int(model.get_embedding_dimension()) ** 2
    if settings.lora.rank:  # r x (in + out) of every matrix inside the transformer
        layers = (
            parameter
            for name, parameter in model.named_parameters()
            if parameter.ndim == 2 and "embeddings" not in name
        )
        return sum(settings.lora.rank * sum(layer.shape) for layer in layers)
    sides = 2 if settings.recipe == "joint" and not settings.frozen else 1
    return sides * _weights(model)


# One seed of a training: fit, verify that the best step's weights were restored, and write the model.

SEED, NEAR = "seed.json", 1e-4
"""Result file of a finished seed; maximum difference of the best step's dev score and that of the restored weights."""


def trained(recipe: RecipeData, seed: int, folder: Path, progress: Progress) -> dict[str, Any]:
    """Return the result of a seed, after training and writing its model; the result of a finished seed is read.

    RunFailed if the weights of the best step were not restored, because the trainer then silently retains the last
    ones.
    """
    if (folder / SEED).is_file():
        return read_json(folder / SEED)
    trainee = recipe.trainee()
    fitted = _fitted(recipe, trainee, seed, folder / "fit", progress)
    dev_scores, dev_after = dict(fitted.dev), trainee.dev(trainee.model)
    if abs(dev_after - dev_scores[fitted.best_step]) > NEAR:
        raise RunFailed(
            f"{folder}: the model of step {fitted.best_step} has the dev score {dev_after:.5f}, expected "
            f"{dev_scores[fitted.best_step]:.5f}: its checkpoint was not read back; repeat with --force"
        )
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    with explained(folder):
        trainee.save(model)
    result = {
        "seed": seed,
        "best_step": fitted.best_step,
        "dev_before": dev_scores.get(0, dev_after),
        "dev_after": dev_scores[fitted.best_step],
        "loss": [list(point) for point in fitted.loss],
        "dev": [list(point) for point in fitted.dev],
        "seconds": round(fitted.seconds, 2),
        "resumed_from": fitted.resumed_from,
        "weights": digest(
            [[path.relative_to(model).as_posix(), sha256(path)] for path in sorted(model.rglob("*.safetensors"))]
        ),
    }
    write_json(folder / SEED, result)
    shutil.rmtree(folder / "fit", ignore_errors=True)  # its checkpoints
    return result


def _fitted(recipe: RecipeData, trainee: Trainee, seed: int, folder: Path, progress: Progress) -> Fitted:
    settings = recipe.settings
    count = steps(settings, len(trainee.rows))
    options = FitOptions(
        steps=count,
        batch=settings.batch,
        rate=settings.rate,
        seed=seed,
        warm_up=settings.warm_up,
        weight_decay=settings.weight_decay,
        eval_every=every(settings, count),
        bf16=settings.bf16,
        no_duplicates=True,
        routes=trainee.routes,
        more={"prompts": dict(trainee.prompts)} if any(trainee.prompts.values()) else {},
    )
    rows = recipe.data_set(trainee.rows)
    return fit(trainee.model, rows, trainee.loss, options, folder, progress, trainee.dev)


# All seeds of a training: fit, choose steps by dev queries, score the test set once per seed.

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


@dataclass(frozen=True)
class TrainRequest:
    """Inputs, settings and output folder of a training."""

    triples: Path
    base: str
    test: Path
    settings: TrainSettings
    out: Path
    legacy: Sequence[str] = ()
    device: str | None = None
    few_seeds: bool = False
    """Whether fewer than `FEWEST_SEEDS` seeds are permitted; the card states it."""
    force: bool = False
    """Whether a folder that was started with other settings is restarted."""


@dataclass(frozen=True)
class _Work:
    """A training request with its inputs, read and checked."""

    order: TrainRequest
    recipe: RecipeData
    origin: provenance.Origin
    scoring: ModelScores
    tested: int
    """Number of tasks at the beginning that belong to the test set; legacy tasks follow."""


def planned(order: TrainRequest, progress: Progress = quiet) -> dict[str, Json]:
    """Return the estimate of `plan` after checking the inputs; nothing is trained or written."""
    return plan(_prepared(order, progress).recipe)


def train(
    order: TrainRequest, tell: Callable[[str], None] = lambda _line: None, progress: Progress = quiet
) -> dict[str, Any]:
    """Train and score the models, and return all figures; writes `model/`, `train.json` and `README.md` to the folder.

    An interrupted training resumes from its last checkpoint; finished seeds are not trained again.
    """
    work = _prepared(order, progress)
    _begin(work)
    settings = order.settings
    results = []
    for seed in range(settings.seed, settings.seed + settings.seeds):
        result = trained(work.recipe, seed, order.out / "seeds" / str(seed), progress)
        tell(f"seed {result['seed']}: dev nDCG@10 {result['dev_before']:.4f} -> {result['dev_after']:.4f}")
        results.append(result)
    tested, legacy = _task_rows(work, results, tell)
    best = max(results, key=lambda result: (result["dev_after"], -result["seed"]))
    _publish(order.out, str(best["seed"]))
    summary = {**_provenance(work), "seeds": results, "chosen": best["seed"], "test": tested, "legacy": legacy}
    summary["notes"] = [*work.recipe.triples.notes, *work.origin.notes, *card.notes(summary)]
    write_json(order.out / "train.json", summary)
    write_text(order.out / "README.md", card.readme(summary))
    return {**summary, "folder": str(order.out)}


def _prepared(order: TrainRequest, progress: Progress) -> _Work:
    """Return all inputs, read and checked before anything is trained."""
    settings = order.settings
    if settings.seeds < FEWEST_SEEDS and not order.few_seeds:
        raise ConfigError(
            f"--seeds {settings.seeds}: found fewer than {FEWEST_SEEDS}, and one training says little about the next; "
            "give more, or allow it with --set few_seeds=true, which is written on the card"
        )
    examples = triples.read(order.triples, graded=settings.recipe == "soft")
    origin = provenance.origin(examples, order.test)
    tested = scores.test_tasks(order.test)
    models = TrainModels(order.base, settings, order.device, progress)
    models.check()
    provenance.no_test_query(examples, (text for task in tested for text in scores.asked(task)), order.test)
    legacy_tasks = [task for source in order.legacy for task in tasks.legacy(source)]
    recipe = RecipeData(examples, splitting.held_back(examples, settings.dev, settings.seed), models)
    recipe.check()
    return _Work(order, recipe, origin, ModelScores(models, [*tested, *legacy_tasks]), len(tested))


def _identity(work: _Work) -> dict[str, Json]:
    """Return the values that all seeds of a folder share: settings, and digests of triples, models and test set."""
    order = work.order
    return {
        "version": VERSION,
        "settings": order.settings.model_dump(mode="json", exclude={"seeds"}),
        "triples": work.recipe.triples.digest,
        "base": _revision(work.recipe.models.query, order.settings),
        "documents": _revision(work.recipe.models.document, order.settings),
        "test": [task.content for task in work.scoring.tasks[: work.tested]],
    }


def _revision(name: str, settings: TrainSettings) -> str:
    return DenseEncoder("model", Config(model=name, max_length=settings.max_length)).revision


def _begin(work: _Work) -> None:
    """Start or resume a folder; ConfigError if it was started with other inputs, unless `force` is set."""
    folder, identity = work.order.out, _identity(work)
    begun = free_place(folder, [BEGUN]) / BEGUN
    if begun.is_file() and (earlier := read_json(begun)) != identity:
        if not work.order.force:
            changed = next(name for name in identity if earlier.get(name) != identity[name])
            raise ConfigError(
                f"{folder}: a training with other {OTHER[changed]} lies there; give another folder with --out, or "
                "begin anew with --force"
            )
        shutil.rmtree(folder / "seeds", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(begun, identity)


def _task_rows(
    work: _Work, results: Sequence[dict[str, Any]], tell: Callable[[str], None]
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return rows of scores for the tasks of the test set and for legacy tasks, of the base and every seed's model."""
    models, settings = work.recipe.models, work.order.settings
    document_vectors = models.vectors(models.document) if settings.frozen else None
    base = work.scoring.of("base", _compared_with(work), documents=document_vectors)
    seed_scores: list[list[Scored]] = []
    for result in results:
        folder = work.order.out / "seeds" / str(result["seed"]) / "model"
        seed_scores.append(work.scoring.of(f"seed-{result['seed']}", str(folder), documents=document_vectors))
        tell(f"seed {result['seed']}: {seed_scores[-1][0].main:.4f}, base {base[0].main:.4f}")
    rows = [
        scores.compared(
            before,
            [scores_by_task[number] for scores_by_task in seed_scores],
            work.scoring.tasks[number],
            settings.seed,
        )
        for number, before in enumerate(base)
    ]
    return rows[: work.tested], rows[work.tested :]


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


def _provenance(work: _Work) -> dict[str, Any]:
    """Return models, data, settings and library versions of a training."""
    examples, recipe = work.recipe.triples, work.recipe
    return {
        "version": VERSION,
        "base": work.order.base,
        "documents_by": recipe.models.document,
        "compared_with": _compared_with(work),
        "identity": digest(_identity(work)),
        "triples": {
            "name": examples.place.name,
            "digest": examples.digest,
            "queries": len(examples.queries),
            "positives": examples.pairs,
            "documents": len(examples.documents),
            "examples": recipe.count,
        },
        "dev_queries": len(recipe.held.dev),
        "origin": work.origin.shown(),
        "settings": work.order.settings.model_dump(mode="json"),
        "few_seeds": work.order.settings.seeds < FEWEST_SEEDS,
        "versions": {name: version(name) for name in LIBRARIES},
    }


# The section `train` of a pipeline file, checked.


def train_settings(pipeline: str, assignments: Sequence[str] = ()) -> TrainSettings:
    """Return the settings `train` of a pipeline file with `train.key=value` applied; ConfigError lists all mistakes."""
    foreign = [assignment for assignment in assignments if not assignment.startswith("train.")]
    if foreign:
        raise ConfigError(f"--set {foreign[0]}: expected a setting of train, for example train.batch=64")
    path = find(pipeline)
    loaded = Pipeline.load(path, assignments)
    return config.check(TrainSettings, loaded.head.train, f"{path.name}: train")
