"""The program `curate`: registration of all commands, and the option `--version`."""

from collections.abc import Callable
from typing import Annotated

import typer

from curate.cli import stages
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
from curate.view.answers import PACKAGE, answer, begin

PURPOSE = "Turn raw queries and documents into a retrieval benchmark whose labels can be trusted."


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version; with --json, of libraries too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print one JSON object.")] = False,
) -> None:
    """Print the version if that is asked for; else the command that follows runs."""
    if version and context.invoked_subcommand is None:
        begin("version")
        found = _versions()
        answer(found, [f"curate {found['curate']} (Python {found['python']})"], as_json=as_json)
    elif context.invoked_subcommand is None:
        context.fail("Missing command.")
    elif version or as_json:
        option = "--version" if version else "--json"
        context.fail(f"found {option} before a command, expected it alone, or --json behind: curate status --json")


def _versions() -> dict[str, object]:
    """Return the versions of the program, of Python and of all required or optional libraries; None if missing."""
    import platform
    import re
    from importlib.metadata import PackageNotFoundError, requires
    from importlib.metadata import version as installed

    def there(name: str) -> str | None:
        try:
            return installed(name)
        except PackageNotFoundError:
            return None

    needed = (each for each in requires(PACKAGE) or () if "extra == 'dev'" not in each)
    names = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in needed} - {PACKAGE}
    return {
        "curate": installed(PACKAGE),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: there(name) for name in sorted(names)},
    }


# The program: all commands together.

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because rich takes half of the time that `--help` may take
    context_settings={"help_option_names": ["--help", "-h"]},  # of every command below it too
)
app.callback(invoke_without_command=True, help=PURPOSE)(root)
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
