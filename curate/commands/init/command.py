"""`curate init`: a first pipeline file for one's own data."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from curate.runs.command import Assignments, Command, Names, argument, option
from curate.system import interrupts
from curate.view.answers import Result
from curate.view.progress import bars

if TYPE_CHECKING:
    from curate.commands.init.doubts import Doubt
    from curate.commands.init.looking import DataSources
    from curate.commands.init.request import InitRequest


class InitCommand(Command):
    """Write a pipeline file for your data.

    What was chosen, and why, is printed.
    """

    words = "init"
    examples = ("init my-data --name my-benchmark", "init --queries questions.csv --corpus answers.jsonl")

    asks = True
    speaks_json = False

    source: str | None = argument("A folder with queries, corpus and perhaps qrels, or an mteb task's name.", None)
    queries: str | None = option("File of the queries.", None, metavar="FILE")
    corpus: str | None = option("File of the documents.", None, metavar="FILE")
    qrels: str | None = option("File of known relevant pairs, if there is one.", None, metavar="FILE")
    column: tuple[str, ...] = option(
        "Column of a field, such as corpus.id=doc_no; '<line>' takes line numbers for ids; may be repeated.",
        (),
        metavar="TABLE.FIELD=NAME",
    )
    name: str | None = option("Name of the benchmark and of its run folder.", None, metavar="NAME")
    language: str | None = option("Language of the texts, such as zh; default: detected.", None, metavar="zh|en|...")
    models: Names = option(
        "Judges, separated by commas; default: those of models.yaml, and those with a key.",
        (),
        complete="judges",
        metavar="NAMES",
    )
    file: Path | None = option("Pipeline file to write; default: NAME.yaml.", None, metavar="FILE")
    settings: Assignments = option(
        "Write a setting into the file; may be repeated.",
        (),
        flag="--set",
        complete="settings",
        metavar="SECTION.KEY=VALUE",
    )

    def result(self) -> Result[Any]:
        """Look at the data, ask what they leave open, write the file, and return its path and the printed lines."""
        from curate.commands.init.doubts import doubt
        from curate.commands.init.request import InitRequest
        from curate.commands.init.screen import lines
        from curate.commands.init.writing import draft, need_free, write
        from curate.llm.providers.presets import told_presets

        request = typed = InitRequest(
            self.source,
            self.queries,
            self.corpus,
            self.qrels,
            self.name,
            self.language,
            ",".join(self.models) or None,
            self.file,
            columns=self.column,
            assign=tuple(self.settings),
        )
        has_tables = all(request.said("ingest", key) for key in ("queries", "corpus"))
        if not request.said("ingest", "source") and not has_tables:
            request = _with_sources(request)
        need_free(request)
        told_presets(self.notify)
        user_data = self._look(request)
        while unsure := doubt(user_data):
            if unsure.sure:
                request = user_data.request.also(unsure.choices[0].options)
            else:
                request = _with_choice(user_data, unsure)
            user_data = self._look(request)
        pipeline_draft = draft(user_data)
        output = [*lines(user_data, pipeline_draft)]
        write(pipeline_draft)
        if request is not typed:
            output.append(f"the same without questions: {request.command()}")
        return Result({"pipeline": str(request.path), "lines": output}, output)

    def _look(self, request: "InitRequest") -> "DataSources":
        """Read the data; between two questions on a terminal, with bars of their own."""
        from curate.commands.init.looking import look

        if not _terminal():
            return look(request, self.progress)
        with bars() as (progress, _):
            return look(request, progress)


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
