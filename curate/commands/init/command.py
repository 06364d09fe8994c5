"""`curate init`: a first pipeline file for one's own data."""

import sys
from typing import Any

import typer

from curate.commands.init.doubts import Doubt, doubt
from curate.commands.init.looking import DataSources, look
from curate.commands.init.request import InitOptions
from curate.commands.init.screen import lines
from curate.commands.init.writing import draft, need_free, write
from curate.core.errors import ConfigError
from curate.llm.providers.presets import told_presets
from curate.system import interrupts
from curate.view.answers import Result
from curate.view.progress import bars


class InitCommand(InitOptions):
    """Write a pipeline file for your data.

    What was chosen, and why, is printed.
    """

    def result(self) -> Result[Any]:
        """Look at the data, ask what they leave open, write the file, and return its path and the printed lines."""
        request: InitOptions = self
        has_tables = all(request.setting_at("ingest", key) for key in ("queries", "corpus"))
        if not request.setting_at("ingest", "source") and not has_tables:
            request = _with_sources(request)
        need_free(request)
        told_presets(self.notify)
        user_data = self._look(request)
        while unsure := doubt(user_data):
            if unsure.sure:
                request = user_data.request.with_assignments(unsure.choices[0].options)
            else:
                request = _with_choice(user_data, unsure)
            user_data = self._look(request)
        pipeline_draft = draft(user_data)
        output = [*lines(user_data, pipeline_draft)]
        write(pipeline_draft)
        if request is not self:
            output.append(f"the same without questions: {request.command()}")
        return Result({"pipeline": str(request.path), "lines": output}, output)

    def _look(self, request: InitOptions) -> DataSources:
        """Read the data; between two questions on a terminal, with bars of their own."""
        if not _terminal():
            return look(request, self.progress)
        with bars() as (progress, _):
            return look(request, progress)


def _terminal() -> bool:
    """Return whether a user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _with_sources(request: InitOptions) -> InitOptions:
    """Return the request with the sources that the user enters; ConfigError with what to type if not on a terminal."""
    if not _terminal():
        raise ConfigError(
            "init: found no source, expected queries and documents; give a folder: curate init FOLDER, or two files: "
            "curate init --queries FILE --corpus FILE"
        )
    if request.queries is None and request.corpus is None:
        folder = _prompt("Folder with queries and corpus (empty: two files)", default="")
        if folder:
            return request.with_options(source=folder)
    queries = request.queries or _prompt("File of the queries")
    corpus = request.corpus or _prompt("File of the documents")
    return request.with_options(queries=queries, corpus=corpus)


def _with_choice(user_data: DataSources, unsure: Doubt) -> InitOptions:
    """Return the request with the user's choice; ConfigError with commands to copy if there is none."""
    if not _terminal():
        raise ConfigError(unsure.remedy(user_data.request))
    typer.echo(unsure.sentence, err=True)
    for number, choice in enumerate(unsure.choices, start=1):
        words = " ".join(word for option in choice.options for word in option)
        typer.echo(f"  {number}  {choice.action}   ({words})", err=True)
    stop = len(unsure.choices) + 1
    typer.echo(f"  {stop}  stop, and write nothing", err=True)
    while True:
        answer = _prompt("Your choice", default=str(stop)).strip()
        if answer == str(stop):
            raise ConfigError(f"nothing was written; {unsure.remedy(user_data.request)}")
        if answer.isdecimal() and 0 < int(answer) < stop:
            return user_data.request.with_assignments(unsure.choices[int(answer) - 1].options)
        typer.echo(f"  expected a number from 1 to {stop}", err=True)


def _prompt(text: str, default: str | None = None) -> str:
    """Return the user's input; KeyboardInterrupt on Ctrl-C, ConfigError at the end of the input."""
    interrupts.interrupt_reading()
    try:
        return str(typer.prompt(text, default=default, show_default=bool(default), err=True))
    except typer.Abort:
        typer.echo(err=True)
        interrupts.check()
        raise ConfigError("init: the input ended before an answer; nothing was written") from None
