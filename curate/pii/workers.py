"""Mask batches of texts on all cores, in order."""

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
"""Texts, and the spans that are known of some, by row."""
Thing = TypeVar("Thing")


_CHARACTERS = 1 << 20
"""So many are masked together: to begin the scans takes as long as to scan half a megabyte."""


def mask_batches(
    config: Masking, language: str, key: bytes, batches: Iterable[tuple[Thing, Batch]], processes: int
) -> Iterator[tuple[Thing, list[Masked]]]:
    """Yield every batch masked, in order, with what came with it; one process means this one."""
    for things, masked in spread(partial(_masking, config, language, key), _joined(batches), processes):
        yield from zip(things, masked, strict=True)


def _joined(batches: Iterable[tuple[Thing, Batch]]) -> Iterator[tuple[list[Thing], list[Batch]]]:
    """Yield batches together until their texts are long enough."""
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


def _mask_joined(own: Masker, batches: Sequence[Batch]) -> list[list[Masked]]:
    starts = [0, *accumulate(len(texts) for texts, _ in batches)]
    known = {
        start + row: spans for start, (_, each) in zip(starts, batches, strict=False) for row, spans in each.items()
    }
    masked = mask_all(own, [text for texts, _ in batches for text in texts], known)
    return [masked[start:end] for start, end in pairwise(starts)]
