"""A benchmark of every kind that this package knows, by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from curate.core.protocols import Benchmark
from curate.system.files import frame
from tests.integration.tables.test_paraphrase_kinds import QUERIES, benchmark
from tests.support.evaluating import written

TOPICS = ("骨科", "儿科")


def classified() -> pl.DataFrame:
    """Return texts of two classes in both splits, all of them confirmed but one."""
    rows: list[dict[str, Any]] = [
        {"item_id": f"{topic}-{split}-{n}", "side": "queries", "text": f"{topic}的第{n}个问题，{split}", "label": topic}
        | {"label_id": at, "split": split, "group": f"{topic}-{split}-{n}", "votes": []}
        | {"verdict": "contested" if (split, n) == ("test", 0) else "confirmed"}
        for at, topic in enumerate(TOPICS)
        for split in ("train", "test")
        for n in range(40)
    ]
    return frame("classified", rows)


def gradients() -> pl.DataFrame:
    """Return two edits, and mixtures of every level of one pair."""
    told: dict[str, Any] = {"votes": [], "variant": "negation", "verdict": "confirmed"}
    edits = [("edit", f"e{n}", level, f"咳嗽{n}天怎么办") for n in range(2) for level in (0.0, 1.0)]
    mixed = [("mix", "m0", float(level), "喝热水") for level in (0, 25, 50, 75, 100)]
    rows = [
        {"item_id": f"{pair}-{level}", "kind": kind, "level": level, "source": source, "pair_id": pair, **told}
        | {"destination": f"{source}，{level:.0f}", "query_id": "q0", "source_id": "d1"}
        for kind, pair, level, source in [*edits, *mixed]
    ]
    return frame("gradients", rows)


def pairs() -> pl.DataFrame:
    """Return pairs of sentences of both splits."""
    rows: list[dict[str, Any]] = [
        {"pair_id": f"p-{split}-{n}", "query_id": f"q{n}", "sentence1": f"头疼{n}天", "sentence2": f"头痛{n}{split}天"}
        | {"label": n % 2, "kind": "positive" if n % 2 else "negative", "split": split, "term": "", "synonym": ""}
        for split in ("train", "test")
        for n in range(4)
    ]
    return frame("pairs", rows)


def every_kind(folder: Path) -> Path:
    """Write the benchmark as the exporter `mteb` does."""
    labels = frame("qrels", [{"query_id": "q0", "doc_id": "d1", "score": 1}])
    candidates = frame(
        "qrels", [{"query_id": "q0", "doc_id": doc, "score": score} for doc, score in (("d1", 1), ("d2", 0))]
    )
    made: Benchmark = replace(
        benchmark(pairs=pairs(), classified=classified(), gradients=gradients()),
        qrels=labels,
        candidates=candidates,
        graded=candidates.with_columns(score=pl.col("score") * 4, contested=pl.lit(value=False)),
        queries=frame("queries", [{"query_id": "q0", "text": QUERIES["q0"]}]),
    )
    return written(made, folder)
