"""Train: fit models of several seeds on triples, choose steps by dev queries, score the test set once per seed."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from curate.commands.evaluate import tasks
from curate.commands.evaluate.scoring import Scored
from curate.commands.train import FEWEST_SEEDS, TrainSettings, card, plan, provenance, scores, seeds, splitting, triples
from curate.commands.train.fitting import explained
from curate.commands.train.loading import TrainModels
from curate.commands.train.recipes import RecipeData
from curate.commands.train.scores import ModelScores
from curate.core.config import Json, digest
from curate.core.errors import ConfigError
from curate.core.protocols import Progress, quiet
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.runs.outputs import free_place
from curate.system.files import read_json, write_json, write_text

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
    return plan.plan(_prepared(order, progress).data)


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
    return seeds.trained(work.data, seed, work.order.out / "seeds" / str(seed), progress)


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
        scores.compared(before, [each[at] for each in of_seeds], work.scoring.tasks[at], settings.seed)
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
