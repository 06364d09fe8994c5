"""What a training will cost: steps, examples, memory, and time by a sample that is encoded now."""

import math
import time
from typing import Any

from curate.commands.train import TrainSettings
from curate.commands.train.recipes import RecipeData
from curate.core.config import Json

SAMPLE = 16
"""Texts of each side that are encoded to estimate time."""
TIMES = 3
"""A step costs about three encodings of its texts: forward, and twice that backward."""
WEIGHT, TRAINED = 4, 16
"""Bytes of a weight in float32, and of one that is trained: weight, gradient, and AdamW's two moments."""


def steps(settings: TrainSettings, examples: int) -> int:
    """Return the steps of a seed: those given, or the epochs' worth."""
    return settings.steps or max(math.ceil(settings.epochs * examples / settings.batch), 1)


def plan(data: RecipeData) -> dict[str, Json]:
    """Return what would be trained, on how much, and what that takes; nothing is trained."""
    settings = data.settings
    query = data.models.load(data.models.query)
    per_text = _seconds(data, query)
    count = steps(settings, data.count)
    columns = 1 if settings.frozen else 2 + settings.listed
    step = 0.0 if settings.part == "map" else TIMES * settings.batch * columns * per_text
    fixed = len(data.triples.documents) * per_text if settings.frozen else 0.0
    dev = len(data.held.dev) + (0 if settings.frozen else len(data.held.documents))
    rounds = count // every(settings, count) + 2
    seeds = settings.seeds * (count * step + rounds * dev * (0 if settings.part == "map" else per_text))
    return {
        "recipe": settings.recipe,
        "base": data.models.base,
        "documents_by": data.models.document,
        "queries": len(data.held.train),
        "dev_queries": len(data.held.dev),
        "documents": len(data.triples.documents),
        "examples": data.count,
        "steps": count,
        "seeds": settings.seeds,
        "weights": _weights(query),
        "trained_weights": _trained(query, settings),
        "memory_bytes": _memory(query, settings),
        "seconds": round(fixed + seeds, 1),
    }


def every(settings: TrainSettings, count: int) -> int:
    """Return how many steps lie between two dev scores."""
    return min(settings.eval_every or max(count // 10, 1), count)


def _seconds(data: RecipeData, model: Any) -> float:  # noqa: ANN401 - a model has no type here
    """Return the seconds that a text takes, measured on some documents."""
    texts = list(data.triples.documents[:SAMPLE])
    model.encode(texts[:2], show_progress_bar=False)
    began = time.perf_counter()
    model.encode(texts, show_progress_bar=False)
    return (time.perf_counter() - began) / len(texts)


def _weights(model: Any) -> int:  # noqa: ANN401
    return sum(each.numel() for each in model.parameters())


def _trained(model: Any, settings: TrainSettings) -> int:  # noqa: ANN401
    if settings.part == "map":
        return int(model.get_embedding_dimension()) ** 2
    if settings.lora.rank:  # r x (in + out) of every matrix inside the transformer
        layers = (each for name, each in model.named_parameters() if each.ndim == 2 and "embeddings" not in name)
        return sum(settings.lora.rank * sum(each.shape) for each in layers)
    sides = 2 if settings.recipe == "joint" and not settings.frozen else 1
    return sides * _weights(model)


def _memory(model: Any, settings: TrainSettings) -> int:  # noqa: ANN401
    """Return bytes of weights, gradients and moments; what activations take comes on top, and grows with the batch."""
    return WEIGHT * _weights(model) + TRAINED * _trained(model, settings)
