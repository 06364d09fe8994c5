"""Masking of texts: in memory, equivalent to `curate anonymise` on a file, and of batches of texts on all cores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

from curate.core.protocols import Progress, quiet
from curate.core.records import Span
from curate.pii import residual
from curate.pii.masking import Masked, Masker
from curate.pii.residual import Residue
from curate.pii.settings import Masking, masker, untouched
from curate.pii.sieve import mask_all
from curate.system.processes import cores, spread

Batch = tuple[Sequence[str], Mapping[int, Sequence[Span]]]
"""Texts, and row -> spans found in it by other means."""
Thing = TypeVar("Thing")


_CHARACTERS = 1 << 20
"""Number of characters masked together; starting the scans costs as much as scanning half a megabyte."""


def mask_batches(
    config: Masking, language: str, key: bytes, batches: Iterable[tuple[Thing, Batch]], processes: int
) -> Iterator[tuple[Thing, list[Masked]]]:
    """Yield (thing, masked texts) for every (thing, batch), in order; with one process, in the calling process."""
    for things, masked in spread(partial(_masking, config, language, key), _joined(batches), processes):
        yield from zip(things, masked, strict=True)


def _joined(batches: Iterable[tuple[Thing, Batch]]) -> Iterator[tuple[list[Thing], list[Batch]]]:
    """Yield groups of batches with about `_CHARACTERS` characters in total."""
    things, joined, size = list[Thing](), list[Batch](), 0
    for thing, batch in batches:
        things.append(thing)
        joined.append(batch)
        size += sum(map(len, batch[0]))
        if size >= _CHARACTERS:
            yield things, joined
            things, joined, size = [], [], 0
    if things:
        yield things, joined


def _masking(config: Masking, language: str, key: bytes) -> Callable[[Sequence[Batch]], list[list[Masked]]]:
    return partial(_mask_joined, masker(config, language, key))


def _mask_joined(masker: Masker, batches: Sequence[Batch]) -> list[list[Masked]]:
    starts = [0, *accumulate(len(texts) for texts, _ in batches)]
    known_spans = {
        start + row: spans
        for start, (_, spans_of) in zip(starts, batches, strict=False)
        for row, spans in spans_of.items()
    }
    masked = mask_all(masker, [text for texts, _ in batches for text in texts], known_spans)
    return [masked[start:end] for start, end in pairwise(starts)]


# Texts in memory.

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
