"""What a check was made from: its figures count as current only as long as those tables are the run's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.config import Json, digest
from curate.pipeline.stage import Context
from curate.system.files import read_json

MADE_FROM = "made_from"
"""Key under which a check's file names the tables that it saw."""


def made_from(context: Context, *stages: str) -> str | None:
    """Return what identifies the tables of these stages; None unless all of them are finished."""
    marks = [context.folder(stage) / "stage.json" for stage in dict.fromkeys(stages)]
    if not all(mark.is_file() for mark in marks):
        return None
    outputs: list[Json] = [read_json(mark)["outputs"] for mark in marks]
    return digest(outputs)


def rated(context: Context) -> tuple[str, ...]:
    """Return the stages whose tables hold what judges said and, once it ran on their answers, what people said."""
    return ("judge",) if context.report("resolve") is None else ("judge", "resolve")


def current(context: Context, figures: Mapping[str, Any], *stages: str) -> bool:
    """Say whether figures are of today's tables of these stages; not where a version before 0.2 wrote them."""
    seen = figures.get(MADE_FROM)
    return seen is not None and seen == made_from(context, *stages)


def label_stage(run: Path) -> str:
    """Return the stage whose labels are final: `resolve` if it was made from today's `consensus`, else that."""
    try:
        before = read_json(run / "resolve" / "stage.json")["made_from"]["inputs"]["consensus"]
        now = read_json(run / "consensus" / "stage.json")["outputs"]
    except (OSError, KeyError):
        return "consensus"
    return "resolve" if before == now else "consensus"
