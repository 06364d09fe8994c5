"""Messages of calls from Python: they name arguments where the command line names options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from curate.core.errors import CurateError
from curate.runs.index import load

_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z]|t)"
    r"(?:[ =](?P<value>\w[\w.]*=(?:\[[^\]]*\]|[^\s;,]*)|[^\s;,:]+(?:,[^\s;,:]+)+|[A-Z\d][^\s;,:]*))?"
)
"""An option in a message, with the word behind it if that looks like its value.

That is a setting, names separated by commas, a placeholder, or a number.
"""


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
        own = value and "." not in key  # a setting of the command, not of a pipeline
        return f"{key}={text}" if own else f"settings={{{key!r}: {text}}}"
    if name in _flags():
        return f"{name}=True"
    if value and ("," in value or "=" in value):
        return f'{name}="{value}"'
    return f"{name}={value}" if value else name


@cache
def _flags() -> frozenset[str]:
    """Return the options that have a value with no command."""
    options = [option for entry in load() for option in entry["options"]]
    flags, others = (
        {option["name"] for option in options if (option["type"] == "flag") == flag} for flag in (True, False)
    )
    return frozenset(flags - others)
