"""Largest batch that a GPU's memory holds, found by doubling: with it a model is fastest."""

from collections.abc import Callable
from time import monotonic

import numpy as np

from curate.evaluation.models.tasks import Foreign

FIRST, LARGEST = 32, 1024


class Growing:
    """A model of mteb's whose `encode` chooses the size of its batches: the largest that held the longest texts.

    Queries and documents, which are longer, have sizes of their own. Rows come back as float32 from weights of any
    precision.
    """

    def __init__(self, model: Foreign) -> None:
        self.model, self.mteb_model_meta = model, model.mteb_model_meta
        self.sizes: dict[object, int] = {}
        self.trying = 0.0
        """Seconds spent on finding sizes for queries, which are no part of a model's speed."""

    def encode(self, inputs: Foreign, **named: Foreign) -> Foreign:
        """Return the rows of all inputs; after an `OutOfMemoryError` with batches half as large."""
        from torch.utils.data import DataLoader

        def run(rows: Foreign, size: int) -> Foreign:
            loader = DataLoader(rows, batch_size=size, collate_fn=inputs.collate_fn)
            found = self.model.encode(loader, **{**named, "batch_size": size})
            return np.asarray(found.cpu() if hasattr(found, "cpu") else found, dtype=np.float32)

        rows, role = inputs.dataset, named.get("prompt_type")
        if role not in self.sizes:
            longest = np.argsort([len(text) for text in rows["text"]], kind="stable")[::-1]
            start = monotonic()
            self.sizes[role] = largest(lambda size: run(rows.select(longest[:size].tolist()), size), len(rows))
            self.trying += 0 if getattr(role, "value", None) == "document" else monotonic() - start
        return self._fitting(lambda size: run(rows, size), role)

    @property
    def size(self) -> int | None:
        """Return the largest batch in use; None before the first."""
        return max(self.sizes.values(), default=None)

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of all rows of one side with all of the other."""
        return self.model.similarity(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of every row of one side with that of the other."""
        return self.model.similarity_pairwise(one, other)

    def _fitting(self, run: Callable[[int], Foreign], role: object) -> Foreign:
        while True:
            try:
                return run(self.sizes[role])
            except _out_of_memory():
                if self.sizes[role] == 1:
                    raise
                self.sizes[role] //= 2


def largest(run: Callable[[int], object], texts: int, first: int = FIRST, most: int = LARGEST) -> int:
    """Return the largest size, doubled from the first or halved if that fails, that `run` gets through.

    Larger than the number of texts, or than `most`, it never becomes. A batch of one that does not fit raises.
    """
    size = best = max(min(first, texts), 1)
    while True:
        try:
            run(size)
        except _out_of_memory():
            if size > best:
                return best
            if size == 1:
                raise
            size = best = size // 2
            most = size
        else:
            best = size
            if 2 * size > min(most, texts):
                return best
            size *= 2


def _out_of_memory() -> type[Exception]:
    import torch

    found: type[Exception] = torch.OutOfMemoryError
    return found
