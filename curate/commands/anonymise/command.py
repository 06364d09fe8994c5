"""`curate anonymise`: mask personal data in a user's files; `curate recognisers`: list what is searched for."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from curate.core.errors import ConfigError, Stopped
from curate.pii.settings import RecogniserRow, listing
from curate.runs.command import Command, Names, argument, option, setting
from curate.tables.readers.encoding import Encoding
from curate.view import output_mode
from curate.view.answers import Result

if TYPE_CHECKING:
    from curate.commands.anonymise.file import Done
    from curate.commands.anonymise.settings import MaskRequest


class AnonymiseCommand(Command):
    """Mask PII in a file.

    JSONL, CSV, TSV, Parquet or text; all else in it stays unchanged.
    """

    words = "anonymise"
    examples = ("anonymise chats.jsonl masked.jsonl", "anonymise notes.csv masked.csv --field note --mode pseudonym")
    speaks_json = False

    source: str = argument("The file to mask; - for standard input.", metavar="IN")
    target: str = argument("Where to write it; - for standard output.", metavar="OUT")
    field: tuple[str, ...] = option(
        "Field with text, such as note or messages.content; may be repeated. Default: text, title.", (), metavar="NAME"
    )
    format: Literal["jsonl", "csv", "tsv", "parquet", "text"] | None = option(
        "Text has one text per line; default: by the file name.", None
    )
    mode: Literal["placeholder", "pseudonym", "tag"] | None = option(
        "Pseudonyms are invented, equal values get equal ones; tags have the same length.", None
    )
    recognisers: Names = option(
        "Names of recognisers, separated by commas; default: all that `curate recognisers` lists.", (), metavar="NAMES"
    )
    without: Names = option("Names of recognisers to leave out, separated by commas.", (), metavar="NAMES")
    words_file: Path | None = option(
        "Text file with more words to mask, one per line.", None, flag="--words", metavar="FILE"
    )
    config: Path | None = option(
        "YAML with the settings of the stage `mask`: patterns and words of your own.", None, metavar="FILE"
    )
    spans: bool = option("Write the masked spans: a key `spans` in JSONL, else a file OUT.spans.jsonl.", False)
    allow_residual: bool = option("Write OUT even if something still looks like personal data.", False)
    context: bool = option("Print the text around such places, on standard error.", False)
    force: bool = option("Overwrite OUT.", False)
    placeholders: str | None = setting("Language of the placeholders: zh or en.", None)
    spans_key: str | None = setting(
        "Key of the spans; default: `spans`, or `pii_spans` where a row has `spans` already.", None
    )
    encoding: Encoding | Literal["auto"] = setting("Encoding of the file.", "auto")
    on_error: Literal["stop", "drop"] = option("What to do with rows that cannot be read.", "stop")
    allow_missing: bool = setting("Allow rows that lack a field.", False)
    processes: int | None = setting("Number of parallel processes; default: all cores for long files.", None, ge=1)

    def result(self) -> Result[Any]:
        """Mask the file; return counts of texts, spans and places that may hold residual PII."""
        from curate.commands.anonymise.file import WithheldError, anonymise
        from curate.pii.pseudonyms import secret
        from curate.pipeline.stage import home

        if output_mode.json_lines() and self.target == "-":
            raise ConfigError("--json-lines: both the events and OUT would go to standard output; give a file for OUT")
        request = self._request()
        key = secret(home()) if request.masking.mode == "pseudonym" else b""
        try:
            summary = anonymise(request, key, self.progress)
        except WithheldError as error:
            for line in _residual(error.done, context=self.context):
                typer.echo(line, err=True)
            raise
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
            typer.echo("curate: the reader of the output closed it; it is not whole", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise Stopped("stopped; nothing was written" if request.target != "-" else "stopped half-way") from None
        counts = {name: getattr(summary, name) for name in ("texts", "changed", "numbers", "dropped", "spared")}
        result = {"out": request.target, **counts, "spans": dict(summary.spans), "residual": summary.reasons.total()}
        lines = [*_residual(summary, context=self.context), _sentence(summary)]
        return Result(result, lines, event=result, to_stderr=True)

    def _request(self) -> "MaskRequest":
        from curate.commands.anonymise.settings import Fields, MaskRequest, masking

        return MaskRequest(
            self.source,
            self.target,
            masking=masking(
                self.config,
                self.words_file,
                mode=self.mode,
                placeholders=self.placeholders,
                recognisers=list(self.recognisers) or None,
                without=list(self.without) or None,
            ),
            fields=Fields.of(self.field, missing=self.allow_missing),
            format=self.format,
            encoding=self.encoding,
            spans=self.spans,
            spans_key=self.spans_key,
            allow_residual=self.allow_residual,
            drop=self.on_error == "drop",
            force=self.force,
            processes=self.processes,
        )


def _residual(summary: "Done", *, context: bool) -> Iterator[str]:
    """Yield a line per passage with possible residual PII; `context` adds excerpts."""
    for residue in summary.left:
        name = f", {residue.field}" if residue.field else ""
        text_around = f"  {residue.excerpt}" if context else ""
        yield f"{residue.row}{name}, {residue.start}-{residue.end}: {residue.reason}{text_around}"
    if unlisted := summary.reasons.total() - len(summary.left):
        yield f"and {unlisted:,} places more"


def _sentence(summary: "Done") -> str:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(summary.spans.items()))
    clauses = [f"{summary.texts:,} texts, {summary.changed:,} of them changed", f"spans: {kinds or 'none'}"]
    clauses += [f"{summary.numbers:,} numbers in their place stay as they are"] if summary.numbers else []
    clauses += [f"{summary.dropped:,} rows dropped that could not be read"] if summary.dropped else []
    clauses += [f"{summary.spared:,} rows had a key `spans`, so theirs is `pii_spans`"] if summary.spared else []
    clauses += [f"{summary.reasons.total():,} places still look like personal data"] if summary.reasons else []
    return "; ".join(clauses)


class RecognisersCommand(Command):
    """List PII recognisers.

    Their names, their kinds, and what each of them matches.
    """

    words = "recognisers"
    examples = ("recognisers", "recognisers --json")

    def result(self) -> Result[list[RecogniserRow]]:
        """Return a row per recogniser."""
        rows = listing()
        widths = [max(map(len, column)) for column in zip(*((row.recogniser, row.kind) for row in rows), strict=True)]
        return Result(rows, (f"{row.recogniser:{widths[0]}}  {row.kind:{widths[1]}}  {row.finds}" for row in rows))
