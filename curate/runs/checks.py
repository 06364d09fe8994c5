"""Diagnostics of a run, in the order of a run: what each needs, where its figures are, and the command that makes them.

A diagnostic changes no label. Its figures carry digests of the tables that they were computed from.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curate.core.config import Json
from curate.core.records import FILTERED
from curate.pipeline import facts
from curate.pipeline.folder import SETTINGS
from curate.pipeline.stage import Context
from curate.system.files import read_json, sha256, write_json
from curate.tables.exporters import mteb_tasks

Figures = Mapping[str, Any]
State = Literal["current", "older", "absent", "needless"]


@dataclass(frozen=True)
class CheckResult:
    """Figures of a diagnostic, and whether they are of the current tables."""

    state: State
    """`older`: of earlier tables; `absent`: not done; `needless`: does not apply to the run."""
    figures: Figures


@dataclass(frozen=True)
class Check:
    """A diagnostic of a run."""

    file: Path
    """Of its figures, below the run folder."""
    command: str
    """What to type; RUN, TRAIN and NAME stand for names."""
    needs: Callable[[Context], Sequence[str]] = lambda _context: ()
    """Stages whose tables the figures are of."""
    current: Callable[[Context, Figures], bool] | None = None
    """Whether figures are of the current tables; by default if `made_from` is that of the tables of `needs`."""
    needless: Callable[[Context], bool] = lambda _context: False

    def written(self, run: Path) -> Figures | None:
        """Return the figures as they were last written; None if they never were."""
        path = run / self.file
        return read_json(path) if path.is_file() else None

    def write(self, run: Path, figures: Mapping[str, Json]) -> None:
        """Write the figures into a run folder."""
        (run / self.file).parent.mkdir(parents=True, exist_ok=True)
        write_json(run / self.file, figures)

    def result(self, context: Context) -> CheckResult:
        """Return the last figures and their state."""
        if self.needless(context):
            return CheckResult("needless", {})
        figures = self.written(context.run)
        if figures is None:
            return CheckResult("absent", {})
        is_current = self.current or (lambda context, figures: facts.current(context, figures, *self.needs(context)))
        return CheckResult("current" if is_current(context, figures) else "older", figures)


def _labels(context: Context) -> str:
    return "consensus" if context.report("resolve") is None else "resolve"


def _outputs(context: Context, stage: str) -> Mapping[str, Any]:
    """Return file -> digest of a stage's tables; empty if it has not run."""
    mark = context.folder(stage) / "stage.json"
    outputs: Mapping[str, Any] = read_json(mark)["outputs"] if mark.is_file() else {}
    return outputs


def _mask_current(context: Context, figures: Figures) -> bool:
    return not figures.get("outdated") and facts.current(context, figures, "mask")


def _leaks_current(context: Context, figures: Figures) -> bool:
    tables = ((FILTERED, "queries"), (FILTERED, "corpus"), (_labels(context), "qrels"))
    digests = {f"{stage}/{table}": _outputs(context, stage).get(f"{table}.parquet") for stage, table in tables}
    return figures.get("test") == digests and "leaking_queries" in figures


def _audit_current(context: Context, _figures: Figures) -> bool:
    inputs: Mapping[str, Any] = read_json(context.run / "audit" / "stage.json")["made_from"]["inputs"]
    return all(
        _outputs(context, name).get(file) == digest for name, files in inputs.items() for file, digest in files.items()
    )


def _evaluation_current(context: Context, figures: Figures) -> bool:
    """Return whether every scored task is in the export with an unchanged card."""
    folders = mteb_tasks.task_folders(context.folder("export") / "mteb") if context.report("export") else []
    cards = {sha256(folder / "README.md") for folder in folders}
    scored = [task.get("card") for task in figures.get("tasks", ())]
    return bool(scored) and all(card in cards for card in scored)


_JUDGE, _ANALYSIS = Path("checks", "judge.json"), Path("checks", "analyze.json")
CHECKS = {
    "controls": Check(_JUDGE, "curate check judge --controls --plan", facts.rated),
    "judge": Check(_JUDGE, "curate check judge", facts.rated),
    "pool": Check(Path("checks", "pool.json"), "curate check pool", lambda context: ("pool", _labels(context))),
    "mask": Check(Path("checks", "mask.json"), "curate check mask", current=_mask_current),
    "circular": Check(
        facts.PLACE, "curate check circular", current=lambda context, _figures: facts.checked(context) is not None
    ),
    "leaks": Check(
        Path("checks", "leaks", "leaks.json"),
        "curate check leaks TRAIN RUN --out RUN/checks/leaks",
        current=_leaks_current,
        needless=lambda context: context.report("train_set") is not None,
    ),
    "audit": Check(
        Path("audit", "audit.json"),
        "curate audit",
        current=_audit_current,
        needless=lambda context: (
            not (context.run / "audit" / "audit.json").is_file() and context.legacy_positives().is_empty()
        ),
    ),
    "analyze": Check(_ANALYSIS, "curate analyze", lambda context: ("consensus", _labels(context))),
    "reasons": Check(_ANALYSIS, "curate analyze --model NAME", lambda context: ("consensus", _labels(context))),
    "evaluation": Check(Path("evaluation", "evaluation.json"), "curate evaluate RUN", current=_evaluation_current),
}
"""Name -> diagnostic."""


def identity(run: Path) -> Json:
    """Return file -> digest of all figures that are there; if one changes, the report is out of date."""
    files = dict.fromkeys(check.file for name, check in CHECKS.items() if name != "circular")
    return {file.as_posix(): sha256(run / file) for file in files if (run / file).is_file()}


# A judge from outside of the panel, without which `curate check circular` measures no effect.

JUDGE = "NAME"
"""What stands for the judge that a user has to choose."""


def outside_run(run: Path) -> Path:
    """Return the run folder in which a judge from outside of the panel grades the pool of a run."""
    return run.with_name(f"{run.name}-outside")


def grade_outside(run: Path, stages: Sequence[str], judge: str = JUDGE) -> str:
    """Return the command that has a judge from outside of the panel grade the pool of a run, in a run of its own.

    `stages` are those of the run; the run itself is not changed, and the grades go to the ledger, which both share.
    """
    needed = ",".join(stages[: stages.index("judge") + 1])
    changes = [word for change in (f"stages=[{needed}]", f"judge.models=[{judge}]") for word in ("--set", change)]
    return shlex.join(["curate", "run", str(run / SETTINGS), "--run", str(outside_run(run)), *changes])


def controls(judged: Figures, check: CheckResult | None) -> Figures:
    """Return judge -> result on control pairs: of the qualification test in the facts of `judge`, else of its check."""
    gate = judged.get("gate")
    measured = gate.get("judges") if isinstance(gate, Mapping) else None
    if not measured and check and check.state == "current":
        measured = {name: judge["controls"] for name, judge in check.figures["judges"].items() if judge["controls"]}
    return measured if isinstance(measured, Mapping) else {}
