"""Contrastive loss where both sides are trained: known relevant documents of the batch are no negatives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional

from curate.commands.train.losses import NONE, info_nce

Foreign = Any
"""Tensors and models of torch, which have no types here."""


class InBatchContrastive(torch.nn.Module):  # type: ignore[misc]
    """Contrast each query with its positive, its negatives and every other document of the batch (InfoNCE).

    Columns are query, positive, negatives; `label` holds their documents' numbers, `NONE` where a column only fills up.
    A document that `spared` names for a positive is relevant to the same query, and never its negative. sentence-
    transformers' MultipleNegativesRankingLoss does not know of those.
    """

    def __init__(
        self,
        model: Foreign,
        *,
        temperature: float = 0.02,
        spared: Mapping[int, Sequence[int]] | None = None,
        gather: Callable[[Foreign], Foreign] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.temperature, self.gather = model, temperature, gather
        self.spared = {own: frozenset(rows) for own, rows in (spared or {}).items() if rows}

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of one batch; with `gather`, of this device's queries and all devices' documents."""
        queries, *documents = [
            functional.normalize(self.model(column)["sentence_embedding"].float(), dim=1) for column in features
        ]
        numbers = labels.reshape(len(queries), -1).T.reshape(-1).to(queries.device)
        own = torch.arange(len(queries), device=queries.device)
        vectors, candidates = torch.cat(documents), numbers
        if self.gather is not None:
            vectors, candidates, own = self._of_all(vectors, numbers, own)
        scores = queries @ vectors.T / self.temperature
        return info_nce(scores, self._left_out(numbers[: len(queries)], candidates, own), own)

    def _of_all(self, vectors: Foreign, numbers: Foreign, own: Foreign) -> tuple[Foreign, Foreign, Foreign]:
        """Return the documents of all devices, and where this device's positives stand among them."""
        assert self.gather is not None
        others, known = self.gather(vectors), self.gather(numbers)
        same = (others[:, None] == vectors[None, : len(own)]).all(dim=2) & (known[:, None] == numbers[None, : len(own)])
        return others, known, same.int().argmax(dim=0)

    def _left_out(self, positives: Foreign, candidates: Foreign, own: Foreign) -> Foreign:
        """Return which candidates of each query only fill up, or are relevant to it, besides its positive's place."""
        out = (candidates == NONE).repeat(len(positives), 1) | (positives[:, None] == candidates[None, :])
        listed = candidates.tolist()
        for line, positive in enumerate(positives.tolist()):
            if known := self.spared.get(positive):
                out[line] |= torch.tensor([each in known for each in listed], device=out.device)
        out[torch.arange(len(positives), device=out.device), own] = False
        return out


def gathering() -> Callable[[Foreign], Foreign] | None:
    """Return what collects a tensor of all devices, with gradients; None on one device."""
    from sentence_transformers.util.distributed import all_gather, get_world_size

    return (lambda tensor: all_gather(tensor, with_grad=tensor.is_floating_point())) if get_world_size() > 1 else None
