"""One seed of a training: fit, check that the best step was read back, and write its model."""

import shutil
from pathlib import Path
from typing import Any

from curate.commands.train import plan
from curate.commands.train.fitting import FitOptions, Fitted, explained, fit
from curate.commands.train.recipes import RecipeData, Trainee
from curate.core.config import digest
from curate.core.errors import RunFailed
from curate.core.protocols import Progress
from curate.system.files import read_json, sha256, write_json

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
    count = plan.steps(settings, len(trainee.rows))
    options = FitOptions(
        steps=count,
        batch=settings.batch,
        rate=settings.rate,
        seed=seed,
        warm_up=settings.warm_up,
        weight_decay=settings.weight_decay,
        eval_every=plan.every(settings, count),
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
