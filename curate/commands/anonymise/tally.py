"""Chunks of a file that are masked together, and counts of what was masked in them."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

from curate.commands.anonymise import jsonl
from curate.commands.anonymise.pieces import Piece
from curate.core.progress import StepLabel
from curate.core.protocols import Progress
from curate.pii import residual
from curate.pii.masking import Masked
from curate.pii.residual import Excerpt, Residue, excerpt

LISTED = 1_000
"""Maximum number of passages with possible residual PII that are listed; all are counted."""


@dataclass(frozen=True)
class SuspectSpan:
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
class MaskingSummary:
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
    suspects: list[SuspectSpan] = field(default_factory=list)
    """The first `LISTED` of these passages."""

    def suspect(self, row: str, name: str, masked: Masked, residue: Residue) -> None:
        """Count a passage with possible residual PII; list it if it is one of the first `LISTED`."""
        self.reasons[residue.reason] += 1
        if len(self.suspects) < LISTED:
            extent, context = masked.raw(residue.start, residue.end), excerpt(masked.text, residue.start, residue.end)
            self.suspects.append(SuspectSpan(row, name, *extent, residue.reason, context))


class Chunk(Protocol):
    """Some rows of a file that are masked together."""

    size: int
    """Length of the chunk in the unit of the progress bar: bytes, or rows."""
    numbers: int

    @property
    def texts(self) -> list[tuple[int, str, str]]:
        """Return (number of the line or row, field, text) of every text to mask."""
        ...


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

    def masked(self, masked: list[Masked], *, with_spans: bool) -> bytes:
        """Return the bytes of the masked rows; with `with_spans`, also unchanged rows are rewritten."""
        rows, position = [], 0
        for piece, count in self.pieces:
            row_texts = masked[position : position + count]
            position += count
            changed = with_spans or any(text.spans for text in row_texts)
            rows.append(piece.masked(row_texts) if changed else piece.raw)
        return b"".join(rows)


@dataclass
class MaskingTally:
    """Collector of the counts in `MaskingSummary`; also writes spans to the sidecar file, and reports progress."""

    row_unit: Literal["line", "row"]
    sidecar: BinaryIO | None
    progress: Progress
    closed: re.Pattern[str]
    """Pattern of the placeholders that masking writes."""
    summary: MaskingSummary = field(default_factory=MaskingSummary)
    read: int = 0
    total: int = 0
    unit: str = "bytes"

    def begin(self, total: int, unit: str = "bytes") -> None:
        """Set the total amount to read; 0 if unknown."""
        self.total, self.unit = total, unit
        self.progress(StepLabel("masking", unit), total or 1, 0)

    def of(self, chunk: Chunk, masked: Sequence[Masked]) -> None:
        """Add the masked texts of a chunk to the counts, and write their spans."""
        for row, residue in residual.scan([result.text for result in masked], self.closed):
            number, name, _ = chunk.texts[row]
            self.summary.suspect(f"{self.row_unit} {number}", name, masked[row], residue)
        for (line, name, text), result in zip(chunk.texts, masked, strict=True):
            self.summary.texts += 1
            if not result.spans:
                continue
            self.summary.changed += result.text != text
            self.summary.spans.update(span.kind for span in result.spans)
            if self.sidecar:
                rows = ({self.row_unit: line, **row} for row in jsonl.spans(name, result))
                self.sidecar.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        self.summary.numbers += chunk.numbers
        self.read += chunk.size
        if self.total:
            self.progress(StepLabel("masking", self.unit), self.total, self.read)
