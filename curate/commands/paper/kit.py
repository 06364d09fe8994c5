"""The paper kit of a run: tables as CSV and LaTeX, figures as PDF, and a document that shows them all."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curate.commands.paper import comparison_tables, exported, run_tables, score_tables
from curate.commands.paper.evidence import LANGUAGES, Figures, PaperEvidence, words
from curate.commands.paper.figures import PaperFigures
from curate.commands.paper.latex import PaperTable, document, fragment
from curate.core.errors import MissingExtra, UserError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.runs.outputs import free_place
from curate.runs.runner import Run
from curate.system.files import write_text

DOCUMENT = "paper.tex"
FIGURES = ("difficulty", "quality-speed", "scores")
EVALUATE = "curate evaluate RUN"
NEXT = {
    "statistics": "curate export --run RUN",
    "lengths": "curate export --run RUN",
    "agreement": "curate judge --run RUN --models deepseek-v3,doubao-1.5-pro,gpt-4o --plan",
    "review": "curate review export --run RUN --size 200 --plan",
    "audit": "curate audit --help",
    "scores": EVALUATE,
    "old_scores": EVALUATE,
    "differences": f"{EVALUATE} --models MODELS",
    "difficulty": f"{EVALUATE} --models bm25",
    "averages": f"{EVALUATE} --average NAME=TASK,TASK",
    "legacy": f"{EVALUATE} --legacy TASK",
    "speed": f"{EVALUATE} --speed",
}
"""What was not done -> what to type, where there is something to type."""


@dataclass(frozen=True)
class Absent:
    """What a kit lacks, why, and what to type."""

    name: str
    found: str
    next: str | None


def paper(run: Run, out: Path | None = None, language: str | None = None, progress: Progress = quiet) -> dict[str, Any]:
    """Write the kit of a run and return what is in it; UserError unless its panel has voted."""
    if out is not None:
        free_place(out, [DOCUMENT])
    context = run.beside("resolve")
    state, _ = run.states().get("export", ("missing", None))
    known = PaperEvidence(context, exported=state in ("done", "unchecked"))
    with waiting(progress, StepLabel("counting texts and tokens")):
        found = write(known, out or run.folder / "paper", language or written_in(context.language))
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
    tables = [table for table in made.values() if table is not None]
    _prepared(out, list(made))
    for table in tables:
        write_text(out / "csv" / f"{table.name}.csv", table.csv())
        write_text(out / "tables" / f"{table.name}.tex", fragment(table, language))
    figures, undrawn = _figures(known, out / "figures", said)
    sentences = [
        said["next"].format(why=each.found, command=each.next) if each.next else each.found
        for each in _absent(known, made, undrawn, said)
    ]
    text = document([table.name for table in tables], figures, language, (said["absent"], sentences))
    write_text(out / DOCUMENT, text)
    found: dict[str, Any] = {
        "folder": str(out),
        "language": language,
        "document": str(out / DOCUMENT),
        "tables": [{"name": table.name, "caption": table.caption, "rows": len(table.rows)} for table in tables],
        "figures": [{"name": name, "caption": caption} for name, caption in figures],
        "not_done": [asdict(each) for each in _absent(known, made, undrawn, words("en"))],
    }
    return {**found, "files": files(found)}


def _absent(
    known: PaperEvidence, made: Mapping[str, PaperTable | None], undrawn: Mapping[str, str], said: dict[str, Any]
) -> list[Absent]:
    """Return the tables and figures that a run lacks; what a lacking table is the ground of is not named.

    The document says so in its own language, the terminal in English.
    """
    grounds = {"judges": "agreement"} | dict.fromkeys(
        ("differences", "difficulty", "averages", "legacy", "speed"), "scores"
    )
    names = [name for name, table in made.items() if table is None and name in said["missing"]]
    missing = {name: said["missing"][name] for name in names if grounds.get(name) not in names}
    if known.outdated:
        missing["old_scores"] = said["missing"]["old_scores"].format(tasks=said["listed"].join(known.outdated))
    missing |= {name: said["missing"].get(name, "{why}").format(why=why) for name, why in undrawn.items()}
    folder = shlex.quote(str(known.context.run))
    commands = {name: command.replace("RUN", folder) for name, command in NEXT.items()}
    return [Absent(name, why, commands.get(name)) for name, why in missing.items()]


def _tables(known: PaperEvidence, said: dict[str, Any]) -> dict[str, PaperTable | None]:
    """Return name -> table, in the order of the document; None for what was not done."""
    return {
        "statistics": exported.statistics(known.tasks, said, known.context.name),
        "lengths": exported.lengths(known.tasks, said),
        "pipeline": run_tables.pipeline(known, said),
        "verdicts": run_tables.verdicts(known, said),
        "agreement": run_tables.agreement(known, said),
        "judges": run_tables.judges(known, said),
        "review": run_tables.review(known, said),
        "audit": run_tables.audit(known, said),
        "scores": score_tables.scores(known.scored, said),
        "scores-mteb": score_tables.stock_scores(known.scored, said, (known.evaluation or {}).get("results", ())),
        "differences": score_tables.differences(known.scored, said),
        "difficulty": comparison_tables.difficulty(known.scored, said),
        "averages": comparison_tables.averages(known.evaluation, known.scored, said),
        "legacy": comparison_tables.legacy(known.evaluation, known.scored, said),
        "speed": score_tables.speed(known.scored, said),
    }


def _figures(known: PaperEvidence, folder: Path, said: dict[str, Any]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Draw the figures; return name and caption of each, and what could not be drawn and why."""
    if not known.scored:
        return [], {}
    try:
        drawing = PaperFigures(folder, known.scored, said)
    except MissingExtra as error:  # tables are worth having without figures
        return [], {"matplotlib": str(error)}
    described = {
        "difficulty": (drawing.difficulty(), comparison_tables.counted),
        "quality-speed": (drawing.quality_speed(), score_tables.timed_on),
        "scores": (drawing.scores(), score_tables.described),
    }
    made = [
        (name, _caption(said["figures"][name]["caption"], [about(task, said) for task in tasks], tasks, said))
        for name, (tasks, about) in described.items()
        if tasks
    ]
    signs = " ".join(drawing.fonts.absent[:10])
    return made, {"font": signs} if signs else {}


def _caption(sentence: str, about: Sequence[str], tasks: Sequence[Figures], said: dict[str, Any]) -> str:
    marks = score_tables.circular(tasks, said)
    return str(said["joint"].join([sentence.format(tasks=said["listed"].join(about)), *marks]))


def _prepared(out: Path, tables: Sequence[str]) -> None:
    """Make the folders, and remove what an earlier kit left of tables and figures that this one may not have."""
    kinds = {"csv": [f"{name}.csv" for name in tables], "tables": [f"{name}.tex" for name in tables]}
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
