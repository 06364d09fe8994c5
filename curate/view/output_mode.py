"""Output mode of a command: text, no progress (`--quiet`), or JSON (`--json-lines`)."""

import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress and no news; results and errors still.")]
AsLines = Annotated[
    bool, typer.Option("--json-lines", help="Print progress, news and the result as one JSON object per line.")
]


class _Mode:
    quiet = json_lines = False
    result: dict[str, Any]


_mode = _Mode()
_writing = threading.Lock()


def begin(*, quiet: bool = False, json_lines: bool = False) -> None:
    """Set the output mode of a command at its start."""
    _mode.quiet, _mode.json_lines, _mode.result = quiet, json_lines, {}


def quiet() -> bool:
    """Return whether progress and notices are hidden."""
    return _mode.quiet


def json_lines() -> bool:
    """Return whether standard output consists of JSON objects with an `event`, one per line."""
    return _mode.json_lines


def emit(event: Mapping[str, Any]) -> None:
    """Print an event as a line of JSON on standard output and flush; thread-safe."""
    line = json.dumps(event, ensure_ascii=False) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def put(result: Mapping[str, Any], text: str, *, err: bool = False) -> None:
    """Print part of a command's result as text, or with `--json-lines` add it to the final event, `result`."""
    if json_lines():
        _mode.result.update(result)
    else:
        typer.echo(text, err=err)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command with the options `--quiet` and `--json-lines`, and emit its result as the last event."""

    @wraps(command)
    def reported(*args: Any, quiet: bool = False, json_lines: bool = False, **options: Any) -> None:  # noqa: ANN401
        begin(quiet=quiet, json_lines=json_lines)
        command(*args, **options)
        if json_lines:
            emit({"event": "result", **_mode.result})

    options = {"quiet": Quiet, "json_lines": AsLines}
    signature = inspect.signature(command)
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in options.items()
    ]
    reported.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *parameters])  # type: ignore[attr-defined]
    reported.__annotations__ = {**command.__annotations__, **options}
    return reported
