"""Circularity of a run's judges, as written by `curate check circular`, while grades and rule are unchanged."""

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
"""Path below the run folder."""


def made_from(judged: Path, policy: Policy | ConsensusRule) -> str:
    """Return the digest of the grades in a folder of the stage `judge` and of the consensus rule."""
    return digest([read_json(judged / "stage.json")["outputs"], voting.dumped(policy)])


def checked(context: Context) -> dict[str, Any] | None:
    """Return the figures of the check; None if it was not run, or grades or rule have changed since."""
    path = context.run / PLACE
    if not path.is_file():
        return None
    written: dict[str, Any] = read_json(path)
    return written if written.get("made_from") == made_from(context.folder("judge"), context.policy) else None


def of_judges(context: Context) -> dict[str, dict[str, Json]]:
    """Return judge -> `family`, and `favour`: its self-preference, None where not measured."""
    favour_by_judge = favours(context)
    panel = read_json(context.folder("judge") / "panel.json")
    kin = presets.families(panel, context.definitions.get("judges", {}))
    return {judge: {"family": kin[judge], "favour": favour_by_judge.get(judge)} for judge in panel}


def favours(context: Context) -> dict[str, Json]:
    """Return judge -> its self-preference; empty where not measured."""
    figures = checked(context)
    keys = ("effect", "ranks", "queries", "replaced_by", "warned")
    return {figure["judge"]: {name: figure[name] for name in keys} for figure in figures["judges"]} if figures else {}
