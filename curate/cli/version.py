"""`curate --version`: the versions of the program and of what its answers depend on."""

from typing import Annotated

import typer

from curate import __version__
from curate.cli.envelope import answer, begin

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
        import platform

        python = platform.python_version()
        begin("version")
        data = {"curate": __version__, "python": python, "platform": platform.platform(), "packages": _packages()}
        answer(data, [f"curate {__version__} (Python {python})"], as_json=as_json)
    elif context.invoked_subcommand is None:
        context.fail("Missing command.")
    elif version or as_json:
        option = "--version" if version else "--json"
        context.fail(f"found {option} before a command, expected it alone, or --json behind: curate status --json")


def _packages() -> dict[str, str | None]:
    """Return package that the program or one of its extras needs -> installed version; None if it is not there."""
    import re
    from importlib.metadata import PackageNotFoundError, requires
    from importlib.metadata import version as installed

    def there(name: str) -> str | None:
        try:
            return installed(name)
        except PackageNotFoundError:
            return None

    needed = requires("curate-ir") or () if there("curate-ir") else ()  # a checkout need not be installed
    names = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in needed if "extra == 'dev'" not in each}
    return {name: there(name) for name in sorted(names - {"curate-ir"})}
