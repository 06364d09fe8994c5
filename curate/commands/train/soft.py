"""Loss of graded documents: a judge's scores are soft targets, as overlaps of codes are in EmbeddingGemma-MIMIC."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.nn import functional

from curate.commands.train.losses import NONE

Foreign = Any
"""Tensors and models of torch, which have no types here."""


class SoftTargets(torch.nn.Module):  # type: ignore[misc]
    """Cross-entropy between softmax(cosine / temperature) and a query's scores divided by their sum.

    Candidates are all documents of the batch, each once; one without a score for the query has the target 0. `label`
    holds the number of the query, then of its documents, `NONE` where a column only fills up.
    """

    def __init__(self, model: Foreign, grades: Mapping[tuple[int, int], float], *, temperature: float = 0.07) -> None:
        super().__init__()
        self.model, self.grades, self.temperature = model, grades, temperature

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of one batch of this device."""
        queries, *documents = [
            functional.normalize(self.model(column)["sentence_embedding"].float(), dim=1) for column in features
        ]
        numbers = labels.reshape(len(queries), -1)
        place = {number: at for at, number in enumerate(numbers[:, 1:].T.reshape(-1).tolist()) if number != NONE}
        wanted = [[self.grades.get((query, each), 0.0) for each in place] for query in numbers[:, 0].tolist()]
        targets = functional.normalize(torch.tensor(wanted, device=queries.device), p=1, dim=1)
        scores = queries @ torch.cat(documents)[list(place.values())].T / self.temperature
        return functional.cross_entropy(scores, targets)
