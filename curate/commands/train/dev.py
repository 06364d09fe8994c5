"""Dev score: nDCG@10 of held-back training queries over documents of the triples."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from curate.commands.evaluate.item_scores import TOP, ndcg
from curate.commands.train.triples import DevQueries, TrainTriples
from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import unit

Foreign = Any
"""Models, which have no types here."""
Encoding = Callable[[Sequence[str]], Vectors]


def dev_score(queries: Vectors, documents: Vectors, triples: TrainTriples, held: DevQueries) -> float:
    """Return the mean nDCG@10 of dev queries; rows are in the order of `held.dev` and `held.documents`."""
    similar = queries @ documents.T
    best = np.argsort(-similar, axis=1, kind="stable")[:, :TOP]
    scores = []
    for query, row in zip(held.dev, best, strict=True):
        gains = dict.fromkeys(map(str, triples.positives[query]), 1.0)
        scores.append(ndcg([str(held.documents[column]) for column in row], gains))
    return float(np.mean(scores))


def encoded(model: Foreign, texts: Sequence[str], prompt: str, role: str = "") -> Vectors:
    """Encode texts to unit vectors and restore the training mode; `role` selects a side of a Router."""
    encode = {"query": model.encode_query, "document": model.encode_document}.get(role, model.encode)
    was_training = model.training
    rows = encode(list(texts), prompt=prompt, convert_to_numpy=True, show_progress_bar=False)
    model.train(was_training)
    return unit(rows)


def cut(vectors: Vectors, width: int, normalize: str) -> Vectors:
    """Truncate stored vectors to a model's width, then normalise if `normalize` is "after"."""
    return unit(vectors[:, :width]) if normalize == "after" else vectors[:, :width]
