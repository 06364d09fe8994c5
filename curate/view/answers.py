"""What machines read: one JSON object per command on standard output, with its data, its warnings or the error."""

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import date
from functools import cache
from pathlib import Path, PurePath
from typing import IO, Any

import typer

from curate.view import output_mode

PACKAGE = "curate-ir"
CODES = Path(__file__).with_name("error_codes.yaml")
OURS = {"curate", "typer", "builtins"}
"""Packages whose classes the codes name: a library has a `DataError` of its own, which is no mistake of the user."""

Failure = dict[str, str | int]
"""`code`, `message`, `exit`: what is wrong, as the envelope has it under `error`."""


class _Call:
    """The command that runs: one per process, and one after another in tests."""

    command: str | None = None
    answered = False
    warnings: tuple[str, ...] = ()
    out: IO[str] | None = None
    """Standard output, while `sys.stdout` is another."""


_call = _Call()


def begin(command: str | None) -> None:
    """Remember the command whose envelope it will be; None until one is known."""
    _call.command, _call.answered, _call.warnings = command, False, ()


@contextmanager
def alone() -> Iterator[None]:
    """Keep standard output for the envelope, if it is asked for: what a library prints goes to standard error."""
    if "--json" not in _options():
        yield
        return
    _call.out = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _call.out = None


def notice(line: str) -> None:
    """Print a line that is no part of the answer to standard error; the envelope has it among its warnings."""
    _call.warnings += (line,)
    typer.echo(line, err=True)


def answer(
    data: object,
    lines: Iterable[str],
    *,
    as_json: bool,
    warnings: Iterable[str] = (),
    failed: BaseException | None = None,
) -> None:
    """Print a command's data, in its envelope or as lines of text, which are taken only then; raise `failed` after it.

    `warnings` say why the data should not be trusted blindly; the lines hold them already, where they belong.
    """
    if as_json:
        _call.warnings += tuple(warnings)
        _print(data, None if failed is None else failure(failed))
    elif output_mode.json_lines():
        output_mode.put({"data": plain(data)}, "")
    else:
        typer.echo("\n".join(lines))
    if failed is not None:
        raise failed


def only_plans(as_json: bool) -> None:
    """Refuse JSON of a stage that is to run: its progress and result are events for machines, one a line."""
    from curate.core.errors import ConfigError

    if as_json:
        raise ConfigError("found --json without --plan, expected both; a run itself speaks JSON with --json-lines")


def refuse(found: Failure) -> None:
    """Print the error that ended the command, in the form that its options ask for; nothing if they ask for none."""
    if "--json-lines" in _options():
        write(json.dumps({"event": "error", "error": found}, ensure_ascii=False))
    elif "--json" in _options() and not _call.answered:
        _print(None, found)


def failure(error: BaseException) -> Failure:
    """Return the error as the envelope has it under `error`; its code is that of the nearest class that has one."""
    kinds = codes()
    ours = (each.__name__ for each in type(error).__mro__ if each.__module__.partition(".")[0] in OURS)
    code = next(kinds[name] for name in ours if name in kinds)
    return {"code": code, "message": _message(error), "exit": listed()[code]["exit"]}


@cache
def listed() -> Mapping[str, Mapping[str, Any]]:
    """Return error code -> its classes, its exit code, what it means."""
    from curate.core import safe_yaml

    found: Mapping[str, Mapping[str, Any]] = safe_yaml.parse(safe_yaml.read(CODES))
    return found


def codes() -> dict[str, str]:
    """Return name of a class of errors -> its code."""
    return {name: code for code, entry in listed().items() for name in entry["classes"]}


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value in JSON's types: NaN and infinity are None; paths, times and keys are text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, PurePath) else value


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, typer.Abort):
        return "a question was left without an answer; give the options instead, or answer it in a terminal"
    told = getattr(error, "format_message", None)  # of the command line's own errors
    return (told() if told else str(error)) or type(error).__name__


def _options() -> Sequence[str]:
    """Return what was typed as far as it can be options: an error of the command line is known before they are."""
    words = sys.argv[1:]
    return words[: words.index("--")] if "--" in words else words


def _print(data: object, error: Failure | None) -> None:
    from importlib.metadata import version

    _call.answered = True
    whole = {
        "ok": error is None,
        "command": _call.command,
        "version": version(PACKAGE),
        "data": plain(data),
        "warnings": list(_call.warnings),
        "error": error,
    }
    write(json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1, default=str))


def write(text: str) -> None:
    """Print JSON in UTF-8, whatever the terminal speaks; half a character, as of a file's odd name, as an escape.

    A reader that has gone, such as `head`, has seen enough.
    """
    try:
        typer.echo(text.encode("utf-8", "backslashreplace"), file=_call.out)
    except BrokenPipeError:  # else the interpreter tries again at its end, and complains
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
