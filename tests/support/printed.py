"""The commands that a program's output tells its reader to type."""

import re
import shlex
from collections.abc import Iterator

_FORM = re.compile(r"\b(?:[A-Z][A-Z_]+|[A-Z])\b")
"""A word in capitals stands for what its reader alone knows: such a command is a form, and is not run."""
_FAULT = re.compile(r"^at: (.+)\nexpected (.+), got (.+)$", re.MULTILINE)
_QUOTED = re.compile(r"`(curate [^`]+)`")
_NEXT = re.compile(r"(?:\b(?:next|or|try): |^(?:next)?\s+)(curate [a-z].+)$", re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words behind `curate` of each complete command in an output: in backticks, behind `next`, or alone."""
    for said in [*_QUOTED.findall(text), *map(_alone, _NEXT.findall(text))]:
        if not _FORM.search(said):
            yield shlex.split(said)[1:]


def sentences(said: str) -> str:
    """Return what a program said, with each fault of a table in one line: place, found, expected; what to try."""
    tries = "; ".join(line.removeprefix("try: ") for line in said.splitlines() if line.startswith("try: "))
    joined = _FAULT.sub(r"\1: found \3, expected \2", said)
    lines = [line for line in joined.splitlines() if not line.startswith("try: ")]
    return "\n".join(f"{line}; {tries}" if ": found " in line else line for line in lines)


def _alone(line: str) -> str:
    """Return the command of a line, without what explains it behind a colon outside of quotes, or behind blanks."""
    line, quote = line.partition("   ")[0], ""
    for at, sign in enumerate(line):
        if sign in "'\"":
            quote = "" if quote == sign else quote or sign
        if sign == ":" and not quote and line[at + 1 : at + 2] == " ":
            return line[:at]
    return line
