"""`curate init`: a first pipeline file for one's own data."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.runs import completing
from curate.runs.options import Assign, Language
from curate.system import interrupts

if TYPE_CHECKING:
    from curate.commands.init.doubts import Doubt
    from curate.commands.init.looking import DataSources
    from curate.commands.init.request import InitRequest


def init(
    source: Annotated[
        str | None, typer.Argument(help="A folder with queries, corpus and perhaps qrels, or an mteb task's name.")
    ] = None,
    queries: Annotated[str | None, typer.Option(help="File of the queries.")] = None,
    corpus: Annotated[str | None, typer.Option(help="File of the documents.")] = None,
    qrels: Annotated[str | None, typer.Option(help="File of known relevant pairs, if there is one.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE.FIELD=NAME",
            help="Column of a field, such as corpus.id=doc_no; '<line>' takes line numbers for ids; may be repeated.",
        ),
    ] = None,
    assign: Assign = None,
    name: Annotated[str | None, typer.Option(help="Name of the benchmark and of its run folder.")] = None,
    language: Language = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Judges, separated by commas; default: those of models.yaml, and those with a key.",
            autocompletion=completing.judges,
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Pipeline file to write; default: NAME.yaml.")] = None,
) -> None:
    """Look at queries and documents, say what was chosen and why, and write a pipeline file for them."""
    from curate.commands.init.doubts import doubt
    from curate.commands.init.looking import look
    from curate.commands.init.request import InitRequest
    from curate.commands.init.screen import lines
    from curate.commands.init.writing import draft, need_free, write
    from curate.runs.running import announce_presets
    from curate.view.progress import bars

    repeated = {"columns": tuple(column or ()), "assign": tuple(assign or ())}
    request = InitRequest(source, queries, corpus, qrels, name, language, models, file, **repeated)
    typed = request
    if not request.said("ingest", "source") and not all(request.said("ingest", key) for key in ("queries", "corpus")):
        request = _with_sources(request)
    need_free(request)
    announce_presets()
    while True:
        with bars() as (progress, _):
            user_data = look(request, progress)
        unsure = doubt(user_data)
        if unsure is None:
            break
        request = _with_choice(user_data, unsure)
    pipeline_draft = draft(user_data)
    output = [*lines(user_data, pipeline_draft)]
    write(pipeline_draft)
    typer.echo("\n".join(output))
    if request is not typed:
        typer.echo(f"the same without questions: {request.command()}")


def _terminal() -> bool:
    """Return whether a user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _with_sources(request: "InitRequest") -> "InitRequest":
    """Return the request with the sources that the user enters; ConfigError with what to type if not on a terminal."""
    if not _terminal():
        from curate.core.errors import ConfigError

        raise ConfigError(
            "init: found no source, expected queries and documents; give a folder: curate init FOLDER, or two files: "
            "curate init --queries FILE --corpus FILE"
        )
    if request.queries is None and request.corpus is None:
        folder = _prompt("Folder with queries and corpus (empty: two files)", default="")
        if folder:
            return replace(request, source=folder)
    queries = request.queries or _prompt("File of the queries")
    return replace(request, queries=queries, corpus=request.corpus or _prompt("File of the documents"))


def _with_choice(user_data: "DataSources", unsure: "Doubt") -> "InitRequest":
    """Return the request with the user's choice; ConfigError with commands to copy if there is none."""
    from curate.core.errors import ConfigError

    if not _terminal():
        raise ConfigError(unsure.remedy(user_data.request))
    typer.echo(unsure.sentence, err=True)
    for number, choice in enumerate(unsure.choices, start=1):
        words = " ".join(word for option in choice.options for word in option)
        typer.echo(f"  {number}  {choice.said}   ({words})", err=True)
    stop = len(unsure.choices) + 1
    typer.echo(f"  {stop}  stop, and write nothing", err=True)
    while True:
        answer = _prompt("Your choice", default=str(stop)).strip()
        if answer == str(stop):
            raise ConfigError(f"nothing was written; {unsure.remedy(user_data.request)}")
        if answer.isdecimal() and 0 < int(answer) < stop:
            return user_data.request.also(unsure.choices[int(answer) - 1].options)
        typer.echo(f"  expected a number from 1 to {stop}", err=True)


def _prompt(text: str, default: str | None = None) -> str:
    """Return the user's input; KeyboardInterrupt on Ctrl-C, ConfigError at the end of the input."""
    interrupts.interrupt_reading()
    try:
        return str(typer.prompt(text, default=default, show_default=bool(default), err=True))
    except typer.Abort:
        typer.echo(err=True)
        interrupts.check()
        from curate.core.errors import ConfigError

        raise ConfigError("init: the input ended before an answer; nothing was written") from None
