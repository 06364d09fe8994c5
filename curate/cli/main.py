"""The `curate` command and its exit codes: 0 done, 2 the user's input is wrong, 130 Ctrl-C, 1 anything else."""

import sys

from curate.cli import stopping


def main() -> None:
    """Run the command line; a user's mistake is a sentence, not a traceback."""
    stopping.listen()  # first of all, for what is imported takes a third of a second
    from curate.cli.group import STOPPED, Stopped

    try:
        code = _ended()
        stopping.end()
    except KeyboardInterrupt:  # while an error was reported
        stopping.end()
        code = None
    if stopping.pressed() and code != stopping.EXIT:  # a library swallowed it, or made another error of it
        complain(Stopped(STOPPED))
        code = stopping.EXIT
    sys.exit(code)


def _ended() -> int | str | None:
    """Run the command that was typed, say what was wrong, and return the exit code."""
    from curate.cli.app import app
    from curate.cli.group import STOPPED, Stopped
    from curate.core.errors import CurateError, Interrupted, UserError

    stopping.begin()
    try:
        app(prog_name="curate")
    except SystemExit as done:
        return done.code
    except UserError as error:
        complain(error)
        return 2
    except (Stopped, Interrupted) as error:
        complain(error)
        return stopping.EXIT
    except (CurateError, OSError) as error:
        complain(error)
        return 1
    except KeyboardInterrupt:  # before a command has begun
        complain(Stopped(STOPPED))
        return stopping.EXIT
    except Exception:  # a library that was interrupted may raise an error of its own
        if not stopping.pressed():
            raise
    return None


def complain(error: BaseException) -> None:
    """Print every line of an error's message to standard error; of one about a file, the file and what is wrong."""
    import typer

    said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    for line in said.splitlines() or [type(error).__name__]:
        typer.echo(f"curate: {line}", err=True)
