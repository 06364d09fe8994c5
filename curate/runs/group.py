"""Command groups: their help, and their message on Ctrl-C."""

from typing import Any

from typer.core import TyperGroup

from curate.view import answers

STOPPED = "stopped; what was finished is kept, and the same command goes on from there"


class Stopped(Exception):
    """The user pressed Ctrl-C; the message says what was saved and how to resume."""


class CommandGroup(TyperGroup):
    """A command with commands of its own."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own copy of click has them
        """List every command with its first sentence, which typer would cut off at the end of a line."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and command.help:
                command.short_help = command.help.split("\n\n")[0]
        super().format_commands(ctx, formatter)

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
