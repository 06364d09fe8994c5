"""The paper kit of a run: tables as CSV and LaTeX, figures as PDF, and a document that shows them all."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curate.core.errors import MissingExtra, UserError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.evaluation.paper import exported, run_tables, score_tables
from curate.evaluation.paper.evidence import LANGUAGES, PaperEvidence, words
from curate.evaluation.paper.figures import PaperFigures
from curate.evaluation.paper.latex import document, fragment
from curate.evaluation.paper.table import PaperTable
from curate.runs.run import Run
from curate.system.files import write_text

DOCUMENT = "paper.tex"
TABLES = ("statistics", "lengths", "pipeline", "verdicts", "agreement", "review", "audit",
          "scores", "differences", "speed")  # fmt: skip
FIGURES = ("quality-speed", "scores")
NEXT = {
    "statistics": "curate export --run RUN",
    "lengths": "curate export --run RUN",
    "review": "curate review export --run RUN --plan",
    "audit": "curate audit --help",
    "scores": "curate evaluate RUN",
    "old_scores": "curate evaluate RUN",
    "differences": "curate evaluate RUN",
    "speed": "curate evaluate RUN --speed",
    "quality-speed": "curate evaluate RUN --speed",
    "font": None,
    "matplotlib": None,
}
"""What was not done -> what to type."""


def paper(run: Run, out: Path | None = None, language: str | None = None, progress: Progress = quiet) -> dict[str, Any]:
    """Write the kit of a run and return what is in it; UserError unless its panel has voted."""
    context = run.beside("resolve")
    state, _ = run.states().get("export", ("missing", None))
    known = PaperEvidence(context, exported=state in ("done", "unchecked"))
    chosen = language or written_in(context.language)
    with waiting(progress, StepLabel("counting texts and tokens")):
        found = write(known, out or run.folder / "paper", chosen)
    for each in found["not_done"]:
        each["next"] = each["next"] and each["next"].replace("RUN", shlex.quote(str(run.folder)))
    return {"run": str(run.folder), **found}


def written_in(language: str) -> str:
    """Return `zh` for any Chinese, English for every other language."""
    return "zh" if language.partition("-")[0] == "zh" else "en"


def write(known: PaperEvidence, out: Path, language: str) -> dict[str, Any]:
    """Write tables, figures and document into a folder; what is absent is named, and an older file of it removed."""
    if language not in LANGUAGES:
        raise UserError(f"--language: found {language!r}, expected {' or '.join(LANGUAGES)}")
    said = words(language)
    made = _tables(known, said)
    alone = () if known.scored else ("differences", "speed")  # without scores it is enough to say that there are none
    missing = [name for name, table in made.items() if table is None and name not in alone]
    tables = [table for table in made.values() if table is not None]
    _prepared(out)
    for table in tables:
        write_text(out / "csv" / f"{table.name}.csv", table.csv())
        write_text(out / "tables" / f"{table.name}.tex", fragment(table, language))
    figures, undone = _figures(known, out / "figures", said)
    absent = [*((name, said["missing"][name]) for name in missing), *_old(known, said), *undone]
    sentences = [why for _, why in absent]
    text = document([each.name for each in tables], figures, language, (said["absent"], sentences))
    write_text(out / DOCUMENT, text)
    found: dict[str, Any] = {
        "folder": str(out),
        "language": language,
        "document": str(out / DOCUMENT),
        "tables": [{"name": each.name, "caption": each.caption, "rows": len(each.rows)} for each in tables],
        "figures": [{"name": name, "caption": caption} for name, caption in figures],
        "not_done": [{"name": name, "found": why, "next": NEXT[name]} for name, why in absent],
    }
    return {**found, "files": files(found)}


def _tables(known: PaperEvidence, said: dict[str, Any]) -> dict[str, PaperTable | None]:
    """Return name -> table, in the order of the document; None for what was not done."""
    return {
        "statistics": exported.statistics(known.tasks, said, known.context.name),
        "lengths": exported.lengths(known.tasks, said),
        "pipeline": run_tables.pipeline(known, said),
        "verdicts": run_tables.verdicts(known, said),
        "agreement": run_tables.agreement(known, said),
        "review": run_tables.review(known, said),
        "audit": run_tables.audit(known, said),
        "scores": score_tables.scores(known.scored, said),
        "differences": score_tables.differences(known.scored, said),
        "speed": score_tables.speed(known.scored, said),
    }


def _old(known: PaperEvidence, said: dict[str, Any]) -> list[tuple[str, str]]:
    tasks = said["listed"].join(known.outdated)
    return [("old_scores", said["missing"]["old_scores"].format(tasks=tasks))] if known.outdated else []


def _figures(
    known: PaperEvidence, folder: Path, said: dict[str, Any]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Draw the figures; return name and caption of each, and what was not drawn and why."""
    timed, listed = score_tables.timed(known.scored), said["listed"]
    if not known.scored:
        return [], []
    absent = [] if timed else [("quality-speed", str(said["missing"]["quality-speed"]))]
    try:
        drawing = PaperFigures(folder, known.scored, said)
    except MissingExtra as error:  # tables are worth having without figures
        return [], [*absent, ("matplotlib", str(error))]
    made: list[tuple[str, str]] = []
    if timed:
        drawing.quality_speed()
        about = said["figures"]["quality-speed"]
        each = [
            about["task"].format(**score_tables.named(task, said) | score_tables.on_machine(task["speed"]))
            for task in timed
        ]
        made.append(("quality-speed", about["caption"].format(tasks=listed.join(each))))
    drawing.scores()
    all_tasks = listed.join(score_tables.described(task, said) for task in known.scored)
    made.append(("scores", said["figures"]["scores"]["caption"].format(tasks=all_tasks)))
    if signs := drawing.fonts.absent:
        absent.append(("font", said["missing"]["font"].format(signs=" ".join(signs[:10]))))
    return made, absent


def _prepared(out: Path) -> None:
    """Make the folders, and remove what an earlier kit left of tables and figures that this one may not have."""
    kinds = {"csv": [f"{name}.csv" for name in TABLES], "tables": [f"{name}.tex" for name in TABLES]}
    kinds["figures"] = [f"{name}.pdf" for name in FIGURES]
    for folder, names in kinds.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (out / folder / name).unlink(missing_ok=True)


def files(found: dict[str, Any]) -> Sequence[str]:
    """Return the files of a kit, relative to its folder."""
    tables = [
        f"{kind}/{each['name']}.{end}" for each in found["tables"] for kind, end in (("csv", "csv"), ("tables", "tex"))
    ]
    return [DOCUMENT, *tables, *(f"figures/{each['name']}.pdf" for each in found["figures"])]
