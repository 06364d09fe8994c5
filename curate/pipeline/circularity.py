"""Circularity of a run's judges: what `curate check circular` wrote, as long as it is of today's grades and rule."""

from pathlib import Path
from typing import Any

from curate.core.config import Json, digest
from curate.llm.providers import presets
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import Policy
from curate.pipeline.stage import Context
from curate.system.files import read_json

PLACE = Path("checks", "circular.json")
"""In the run folder."""


def made_from(judged: Path, policy: Policy | ConsensusRule) -> str:
    """Return what identifies the grades in a folder of the stage `judge`, and the rule that makes labels of them."""
    return digest([read_json(judged / "stage.json")["outputs"], voting.dumped(policy)])


def checked(context: Context) -> dict[str, Any] | None:
    """Return the figures of the check; None where it was not run, or its grades or rule have changed since."""
    path = context.run / PLACE
    if not path.is_file():
        return None
    written: dict[str, Any] = read_json(path)
    return written if written.get("made_from") == made_from(context.folder("judge"), context.policy) else None


def of_judges(context: Context) -> dict[str, dict[str, Json]]:
    """Return judge -> `family`, and `favour`: what it gains by judging itself, None where that was not measured."""
    known = favours(context)
    panel = read_json(context.folder("judge") / "panel.json")
    kin = presets.families(panel, context.definitions.get("judges", {}))
    return {judge: {"family": kin[judge], "favour": known.get(judge)} for judge in panel}


def favours(context: Context) -> dict[str, Json]:
    """Return judge -> what it gains by judging itself; empty where that was not measured."""
    figures = checked(context)
    told = ("effect", "ranks", "queries", "replaced_by", "warned")
    return {each["judge"]: {name: each[name] for name in told} for each in figures["judges"]} if figures else {}
