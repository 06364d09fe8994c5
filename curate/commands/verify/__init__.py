"""`curate verify`: an export against its manifest and the ledger."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.runs.options import AsJson
from curate.runs.running import opened
from curate.view.answers import answer

if TYPE_CHECKING:
    from curate.commands.verify.verification import Verified


def verify(
    folder: Annotated[
        Path, typer.Argument(help="Export: a folder with a MANIFEST.json, or the folder `export` of a run.")
    ],
    ledger: Annotated[
        str | None, typer.Option(help="File or URL of the ledger; default: the one that the working directory uses.")
    ] = None,
    recorded: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: recorded grades of a `replay` judge; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an export's files by their digests, and derive every label again from the ledger.

    Exit code 0 if everything agrees, 1 if anything differs, 3 if nothing differs and some parts, which are named, could
    not be checked.
    """
    from curate.commands.verify.verification import verify as compare
    from curate.core.errors import CheckFailed, ConfigError, NotFound, Unchecked

    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder; give one that `curate export` wrote, or a run's `export`")
    files: dict[str, Path] = {}
    for each in recorded or []:
        name, sign, path = each.partition("=")
        if not sign or not Path(path).is_file():
            raise ConfigError(f"--recorded {each!r}: expected NAME=FILE, with a file of recorded grades")
        files[name] = Path(path)
    with opened(ledger) as store:
        found = compare(folder, store, files)
    different = sum(len(one.differences) for one in found)
    failed: CheckFailed | None = None
    if different:
        failed = CheckFailed(f"{folder}: {_counted(different)}; export again, or ask who changed the files")
    elif unchecked := [part for one in found for part in one.unchecked]:
        failed = Unchecked(f"{folder}: not checked: {'; '.join(unchecked)}")
    answer([asdict(one) for one in found], map(_said, found), as_json=as_json, failed=failed)


def _said(found: "Verified") -> str:
    said = "verified, but for what was not checked" if found.unchecked else "verified"
    lines = [f"{found.folder}: {_counted(len(found.differences)) if found.differences else said}"]
    lines += [f"- {line}" for line in found.differences]
    lines += [f"  not checked: {part}" for part in found.unchecked]
    if found.pairs:
        lines.append(f"  {found.pairs:,} judged pairs looked up in the ledger, {found.labels:,} rows of labels derived")
    return "\n".join(lines)


def _counted(differences: int) -> str:
    return f"{differences:,} difference{'' if differences == 1 else 's'}"
