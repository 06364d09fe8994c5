"""`curate anonymise`: mask personal data in a user's files; `curate recognisers`: list what is searched for."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from io import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, get_args

import typer

from curate.commands.anonymise import delimited, jsonl, pieces
from curate.commands.anonymise.columnar import ColumnarFile
from curate.commands.anonymise.jsonl import KEY, SPARE
from curate.commands.anonymise.pieces import HEAD, Fields, Piece, RawText
from curate.commands.anonymise.tally import Chunk, Lines, MaskingSummary, MaskingTally
from curate.commands.anonymise.workbook import Workbook
from curate.core.config import check, read_yaml
from curate.core.errors import ConfigError, DataError, RunFailed, Stopped, UserError
from curate.core.progress import StepLabel, waiting
from curate.pii.masking import Masked
from curate.pii.pseudonyms import secret
from curate.pii.settings import CustomWords, Masking, RecogniserRow, listing, masker, untouched
from curate.pii.texts import Batch, mask_batches
from curate.pipeline.stage import home
from curate.runs.command import Command, Names, argument, option, setting
from curate.runs.options import OnTable
from curate.system.files import BATCH, replacing
from curate.system.processes import cores
from curate.system.run_lock import FULL
from curate.tables.readers import Problem
from curate.tables.readers.encoding import Encoding, TextFile, ending, opened, packed
from curate.tables.readers.file import BINARY, ENDINGS
from curate.tables.readers.parquet import Columnar
from curate.view import output_mode
from curate.view.answers import Result

Format = Literal["jsonl", "csv", "tsv", "parquet", "arrow", "xlsx", "text"]
PIPE = "-"
"""Path that means standard input or standard output."""
_ENDINGS: dict[str, Format] = {
    **{
        end: format_
        for end, format_ in ENDINGS.items()
        if format_ in ("jsonl", "csv", "tsv", "parquet", "arrow", "xlsx")
    },
    **dict.fromkeys((".txt", ".text", ".md", ".log"), "text"),
}
_NAME_ENCODING = "name what it is, as in --set encoding=gb18030"
_CHARACTERS = 1 << 20
"""Length, in bytes, from which no more rows are added to a chunk."""
SomeChunk = TypeVar("SomeChunk", bound=Chunk)
Mask = Callable[..., Iterator[tuple[Any, list[Masked]]]]
"""Chunks, language and length of a file -> the chunks with their masked texts."""


class WithheldError(RunFailed):
    """The file was not written because of possible residual PII."""

    def __init__(self, summary: MaskingSummary, target: str) -> None:
        self.summary = summary
        destination = "standard output" if target == PIPE else target
        super().__init__(
            f"{destination}: was not written, for {summary.reasons.total():,} places still look like personal data; "
            "mask them by --words FILE or patterns in --config FILE, or write it with --allow-residual"
        )


class AnonymiseCommand(OnTable):
    """Mask PII in a file.

    JSON, JSONL, CSV, TSV, .xlsx, Parquet, Arrow or text, also packed; all else in it stays unchanged.
    """

    words = "anonymise"
    examples = ("anonymise chats.jsonl masked.jsonl", "anonymise notes.csv masked.csv --field note --mode pseudonym")
    speaks_json = False

    source: str = argument("The file to mask; - for standard input.", metavar="IN")
    target: str = argument("Where to write it; - for standard output.", metavar="OUT")
    field: tuple[str, ...] = option(
        "Field with text, such as note or messages.content; may be repeated. Default: text, title, else by name.",
        (),
        metavar="NAME",
    )
    format: Format | None = option("Text has one text per line; default: by the file name.", None)
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
        if output_mode.json_lines() and self.target == PIPE:
            raise ConfigError("--json-lines: both the events and OUT would go to standard output; give a file for OUT")
        try:
            summary = anonymise(self)
        except WithheldError as error:
            for line in _residual(error.summary, context=self.context):
                typer.echo(line, err=True)
            raise
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
            typer.echo("curate: the reader of the output closed it; it is not whole", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise Stopped("stopped; nothing was written" if self.target != PIPE else "stopped half-way") from None
        counts = {name: getattr(summary, name) for name in ("texts", "changed", "numbers", "dropped", "spared")}
        result = {"out": self.target, **counts, "spans": dict(summary.spans), "residual": summary.reasons.total()}
        lines = [*_residual(summary, context=self.context), _sentence(summary)]
        return Result(result, lines, event=result, to_stderr=True)

    def masking(self) -> Masking:
        """Return the settings in `config`, with those of the options; ConfigError if both have a list `words`."""
        settings = dict(read_yaml(self.config)) if self.config else {}
        changes = {
            "mode": self.mode,
            "placeholders": self.placeholders,
            "recognisers": list(self.recognisers) or None,
            "without": list(self.without) or None,
        }
        settings |= {name: change for name, change in changes.items() if change is not None}
        checked = check(Masking, settings, str(self.config) if self.config else "anonymise")
        if self.words_file is None:
            return checked
        if "words" in checked.words:
            raise ConfigError(f"{self.config}: words.words: is the name that --words has; choose another one")
        return checked.model_copy(update={"words": {**checked.words, "words": CustomWords(file=self.words_file)}})

    @property
    def text_fields(self) -> Fields:
        """Return the fields with texts."""
        return Fields.of(self.field, self.notify, missing=self.allow_missing)

    @property
    def kind(self) -> Format:
        """Return the format: `format`, else by the ending of the input's name, else of the output's; or ConfigError."""
        candidates = [self.format, *(_ending(name) for name in (self.source, self.target) if name != PIPE)]
        if kind := next((candidate for candidate in candidates if candidate), None):
            return kind
        names = ", ".join(get_args(Format))
        if Path(self.source).suffix.lower() in (".xz", ".zip"):
            raise ConfigError(
                f"{self.source}: is packed; unpack it into the command: "
                f"xz -dc FILE | curate anonymise - OUT --format FORMAT, of {names}"
            )
        path = "standard input" if self.source == PIPE else self.source
        raise ConfigError(f"{path}: its format is not known; name one with --format: {names}")

    @property
    def source_name(self) -> str:
        """Return the name of the source in error messages, before the line number."""
        return "standard input" if self.source == PIPE else self.source

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys for the spans in a JSONL row, the preferred one first; empty without `spans` or JSONL."""
        if not self.spans or self.kind != "jsonl":
            return ()
        return (KEY, SPARE) if self.spans_key is None else (self.spans_key,)

    @property
    def sidecar(self) -> str | None:
        """Return the path of the sidecar file for spans; None if there is none."""
        has_sidecar = self.spans and self.kind != "jsonl" and self.target != PIPE
        return f"{self.target}.spans.jsonl" if has_sidecar else None


def _ending(name: str) -> Format | None:
    return _ENDINGS.get(ending(Path(name))[0])


def _refuse(command: AnonymiseCommand) -> None:
    """Raise ConfigError or UserError if the options do not fit one another, or a path cannot be read or written."""
    if command.source != PIPE and not Path(command.source).is_file():
        what = "is a folder" if Path(command.source).is_dir() else "no such file"
        raise DataError(f"{command.source}: {what}; give a file, or - for standard input")
    _refuse_target(command)
    for name in (command.source, command.target):
        if command.kind in BINARY and ending(Path(name))[1]:
            raise ConfigError(f"{name}: found a packed {command.kind} file, expected one as it is; unpack it")
    if command.spans and command.sidecar is None and command.kind != "jsonl":
        raise ConfigError(
            f"--spans: found {command.kind} on standard output, expected a file, beside which they are written; name "
            "one, or take JSONL, whose rows hold their spans"
        )
    if command.spans_key is not None and not (command.spans and command.kind == "jsonl" and command.spans_key):
        raise ConfigError("spans_key: names the key of spans in JSONL; give --spans as well, and JSONL")
    for path in (command.target, command.sidecar):
        if path not in (None, PIPE) and not command.force and Path(path).exists():
            raise UserError(f"{path}: is there already; choose another name, or write over it with --force")


def _refuse_target(command: AnonymiseCommand) -> None:
    kind, target_kind = command.kind, None if command.target == PIPE else _ending(command.target)
    if target_kind not in (None, kind):
        raise ConfigError(
            f"{command.target}: found the ending of {target_kind}, expected {kind} as the input is; rename it"
        )
    if command.target == PIPE:
        return
    path = Path(command.target)
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such folder, expected one to write {path.name} into; make it first")
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: is no plain file; give a new file's name, or - for standard output")
    if command.source != PIPE and path.exists() and path.samefile(command.source):
        raise UserError(f"{path}: is the input too; choose another name, for nothing is masked in its place")


def anonymise(command: AnonymiseCommand) -> MaskingSummary:
    """Mask a file and return the result.

    UserError for invalid options or an invalid file; its message names the line but contains no text, and nothing is
    written. WithheldError if there is possible residual PII and the options do not allow it. Standard output is only
    written before the end if residual PII is allowed.
    """
    _refuse(command)
    masking = command.masking()
    key = secret(home()) if masking.mode == "pseudonym" else b""
    with waiting(command.progress, StepLabel("loading the recognisers")):
        masker(masking, "zh", key)  # complains of names and patterns before anything is read
    try:
        with ExitStack() as stack:
            source = stack.enter_context(_source(command))
            target = stack.enter_context(_target(command))
            sidecar = stack.enter_context(_sidecar(command))
            in_rows = command.kind in BINARY
            tally = MaskingTally("row" if in_rows else "line", sidecar, command.progress, untouched(masking))
            work = {"parquet": _columnar, "arrow": _columnar, "xlsx": _workbook}.get(command.kind, _text)
            mask = partial(_masked, command, masking, key)
            summary = work(command, mask, source, target, tally)
            if summary.reasons and not command.allow_residual:
                raise WithheldError(summary, command.target)
            return summary
    except BrokenExecutor as error:
        raise RunFailed(
            "a process that masks was ended from outside, perhaps for want of memory; give --set processes=2"
        ) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise UserError(f"{command.target}: no space left on the disk; free some, or write elsewhere") from error


def _text(
    command: AnonymiseCommand, mask: Mask, source: BinaryIO, target: BinaryIO, tally: MaskingTally
) -> MaskingSummary:
    sample = TextFile(Path(command.source_name), "utf-8", command.bounds, name_encoding=_NAME_ENCODING)
    text = RawText.of(source, command.encoding, sample)
    if command.kind == "jsonl" and jsonl.is_json_document(text):
        tally.row_unit = "row"
    target.write(text.codec.bom)
    unpacked = command.source != PIPE and not ending(Path(command.source))[1]
    tally.begin(Path(command.source).stat().st_size - len(text.codec.bom) if unpacked else 0)
    rows = command.bounds.within(_pieces(command, text), command.source_name)
    for chunk, masked in mask(_grouped(rows, command, tally.summary), text.language, long=text.long):
        target.write(chunk.masked(masked, with_spans=bool(command.keys)))
        tally.of(chunk, masked)
    return _checked(command, tally)


def _columnar(
    command: AnonymiseCommand, mask: Mask, source: BinaryIO, target: BinaryIO, tally: MaskingTally
) -> MaskingSummary:
    assert command.kind in ("parquet", "arrow")
    columnar = Columnar(Path(command.source_name), command.kind, command.bounds, source)
    file = ColumnarFile(columnar, command.text_fields)
    tally.begin(file.rows, "rows")
    with file.writer(target) as writer:
        for chunk, masked in mask(file.parts(), "zh", long=source.seek(0, SEEK_END) > HEAD):
            writer.write(chunk, masked)
            tally.of(chunk, masked)
    return tally.summary


def _workbook(
    command: AnonymiseCommand, mask: Mask, source: BinaryIO, target: BinaryIO, tally: MaskingTally
) -> MaskingSummary:
    book = Workbook(source, command.text_fields, Path(command.source_name), command.bounds, command.notify)
    tally.begin(book.size, "cells")
    for chunk, masked in mask(book.parts(), "zh", long=source.seek(0, SEEK_END) > HEAD):
        book.take(chunk, masked)
        tally.of(chunk, masked)
    book.write(target)
    return tally.summary


def _masked(
    command: AnonymiseCommand, masking: Masking, key: bytes, chunks: Iterator[SomeChunk], language: str, *, long: bool
) -> Iterator[tuple[SomeChunk, list[Masked]]]:
    """Mask chunks in order, on all cores if the file is long.

    `key` determines the pseudonyms. `language` is that of the placeholders in texts without letters. `long` is whether
    the file is long.
    """
    processes = command.processes or (cores() if long else 1)
    batches: Iterator[tuple[SomeChunk, Batch]] = (
        (chunk, ([text for _, _, text in chunk.texts], {})) for chunk in chunks
    )
    return mask_batches(masking, language, key, batches, processes)


def _pieces(command: AnonymiseCommand, text: RawText) -> Iterator[Piece | Problem]:
    if command.kind == "jsonl":
        return jsonl.pieces(text, command.text_fields, command.keys)
    if command.kind == "text":
        return pieces.plain_pieces(text)
    assert command.kind in ("csv", "tsv")
    return delimited.pieces(text, command.text_fields, command.kind)


def _grouped(rows: Iterator[Piece | Problem], command: AnonymiseCommand, summary: MaskingSummary) -> Iterator[Lines]:
    """Yield rows in groups of limited number and length; DataError for an unreadable row unless it is dropped."""
    group = Lines()
    for piece in rows:
        if isinstance(piece, Problem):
            if command.on_error == "stop":
                unread = replace(piece, remedy=f"{piece.remedy}, or leave such rows out with --on-error drop")
                raise unread.error(command.source_name, [["--on-error", "drop"]])
            summary.dropped += 1
            continue
        summary.spared += isinstance(piece, jsonl.JsonRow) and piece.key == SPARE and command.spans_key is None
        group.add(piece)
        if len(group.pieces) == BATCH or group.size > _CHARACTERS:
            yield group
            group = Lines()
    if group.pieces:
        yield group


def _checked(command: AnonymiseCommand, tally: MaskingTally) -> MaskingSummary:
    """Return the counts; DataError if no row had any of the fields, all of which are optional."""
    if (
        tally.read
        and not tally.summary.texts
        and command.text_fields.optional >= set(command.text_fields.names)
        and command.kind == "jsonl"
    ):
        raise DataError(
            f"{command.source_name}: found no {' or '.join(command.text_fields.names)} in any row; name a field with "
            "--field"
        )
    return tally.summary


@contextmanager
def _source(command: AnonymiseCommand) -> Iterator[BinaryIO]:
    if command.source != PIPE:
        with opened(Path(command.source), command.bounds) as stream:
            yield stream
    elif command.kind in BINARY:  # which is read from its end
        with tempfile.TemporaryFile() as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
            stream.seek(0)
            yield stream
    else:
        yield sys.stdin.buffer


@contextmanager
def _target(command: AnonymiseCommand) -> Iterator[BinaryIO]:
    if command.target != PIPE:
        path = Path(command.target)
        with replacing(path) as temporary, temporary.open("wb") as file, packed(file, path) as stream:
            yield stream
    elif command.kind in BINARY or not command.allow_residual:
        # a pipe has no position, which a Parquet footer needs; and what was written to it cannot be withdrawn
        with tempfile.TemporaryFile() as stream:
            yield stream
            stream.seek(0)
            shutil.copyfileobj(stream, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


@contextmanager
def _sidecar(command: AnonymiseCommand) -> Iterator[BinaryIO | None]:
    if command.sidecar is None:
        yield None
        return
    with replacing(Path(command.sidecar)) as temporary, temporary.open("wb") as stream:
        yield stream


def _residual(summary: MaskingSummary, *, context: bool) -> Iterator[str]:
    """Yield a line per passage with possible residual PII; `context` adds excerpts."""
    for suspect in summary.suspects:
        name = f", {suspect.field}" if suspect.field else ""
        text_around = f"  {suspect.excerpt}" if context else ""
        yield f"{suspect.row}{name}, {suspect.start}-{suspect.end}: {suspect.reason}{text_around}"
    if unlisted := summary.reasons.total() - len(summary.suspects):
        yield f"and {unlisted:,} places more"


def _sentence(summary: MaskingSummary) -> str:
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
