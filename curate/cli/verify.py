"""`curate verify`: an export against its manifest and the ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.cli.ledger import opened

if TYPE_CHECKING:
    from curate.verifying import Verified


def add_to(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("verify")(verify)


def verify(
    folder: Annotated[Path, typer.Argument(help="An export: a folder with a MANIFEST.json, or a run's `export`.")],
    ledger: Annotated[str | None, typer.Option(help="File or URL of the ledger; else that of this folder.")] = None,
    recorded: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE of a judge that replayed grades; may be repeated.")
    ] = None,
) -> None:
    """Check an export's files, and derive every label again from the ledger; exit code 1 if anything differs."""
    from curate.errors import UserError
    from curate.verifying import verify as compare

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one that `curate export` wrote, or a run's `export`")
    files: dict[str, Path] = {}
    for each in recorded or []:
        name, sign, path = each.partition("=")
        if not sign or not Path(path).is_file():
            raise UserError(f"--recorded {each!r}: expected NAME=FILE, with a file of recorded grades")
        files[name] = Path(path)
    with opened(ledger) as store:
        found = compare(folder, store, files)
    for one in found:
        typer.echo(_said(one))
    raise typer.Exit(any(one.differences for one in found))


def _said(found: "Verified") -> str:
    lines = [
        f"{found.folder}: {len(found.differences)} differences" if found.differences else f"{found.folder}: verified"
    ]
    lines += [f"- {line}" for line in found.differences]
    if found.pairs:
        lines.append(f"  {found.pairs:,} judged pairs looked up in the ledger, {found.labels:,} rows of labels derived")
    else:
        lines.append("  only the files were compared: labels of this format are not read")
    if found.by_experts:
        lines.append(
            f"  {found.by_experts:,} labels are experts', which no ledger holds: the manifest vouches for them"
        )
    return "\n".join(lines)
