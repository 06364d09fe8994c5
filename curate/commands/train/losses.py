"""Contrastive, alignment and soft-target losses, two of them against fixed document vectors encoded before training.

The column `label` of the data contains row numbers of fixed vectors, or numbers of documents. Fixed vectors are a
buffer of the loss and are not saved in checkpoints.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.nn import functional

from curate.core.protocols import Vectors

Foreign = Any
"""Tensors and models of torch, which are untyped here."""
NONE = -1
"""Padding of `label` in rows with fewer negatives than others."""
Cut = Literal["after", "before"]
"""Normalisation of fixed vectors: after truncation to the model's width (unit length), or before it (CARE's code)."""


class Alignment(torch.nn.Module):  # type: ignore[misc]
    """Loss that aligns a model's vectors with fixed vectors of the same texts: InfoNCE plus squared distance.

    Stage I of CARE: `contrast(E_Q(x), E_D(x)) + ||E_Q(x) - E_D(x)||^2`, with squares summed over dimensions. The first
    column of the data is the text, `label` the row of its fixed vector; equal rows are not each other's negatives.
    Either term can be omitted.
    """

    def __init__(
        self,
        model: Foreign,
        kept: Vectors,
        *,
        temperature: float = 0.1,
        contrast: bool = True,
        squares: bool = True,
        normalize: Cut = "after",
    ) -> None:
        super().__init__()
        if not (contrast or squares):
            raise ValueError("Alignment without contrast and without squares is no loss; leave one of them in")
        self.model, self.normalize = model, normalize
        self.temperature, self.contrast, self.squares = temperature, contrast, squares
        self.register_buffer("kept", torch.as_tensor(kept, dtype=torch.float32), persistent=False)

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of one batch."""
        vectors = _query_vectors(self.model, features)
        rows = labels.reshape(-1).to(self.kept.device)
        targets = _cut(self.kept[rows], vectors.shape[1], self.normalize)
        loss = ((vectors - targets) ** 2).sum(dim=1).mean() if self.squares else vectors.new_zeros(())
        if self.contrast:
            same = (rows[:, None] == rows[None, :]).fill_diagonal_(False)
            loss = loss + info_nce(vectors @ targets.T / self.temperature, same, range(len(rows)))
        return loss


class FrozenContrastive(torch.nn.Module):  # type: ignore[misc]
    """InfoNCE loss of queries over fixed vectors of all documents in the batch.

    `label` holds the row of the positive, then rows of negatives, padded with `NONE`. `spared` maps a positive to other
    documents relevant to its queries, which are masked.
    """

    def __init__(
        self,
        model: Foreign,
        kept: Vectors,
        *,
        temperature: float = 0.02,
        spared: Mapping[int, Sequence[int]] | None = None,
        normalize: Cut = "after",
    ) -> None:
        super().__init__()
        self.model, self.temperature, self.normalize = model, temperature, normalize
        self.spared = {positive: frozenset(rows) for positive, rows in (spared or {}).items() if rows}
        self.register_buffer("kept", torch.as_tensor(kept, dtype=torch.float32), persistent=False)

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of one batch."""
        vectors = _query_vectors(self.model, features)
        labels = labels.reshape(len(labels), -1).to(self.kept.device)
        rows = torch.unique(labels[labels != NONE])  # sorted, each document once
        positions = torch.searchsorted(rows, labels[:, 0].contiguous())
        targets = _cut(self.kept[rows], vectors.shape[1], self.normalize)
        return info_nce(vectors @ targets.T / self.temperature, self._left_out(labels[:, 0], rows), positions)

    def _left_out(self, positives: Foreign, rows: Foreign) -> Foreign:
        """Return a mask (positives, documents) of other documents relevant to a query of the positive."""
        excluded = torch.zeros(len(positives), len(rows), dtype=torch.bool)
        columns = {row: column for column, row in enumerate(rows.tolist())}
        for line, positive in enumerate(positives.tolist()):
            for row in self.spared.get(positive, frozenset()) - {positive}:
                if row in columns:
                    excluded[line, columns[row]] = True
        return excluded.to(rows.device)


def info_nce(scores: Foreign, left_out: Foreign, positives: Foreign) -> Foreign:
    """Return the mean cross-entropy of positives (column index per row) among candidates not masked by `left_out`."""
    truth = torch.as_tensor(positives, dtype=torch.long, device=scores.device)
    return functional.cross_entropy(scores.masked_fill(left_out, float("-inf")), truth)


def _query_vectors(model: Foreign, features: Iterable[dict[str, Foreign]]) -> Foreign:
    """Return unit vectors of the first column, in float32, because bfloat16 is too coarse at a temperature of 0.02."""
    first = next(iter(features))
    return functional.normalize(model(first)["sentence_embedding"].float(), dim=1)


def _cut(vectors: Foreign, width: int, normalize: Cut) -> Foreign:
    """Return fixed vectors truncated to the model's width, which a Matryoshka loss varies."""
    if vectors.shape[1] < width:
        raise ValueError(f"kept vectors have {vectors.shape[1]} dimensions, the model {width}; cut the model's by mrl")
    truncated = vectors[:, :width]
    return functional.normalize(truncated, dim=1) if normalize == "after" else truncated


# Contrastive loss with both sides trained; documents known to be relevant are masked.


class InBatchContrastive(torch.nn.Module):  # type: ignore[misc]
    """InfoNCE loss of each query over all documents in the batch: its positive, its negatives, and those of others."""

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
        self.spared = {positive: frozenset(rows) for positive, rows in (spared or {}).items() if rows}

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of this device's queries; with `gather`, over the documents of all devices."""
        queries, *documents = [
            functional.normalize(self.model(column)["sentence_embedding"].float(), dim=1) for column in features
        ]
        numbers = labels.reshape(len(queries), -1).T.reshape(-1).to(queries.device)
        positions = torch.arange(len(queries), device=queries.device)
        vectors, candidates = torch.cat(documents), numbers
        if self.gather is not None:
            vectors, candidates, positions = self._of_all(vectors, numbers, positions)
        scores = queries @ vectors.T / self.temperature
        return info_nce(scores, self._left_out(numbers[: len(queries)], candidates, positions), positions)

    def _of_all(self, vectors: Foreign, numbers: Foreign, positions: Foreign) -> tuple[Foreign, Foreign, Foreign]:
        """Return vectors and numbers of all devices, and the positions of this device's positives in them."""
        assert self.gather is not None
        all_vectors, all_numbers = self.gather(vectors), self.gather(numbers)
        same = (all_vectors[:, None] == vectors[None, : len(positions)]).all(dim=2) & (
            all_numbers[:, None] == numbers[None, : len(positions)]
        )
        return all_vectors, all_numbers, same.int().argmax(dim=0)

    def _left_out(self, positives: Foreign, candidates: Foreign, positions: Foreign) -> Foreign:
        """Return a mask (queries, candidates) of padding and of relevant documents other than the positive."""
        excluded = (candidates == NONE).repeat(len(positives), 1) | (positives[:, None] == candidates[None, :])
        candidate_numbers = candidates.tolist()
        for line, positive in enumerate(positives.tolist()):
            if relevant := self.spared.get(positive):
                excluded[line] |= torch.tensor(
                    [number in relevant for number in candidate_numbers], device=excluded.device
                )
        excluded[torch.arange(len(positives), device=excluded.device), positions] = False
        return excluded


def gathering() -> Callable[[Foreign], Foreign] | None:
    """Return a function that gathers a tensor from all devices, with gradients; None for a single device."""
    from sentence_transformers.util.distributed import all_gather, get_world_size

    return (lambda tensor: all_gather(tensor, with_grad=tensor.is_floating_point())) if get_world_size() > 1 else None


# Loss of graded documents with a judge's scores as soft targets, as overlaps of codes in EmbeddingGemma-MIMIC.


class SoftTargets(torch.nn.Module):  # type: ignore[misc]
    """Cross-entropy between softmax(cosine / temperature) and a query's scores divided by their sum.

    The candidates are the distinct documents of the batch; the target is 0 for a document without a score. `label`
    holds the number of the query, then those of its documents, padded with `NONE`.
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
        columns = {
            number: position for position, number in enumerate(numbers[:, 1:].T.reshape(-1).tolist()) if number != NONE
        }
        grades = [[self.grades.get((query, document), 0.0) for document in columns] for query in numbers[:, 0].tolist()]
        targets = functional.normalize(torch.tensor(grades, device=queries.device), p=1, dim=1)
        scores = queries @ torch.cat(documents)[list(columns.values())].T / self.temperature
        return functional.cross_entropy(scores, targets)
