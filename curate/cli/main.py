"""The `curate` command and its exit codes: 0 done, 2 the user's input is wrong, 130 Ctrl-C, 1 anything else."""

import sys

import typer

from curate.cli import (
    agree,
    analyze,
    anonymise,
    audit,
    check,
    doctor,
    embed,
    evaluate,
    init,
    ledger,
    look,
    models,
    review,
    stages,
    train_set,
    verify,
)
from curate.cli.group import STOPPED, Group, Stopped
from curate.errors import CurateError, UserError

INTERRUPTED = 130
"""What a shell gives for a program that Ctrl-C ended."""

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because rich takes half of the time that `--help` may take
    help="Turn raw queries and documents into a retrieval benchmark whose labels can be trusted.",
)
init.add_to(app)
stages.add_to(app)
verify.add_to(app)
embed.add_to(app)
look.add_to(app)
audit.add_to(app)
train_set.add_to(app)
agree.add_to(app)
review.add_to(app)
check.add_to(app)
analyze.add_to(app)
evaluate.add_to(app)
models.add_to(app)
ledger.add_to(app)
anonymise.add_to(app)
doctor.add_to(app)


def main() -> None:
    """Run the command line; a user's mistake is a sentence, not a traceback."""
    try:
        app(prog_name="curate")
    except UserError as error:
        complain(error)
        sys.exit(2)
    except Stopped as error:
        complain(error)
        sys.exit(INTERRUPTED)
    except (CurateError, OSError) as error:
        complain(error)
        sys.exit(1)
    except KeyboardInterrupt:  # before a command has begun
        complain(Stopped(STOPPED))
        sys.exit(INTERRUPTED)


def complain(error: BaseException) -> None:
    """Print every line of an error's message to standard error; of one about a file, the file and what is wrong."""
    said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    for line in said.splitlines() or [type(error).__name__]:
        typer.echo(f"curate: {line}", err=True)
