"""Mask batches of texts on all cores, in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from curate.core.records import Span
from curate.pii.masking import Masked
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from curate.system.processes import spread

Batch = tuple[Sequence[str], Mapping[int, Sequence[Span]]]
"""Texts, and the spans that are known of some, by row."""
Thing = TypeVar("Thing")


def mask_batches(
    config: Masking, language: str, key: bytes, batches: Iterable[tuple[Thing, Batch]], processes: int
) -> Iterator[tuple[Thing, list[Masked]]]:
    """Yield every batch masked, in order, with what came with it; one process means this one."""
    return spread(partial(_masking, config, language, key), batches, processes)


def _masking(config: Masking, language: str, key: bytes) -> Callable[[Batch], list[Masked]]:
    own = masker(config, language, key)
    return lambda batch: mask_all(own, *batch)
