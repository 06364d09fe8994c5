"""Paper kit of a run: tables as CSV and LaTeX, figures as PDF, and a LaTeX document that contains all of them."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from curate.commands.paper import comparison_tables, exported, run_tables, score_tables
from curate.commands.paper.evidence import LANGUAGES, PaperEvidence, words
from curate.commands.paper.figures import PaperFigures
from curate.commands.paper.latex import PaperTable, document, fragment
from curate.core.errors import MissingExtra, UserError
from curate.core.figures import Record, figure
from curate.core.languages import served_by
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
    "agreement": "curate judge --run RUN --models deepseek,doubao-1.5-pro,qwen-plus --plan",
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
"""Table or figure that is missing -> command that produces its data."""


class WrittenTable(Record, schema_name="table"):
    """A table of the kit."""

    name: str = figure("such as statistics, a file in csv/ and in tables/")
    caption: str = figure("caption, in the language of the kit")
    rows: int = figure("rows of the table")


class WrittenFigure(Record, schema_name="figure"):
    """A figure of the kit."""

    name: str = figure("such as quality-speed, a file in figures/")
    caption: str = figure("caption, in the language of the kit")


class Absent(Record):
    """A missing table or figure."""

    name: str = figure("name of the table or figure")
    found: str = figure("missing data and the reason")
    next: str | None = figure("command that makes the table or figure")


class PaperKit(Record, schema_name="kit"):
    """Tables and figures of a run for a paper, and what was not done."""

    run: str = figure("run folder")
    folder: str = figure("folder of csv/, tables/ and figures/")
    language: Literal["en", "zh"] = figure("language of captions and figures")
    document: str = figure("LaTeX document that shows them all")
    tables: tuple[WrittenTable, ...] = figure("written tables, in the order of the document")
    figures: tuple[WrittenFigure, ...] = figure("written figures, in the order of the document")
    not_done: tuple[Absent, ...] = figure("tables and figures without data")
    files: tuple[str, ...] = figure("written files, relative to the folder")


def paper(run: Run, out: Path | None = None, language: str | None = None, progress: Progress = quiet) -> PaperKit:
    """Write the paper kit of a run and return its contents; UserError if the run has no consensus labels."""
    if out is not None:
        free_place(out, [DOCUMENT])
    context = run.beside("resolve")
    state, _ = run.states().get("export", ("missing", None))
    evidence = PaperEvidence(context, exported=state in ("done", "unchecked"))
    with waiting(progress, StepLabel("counting texts and tokens")):
        return write(evidence, out or run.folder / "paper", language or served_by(context.language, LANGUAGES))


def write(evidence: PaperEvidence, out: Path, language: str) -> PaperKit:
    """Write tables, figures and document into a folder, and return the contents of the kit.

    Tables and figures without data are listed as `not_done`, and their files of an earlier kit are removed.
    """
    if language not in LANGUAGES:
        raise UserError(f"--language: found {language!r}, expected {' or '.join(LANGUAGES)}")
    texts = words(language)
    table_by_name = _tables(evidence, texts)
    tables = [table for table in table_by_name.values() if table is not None]
    _prepare_folders(out, list(table_by_name))
    for table in tables:
        write_text(out / "csv" / f"{table.name}.csv", table.csv())
        write_text(out / "tables" / f"{table.name}.tex", fragment(table, language))
    figures, undrawn = _figures(evidence, out / "figures", texts)
    sentences = [
        texts["next"].format(why=absent.found, command=absent.next) if absent.next else absent.found
        for absent in _missing_parts(evidence, table_by_name, undrawn, texts)
    ]
    text = document([table.name for table in tables], figures, language, (texts["absent"], sentences))
    write_text(out / DOCUMENT, text)
    csv_and_tex = (file for table in tables for file in (f"csv/{table.name}.csv", f"tables/{table.name}.tex"))
    return PaperKit(
        run=str(evidence.context.run),
        folder=str(out),
        language=cast("Literal['en', 'zh']", language),
        document=str(out / DOCUMENT),
        tables=tuple(WrittenTable(table.name, table.caption, len(table.rows)) for table in tables),
        figures=tuple(WrittenFigure(name, caption) for name, caption in figures),
        not_done=tuple(_missing_parts(evidence, table_by_name, undrawn, words("en"))),
        files=(DOCUMENT, *csv_and_tex, *(f"figures/{name}.pdf" for name, _ in figures)),
    )


def _missing_parts(
    evidence: PaperEvidence,
    table_by_name: Mapping[str, PaperTable | None],
    undrawn: Mapping[str, str],
    texts: dict[str, Any],
) -> list[Absent]:
    """Return the missing tables and figures, without those that depend on another missing table.

    `texts` are the words for the reasons: in the language of the document, or in English for the terminal.
    """
    base_table = {"judges": "agreement"} | dict.fromkeys(
        ("differences", "difficulty", "averages", "legacy", "speed"), "scores"
    )
    names = [name for name, table in table_by_name.items() if table is None and name in texts["missing"]]
    missing = {name: texts["missing"][name] for name in names if base_table.get(name) not in names}
    if evidence.outdated:
        missing["old_scores"] = texts["missing"]["old_scores"].format(tasks=texts["listed"].join(evidence.outdated))
    missing |= {name: texts["missing"].get(name, "{why}").format(why=why) for name, why in undrawn.items()}
    folder = shlex.quote(str(evidence.context.run))
    commands = {name: command.replace("RUN", folder) for name, command in NEXT.items()}
    return [Absent(name, why, commands.get(name)) for name, why in missing.items()]


def _tables(evidence: PaperEvidence, texts: dict[str, Any]) -> dict[str, PaperTable | None]:
    """Return name -> table, in the order of the document; None for a table without data."""
    return {
        "statistics": exported.statistics(evidence.tasks, texts, evidence.context.name),
        "lengths": exported.lengths(evidence.tasks, texts),
        "pipeline": run_tables.pipeline(evidence, texts),
        "verdicts": run_tables.verdicts(evidence, texts),
        "agreement": run_tables.agreement(evidence, texts),
        "judges": run_tables.judges(evidence, texts),
        "review": run_tables.review(evidence, texts),
        "audit": run_tables.audit(evidence, texts),
        "scores": score_tables.scores(evidence.scored, texts),
        "scores-mteb": score_tables.stock_scores(
            evidence.scored, texts, (evidence.evaluation or {}).get("results", ())
        ),
        "differences": score_tables.differences(evidence.scored, texts),
        "difficulty": comparison_tables.difficulty(evidence.scored, texts),
        "averages": comparison_tables.averages(evidence.evaluation, evidence.scored, texts),
        "legacy": comparison_tables.legacy(evidence.evaluation, evidence.scored, texts),
        "speed": score_tables.speed(evidence.scored, texts),
    }


def _figures(
    evidence: PaperEvidence, folder: Path, texts: dict[str, Any]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Draw the figures; return (name, caption) of those drawn, and name -> reason of the others."""
    if not evidence.scored:
        return [], {}
    try:
        drawing = PaperFigures(folder, evidence.scored, texts)
    except MissingExtra as error:  # tables are worth having without figures
        return [], {"matplotlib": str(error)}
    described = {
        "difficulty": (drawing.difficulty(), comparison_tables.counted),
        "quality-speed": (drawing.quality_speed(), score_tables.timed_on),
        "scores": (drawing.scores(), score_tables.described),
    }
    captioned: list[tuple[str, str]] = []
    for name, (tasks, about) in described.items():
        if tasks:
            listed = texts["listed"].join([about(task, texts) for task in tasks])
            sentence = texts["figures"][name]["caption"].format(tasks=listed)
            captioned.append((name, texts["joint"].join([sentence, *score_tables.circular(tasks, texts)])))
    missing_signs = " ".join(drawing.fonts.absent[:10])
    return captioned, {"font": missing_signs} if missing_signs else {}


def _prepare_folders(out: Path, tables: Sequence[str]) -> None:
    """Create the folders, and remove tables and figures of an earlier kit."""
    kinds = {"csv": [f"{name}.csv" for name in tables], "tables": [f"{name}.tex" for name in tables]}
    kinds["figures"] = [f"{name}.pdf" for name in FIGURES]
    for folder, names in kinds.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (out / folder / name).unlink(missing_ok=True)
