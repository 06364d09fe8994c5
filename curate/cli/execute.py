"""Run a command with the options that were typed, and print its result; `--version`."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import typer

from curate.core.errors import ConfigError, suggestion
from curate.core.protocols import quiet
from curate.runs.command import silent
from curate.runs.index import Entry, command_class
from curate.view import output_mode
from curate.view.answers import PACKAGE, Result, Versions, begin, give
from curate.view.progress import bars


def execute(entry: Entry, options: Mapping[str, Any]) -> None:
    """Run a command, and print its result; raise what the result says failed."""
    if output_mode.json() and not entry["json"]:
        raise ConfigError(f"curate {entry['words']}: has no answer in JSON; leave out --json")
    typed = {name: chosen for name, chosen in options.items() if chosen is not None and chosen != []}
    command_settings, assign = _command_settings(entry, typed.pop("settings", ()))
    typed |= {"settings": assign} if assign else {}
    kind = command_class(entry["class"])
    with nullcontext((quiet, silent)) if kind.asks else bars() as (progress, tell):
        command = kind(**typed, **command_settings, progress=progress, tell=tell, notify=_notify)
        try:
            result = command.result()
        finally:  # also what ended in an error was paid
            paid = command.paid()
            if paid:
                tell(paid)
    give(result)
    command.afterwards()


def _notify(line: str) -> None:
    typer.echo(line, err=True)


def _command_settings(entry: Entry, assign: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the command's own settings among those of `--set`, and the assignments that are a pipeline's."""
    command_settings, pipeline_settings = dict[str, str](), list[str]()
    names = {name for name, key in entry["settings"].items() if key == name}
    for assignment in assign:
        name, sign, text = assignment.partition("=")
        if name.strip() in names and sign:
            command_settings[name.strip()] = text
        else:
            pipeline_settings.append(assignment)
    if pipeline_settings and not entry["pipeline"]:
        name = pipeline_settings[0].partition("=")[0]
        raise ConfigError(f"--set {pipeline_settings[0]!r}: unknown setting; {suggestion(name, entry['settings'])}")
    return command_settings, pipeline_settings


def print_versions() -> None:
    """Print the version of the program; with --json those of Python and of all libraries, None if missing."""
    import platform
    import re
    from importlib.metadata import PackageNotFoundError, requires
    from importlib.metadata import version as installed_version

    def version(name: str) -> str | None:
        try:
            return installed_version(name)
        except PackageNotFoundError:
            return None

    needed = (requirement for requirement in requires(PACKAGE) or () if "extra == 'dev'" not in requirement)
    names = {re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in needed} - {PACKAGE}
    begin("version")
    versions = Versions(
        curate=installed_version(PACKAGE),
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: version(name) for name in sorted(names)},
    )
    give(Result(versions, [f"curate {versions.curate} (Python {versions.python})"]))
