"""Write the tables of a run for a paper: CSV with every figure, LaTeX fragments, and a document that reads them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from curate.core.config import parse_yaml
from curate.evaluation.paper.contents import contents
from curate.evaluation.paper.latex import document, fragment
from curate.evaluation.publish.evidence import ReadyEvidence
from curate.runs.run import Run
from curate.system.files import write_text
from curate.system.resources import template

PaperLanguage = Literal["en", "zh"]
WORDS = "evaluation/paper/paper.yaml"


def write_paper(run: Run, folder: Path, language: PaperLanguage) -> dict[str, Any]:
    """Write `tables/NAME.csv`, `tables/NAME.tex` and `paper.tex`; return their names and the tables that are absent.

    Files of an earlier call that are made no more are removed. UserError unless the run's export, in mteb's format, is
    up to date.
    """
    words: dict[str, Any] = parse_yaml(template(WORDS))
    found = contents(ReadyEvidence(run), words[language])
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    names = [table.name for table in found.tables]
    for old in place.iterdir():
        if old.suffix in (".csv", ".tex") and old.stem not in names:
            old.unlink()
    for table in found.tables:
        write_text(place / f"{table.name}.csv", table.csv())
        write_text(place / f"{table.name}.tex", fragment(table, language))
    write_text(folder / "paper.tex", document(names, [], language))
    return {
        "folder": folder,
        "language": language,
        "tables": [{"name": each.name, "rows": len(each.rows), "caption": each.caption} for each in found.tables],
        "absent": [asdict(each) for each in found.absent],
    }
