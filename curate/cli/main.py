"""The `curate` command and its exit codes: 0 done, else what `error_codes.yaml` says of the error."""

import math
import shlex
import sys

from curate.system import interrupts


def main() -> None:
    """Run the command line; a user's mistake is a sentence, not a traceback."""
    interrupts.listen()  # first of all, for what is imported takes a third of a second
    from curate.runs.group import STOPPED, Stopped

    try:
        code = _ended()
        interrupts.end()
    except KeyboardInterrupt:  # while an error was reported
        interrupts.end()
        code = None
    if interrupts.pressed() and code != interrupts.EXIT:  # a library swallowed it, or made another error of it
        code = complain(Stopped(STOPPED))
    sys.exit(code)


def _ended() -> int | str | None:
    """Run the command that was typed, say what was wrong, and return the exit code.

    No error is kept, for its traceback keeps every file open that the command had opened.
    """
    from typer import Abort
    from typer.exceptions import TyperException

    from curate.cli.app import app
    from curate.core.errors import CurateError
    from curate.runs.group import STOPPED, Stopped
    from curate.view import answers

    interrupts.begin()
    answers.begin(None)
    try:
        with answers.alone():
            code: int | None = app(prog_name="curate", standalone_mode=False)
    except SystemExit as done:
        return done.code
    except (CurateError, Stopped, OSError, TyperException, Abort) as error:
        return complain(error)
    except KeyboardInterrupt:
        code = interrupts.EXIT
    except Exception as error:  # noqa: BLE001 - a mistake in the program, whose traceback is printed
        if interrupts.pressed():  # a library that was interrupted may raise an error of its own
            return None
        return complain(error)
    return complain(Stopped(STOPPED)) if code == interrupts.EXIT else code  # before a command has begun


def _allowing(error: BaseException) -> list[str]:
    """Return the command that was refused for money with the cap that allows it, where its plan has a price."""
    from curate.core.errors import BudgetError

    rows = error.planned if isinstance(error, BudgetError) else ()
    most = rows[-1].get("online") if rows else None  # of several models the last row is what they come to
    if most is None:
        return []
    cap = f"{math.ceil(most * 100) / 100:.2f}{rows[-1]['currency']}"
    return [f"next: {shlex.join(['curate', *sys.argv[1:], '--max-cost', cap])}"]


def complain(error: BaseException) -> int:
    """Say what was wrong, to people on standard error and to a machine that asked for JSON; return the exit code.

    People read every line of an error's message, of one about a file the file and what is wrong, and a traceback of a
    mistake in the program.
    """
    import typer

    from curate.view import answers

    found = answers.failure(error)
    if found["code"] == "INTERNAL":
        _trace(error)
    elif show := getattr(error, "show", None):  # of the command line's own errors: with the usage
        show()
    else:
        for line in [*str(found["message"]).splitlines(), *_allowing(error)]:
            typer.echo(f"curate: {line}", err=True)
    answers.refuse(found)
    return int(found["exit"])


def _trace(error: BaseException) -> None:
    import traceback

    traceback.print_exception(error)
