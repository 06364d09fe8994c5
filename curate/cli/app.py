"""The program: all commands together."""

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
from curate.cli.group import Group

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
