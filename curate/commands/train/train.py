"""What a training will cost: steps, examples, memory, and time by a sample that is encoded now."""

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
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Progress, quiet
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.runs.outputs import free_place
from curate.system.files import read_json, sha256, write_json, write_text

SAMPLE = 16
"""Texts of each side that are encoded to estimate time."""
TIMES = 3
"""A step costs about three encodings of its texts: forward, and twice that backward."""
WEIGHT, TRAINED = 4, 16
"""Bytes of a weight in float32, and of one that is trained: weight, gradient, and AdamW's two moments."""


def steps(settings: TrainSettings, examples: int) -> int:
    """Return the steps of a seed: those given, or the epochs' worth."""
    return settings.steps or max(math.ceil(settings.epochs * examples / settings.batch), 1)


def plan(data: RecipeData) -> dict[str, Json]:
    """Return what would be trained, on how much, and what that takes; nothing is trained."""
    settings = data.settings
    query = data.models.load(data.models.query)
    per_text = _seconds(data, query)
    count = steps(settings, data.count)
    columns = 1 if settings.frozen else 2 + settings.listed
    step = 0.0 if settings.part == "map" else TIMES * settings.batch * columns * per_text
    fixed = len(data.triples.documents) * per_text if settings.frozen else 0.0
    dev = len(data.held.dev) + (0 if settings.frozen else len(data.held.documents))
    rounds = count // every(settings, count) + 2
    seeds = settings.seeds * (count * step + rounds * dev * (0 if settings.part == "map" else per_text))
    return {
        "recipe": settings.recipe,
        "base": data.models.base,
        "documents_by": data.models.document,
        "queries": len(data.held.train),
        "dev_queries": len(data.held.dev),
        "documents": len(data.triples.documents),
        "examples": data.count,
        "steps": count,
        "seeds": settings.seeds,
        "weights": _weights(query),
        "trained_weights": _trained(query, settings),
        "memory_bytes": _memory(query, settings),
        "seconds": round(fixed + seeds, 1),
    }


def every(settings: TrainSettings, count: int) -> int:
    """Return how many steps lie between two dev scores."""
    return min(settings.eval_every or max(count // 10, 1), count)


def _seconds(data: RecipeData, model: Any) -> float:  # noqa: ANN401 - a model has no type here
    """Return the seconds that a text takes, measured on some documents."""
    texts = list(data.triples.documents[:SAMPLE])
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
        layers = (each for name, each in model.named_parameters() if each.ndim == 2 and "embeddings" not in name)
        return sum(settings.lora.rank * sum(layer.shape) for layer in layers)
    sides = 2 if settings.recipe == "joint" and not settings.frozen else 1
    return sides * _weights(model)


def _memory(model: Any, settings: TrainSettings) -> int:  # noqa: ANN401
    """Return bytes of weights, gradients and moments; what activations take comes on top, and grows with the batch."""
    return WEIGHT * _weights(model) + TRAINED * _trained(model, settings)


# One seed of a training: fit, check that the best step was read back, and write its model.

SEED, NEAR = "seed.json", 1e-4
"""Mark of a finished seed; how near a dev score comes back."""


def trained(data: RecipeData, seed: int, folder: Path, progress: Progress) -> dict[str, Any]:
    """Train the model of a seed, or return what was found when it was trained before.

    RunFailed if the best step's weights cannot be read back: the trainer would go on with the last ones.
    """
    if (folder / SEED).is_file():
        return read_json(folder / SEED)
    trainee = data.trainee()
    fitted = _fitted(data, trainee, seed, folder / "fit", progress)
    values, after = dict(fitted.dev), trainee.dev(trainee.model)
    if abs(after - values[fitted.best_step]) > NEAR:
        raise RunFailed(
            f"{folder}: the model of step {fitted.best_step} has the dev score {after:.5f}, expected "
            f"{values[fitted.best_step]:.5f}: its checkpoint was not read back; repeat with --force"
        )
    shutil.rmtree(folder / "model", ignore_errors=True)
    with explained(folder):
        trainee.save(folder / "model")
    found = {
        "seed": seed,
        "best_step": fitted.best_step,
        "dev_before": values.get(0, after),
        "dev_after": values[fitted.best_step],
        "loss": [list(each) for each in fitted.loss],
        "dev": [list(each) for each in fitted.dev],
        "seconds": round(fitted.seconds, 2),
        "resumed_from": fitted.resumed_from,
        "weights": digest(_digests(folder / "model")),
    }
    write_json(folder / SEED, found)
    shutil.rmtree(folder / "fit", ignore_errors=True)  # its checkpoints
    return found


def _fitted(data: RecipeData, trainee: Trainee, seed: int, folder: Path, progress: Progress) -> Fitted:
    settings = data.settings
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
    rows = data.data_set(trainee.rows)
    return fit(trainee.model, rows, trainee.loss, options, folder, progress, trainee.dev)


def _digests(folder: Path) -> list[list[str]]:
    paths = sorted(folder.rglob("*.safetensors"))
    return [[path.relative_to(folder).as_posix(), sha256(path)] for path in paths]


# Train: fit models of several seeds on triples, choose steps by dev queries, score the test set once per seed.

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
"""What a folder was begun with, in words."""
LIBRARIES = ("curate-ir", "sentence-transformers", "transformers", "torch", "accelerate", "mteb")


@dataclass(frozen=True)
class TrainRequest:
    """What a user wants trained."""

    triples: Path
    base: str
    test: Path
    settings: TrainSettings
    out: Path
    legacy: Sequence[str] = ()
    device: str | None = None
    few_seeds: bool = False
    """Whether fewer than three seeds are allowed; the card says so."""
    force: bool = False
    """Whether a folder of other settings begins anew."""


@dataclass(frozen=True)
class _Work:
    """A request whose inputs were read and found right."""

    order: TrainRequest
    data: RecipeData
    origin: provenance.Origin
    scoring: ModelScores
    tested: int
    """How many of the tasks, the first ones, are the test set's."""


def planned(order: TrainRequest, progress: Progress = quiet) -> dict[str, Json]:
    """Return what a training would do and take; nothing is trained or written."""
    return plan(_prepared(order, progress).data)


def train(
    order: TrainRequest, tell: Callable[[str], None] = lambda _line: None, progress: Progress = quiet
) -> dict[str, Any]:
    """Train, score, and return all figures; `model/`, `train.json` and `README.md` are written to the folder.

    A killed training goes on from its last checkpoint; a finished seed is not trained again.
    """
    work = _prepared(order, progress)
    _begin(work)
    settings = order.settings
    done = []
    for number in range(settings.seeds):
        found = _seed(work, settings.seed + number, progress)
        tell(f"seed {found['seed']}: dev nDCG@10 {found['dev_before']:.4f} -> {found['dev_after']:.4f}")
        done.append(found)
    tested, legacy = _scored(work, done, tell)
    best = max(done, key=lambda each: (each["dev_after"], -each["seed"]))
    _publish(order.out, str(best["seed"]))
    found = {**_said(work), "seeds": done, "chosen": best["seed"], "test": tested, "legacy": legacy}
    found["notes"] = [*work.data.triples.notes, *work.origin.notes, *card.notes(found)]
    write_json(order.out / "train.json", found)
    write_text(order.out / "README.md", card.readme(found))
    return {**found, "folder": str(order.out)}


def _prepared(order: TrainRequest, progress: Progress) -> _Work:
    """Read and check everything that can be wrong before anything is trained."""
    settings = order.settings
    if settings.seeds < FEWEST_SEEDS and not order.few_seeds:
        raise ConfigError(
            f"--seeds {settings.seeds}: found fewer than {FEWEST_SEEDS}, and one training says little about the next; "
            "give more, or allow it with --few-seeds, which is written on the card"
        )
    found = triples.read(order.triples, graded=settings.recipe == "soft")
    origin = provenance.origin(found, order.test)
    tested = scores.test_tasks(order.test)
    models = TrainModels(order.base, settings, order.device, progress)
    models.check()
    provenance.no_test_query(found, (text for task in tested for text in scores.asked(task)), order.test)
    old = [task for source in order.legacy for task in tasks.legacy(source)]
    data = RecipeData(found, splitting.held_back(found, settings.dev, settings.seed), models)
    data.check()
    return _Work(order, data, origin, ModelScores(models, [*tested, *old]), len(tested))


def _identity(work: _Work) -> dict[str, Json]:
    """Return what a folder's seeds have in common."""
    order = work.order
    return {
        "version": VERSION,
        "settings": order.settings.model_dump(mode="json", exclude={"seeds"}),
        "triples": work.data.triples.digest,
        "base": _revision(work.data.models.query, order.settings),
        "documents": _revision(work.data.models.document, order.settings),
        "test": [task.content for task in work.scoring.tasks[: work.tested]],
    }


def _revision(name: str, settings: TrainSettings) -> str:
    return DenseEncoder("model", Config(model=name, max_length=settings.max_length)).revision


def _begin(work: _Work) -> None:
    """Take a folder, or go on in it; ConfigError if it was begun with other settings or triples."""
    folder, asked = work.order.out, _identity(work)
    begun = free_place(folder, [BEGUN]) / BEGUN
    if begun.is_file() and (before := read_json(begun)) != asked:
        if not work.order.force:
            other = next(name for name in asked if before.get(name) != asked[name])
            raise ConfigError(
                f"{folder}: a training with other {OTHER[other]} lies there; give another folder with --out, or begin "
                "anew with --force"
            )
        shutil.rmtree(folder / "seeds", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(begun, asked)


def _seed(work: _Work, seed: int, progress: Progress) -> dict[str, Any]:
    """Return what the training of a seed found; one that is finished is not done again."""
    return trained(work.data, seed, work.order.out / "seeds" / str(seed), progress)


def _scored(
    work: _Work, done: Sequence[dict[str, Any]], tell: Callable[[str], None]
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return scores of the test set's tasks and of legacy tasks, of the base and of every seed's model."""
    models, settings = work.data.models, work.order.settings
    kept = models.vectors(models.document) if settings.frozen else None
    base = work.scoring.of("base", _compared_with(work), documents=kept)
    of_seeds: list[list[Scored]] = []
    for each in done:
        place = work.order.out / "seeds" / str(each["seed"]) / "model"
        of_seeds.append(work.scoring.of(f"seed-{each['seed']}", str(place), documents=kept))
        tell(f"seed {each['seed']}: {of_seeds[-1][0].main:.4f}, base {base[0].main:.4f}")
    rows = [
        scores.compared(before, [tasks_scored[at] for tasks_scored in of_seeds], work.scoring.tasks[at], settings.seed)
        for at, before in enumerate(base)
    ]
    return rows[: work.tested], rows[work.tested :]


def _compared_with(work: _Work) -> str:
    """Return the model that trained ones are compared with: the document model on both sides, where it is another."""
    models = work.data.models
    both = models.settings.documents and not models.shared
    return models.document if both else models.base


def _publish(folder: Path, seed: str) -> None:
    """Copy the model of a seed to `model/`."""
    beside = folder / ".model"
    shutil.rmtree(beside, ignore_errors=True)
    with explained(folder):
        shutil.copytree(folder / "seeds" / seed / "model", beside)
    shutil.rmtree(folder / "model", ignore_errors=True)
    beside.rename(folder / "model")


def _said(work: _Work) -> dict[str, Any]:
    """Return what a training was made of."""
    found, data = work.data.triples, work.data
    return {
        "version": VERSION,
        "base": work.order.base,
        "documents_by": data.models.document,
        "compared_with": _compared_with(work),
        "identity": digest(_identity(work)),
        "triples": {
            "name": found.place.name,
            "digest": found.digest,
            "queries": len(found.queries),
            "positives": found.pairs,
            "documents": len(found.documents),
            "examples": data.count,
        },
        "dev_queries": len(data.held.dev),
        "origin": work.origin.shown(),
        "settings": work.order.settings.model_dump(mode="json"),
        "few_seeds": work.order.settings.seeds < FEWEST_SEEDS,
        "versions": {name: version(name) for name in LIBRARIES},
    }
