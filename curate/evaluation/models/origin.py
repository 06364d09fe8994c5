"""Provenance of a benchmark from its run: retrievers, judges, and relevant documents that it missed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from curate.core.config import Json, Settings
from curate.evaluation.models.tasks import PARTS, EvaluationTask
from curate.review import published, relevance_desks
from curate.review.proof import prove
from curate.runs.pipeline import Pipeline
from curate.system.files import read_json


def run_of(folder: Path) -> Path | None:
    """Return the run folder that a folder is, or lies in; None for an export by itself."""
    whole = folder.resolve()
    return next((each for each in (whole, *whole.parents[:4]) if (each / "pipeline.yaml").is_file()), None)


def definitions(run: Path | None) -> Mapping[str, Settings]:
    """Return the encoders that the run's pipeline defines."""
    return cast("Mapping[str, Settings]", Pipeline.load(run / "pipeline.yaml").head.encoders) if run else {}


def roles(models: Sequence[str], tasks: Sequence[EvaluationTask]) -> dict[str, list[str]]:
    """Return model -> what parts it had in making these tasks: `retriever`, `judge`, `generator`, some or none."""
    return {model: [role for role in PARTS if any(model in task.parts[role] for task in tasks)] for model in models}


def circular(model: str, task: EvaluationTask) -> list[str]:
    """Return by which of its parts in making a task a model's score on it is partly its own doing."""
    return [role for role in task.kind.circular if model in task.parts[role]]


def missed(run: Path | None) -> dict[str, Json]:
    """Return what is known of relevant documents that count as not relevant; empty without a run.

    `samples`: of every review sample the share of the panel's negatives and of contested pairs that people found
    relevant, and of all relevant pairs of the pool the share that the panel found. `published`: the same of the labels
    that experts' answers made. `capture` and `below`: what lies outside the pool, by `curate check pool`.
    """
    if run is None:
        return {}
    found: dict[str, Json] = {}
    if samples := [{"sample": desk.sample.design.name, **_proved(prove(desk))} for desk in relevance_desks(run)]:
        found["samples"] = samples
    if final := published.prove(run):
        found["published"] = {"samples": final["samples"], **_proved(final)}
    path = run / "checks" / "pool.json"
    checked = read_json(path) if path.is_file() else {}
    return found | {name: checked[name] for name in ("capture", "below") if checked.get(name)}


def _proved(proof: Mapping[str, Any]) -> dict[str, Json]:
    negatives = proof["confirmed"].get("not relevant")
    wrong = negatives and {
        "value": round(1 - negatives["value"], 4),
        "low": round(1 - negatives["high"], 4),
        "high": round(1 - negatives["low"], 4),
        "answered": negatives["answered"],
    }
    contested = proof["relevant"].get("contested")
    return {"negatives": wrong, "contested": contested, "recall": proof["recall"]}
