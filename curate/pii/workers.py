"""Masking of batches of texts on all cores; the results keep the order of the batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import TypeVar

from curate.core.records import Span
from curate.pii.masking import Masked, Masker
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.system.processes import spread

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
