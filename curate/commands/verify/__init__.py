"""`curate verify`: check an export against its manifest and the ledger."""

from pathlib import Path

from curate.commands.verify.verification import Verified, verify
from curate.core.errors import CheckFailed, ConfigError, CurateError, NotFound, Unchecked
from curate.runs.command import Command, argument, option
from curate.runs.running import opened
from curate.view.answers import Result


class VerifyCommand(Command):
    """Recompute labels.

    Files are checked by their digests, and every label is derived again from the ledger. Exit code 0 if everything
    agrees, 1 if anything differs, 3 if nothing differs and some parts, which are named, could not be checked.
    """

    words = "verify"
    examples = ("verify runs/demo/export", "verify my-benchmark --ledger ledger.db")

    folder: Path = argument("Export: a folder with a MANIFEST.json, or the folder `export` of a run.")
    ledger: str | None = option(
        "File or URL of the ledger; default: the one that the working directory uses.", None, metavar="FILE|URL"
    )
    digest: tuple[str, ...] = option(
        "Digest of a published MANIFEST.json, as `curate export` printed it; may be repeated, one per format.",
        (),
        metavar="HEX",
    )
    recorded: tuple[str, ...] = option("Recorded grades of a `replay` judge; may be repeated.", (), metavar="NAME=FILE")

    def result(self) -> Result[list[Verified]]:
        """Return a result per export below the folder: differences, and what was not checked."""
        if not self.folder.is_dir():
            raise NotFound(f"{self.folder}: no such folder; give one that `curate export` wrote, or a run's `export`")
        files: dict[str, Path] = {}
        for assignment in self.recorded:
            name, sign, path = assignment.partition("=")
            if not sign or not Path(path).is_file():
                raise ConfigError(f"--recorded {assignment!r}: expected NAME=FILE, with a file of recorded grades")
            files[name] = Path(path)
        with opened(self.ledger) as store:
            results = verify(self.folder, store, files, [digest.strip().lower() for digest in self.digest])
        different = sum(len(result.differences) for result in results)
        failed: CurateError | None = None
        if different:
            failed = CheckFailed(f"{self.folder}: {_counted(different)}; export again, or ask who changed the files")
        elif unchecked := {unchecked_part for result in results for unchecked_part in result.unchecked}:
            counted = "1 part was" if len(unchecked) == 1 else f"{len(unchecked)} parts were"
            failed = Unchecked(f"{self.folder}: no difference, but {counted} not checked")
        as_given_first = sorted(results, key=lambda result: not result.as_given)
        return Result(results, map(_text, as_given_first), failed=failed)


def _text(result: Verified) -> str:
    verdict = "verified, but for what was not checked" if result.unchecked else "verified"
    if result.as_given:
        verdict = "nothing differs, but for what was not checked"
    as_given = f"; labels as given, confirmed by no panel: {', '.join(result.as_given)}" if result.as_given else ""
    lines = [f"{result.folder}: {_counted(len(result.differences)) if result.differences else verdict}{as_given}"]
    lines += [f"- {line}" for line in result.differences]
    lines += [f"  not checked: {unchecked_part}" for unchecked_part in result.unchecked]
    if result.pairs:
        lines.append(
            f"  {result.pairs:,} judged pairs looked up in the ledger, {result.labels:,} rows of labels derived"
        )
    lines.append(f"  digest: {result.digest}")
    return "\n".join(lines)


def _counted(differences: int) -> str:
    return f"{differences:,} difference{'' if differences == 1 else 's'}"
