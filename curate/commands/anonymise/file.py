"""Masking of a file, with counts of the masked spans and a list of possible residual PII."""

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from curate.commands.anonymise import delimited, jsonl, raw_lines
from curate.commands.anonymise.parquet import ParquetFile
from curate.commands.anonymise.raw_lines import HEAD, Piece, Script, opened
from curate.commands.anonymise.settings import PIPE, SPARE, MaskRequest
from curate.core.errors import DataError, RunFailed, UserError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, quiet
from curate.pii import residual
from curate.pii.masking import Masked
from curate.pii.residual import Excerpt, Residue, excerpt
from curate.pii.settings import masker, untouched
from curate.pii.workers import Batch, mask_batches
from curate.system.files import BATCH, replacing
from curate.system.processes import cores
from curate.system.run_lock import FULL
from curate.tables.readers import Problem

LISTED = 1_000
"""Maximum number of passages with possible residual PII that are listed; all are counted."""


@dataclass(frozen=True)
class Left:
    """Possible residual PII: a passage that looks like personal data after masking."""

    row: str
    """The row, such as `line 12`."""
    field: str
    """Name of the field; empty in plain text."""
    start: int
    """Start, in code points of the raw text, as `end`."""
    end: int
    reason: str
    excerpt: Excerpt
    """The passage with the masked text around it."""


@dataclass
class Done:
    """Result of masking a file."""

    texts: int = 0
    changed: int = 0
    spans: Counter[str] = field(default_factory=Counter)
    """Kind of personal data -> number of masked spans."""
    numbers: int = 0
    """Number of numeric values in text fields, which are left unchanged."""
    dropped: int = 0
    """Number of rows that were left out because they could not be read."""
    spared: int = 0
    """Number of JSONL rows whose spans are under the key `SPARE`, since they already had the key `KEY`."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Reason -> number of passages with possible residual PII."""
    left: list[Left] = field(default_factory=list)
    """The first `LISTED` of these passages."""

    def suspect(self, row: str, name: str, masked: Masked, residue: Residue) -> None:
        """Count a passage with possible residual PII; list it if it is one of the first `LISTED`."""
        self.reasons[residue.reason] += 1
        if len(self.left) < LISTED:
            extent, context = masked.raw(residue.start, residue.end), excerpt(masked.text, residue.start, residue.end)
            self.left.append(Left(row, name, *extent, residue.reason, context))


class WithheldError(RunFailed):
    """The file was not written because of possible residual PII."""

    def __init__(self, done: Done, target: str) -> None:
        self.done = done
        destination = "standard output" if target == PIPE else target
        super().__init__(
            f"{destination}: was not written, for {done.reasons.total():,} places still look like personal data; mask "
            "them by --words FILE or patterns in --config FILE, or write it with --allow-residual"
        )


# Mask one file chunk by chunk, in order; the output is complete or absent.

_CHARACTERS = 1 << 20
"""Length, in bytes, from which no more rows are added to a chunk."""


class Chunk(Protocol):
    """Some rows of a file that are masked together."""

    size: int
    """Length of the chunk in the unit of the progress bar: bytes, or rows."""
    numbers: int

    @property
    def texts(self) -> list[tuple[int, str, str]]:
        """Return (number of the line or row, field, text) of every text to mask."""
        ...


Some = TypeVar("Some", bound=Chunk)


@dataclass
class Lines:
    """Some rows of a text file that are masked together."""

    pieces: list[tuple[Piece, int]] = field(default_factory=list)
    """Rows, each with its number of texts."""
    texts: list[tuple[int, str, str]] = field(default_factory=list)
    """(Line, field, text) of every text to mask."""
    size: int = 0
    numbers: int = 0

    def add(self, piece: Piece) -> None:
        """Append a row."""
        texts = piece.texts
        self.pieces.append((piece, len(texts)))
        self.texts += [(piece.line, name, text) for name, text in texts]
        self.size += len(piece.raw)
        self.numbers += piece.numbers

    def masked(self, masked: list[Masked], *, told: bool) -> bytes:
        """Return the bytes of the masked rows; with `told`, unchanged rows are rewritten, too, to add their spans."""
        rows, position = [], 0
        for piece, count in self.pieces:
            row_texts = masked[position : position + count]
            position += count
            changed = told or any(text.spans for text in row_texts)
            rows.append(piece.masked(row_texts) if changed else piece.raw)
        return b"".join(rows)


def anonymise(order: MaskRequest, key: bytes, progress: Progress = quiet) -> Done:
    """Mask a file and return the result; `key` determines the pseudonyms.

    UserError for an invalid request or file; its message names the line but contains no text, and nothing is written.
    WithheldError if there is possible residual PII and the request does not allow it. Standard output is only written
    before the end if residual PII is allowed.
    """
    with waiting(progress, StepLabel("loading the recognisers")):
        masker(order.masking, "zh", key)  # complains of names and patterns before anything is read
    try:
        with ExitStack() as stack:
            source = stack.enter_context(_source(order))
            target = stack.enter_context(_target(order))
            sidecar = stack.enter_context(_sidecar(order))
            work = _parquet if order.kind == "parquet" else _text
            summary = work(order, key, source, target, _Tally(order, sidecar, progress, untouched(order.masking)))
            if summary.reasons and not order.allow_residual:
                raise WithheldError(summary, order.target)
            return summary
    except BrokenExecutor as error:
        raise RunFailed(
            "a process that masks was ended from outside, perhaps for want of memory; give --set processes=2"
        ) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise UserError(f"{order.target}: no space left on the disk; free some, or write elsewhere") from error


@dataclass
class _Tally:
    """Collector of the counts in `Done`; also writes spans to the sidecar file, and reports progress."""

    order: MaskRequest
    sidecar: BinaryIO | None
    progress: Progress
    closed: re.Pattern[str]
    """Pattern of the placeholders that masking writes."""
    done: Done = field(default_factory=Done)
    read: int = 0
    total: int = 0
    unit: str = "bytes"

    def begin(self, total: int, unit: str = "bytes") -> None:
        """Set the total amount to read; 0 if unknown."""
        self.total, self.unit = total, unit
        self.progress(StepLabel("masking", unit), total or 1, 0)

    def of(self, chunk: Chunk, masked: Sequence[Masked]) -> None:
        """Add the masked texts of a chunk to the counts, and write their spans."""
        unit = "row" if self.order.kind == "parquet" else "line"
        for row, residue in residual.scan([result.text for result in masked], self.closed):
            number, name, _ = chunk.texts[row]
            self.done.suspect(f"{unit} {number}", name, masked[row], residue)
        for (line, name, text), result in zip(chunk.texts, masked, strict=True):
            self.done.texts += 1
            if not result.spans:
                continue
            self.done.changed += result.text != text
            self.done.spans.update(span.kind for span in result.spans)
            if self.sidecar:
                rows = ({unit: line, **row} for row in jsonl.spans(name, result))
                self.sidecar.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        self.done.numbers += chunk.numbers
        self.read += chunk.size
        if self.total:
            self.progress(StepLabel("masking", self.unit), self.total, self.read)


def _text(order: MaskRequest, key: bytes, source: BinaryIO, target: BinaryIO, tally: _Tally) -> Done:
    script, stream, long = opened(source, order.encoding, order.place)
    target.write(script.bom)
    tally.begin(0 if order.source == PIPE else Path(order.source).stat().st_size - len(script.bom))
    write = _masked(order, key, script.language, long=long)
    for chunk, masked in write(_grouped(_pieces(order, script, stream), order, tally.done)):
        target.write(chunk.masked(masked, told=bool(order.keys)))
        tally.of(chunk, masked)
    return _checked(order, tally)


def _parquet(order: MaskRequest, key: bytes, source: BinaryIO, target: BinaryIO, tally: _Tally) -> Done:
    file = ParquetFile(source, order.fields, order.place)
    tally.begin(file.rows, "rows")
    long = order.source != PIPE and Path(order.source).stat().st_size > HEAD
    with file.writer(target) as writer:
        for chunk, masked in _masked(order, key, "zh", long=long)(file.parts()):
            writer.write(chunk, masked)
            tally.of(chunk, masked)
    return tally.done


def _masked(
    order: MaskRequest, key: bytes, language: str, *, long: bool
) -> Callable[[Iterator[Some]], Iterator[tuple[Some, list[Masked]]]]:
    """Return a function that masks chunks in order, on all cores if the file is long.

    `language` is that of the placeholders in texts without letters. `long` is whether the file is long.
    """
    processes = order.processes or (cores() if long else 1)

    def batches(chunks: Iterator[Some]) -> Iterator[tuple[Some, Batch]]:
        for chunk in chunks:
            yield chunk, ([text for _, _, text in chunk.texts], {})

    return lambda chunks: mask_batches(order.masking, language, key, batches(chunks), processes)


def _pieces(order: MaskRequest, script: Script, stream: BinaryIO) -> Iterator[Piece | Problem]:
    lines = script.lines(stream)
    if order.kind == "jsonl":
        return jsonl.pieces(lines, script, order.fields, order.keys)
    if order.kind == "text":
        return raw_lines.plain_pieces(lines, script)
    assert order.kind != "parquet"
    return delimited.pieces(lines, script, order.fields, order.kind)


def _grouped(pieces: Iterator[Piece | Problem], order: MaskRequest, summary: Done) -> Iterator[Lines]:
    """Yield rows in groups of limited number and length; DataError for an unreadable row unless it is dropped."""
    group = Lines()
    for piece in pieces:
        if isinstance(piece, Problem):
            if not order.drop:
                raise DataError(piece.sentence(order.place))
            summary.dropped += 1
            continue
        summary.spared += isinstance(piece, jsonl.JsonLine) and piece.key == SPARE and order.spans_key is None
        group.add(piece)
        if len(group.pieces) == BATCH or group.size > _CHARACTERS:
            yield group
            group = Lines()
    if group.pieces:
        yield group


def _checked(order: MaskRequest, tally: _Tally) -> Done:
    """Return the counts; DataError if no row had any of the fields, all of which are optional."""
    if (
        tally.read
        and not tally.done.texts
        and order.fields.optional >= set(order.fields.names)
        and order.kind == "jsonl"
    ):
        raise DataError(
            f"{order.place}: found no {' or '.join(order.fields.names)} in any row; name a field with --field"
        )
    return tally.done


@contextmanager
def _source(order: MaskRequest) -> Iterator[BinaryIO]:
    if order.source != PIPE:
        with Path(order.source).open("rb") as stream:
            yield stream
    elif order.kind == "parquet":  # which is read from its end
        with tempfile.TemporaryFile() as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
            stream.seek(0)
            yield stream
    else:
        yield sys.stdin.buffer


@contextmanager
def _target(order: MaskRequest) -> Iterator[BinaryIO]:
    if order.target != PIPE:
        with replacing(Path(order.target)) as temporary, temporary.open("wb") as stream:
            yield stream
    elif order.kind == "parquet" or not order.allow_residual:
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
def _sidecar(order: MaskRequest) -> Iterator[BinaryIO | None]:
    if order.sidecar is None:
        yield None
        return
    with replacing(Path(order.sidecar)) as temporary, temporary.open("wb") as stream:
        yield stream
