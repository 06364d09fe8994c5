"""What was done beside the stages of a run: checks, audit, analysis, evaluation, each with whether it is current."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.core.config import Json
from curate.formats.exporters import mteb_tasks
from curate.report.shown import ShownCheck
from curate.stages.context import Context
from curate.stages.facts.freshness import current
from curate.system.files import read_json, read_table, sha256

ABSENT, NEEDLESS = ShownCheck("absent", {}), ShownCheck("needless", {})
_CHECKS = {"judge": "judge.json", "pool": "pool.json", "mask": "mask.json", "analyze": "analyze.json"}
_LEAKS = Path("checks", "leaks", "leaks.parquet")
_EVALUATION = Path("evaluation", "evaluation.json")


def beside(context: Context) -> dict[str, ShownCheck]:
    """Return name -> what was found, with whether it is of today's tables: judge, pool, mask, leaks, audit, ..."""
    labels = "consensus" if context.report("resolve") is None else "resolve"
    checks = {name: _written(context, file) for name, file in _CHECKS.items()}
    return {
        "judge": _dated(checks["judge"], fresh=current(context, checks["judge"], "judge")),
        "pool": _dated(checks["pool"], fresh=current(context, checks["pool"], "pool", labels)),
        "mask": _dated(checks["mask"], fresh=not checks["mask"].get("outdated") and current(context, checks["mask"], "mask")),
        "leaks": _leaks(context),
        "audit": _audit(context),
        "analyze": _dated(checks["analyze"], fresh=current(context, checks["analyze"], "consensus", labels)),
        "evaluation": _evaluation(context),
    }


def identity(context: Context) -> Json:
    """Return what identifies all of it: the page is stale once one of these files is another."""
    files = [*(Path("checks", file) for file in _CHECKS.values()), _LEAKS, _EVALUATION, Path("audit", "audit.json")]
    return {file.as_posix(): sha256(context.run / file) for file in files if (context.run / file).is_file()}


def _written(context: Context, file: str) -> Mapping[str, Any]:
    path = context.run / "checks" / file
    found: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    return found


def _dated(figures: Mapping[str, Any], *, fresh: bool) -> ShownCheck:
    return ShownCheck("current" if fresh else "older", figures) if figures else ABSENT


def _leaks(context: Context) -> ShownCheck:
    """Return how many leaks were found; the check compares texts, which labels do not change."""
    if not (context.run / _LEAKS).is_file():
        return ABSENT
    return ShownCheck("current", {"leaks": read_table((context.run / _LEAKS).parent, "leaks").height})


def _audit(context: Context) -> ShownCheck:
    """Return the audit of the labels that the set came with; none to be done where it came without."""
    folder = context.run / "audit"
    if not (folder / "audit.json").is_file():
        return NEEDLESS if context.legacy_positives().is_empty() else ABSENT
    inputs: Mapping[str, Any] = read_json(folder / "stage.json")["made_from"]["inputs"]
    now = {name: read_json(context.folder(name) / "stage.json")["outputs"] for name in inputs}
    same = all(now[name].get(file) == digest for name, files in inputs.items() for file, digest in files.items())
    return _dated(read_json(folder / "audit.json"), fresh=same)


def _evaluation(context: Context) -> ShownCheck:
    """Return the last evaluation; it is current where its tasks are the exported ones, by their cards."""
    path = context.run / _EVALUATION
    if not path.is_file():
        return ABSENT
    figures = read_json(path)
    folders = mteb_tasks.task_folders(context.folder("export") / "mteb") if context.report("export") else []
    cards = {sha256(folder / "README.md") for folder in folders}
    scored = [each.get("card") for each in figures.get("tasks", ())]
    return _dated(figures, fresh=bool(scored) and all(card in cards for card in scored))
