"""`curate verify`: check an export against its manifest and the ledger."""

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
    for assignment in recorded or []:
        name, sign, path = assignment.partition("=")
        if not sign or not Path(path).is_file():
            raise ConfigError(f"--recorded {assignment!r}: expected NAME=FILE, with a file of recorded grades")
        files[name] = Path(path)
    with opened(ledger) as store:
        results = compare(folder, store, files)
    different = sum(len(result.differences) for result in results)
    failed: CheckFailed | None = None
    if different:
        failed = CheckFailed(f"{folder}: {_counted(different)}; export again, or ask who changed the files")
    elif unchecked := [unchecked_part for result in results for unchecked_part in result.unchecked]:
        failed = Unchecked(f"{folder}: not checked: {'; '.join(unchecked)}")
    answer([asdict(result) for result in results], map(_text, results), as_json=as_json, failed=failed)


def _text(result: "Verified") -> str:
    verdict = "verified, but for what was not checked" if result.unchecked else "verified"
    lines = [f"{result.folder}: {_counted(len(result.differences)) if result.differences else verdict}"]
    lines += [f"- {line}" for line in result.differences]
    lines += [f"  not checked: {unchecked_part}" for unchecked_part in result.unchecked]
    if result.pairs:
        lines.append(
            f"  {result.pairs:,} judged pairs looked up in the ledger, {result.labels:,} rows of labels derived"
        )
    return "\n".join(lines)


def _counted(differences: int) -> str:
    return f"{differences:,} difference{'' if differences == 1 else 's'}"
