"""JSON envelope of a command's result: one object on standard output with data, warnings, and the error if any."""

import json
import math
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path, PurePath
from typing import IO, Any, Generic, TypeVar

from curate.core.errors import BudgetError, ConfigError, TableError, TableFault, UserError
from curate.core.figures import Record, figure
from curate.system import interrupts
from curate.view import output_mode

PACKAGE = "curate-ir"
CODES = Path(__file__).with_name("error_codes.yaml")
_REPEATED = ("--set", "--column")
OURS = {"curate", "typer", "builtins"}
"""Packages whose error classes have codes.

An error class of another library is never reported as the user's mistake.
"""


class Failure(Record, schema_name="error"):
    """Why a command failed."""

    code: str = figure("kind of the error")
    message: str = figure("message, which may have several lines")
    exit: int = figure("exit code")
    at: str | None = figure("file, line and column of the first fault of a table", optional=True)
    expected: str | None = figure("what should stand there", optional=True)
    got: str | None = figure("what stands there, without any text of the corpus", optional=True)
    tries: tuple[str, ...] | None = figure("remedies, and commands that go on", key="try", optional=True)


class Envelope(Record, schema_name="answer"):
    """What every answer comes in; `data` has the schema of its command."""

    ok: bool = figure("whether the exit code is 0")
    command: str | None = figure("words of the command, such as check pool; null if none was recognised")
    version: str = figure("version of curate")
    data: Any = figure("result of the command; null after an error")
    warnings: tuple[str, ...] = figure("caveats and assumptions, one sentence each")
    error: Failure | None = figure("error; null if `ok`")


class Versions(Record):
    """The versions of the program and of what its answers depend on (`curate --version --json`)."""

    curate: str = figure("version of curate")
    python: str = figure("version of the interpreter")
    platform: str = figure("operating system and processor")
    packages: Mapping[str, str | None] = figure(
        "package that curate or one of its extras needs -> version; null if it is not installed"
    )


Data_co = TypeVar("Data_co", covariant=True)


@dataclass(frozen=True)
class Result(Generic[Data_co]):
    """What a command found."""

    data: Data_co
    """As `--json` prints it, and as the call in Python returns it."""
    lines: Iterable[str] = ()
    """The same as text; iterated only if it is printed."""
    warnings: Sequence[str] = ()
    """Caveats for the JSON output; the text contains them already."""
    failed: Exception | None = None
    """Raised after the answer was given, as of a check that found something."""
    event: Mapping[str, Any] | None = None
    """Fields of the last event of `--json-lines`; by default `data`, as the field of this name."""
    to_stderr: bool = False
    """Whether the text goes to standard error, since standard output is for a file."""


class _Call:
    """State of the running command; a process runs one, tests run several in sequence."""

    command: str | None = None
    answered = False
    warnings: tuple[str, ...] = ()
    out: IO[str] | None = None
    """The original standard output while `sys.stdout` is redirected; None otherwise."""


_call = _Call()


def begin(command: str | None) -> None:
    """Start the envelope of a command; None until its name is known."""
    _call.command, _call.answered, _call.warnings = command, False, ()


@contextmanager
def alone() -> Iterator[None]:
    """Redirect prints of libraries to standard error within the block, if an envelope is requested."""
    if "--json" not in _options():
        yield
        return
    _call.out = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _call.out = None


def give(result: Result[Any]) -> None:
    """Print a command's result as text, in the envelope or as the last event; then raise what failed, if anything."""
    import typer

    if output_mode.json():
        _call.warnings += tuple(result.warnings)
        _print(result.data, None if result.failed is None else failure(result.failed))
    elif not output_mode.json_lines():
        text = "\n".join(result.lines)
        if text:
            typer.echo(text, err=result.to_stderr)
    elif result.failed is None:
        output_mode.emit({"event": "result", **(result.event or {"data": plain(result.data)})})
    if result.failed is not None:
        raise result.failed


def only_plans() -> None:
    """Raise ConfigError for --json without --plan; a running stage supports --json-lines instead."""
    if output_mode.json():
        raise ConfigError("found --json without --plan, expected both; a run itself speaks JSON with --json-lines")


def refuse(error: Failure) -> None:
    """Print the error that ended the command as JSON, if its options request that."""
    if "--json-lines" in _options():
        write(json.dumps({"event": "error", "error": error.to_json()}, ensure_ascii=False))
    elif "--json" in _options() and not _call.answered:
        _print(None, error)


def failure(error: BaseException) -> Failure:
    """Return the envelope's `error`; its code is that of the nearest class in the MRO that has one."""
    kinds = codes()
    ours = (kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in OURS)
    code = next(kinds[name] for name in ours if name in kinds)
    faults = _faults(error)
    first: TableFault | None = faults[0] if faults else None
    tries = [*dict.fromkeys(fault.remedy for fault in faults), *_commands(error)]
    return Failure(
        code,
        _message(error),
        listed()[code]["exit"],
        at=first.at if first else None,
        expected=first.expected if first else None,
        got=first.got if first else None,
        tries=tuple(tries) if tries else None,
    )


def told(error: BaseException, failed: Failure) -> Iterator[str]:
    """Yield an error as the lines of a terminal: what happened, where, what was expected and found, what to try."""
    if faults := _faults(error):
        yield "error: invalid data" + (f" in {len(faults)} places" if len(faults) > 1 else "")
        for fault in faults:
            yield f"at: {fault.at}"
            yield f"expected {fault.expected}, got {fault.got}"
    else:
        first, *more = failed.message.splitlines()
        unchecked = "note" if failed.code == "UNCHECKED" else "error"  # nothing is wrong as far as was looked
        yield f"{'curate' if failed.exit == interrupts.EXIT else unchecked}: {first}"
        yield from more
    yield from (f"try: {remedy}" for remedy in failed.tries or ())


def _faults(error: BaseException) -> Sequence[TableFault]:
    return error.faults if isinstance(error, TableError) else ()


def _commands(error: BaseException) -> list[str]:
    """Return commands that go on: the refused one with a sufficient `--max-cost`, or with each reading.

    Empty if nothing is to be chosen, or if the cost estimate has no price.
    """
    from curate.llm.exchange_rates import rounded_up  # imported here: most commands never need it

    options = error.options if isinstance(error, UserError) else ()
    rows = error.planned if isinstance(error, BudgetError) else ()
    most = rows[-1].online if rows else None  # of several models the last row is what they come to
    if most is not None:
        options = [["--max-cost", f"{rounded_up(most):.2f}{rows[-1].currency}"]]
    return [shlex.join(["curate", *_without(words[0]), *words]) for words in options]


def _without(option: str) -> Sequence[str]:
    """Return the typed words without an option that is to be given again, unless it may stand several times."""
    typed = [word for word in sys.argv[1:] if option in _REPEATED or not word.startswith(f"{option}=")]
    at = typed.index(option) if option in typed and option not in _REPEATED else len(typed)
    return [*typed[:at], *typed[at + 2 :]]


def retyped_without(flag: str) -> str:
    """Return the typed command line without a flag."""
    return shlex.join(["curate", *(word for word in sys.argv[1:] if word != flag)])


@cache
def listed() -> Mapping[str, Mapping[str, Any]]:
    """Return error code -> its classes, exit code and meaning."""
    from curate.core import safe_yaml

    entries: Mapping[str, Mapping[str, Any]] = safe_yaml.parse(safe_yaml.read(CODES))
    return entries


def codes() -> dict[str, str]:
    """Return name of an error class -> its code."""
    return {name: code for code, entry in listed().items() for name in entry["classes"]}


def plain(content: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value in JSON's types: NaN and infinity as None; paths, dates and keys of mappings as text."""
    if isinstance(content, Record):
        content = content.to_json()
    if isinstance(content, Mapping):
        return {str(key): plain(entry) for key, entry in content.items()}
    if isinstance(content, list | tuple):
        return [plain(entry) for entry in content]
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, date):
        return content.isoformat()
    return str(content) if isinstance(content, PurePath) else content


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if type(error).__name__ == "Abort":  # of typer, which takes long to import
        return "a question was left without an answer; give the options instead, or answer it in a terminal"
    format_message = getattr(error, "format_message", None)  # of the command line's own errors
    return (format_message() if format_message else str(error)) or type(error).__name__


def _options() -> Sequence[str]:
    """Return the command-line arguments before `--`; needed because an error may occur before they are parsed."""
    words = sys.argv[1:]
    return words[: words.index("--")] if "--" in words else words


def _print(content: object, error: Failure | None) -> None:
    from importlib.metadata import version

    _call.answered = True
    envelope = Envelope(error is None, _call.command, version(PACKAGE), plain(content), _call.warnings, error)
    write(json.dumps(envelope.to_json(), ensure_ascii=False, allow_nan=False, indent=1, default=str))


def write(text: str) -> None:
    """Print JSON in UTF-8 in any locale; lone surrogates, as in odd file names, are escaped.

    A broken pipe is ignored, as of `| head`.
    """
    import typer

    try:
        typer.echo(text.encode("utf-8", "backslashreplace"), file=_call.out)
    except BrokenPipeError:  # else the interpreter tries again at its end, and complains
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
