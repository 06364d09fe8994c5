"""Training by sentence-transformers' trainer: loss curves, best step by dev score, checkpoints and resumption."""

import errno
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Progress, quiet
from curate.system.extras import require

if TYPE_CHECKING:
    from transformers import TrainerCallback

Foreign = Any
"""Models, data sets and losses of other libraries, which are untyped here."""
Dev = Callable[[Foreign], float]
"""Function from a model to its dev score; higher is better."""
Curve = Sequence[tuple[int, float]]
"""(Step, value) pairs, sorted by step."""

BEGUN, COMPLETE = "fit.json", "complete"
"""File with the options of a training folder; marker file of a complete checkpoint."""
POINTS = 50
"""Number of points of the loss curve."""


@dataclass(frozen=True)
class FitOptions:
    """Options of a training; a folder can be resumed only with the same options."""

    steps: int
    batch: int = 64
    rate: float = 2e-5
    seed: int = 13
    warm_up: float = 0.05
    """Share of the steps in which the learning rate rises."""
    schedule: str = "linear"
    weight_decay: float = 0.0
    eval_every: int = 100
    """Number of steps between dev scores, and between checkpoints."""
    resume: bool = True
    """Whether to resume from the last complete checkpoint; if False, the folder is restarted."""
    bf16: Literal["auto"] | bool = "auto"
    """Whether to use mixed precision; `auto`: if the GPU supports bfloat16."""
    no_duplicates: bool = False
    """Whether a batch must not contain a text twice; needed by losses with in-batch negatives."""
    routes: Mapping[str, str] = field(default_factory=dict)
    """Column -> `query` or `document`, for a Router."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of SentenceTransformerTrainingArguments, such as gradient_accumulation_steps."""


@dataclass(frozen=True)
class Fitted:
    """Curves and best step of a training.

    The model has the weights of that step, or of the last one without dev scores.
    """

    loss: Curve
    dev: Curve
    """Dev scores by step; step 0 is the untrained model."""
    best_step: int
    seconds: float
    """Wall-clock time of this call, including dev scores and checkpoints."""
    resumed_from: int | None = None


def fit(
    model: Foreign,
    data: Foreign,
    loss: Foreign,
    options: FitOptions,
    folder: Path,
    progress: Progress = quiet,
    dev: Dev | None = None,
) -> Fitted:
    """Train a model in place and return its curves; a later call resumes from the checkpoints in `folder`.

    `data` is a data set of `datasets`, `loss` a module or a function from model to module. ConfigError if the folder
    was started with other options, RunFailed if the loss is not finite or the disk is full.
    """
    require("accelerate", "curate train")  # the trainer would say so late
    last = _begin(options, folder)
    resumed = int(last.name.rpartition("-")[2]) if last else None
    watch = _watcher(options.steps, progress)
    trainer = _trainer(model, data, loss, options, folder, dev, first=last is None)
    trainer.add_callback(watch)
    began = time.monotonic()
    progress("training", options.steps, resumed or 0)
    with explained(folder):
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    history = [row for row in trainer.state.log_history if "step" in row]
    scores = _curve(history, "eval_dev")
    best = int(trainer.state.best_global_step or options.steps) if dev else options.steps
    return Fitted(_curve(history, "loss"), scores, best, time.monotonic() - began, resumed)


def mixed(setting: Literal["auto"] | bool, torch: Foreign) -> bool:
    """Return whether to train in bfloat16; `auto`: if there is a GPU that supports it."""
    if setting != "auto":
        return setting
    return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported())


def _begin(options: FitOptions, folder: Path) -> Path | None:
    """Write the options, and return the last complete checkpoint, or None; ConfigError if the options differ."""
    current = json.loads(json.dumps({**asdict(options), "resume": True}))
    begun = folder / BEGUN
    if not options.resume and folder.exists():
        for path in folder.glob("checkpoint-*"):
            shutil.rmtree(path)
    elif begun.is_file():
        earlier = json.loads(begun.read_text(encoding="utf-8"))
        if changed := [name for name in current if earlier.get(name) != current[name]]:
            name = changed[0]
            raise ConfigError(
                f"{folder}: this training was begun with {name} {earlier.get(name)!r}, now found {current[name]!r}; "
                "repeat the former options, begin anew (resume: false), or give another folder"
            )
    folder.mkdir(parents=True, exist_ok=True)
    begun.write_text(json.dumps(current), encoding="utf-8")
    complete = [path for path in folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]
    for path in folder.glob("checkpoint-*"):
        if path not in complete:  # a kill left it half written
            shutil.rmtree(path)
    return max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _trainer(
    model: Foreign, data_set: Foreign, loss: Foreign, options: FitOptions, folder: Path, dev: Dev | None, *, first: bool
) -> Foreign:
    import torch
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import PrinterCallback, ProgressCallback

    class Trainer(SentenceTransformerTrainer):  # type: ignore[misc]
        def add_model_card_callback(self, default_args_dict: Foreign) -> None:
            """Add no callback; the default one would query the hub about the base model, and its card is not used."""

    dev_arguments = {
        "eval_strategy": "steps",
        "eval_steps": options.eval_every,
        "eval_on_start": first,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_dev",
        "greater_is_better": True,
    }
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        learning_rate=options.rate,
        lr_scheduler_type=options.schedule,
        warmup_steps=round(options.warm_up * options.steps),
        weight_decay=options.weight_decay,
        seed=options.seed,
        data_seed=options.seed,
        bf16=mixed(options.bf16, torch),
        use_cpu=str(model.device) == "cpu",
        batch_sampler="no_duplicates" if options.no_duplicates else "batch_sampler",
        router_mapping=dict(options.routes),
        logging_steps=max(1, options.steps // POINTS),
        logging_nan_inf_filter=False,
        save_steps=options.eval_every,
        save_total_limit=2,
        dataloader_pin_memory=str(model.device) != "cpu",
        report_to="none",
        disable_tqdm=True,
        **(dev_arguments if dev else {}),
        **options.more,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=data_set, loss=loss, evaluator=_evaluator(dev) if dev else None
    )
    for printing in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printing)
    return trainer


def _evaluator(dev: Dev) -> Foreign:
    """Return a SentenceEvaluator that returns a dev score."""
    from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

    class Evaluator(SentenceEvaluator):  # type: ignore[misc]
        def __call__(self, model: Foreign, *_places: Foreign, **_named: Foreign) -> dict[str, float]:
            return {"dev": float(dev(model))}

    return Evaluator()


def _watcher(steps: int, progress: Progress) -> "TrainerCallback":
    """Return a callback that shows progress, marks complete checkpoints, and raises RunFailed on a non-finite loss."""
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):
        def on_step_end(self, args: Foreign, state: Foreign, control: Foreign, **_named: Foreign) -> None:  # noqa: ARG002
            progress("training", steps, state.global_step)

        def on_save(self, args: Foreign, state: Foreign, control: Foreign, **_named: Foreign) -> None:  # noqa: ARG002
            (Path(args.output_dir) / f"checkpoint-{state.global_step}" / COMPLETE).touch()

        def on_log(self, args: Foreign, state: Foreign, control: Foreign, **kwargs: Foreign) -> None:  # noqa: ARG002
            loss = kwargs["logs"].get("loss", 0.0)
            if not math.isfinite(loss):
                raise RunFailed(
                    f"{args.output_dir}: the loss is {loss} at step {state.global_step}, expected a number; "
                    "lower the rate, or turn mixed precision off (bf16: false)"
                )

    return Watcher()


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Raise RunFailed in place of the errors of a full disk, which differ by library."""
    try:
        yield
    except Exception as error:
        full = getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        if not full and not any(word in str(error) for word in ("No space left", "os error 28", "File too large")):
            raise
        raise RunFailed(
            f"{folder}: a checkpoint cannot be written, the disk is full ({str(error).splitlines()[0]}); free space "
            "and repeat the command, which goes on from the last whole checkpoint"
        ) from error


def _curve(history: Sequence[Mapping[str, Any]], name: str) -> Curve:
    """Return the last logged value per step, because a resumed training may log a step twice."""
    return sorted({int(row["step"]): float(row[name]) for row in history if name in row}.items())
