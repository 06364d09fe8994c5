"""`curate paper`: tables of a run as CSV and LaTeX."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.cli import completing
from curate.cli.envelope import answer
from curate.cli.options import AsJson
from curate.cli.running import open_run

LANGUAGES = ("en", "zh")


def paper(
    run: Annotated[
        Path | None, typer.Argument(help="Run folder; default: the newest run.", autocompletion=completing.runs)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: `paper` in the run.")] = None,
    language: Annotated[str, typer.Option(help="Language of heads and captions: en or zh.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Write tables of a run's tasks, agreement, audit and scores as CSV and LaTeX; nothing is sent or scored."""
    from curate.core.errors import ConfigError, suggestion
    from curate.evaluation.paper.write import write_paper

    if language not in LANGUAGES:
        raise ConfigError(f"--language: found {language!r}; {suggestion(language, LANGUAGES)}")
    work = open_run(None, run)
    found = write_paper(work, out or work.folder / "paper", "zh" if language == "zh" else "en")
    answer(found, _lines(found), as_json=as_json)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for each in found["tables"]:
        yield f"tables/{each['name']}: {each['rows']:,} rows"
    for each in found["absent"]:
        yield f"no table `{each['table']}`: {each['why']}; next: {each['next']}"
    program = "xelatex" if found["language"] == "zh" else "pdflatex"
    yield f"{found['folder']}: CSV and LaTeX (booktabs); `{program} paper.tex` in it shows all tables"
