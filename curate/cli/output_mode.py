"""What a command prints while it works: bars and news, nothing (`--quiet`), or one JSON object per line."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from curate.core.config import Json

Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress and no news; results and errors still.")]
AsLines = Annotated[
    bool,
    typer.Option("--json-lines", help="Print progress, news and the result as one JSON object per line."),
]


class _Mode:
    quiet = json_lines = False


_mode = _Mode()


def begin(*, quiet: bool = False, json_lines: bool = False) -> None:
    """Set what the command that begins now prints."""
    _mode.quiet, _mode.json_lines = quiet, json_lines


def quiet() -> bool:
    """Say whether progress and news are left out."""
    return _mode.quiet


def json_lines() -> bool:
    """Say whether standard output is for a machine: every line of it is one JSON object with an `event`."""
    return _mode.json_lines


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options `--quiet` and `--json-lines`."""

    @wraps(command)
    def reported(*args: Any, quiet: bool = False, json_lines: bool = False, **given: Any) -> None:  # noqa: ANN401
        begin(quiet=quiet, json_lines=json_lines)
        command(*args, **given)

    options = {"quiet": Quiet, "json_lines": AsLines}
    signature = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in options.items()
    ]
    reported.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    reported.__annotations__ = {**command.__annotations__, **options}
    return reported


def finish(result: "Mapping[str, Json]", text: str) -> None:
    """Print what a command made: as text, or as the last event, `result`."""
    typer.echo(json.dumps({"event": "result", **result}, ensure_ascii=False) if json_lines() else text)
