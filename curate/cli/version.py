"""`curate --version`: the versions of the program, of Python and of the libraries that it depends on."""

from typing import Annotated

import typer

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
    """Return the versions of the program, Python and all required or optional libraries; None if not installed."""
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
