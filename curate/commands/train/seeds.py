"""Cost estimate of a training, and the training of one seed, with the choice of its step by dev scores."""

import math
import shutil
import time
from pathlib import Path
from typing import Any

from curate.commands.train import TrainSettings
from curate.commands.train.fitting import FitOptions, Fitted, explained, fit
from curate.commands.train.recipes import RecipeData, Trainee
from curate.core.config import digest
from curate.core.errors import RunFailed
from curate.core.figures import Record, figure
from curate.core.protocols import Progress
from curate.system.files import read_json, sha256, write_json

SAMPLE = 16
"""Number of documents encoded to estimate the time."""
TIMES = 3
"""Duration of a training step, in encodings of its texts: one forward pass, and a backward pass of about two."""
WEIGHT, TRAINED = 4, 16
"""Bytes per weight in float32, and per trained weight: weight, gradient, and AdamW's two moments."""


def steps(settings: TrainSettings, examples: int) -> int:
    """Return the number of steps per seed: `settings.steps`, or that of the epochs."""
    return settings.steps or max(math.ceil(settings.epochs * examples / settings.batch), 1)


class TrainPlan(Record, schema_name="plan"):
    """Estimate of a training, which is not run."""

    recipe: str = figure("recipe of the training")
    base: str = figure("base model")
    documents_by: str = figure("model that encodes documents")
    queries: int = figure("training queries")
    dev_queries: int = figure("queries held back to choose the step")
    documents: int = figure("distinct documents of the triples")
    examples: int = figure("training rows that the recipe makes of the triples")
    steps: int = figure("steps per seed")
    seeds: int = figure("models that are trained")
    weights: int = figure("weights of the query model")
    trained_weights: int = figure("weights that change")
    memory_bytes: int = figure("bytes of weights, gradients and moments, without activations")
    seconds: float = figure("estimated seconds of all seeds, timed on a few texts; without scoring the test set")


def plan(recipe: RecipeData) -> TrainPlan:
    """Return the estimate of a training, timed on a few texts."""
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
    return TrainPlan(
        recipe=settings.recipe,
        base=recipe.models.base,
        documents_by=recipe.models.document,
        queries=len(recipe.held.train),
        dev_queries=len(recipe.held.dev),
        documents=len(recipe.triples.documents),
        examples=recipe.count,
        steps=count,
        seeds=settings.seeds,
        weights=_weights(query),
        trained_weights=_trained(query, settings),
        memory_bytes=WEIGHT * _weights(query) + TRAINED * _trained(query, settings),
        seconds=round(fixed + seeds, 1),
    )


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


class TrainedSeed(Record, schema_name="seed"):
    """Result of one seed of a training."""

    seed: int = figure("seed of the training")
    best_step: int = figure("step with the best dev score, 0 for the base")
    dev_before: float = figure("nDCG@10 of the base on the dev queries", digits=4)
    dev_after: float = figure("nDCG@10 of the best step on the dev queries", digits=4)
    loss: Any = figure("pairs of step and loss")
    dev: Any = figure("pairs of step and nDCG@10 on the dev queries")
    seconds: float = figure("seconds of training, in the call that finished it")
    resumed_from: int | None = figure("step of the checkpoint from which training resumed; null if it ran in one call")
    weights: str = figure("digest of the model's weights")


def trained(recipe: RecipeData, seed: int, folder: Path, progress: Progress) -> TrainedSeed:
    """Return the result of a seed, after training and writing its model; the result of a finished seed is read.

    RunFailed if the weights of the best step were not restored, because the trainer then silently retains the last
    ones.
    """
    if (folder / SEED).is_file():
        return TrainedSeed.from_json(read_json(folder / SEED))
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
    result = TrainedSeed(
        seed=seed,
        best_step=fitted.best_step,
        dev_before=dev_scores.get(0, dev_after),
        dev_after=dev_scores[fitted.best_step],
        loss=fitted.loss,
        dev=fitted.dev,
        seconds=round(fitted.seconds, 2),
        resumed_from=fitted.resumed_from,
        weights=digest(
            [[path.relative_to(model).as_posix(), sha256(path)] for path in sorted(model.rglob("*.safetensors"))]
        ),
    )
    write_json(folder / SEED, result.to_json())
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
