"""Output mode of a command: text, no progress (`--quiet`), or JSON (`--json`, `--json-lines`)."""

import sys
import threading
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

OPTIONS = {"--json": "json", "--json-lines": "json_lines", "--quiet": "quiet"}
"""Option of every command -> the mode that it switches on."""


class _Mode:
    quiet = json = json_lines = False


_mode = _Mode()
_writing = threading.Lock()


def taken_from(words: Sequence[str]) -> list[str]:
    """Set the mode of a command by the options among its words, and return the other words.

    Words behind `--` are no options.
    """
    end = words.index("--") if "--" in words else len(words)
    for name, mode in OPTIONS.items():
        setattr(_mode, mode, name in words[:end])
    return [word for word in words[:end] if word not in OPTIONS] + list(words[end:])


def quiet() -> bool:
    """Return whether progress and notices are hidden."""
    return _mode.quiet


def json() -> bool:
    """Return whether standard output is one JSON object."""
    return _mode.json


def json_lines() -> bool:
    """Return whether standard output consists of JSON objects with an `event`, one per line."""
    return _mode.json_lines


def emit(event: Mapping[str, Any]) -> None:
    """Print an event as a line of JSON on standard output and flush; thread-safe."""
    line = dumps(event, ensure_ascii=False) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()
