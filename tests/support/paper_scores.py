"""What `curate evaluate` writes, made by hand: tasks, four models and a floor, speed, difficulty, groups of tasks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

HOSTILE = r"模型_α&50%#{}\$^~😀"
MODELS = ("bge-m3", "gte_multilingual-base", HOSTILE, "bm25")


def row(model: str, value: float, *, best: bool = False, **more: Any) -> dict[str, Any]:
    figure = {"value": value, "low": value - 0.05, "high": value + 0.04}
    return {"model": model, "lead": value, "best": best, "stock": figure, **more}


def task(name: str, values: Sequence[float], card: str | None = None, *, speed: bool = False) -> dict[str, Any]:
    scores = [row(model, value, best=value == max(values)) for model, value in zip(MODELS, values, strict=True)]
    ranked = sorted(scores, key=lambda each: -each["lead"])
    pairs = [
        {"one": one["model"], "other": other["model"], "difference": one["lead"] - other["lead"],
         "p": 0.0004, "adjusted": 0.0024, "enough": 120, "smallest": 0.03}
        for one, other in pairwise(ranked)
    ]  # fmt: skip
    return {
        "name": name,
        "card": card,
        "kind": "Retrieval",
        "unit": "queries",
        "shown": "nDCG@10",
        "queries": 734,
        "lead": "stock",
        "verdicts": True,
        "circular": [MODELS[0]],
        "exchanged": True,
        "scores": ranked,
        "floors": [row("random encoder", 0.01, floor="floor")],
        "pairs": [*pairs, *pairs],
        "enough": {"neighbours": pairs, "told_apart": 2},
        "difficulty": [band("1", 700), band("11-100", 34)] if speed else None,
        "speed": speeds() if speed else None,
    }


def band(rank: str, queries: int) -> dict[str, Any]:
    means = {model: (at + 1) / queries for at, model in enumerate(MODELS)}
    return {"best_rank": rank, "queries": queries, "share": queries / 734, "scores": means}


def evaluation(*tasks: dict[str, Any]) -> dict[str, Any]:
    """Return an evaluation of some tasks, the first one averaged with a legacy one and compared with it."""
    name = tasks[0]["name"]
    means = [{"model": MODELS[0], "value": 0.6, "low": 0.5, "high": 0.7}, {"model": "theirs", "value": 0.4}]
    alike = {"models": 14, "fewest": 8, "spearman": correlation(0.354), "kendall": correlation(0.25)}
    models = [{"model": MODELS[0], "new": 0.4, "old": 0.85}, {"model": MODELS[1], "new": 0.5, "old": 0.8}]
    return {
        "tasks": tasks,
        "averages": [{"name": each, "tasks": [name, "Old"], "models": means} for each in ("ours", "theirs")],
        "orders": [{"one": "ours", "other": "theirs", **alike}],
        "legacy": [{"new": name, "old": "Old", "scores": models, **alike, "models": 2, "spearman": None}],
    }


def correlation(value: float) -> dict[str, float]:
    return {"value": value, "low": -0.22, "high": 0.74, "p": 0.215}


def speeds() -> dict[str, Any]:
    part = {"qps": 900.0, "qps_low": 850.0, "qps_high": 950.0, "p50_ms": 1.25, "p95_ms": 2.0}
    return {
        "queries": 500,
        "repeats": 5,
        "batch": 64,
        "machine": {"processor": "AMD EPYC", "cores": 2, "gpus": []},
        "models": [
            {"model": model, "qps": 10.0 ** (at + 1), "encoding": part if at else None, "search": part, "device": "cpu"}
            for at, model in enumerate(MODELS)
        ],
    }
