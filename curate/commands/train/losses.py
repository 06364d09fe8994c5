"""Losses against document vectors that were encoded once: no document passes through the model in a step.

The data's column `label` holds rows of the kept vectors, which lie in the loss and in no checkpoint.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.nn import functional

from curate.core.protocols import Vectors

Foreign = Any
"""Tensors and models of torch, which has no types here."""
NONE = -1
"""In `label`: no negative in this place, so that rows may have fewer than others."""
Cut = Literal["after", "before"]
"""When a kept vector is normalised: after it is cut to the model's width (unit length), or before (CARE's code)."""


class Alignment(torch.nn.Module):  # type: ignore[misc]
    """Align a model's vectors with frozen ones of the same texts: InfoNCE plus summed squared differences.

    Stage I of CARE: `contrast(E_Q(x), E_D(x)) + ||E_Q(x) - E_D(x)||^2`. The squares are summed over dimensions, not
    averaged. Column 1 of the data is the text, `label` the row of its kept vector; rows of one text are no negatives of
    each other. Either term can be left out.
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
        vectors = _encoded(self.model, features)
        rows = labels.reshape(-1).to(self.kept.device)
        targets = _cut(self.kept[rows], vectors.shape[1], self.normalize)
        loss = ((vectors - targets) ** 2).sum(dim=1).mean() if self.squares else vectors.new_zeros(())
        if self.contrast:
            same = (rows[:, None] == rows[None, :]).fill_diagonal_(False)
            loss = loss + info_nce(vectors @ targets.T / self.temperature, same, range(len(rows)))
        return loss


class FrozenContrastive(torch.nn.Module):  # type: ignore[misc]
    """Contrast query vectors with kept document vectors: a positive, its negatives, and all others' in the batch.

    `label` holds the row of the positive, then rows of negatives (`NONE` where there is none). A document that `spared`
    names for a positive is relevant to the same query, and never its negative; nor is the positive itself.
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
        self.spared = {own: frozenset(rows) for own, rows in (spared or {}).items() if rows}
        self.register_buffer("kept", torch.as_tensor(kept, dtype=torch.float32), persistent=False)

    def forward(self, features: Iterable[dict[str, Foreign]], labels: Foreign) -> Foreign:
        """Return the loss of one batch."""
        vectors = _encoded(self.model, features)
        labels = labels.reshape(len(labels), -1).to(self.kept.device)
        rows = torch.unique(labels[labels != NONE])  # sorted, each document once
        own = torch.searchsorted(rows, labels[:, 0].contiguous())
        targets = _cut(self.kept[rows], vectors.shape[1], self.normalize)
        return info_nce(vectors @ targets.T / self.temperature, self._left_out(labels[:, 0], rows), own)

    def _left_out(self, positives: Foreign, rows: Foreign) -> Foreign:
        """Return which documents are relevant to the same query as a row's positive, besides that one."""
        out = torch.zeros(len(positives), len(rows), dtype=torch.bool)
        places = {row: place for place, row in enumerate(rows.tolist())}
        for line, positive in enumerate(positives.tolist()):
            for row in self.spared.get(positive, frozenset()) - {positive}:
                if row in places:
                    out[line, places[row]] = True
        return out.to(rows.device)


def info_nce(scores: Foreign, left_out: Foreign, positives: Foreign) -> Foreign:
    """Return the mean cross-entropy of each row's positive among its candidates, without those left out."""
    truth = torch.as_tensor(positives, dtype=torch.long, device=scores.device)
    return functional.cross_entropy(scores.masked_fill(left_out, float("-inf")), truth)


def _encoded(model: Foreign, features: Iterable[dict[str, Foreign]]) -> Foreign:
    """Return unit vectors of the first column, in float32, so that a temperature of .02 keeps its digits."""
    first = next(iter(features))
    return functional.normalize(model(first)["sentence_embedding"].float(), dim=1)


def _cut(kept: Foreign, width: int, normalize: Cut) -> Foreign:
    """Return kept vectors at the model's width, which a Matryoshka loss changes from pass to pass."""
    if kept.shape[1] < width:
        raise ValueError(f"kept vectors have {kept.shape[1]} dimensions, the model {width}; cut the model's by mrl")
    cut = kept[:, :width]
    return functional.normalize(cut, dim=1) if normalize == "after" else cut


# Contrastive loss where both sides are trained: known relevant documents of the batch are no negatives.


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


# Loss of graded documents: a judge's scores are soft targets, as overlaps of codes are in EmbeddingGemma-MIMIC.


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
