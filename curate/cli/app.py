"""The program: all commands together."""

from collections.abc import Callable

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
from curate.cli.group import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because rich takes half of the time that `--help` may take
    help="Turn raw queries and documents into a retrieval benchmark whose labels can be trusted.",
)
app.command("init")(init.init)
stages.add_to(app)
COMMANDS: dict[str, Callable[..., None]] = {
    "verify": verify.verify,
    "embed": embed.embed,
    "status": look.status,
    "show": look.show,
    "audit": audit.audit,
    "train-set": train_set.train_set,
    "agree": agree.agree,
    "analyze": analyze.analyze,
    "evaluate": evaluate.evaluate,
    "anonymise": anonymise.anonymise,
    "recognisers": anonymise.recognisers,
    "doctor": doctor.doctor,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
for group in (review, check, models, ledger):
    group.add_to(app)
