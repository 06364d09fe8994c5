"""Errors of calls from Python: they name arguments where the command line names options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from curate.core.errors import CurateError

_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z]|t)"
    r"(?:[ =](?P<value>\w+\.[\w.]+=(?:\[[^\]]*\]|[^\s;,]*)|[A-Z\d][^\s;,:]*))?"
)
"""An option in a message, with the word behind it if that looks like its value: a setting, a placeholder, a number."""
_FLAGS = {"yes", "batch", "offline", "retry", "force", "plan", "allow_weak_judges"}
"""Options without a value."""


@contextmanager
def python_errors() -> Iterator[None]:
    """Name arguments instead of options in the messages of errors."""
    try:
        yield
    except CurateError as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise


def in_python(message: str) -> str:
    """Return a message with the options of the command line as arguments: `--max-cost AMOUNT` as `max_cost=AMOUNT`.

    Commands to type, which begin with `curate`, stay as they are.
    """
    segments = re.split(r"(`[^`]*`|\bcurate [a-z][^;,`\n]*)", message)
    return "".join(
        segment if number % 2 else _OPTION.sub(_argument, segment) for number, segment in enumerate(segments)
    )


def _argument(option: re.Match[str]) -> str:
    name, value = option["name"].replace("-", "_"), option["value"]
    if name == "set":
        key, _, text = (value or "KEY=VALUE").partition("=")
        return f"settings={{{key!r}: {text}}}"
    if name in _FLAGS:
        return f"{name}=True"
    return f"{name}={value}" if value else name
