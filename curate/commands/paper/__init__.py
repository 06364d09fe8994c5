"""`curate paper`: tables and figures of a run for a paper."""

from collections.abc import Iterator
from pathlib import Path

from curate.commands.paper.kit import PaperKit, paper
from curate.runs.command import argument, option
from curate.runs.options import OnRun
from curate.system import resources
from curate.view.answers import Result
from curate.view.text import as_table


class PaperCommand(OnRun):
    """Write LaTeX tables and figures.

    Statistics, agreement, audit and scores, as CSV, LaTeX (booktabs) and vector PDF. Nothing is sent or scored; what
    was not done is named, and has no table.
    """

    words = "paper"
    examples = ("paper", "paper runs/demo --out paper --language en")

    run: Path | None = argument("Run folder; default: the newest run.", None, complete="runs")
    out: Path | None = option("Folder to write to; default: `paper` in the run.", None, metavar="FOLDER")
    language: str | None = option("Language of captions and figures; default: the run's.", None, metavar="en|zh")

    def result(self) -> Result[PaperKit]:
        """Write the files, and return what was written and what was not done."""
        contents = paper(self.open_run(), self.out, self.language, self.progress)
        return Result(contents, _lines(contents), [absent.found for absent in contents.not_done])


def _lines(contents: PaperKit) -> Iterator[str]:
    yield as_table([{"table": table.name, "rows": table.rows} for table in contents.tables])
    for figure in contents.figures:
        yield f"figure: {figure.name}"
    for absent in contents.not_done:
        yield f"not done: {absent.name}: {absent.found}" + (f"\n  next: {absent.next}" if absent.next else "")
    program = resources.words("commands/paper/words.yaml", contents.language)["latex"]["program"]
    yield f"document: {contents.document}, to be compiled by {program}"
