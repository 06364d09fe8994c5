"""What was done beside the stages of a run: checks, audit, analysis, evaluation, each with whether it is current."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curate.commands.report.shown import ShownCheck
from curate.core.config import Json
from curate.pipeline.freshness import current, rated
from curate.pipeline.stage import Context
from curate.system.files import read_json, sha256
from curate.tables.exporters import mteb_tasks

ABSENT, NEEDLESS = ShownCheck("absent", {}), ShownCheck("needless", {})
_CHECKS = {"judge": "judge.json", "pool": "pool.json", "mask": "mask.json", "analyze": "analyze.json"}
_EVALUATION = Path("evaluation", "evaluation.json")
_LEAKS = Path("checks", "leaks", "leaks.json")


def beside(context: Context) -> dict[str, ShownCheck]:
    """Return name -> what was found, with whether it is of today's tables: judge, pool, mask, audit, ..."""
    labels = "consensus" if context.report("resolve") is None else "resolve"
    seen = {"judge": rated(context), "pool": ("pool", labels), "mask": ("mask",), "analyze": ("consensus", labels)}
    checks = {name: _check(context, name, stages) for name, stages in seen.items()}
    return {**checks, "leaks": _leaks(context), "audit": _audit(context), "evaluation": _evaluation(context)}


def identity(context: Context) -> Json:
    """Return what identifies all of it: the page is stale once one of these files is another."""
    files = [*(Path("checks", file) for file in _CHECKS.values()), _EVALUATION, _LEAKS, Path("audit", "audit.json")]
    return {file.as_posix(): sha256(context.run / file) for file in files if (context.run / file).is_file()}


def _check(context: Context, name: str, stages: tuple[str, ...]) -> ShownCheck:
    path = context.run / "checks" / _CHECKS[name]
    figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    return _dated(figures, fresh=not figures.get("outdated") and current(context, figures, *stages))


def _dated(figures: Mapping[str, Any], *, fresh: bool) -> ShownCheck:
    return ShownCheck("current" if fresh else "older", figures) if figures else ABSENT


def _leaks(context: Context) -> ShownCheck:
    """Return the last comparison with a training set that was written into the run; a training set needs none."""
    if context.report("train_set") is not None:
        return NEEDLESS
    path = context.run / _LEAKS
    figures: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    labels = "consensus" if context.report("resolve") is None else "resolve"
    tables = (("diversify", "queries"), ("diversify", "corpus"), (labels, "qrels"))
    now = {f"{stage}/{table}": _outputs(context, stage).get(f"{table}.parquet") for stage, table in tables}
    return _dated(figures, fresh=figures.get("test") == now and "leaking_queries" in figures)


def _audit(context: Context) -> ShownCheck:
    """Return the audit of the labels that the set came with; none to be done where it came without."""
    folder = context.run / "audit"
    if not (folder / "audit.json").is_file():
        return NEEDLESS if context.legacy_positives().is_empty() else ABSENT
    inputs: Mapping[str, Any] = read_json(folder / "stage.json")["made_from"]["inputs"]
    now = {name: _outputs(context, name) for name in inputs}
    same = all(now[name].get(file) == digest for name, files in inputs.items() for file, digest in files.items())
    return _dated(read_json(folder / "audit.json"), fresh=same)


def _outputs(context: Context, stage: str) -> Mapping[str, Any]:
    mark = context.folder(stage) / "stage.json"
    outputs: Mapping[str, Any] = read_json(mark)["outputs"] if mark.is_file() else {}
    return outputs


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
