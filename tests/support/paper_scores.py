"""What `curate evaluate` writes, made by hand: two tasks, four models and a floor, one task with measured speed."""

from collections.abc import Sequence
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
        for one, other in zip(ranked, ranked[1:], strict=False)
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
        "speed": speeds() if speed else None,
    }


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
