"""Freshness of checks: figures are current only while the tables that they were made from are unchanged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.config import Json, digest
from curate.pipeline.stage import Context
from curate.system.files import read_json

MADE_FROM = "made_from"
"""Key of the input tables in a check's file."""


def made_from(context: Context, *stages: str) -> str | None:
    """Return a digest of the tables of these stages; None unless all stages are finished."""
    marks = [context.folder(stage) / "stage.json" for stage in dict.fromkeys(stages)]
    if not all(mark.is_file() for mark in marks):
        return None
    outputs: list[Json] = [read_json(mark)["outputs"] for mark in marks]
    return digest(outputs)


def rated(context: Context) -> tuple[str, ...]:
    """Return the stages whose tables hold the ratings: `judge`, and `resolve` if it ran, for the experts' answers."""
    return ("judge",) if context.report("resolve") is None else ("judge", "resolve")


def current(context: Context, figures: Mapping[str, Any], *stages: str) -> bool:
    """Return whether figures were computed from the current tables of these stages; False for versions before 0.2."""
    seen = figures.get(MADE_FROM)
    return seen is not None and seen == made_from(context, *stages)


def label_stage(run: Path) -> str:
    """Return the stage with the final labels: `resolve` if made from the current `consensus`, else `consensus`."""
    try:
        resolved_from = read_json(run / "resolve" / "stage.json")["made_from"]["inputs"]["consensus"]
        current_outputs = read_json(run / "consensus" / "stage.json")["outputs"]
    except (OSError, KeyError):
        return "consensus"
    return "resolve" if resolved_from == current_outputs else "consensus"
