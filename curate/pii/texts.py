"""Masking of texts in memory, equivalent to `curate anonymise` on a file."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from curate.core.protocols import Progress, quiet
from curate.pii import residual
from curate.pii.masking import Masked
from curate.pii.residual import Residue
from curate.pii.settings import Masking, untouched
from curate.pii.workers import Batch, mask_batches
from curate.system.processes import cores

ROWS = 2_000
MANY = 20_000_000
"""Minimum number of characters for masking on all cores, because starting processes takes seconds."""


class MaskedText(NamedTuple):
    """A masked text, and its passages that still look like personal data."""

    masked: Masked
    left: Sequence[Residue]


def mask_texts(
    texts: Sequence[str], config: Masking, key: bytes, processes: int | None = None, progress: Progress = quiet
) -> Iterator[MaskedText]:
    """Yield every text masked, in order.

    Pseudonyms depend on `key`. `processes`: one, or with over `MANY` characters all cores, if None.
    """

    def batches() -> Iterator[tuple[None, Batch]]:
        for start in range(0, len(texts), ROWS):
            yield None, (texts[start : start + ROWS], {})

    closed, finished = untouched(config), 0
    used = processes or (cores() if sum(map(len, texts)) > MANY else 1)
    for _, masked in mask_batches(config, "zh", key, batches(), used):
        residues_of: list[list[Residue]] = [[] for _ in masked]
        for row, residue in residual.scan([result.text for result in masked], closed):
            residues_of[row].append(residue)
        yield from map(MaskedText, masked, residues_of)
        finished += len(masked)
        progress("anonymise", len(texts), finished)
