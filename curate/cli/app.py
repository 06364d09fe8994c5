"""The program: all commands together."""

from collections.abc import Callable

import typer

from curate.cli import stages, version
from curate.commands import (
    analyze,
    diff,
    doctor,
    embed,
    extend,
    ledger,
    models,
    notes,
    paper,
    pilot,
    ready,
    review,
    schema,
    status,
    tokens,
    verify,
)
from curate.commands.agree import command as agree
from curate.commands.anonymise import command as anonymise
from curate.commands.audit import command as audit
from curate.commands.check import command as check
from curate.commands.evaluate import command as evaluate
from curate.commands.init import command as init
from curate.commands.train import command as train
from curate.commands.train_set import command as train_set
from curate.runs.group import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because rich takes half of the time that `--help` may take
    context_settings={"help_option_names": ["--help", "-h"]},  # of every command below it too
)
app.callback(invoke_without_command=True, help=version.PURPOSE)(version.root)
app.command("init")(init.init)
stages.add_to(app)
COMMANDS: dict[str, Callable[..., None]] = {
    "verify": verify.verify,
    "embed": embed.embed,
    "status": status.status,
    "show": status.show,
    "audit": audit.audit,
    "extend": extend.extend,
    "diff": diff.diff,
    "train-set": train_set.train_set,
    "train": train.train,
    "agree": agree.agree,
    "analyze": analyze.analyze,
    "evaluate": evaluate.evaluate,
    "ready": ready.ready,
    "paper": paper.paper,
    "notes": notes.notes,
    "tokens": tokens.tokens,
    "anonymise": anonymise.anonymise,
    "recognisers": anonymise.recognisers,
    "doctor": doctor.doctor,
    "schema": schema.schema,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
for group in (pilot, review, check, models, ledger):
    group.add_to(app)
