"""The program `curate`: groups and commands, made from the index when they are named, and `--version`."""

import inspect
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from typer.core import TyperCommand, TyperGroup

from curate.core.errors import STOPPED, Stopped
from curate.runs import completing
from curate.runs.index import GROUPS, Entry, load
from curate.view import answers, output_mode

PURPOSE = "Turn raw queries and documents into a retrieval benchmark whose labels can be trusted."
TYPES: dict[str, Any] = {"flag": bool, "integer": int, "number": float, "text": str, "path": Path}
METAVARS = {"integer": "N", "number": "X", "text": "TEXT", "path": "PATH"}
OUTPUT = [
    ("--json", "Print one JSON object instead of text."),
    ("--json-lines", "Print progress, news and the result as one JSON object per line."),
    ("--quiet", "Print no progress and no news; results and errors still."),
]
"""Options of every command; they may stand anywhere."""


class IndexedCommand(TyperCommand):
    """A command whose options and help are those of an entry of the index."""

    entry: Entry

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own copy of click has them
        """Parse the arguments; an option that the version before had is refused with what to type instead."""
        for word in args if not ctx.resilient_parsing else ():
            flag = word.partition("=")[0]
            if successor := self.entry["removed"].get(flag):
                ctx.fail(f"{flag} is a setting: type {successor}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write examples, arguments, and options under their headings."""
        write_options(self.entry, formatter)


class Group(TyperGroup):
    """The program, or a word with several commands behind it; a command is made when it is asked for."""

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Return name -> entry of the index of each command below; for a word of several, that of the first one."""
        is_root = self.name not in GROUPS
        entries: dict[str, Entry] = {}
        for entry in load():
            first, *further = entry["words"].split()
            if is_root:
                entries.setdefault(first, entry)
            elif first == self.name and further:
                entries[further[0]] = entry
        return entries

    @property
    def commands(self) -> dict[str, Any]:
        """Return all commands, made now; for programs that walk over them."""
        return {name: self.get_command(None, name) for name in self.entries}

    @commands.setter
    def commands(self, _commands: object) -> None:
        """Ignore what typer registers, since the index has all commands."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """Return the names of the commands in the order of the help."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        """Return a command or a group of several; None for an unknown name."""
        if cmd_name not in self.entries:
            return None
        is_group = cmd_name in GROUPS and self.name not in GROUPS
        return _group(cmd_name) if is_group else _question(self.entries[cmd_name])

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the options and, under the headings of the index, every command with its first sentence."""
        group_entry = next((entry for entry in load() if entry["words"] == self.name), None)
        if group_entry is None:
            records = [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))]
            with formatter.section("Options"):
                formatter.write_dl(records)
        else:
            write_options(group_entry, formatter)
        width = max(map(len, self.entries))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            heading = "Commands" if self.name in GROUPS else entry["panel"]
            text = GROUPS[name] if name in GROUPS and self.name not in GROUPS else entry["help"]
            panels.setdefault(heading, []).append((name.ljust(width), text.partition("\n\n")[0]))
        for heading, rows in panels.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        if self.name not in GROUPS:
            with formatter.section("Output, of every command"):
                formatter.write_dl(OUTPUT)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the arguments; those of the output hold for the command that they are typed with, wherever they are."""
        if ctx.parent is None:
            args = output_mode.taken_from(args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401
        """Return the command that the arguments name, and record its name for the JSON output."""
        name, command, remaining = super().resolve_command(ctx, args)
        answers.begin(f"{ctx.command_path} {name}".removeprefix(f"{ctx.find_root().command_path} "))
        return name, command, remaining

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run a command; Stopped on Ctrl-C, since typer would exit without a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Stopped("\n".join(getattr(error, "__notes__", [STOPPED]))) from error


def write_options(entry: Entry, formatter: Any) -> None:  # noqa: ANN401
    """Write the part of a command's help below its description."""
    if entry["examples"]:
        with formatter.section("Examples"):
            formatter.write("".join(f"  curate {example}\n" for example in entry["examples"]))
    records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for option in entry["options"]:
        heading = "Arguments" if option["as"] == "argument" else option.get("group", "Options")
        records.setdefault(heading, []).append(_record(option))
    records["Output"] = [*(OUTPUT if entry["json"] else OUTPUT[1:]), ("-h, --help", "Show this message and exit.")]
    for heading, rows in records.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    if entry["settings"]:
        with formatter.section("Settings, by --set NAME=VALUE"):
            formatter.write_text(", ".join(entry["settings"].values()))


def _record(option: Entry) -> tuple[str, str]:
    """Return how an option or argument is typed, and what it is, with default and bounds."""
    name = _metavar(option) or ""
    if option["as"] == "option":
        choices = "|".join(option.get("choices", ()))
        name = f"{option['flag'].replace(',', ', ').replace('/', ' / ')} {name or choices}".rstrip()
    low, high = option.get("ge"), option.get("le")
    notes = [f"default: {option['default']}"] if option.get("default") not in (None, True, False) else []
    if low is not None:
        notes.append(f"{low:g} or more" if high is None else f"{low:g} to {high:g}")
    notes += ["required"] if option["as"] == "option" and "required" in option else []
    return name, f"{option['help']}  [{'; '.join(notes)}]" if notes else option["help"]


def _metavar(option: Entry) -> Any:  # noqa: ANN401 - of the index
    """Return how the value of an option or argument is called in the help; None for a flag and for choices."""
    if option["as"] == "argument":
        name = option["name"].upper()
        return option.get("metavar") or (name if "required" in option else f"[{name}]")
    if option["type"] == "flag" or "choices" in option:
        return None
    return option.get("metavar") or METAVARS[option["type"]]


def _question(entry: Entry) -> TyperCommand:
    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    name = entry["words"].split()[-1]
    program.command(name, cls=IndexedCommand, help=entry["help"])(_function(entry))
    command = cast("IndexedCommand", typer.main.get_command(program))
    command.entry = entry
    return command


def _group(name: str) -> TyperGroup:
    """Return a group; the options of the command of the same word, such as `models`, are the group's."""
    group_entry = next((entry for entry in load() if entry["words"] == name), None)
    program = typer.Typer(cls=Group, name=name, add_completion=False, rich_markup_mode=None, help=GROUPS[name])
    callback = _function(group_entry) if group_entry else lambda: None
    program.callback(invoke_without_command=group_entry is not None, no_args_is_help=group_entry is None)(callback)
    return typer.main.get_group(program)


def _function(entry: Entry) -> Callable[..., None]:
    """Return the function that typer makes a command of: its signature has the options of the entry."""

    def run(click_context: typer.Context, **options: Any) -> None:  # noqa: ANN401
        if click_context.invoked_subcommand is None:
            from curate.cli.execute import execute

            execute(entry, options)

    parameters = [
        inspect.Parameter("click_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *map(_parameter, entry["options"]),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(option: Entry) -> inspect.Parameter:
    """Return the parameter of a function that typer makes an option or an argument of."""
    kind: Any = Literal[tuple(option["choices"])] if "choices" in option else TYPES[option["type"]]
    if "many" in option:
        kind = list[kind]
    if "values" in option:
        of_several: Any = tuple
        kind = of_several[(kind,) * option["values"]]
    if "required" not in option and "default" not in option and option["type"] != "flag":
        kind = kind | None
    complete = getattr(completing, option["complete"]) if "complete" in option else None
    settings: dict[str, Any] = {"help": option["help"], "autocompletion": complete, "metavar": _metavar(option)}
    if option["as"] == "argument":
        declared: Any = typer.Argument(**settings)
    else:
        settings |= {"min": option.get("ge"), "max": option.get("le")}
        declared = typer.Option(*option["flag"].split(","), **settings)
    default = inspect.Parameter.empty if "required" in option else option.get("default")
    if option["type"] == "flag":
        default = option.get("default", False)
    return inspect.Parameter(
        option["name"], inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared]
    )


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version; with --json, of libraries too.")
    ] = False,
) -> None:
    """Print the version if that is asked for; else the command that follows runs."""
    if context.invoked_subcommand is not None:
        if version:
            context.fail("found --version before a command, expected it alone")
        return
    if not version:
        context.fail("Missing command.")
    from curate.cli.execute import print_versions

    print_versions()


app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because rich takes half of the time that `--help` may take
    context_settings={"help_option_names": ["--help", "-h"]},  # of every command below it too
)
app.callback(invoke_without_command=True, help=PURPOSE)(root)
