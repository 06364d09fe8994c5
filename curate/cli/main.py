"""Entry point of the `curate` command, and its exit codes: 0 for success, else by class of error (error_codes.yaml)."""

import sys

from curate.system import interrupts


def main() -> None:
    """Run the command line and exit; an error of the user is printed as a sentence, without a traceback."""
    interrupts.listen()  # first of all, for what is imported takes a third of a second
    from curate.core.errors import STOPPED, Stopped

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
    """Run the typed command, report its error, and return the exit code; None if Ctrl-C was pressed.

    No reference to an error is kept, since its traceback would keep open every file that the command had opened.
    """
    from typer import Abort
    from typer.exceptions import TyperException

    from curate.cli.app import app
    from curate.core.errors import STOPPED, CurateError, Stopped
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


def complain(error: BaseException) -> int:
    """Report an error on standard error and, if JSON output was requested, as JSON; return the exit code.

    Printed are what happened, where, what was expected and found there, and what to try; for an error in the program
    its traceback.
    """
    import traceback

    import typer

    from curate.view import answers

    failure = answers.failure(error)
    if failure.code == "INTERNAL":
        traceback.print_exception(error)
    elif show := getattr(error, "show", None):  # of the command line's own errors: with the usage
        show()
    else:
        for line in answers.told(error, failure):
            typer.echo(line, err=True)
    answers.refuse(failure)
    return failure.exit
