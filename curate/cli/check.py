"""`curate check`: can the judges and the pool of a finished run be trusted."""

import typer

from curate.cli import check_pool

check = typer.Typer(no_args_is_help=True, help="Check the judges or the pool of a finished run.")
check_pool.add_to(check)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(check, name="check")
