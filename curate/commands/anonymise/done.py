"""What masking did to a file, and what still looks like personal data in it."""

from collections import Counter
from dataclasses import dataclass, field

from curate.commands.anonymise.settings import PIPE
from curate.core.errors import RunFailed
from curate.pii.masking import Masked
from curate.pii.residual import Excerpt, Residue, excerpt

LISTED = 1_000
"""Places that still look like personal data that are listed, at most; all are counted."""


@dataclass(frozen=True)
class Left:
    """A place that still looks like personal data after masking."""

    row: str
    """Its number, such as `line 12`."""
    field: str
    """Empty where a line is the text."""
    start: int
    """In code points of the raw text."""
    end: int
    reason: str
    excerpt: Excerpt
    """The place with what stands around it, masked."""


@dataclass
class Done:
    """What masking did to a file."""

    texts: int = 0
    changed: int = 0
    spans: Counter[str] = field(default_factory=Counter)
    """By kind."""
    numbers: int = 0
    """Numbers in the place of texts, which stay."""
    dropped: int = 0
    """Rows that could not be read."""
    spared: int = 0
    """Rows that tell their spans under another key, for they have the usual one for themselves."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Reason -> places in the masked texts that still look like personal data."""
    left: list[Left] = field(default_factory=list)
    """The first of these places."""

    def suspect(self, row: str, name: str, masked: Masked, found: Residue) -> None:
        """Count a place that still looks like personal data, and keep it if it is one of the first."""
        self.reasons[found.reason] += 1
        if len(self.left) < LISTED:
            place, shown = masked.raw(found.start, found.end), excerpt(masked.text, found.start, found.end)
            self.left.append(Left(row, name, *place, found.reason, shown))


class WithheldError(RunFailed):
    """Something that looks like personal data is left, so that the file was not written."""

    def __init__(self, done: Done, target: str) -> None:
        self.done = done
        out = "standard output" if target == PIPE else target
        super().__init__(
            f"{out}: was not written, for {done.reasons.total():,} places still look like personal data; mask them by "
            "--words FILE or patterns in --config FILE, or write it with --allow-residual"
        )
