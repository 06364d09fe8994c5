"""Synthetic and real queries are scored apart, and the orders of models compared."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from curate.commands.evaluate import query_sources
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.query_sources import SourceCounts
from curate.commands.evaluate.scorers import RetrievalScorer
from curate.commands.evaluate.scoring import Scored
from curate.pipeline import facts
from curate.stats.rank_correlation import tau_ap
from curate.system.files import frame
from curate.view.record_words import RecordWords

MODELS = 5


def board(folder: Path, synthetic: int, queries: int = 60) -> Board:
    """Return a board whose first queries are synthetic; on these the models have another order."""
    random = np.random.default_rng(3)
    names = [f"q{n:02}" for n in range(queries)]
    rows = [{"query_id": name, "text": "痛风", "source": "synthetic:gpt-4o"} for name in names[:synthetic]]
    rows += [{"query_id": name, "text": "痛风", "source": "log.jsonl"} for name in names[synthetic:]]
    facts.write(folder, frame("queries", rows))
    scored = []
    for model in range(MODELS):
        level = [(0.1 * model if n >= synthetic else 0.1 * (model ^ 1)) for n in range(queries)]
        values = [float(each) for each in np.clip(np.array(level) + random.normal(0, 0.2, queries) + 0.3, 0, 1)]
        scored.append(Scored(f"m{model}", "", "", None, 0.0, {}, None, names, {"stock": values}, []))
    task = SimpleNamespace(folder=folder / "retrieval", scorer=RetrievalScorer(), name="small", readings=("stock",))
    return Board(cast("Any", task), scored)


def test_scores_and_orders_by_source(tmp_path: Path) -> None:
    made = board(tmp_path, 25)
    found: Any = query_sources.apart(made)
    assert found.queries == SourceCounts(35, 25)
    by_hand = [
        [float(np.mean(each.values["stock"][25:])), float(np.mean(each.values["stock"][:25]))] for each in made.scored
    ]
    shown = [[row.real.value, row.synthetic.value] for row in found.scores]
    assert np.allclose(shown, by_hand, atol=1e-4)
    tau = found.order.tau_b
    assert tau.value == pytest.approx(kendalltau(*zip(*by_hand, strict=True)).statistic, abs=1e-4)
    assert tau.low <= tau.value <= tau.high
    assert found.order.models == MODELS
    real, synthetic = ({str(n): row[side] for n, row in enumerate(by_hand)} for side in (0, 1))
    assert found.order.tau_ap == pytest.approx(tau_ap(real, synthetic), abs=1e-4)
    [note] = query_sources.notes({"small": found})
    assert note.startswith("small: 25 of 60 queries are synthetic; orders by real and by synthetic ones: tau-b of 5 ")
    assert "the interval is too narrow" in note
    page = "\n".join(query_sources.section(found, RecordWords("evaluate/evaluate")))
    assert "| m4 |" in page
    assert "tau_AP" in page


def test_synthetic_queries_alone_are_compared_with_nothing(tmp_path: Path) -> None:
    found: Any = query_sources.apart(board(tmp_path, 60))
    assert found.order is None
    assert found.scores[0].real is None
    [note] = query_sources.notes({"small": found})
    assert "all queries are synthetic" in note


def test_without_synthetic_queries_nothing_is_said(tmp_path: Path) -> None:
    made = board(tmp_path, 0)
    assert not (tmp_path / "sources.parquet").exists()
    assert query_sources.apart(made) is None
    assert list(query_sources.section(None, RecordWords("evaluate/evaluate"))) == list(query_sources.notes({"x": None}))


def test_who_of_the_writers_family_had_a_part() -> None:
    rows = [{"query_id": f"q{n}", "text": "x", "source": source} for n, source in enumerate(SOURCES)]
    parts = {"retriever": ["bm25", "gte-Qwen2-7B-instruct"], "judge": ["j1", "j2"]}
    found = facts.writers(frame("queries", rows), parts, {"j1": "gpt", "j2": None})
    assert found == [
        {"writer": "gpt-4o", "family": "gpt", "queries": 2, "of": 5, "kin": ["j1"]},
        {"writer": "house", "family": "qwen", "queries": 1, "of": 5, "kin": ["gte-Qwen2-7B-instruct"]},
    ]
    assert facts.writers(pl.DataFrame(rows[2:3]), parts, {}) == []


SOURCES = ("synthetic:gpt-4o", "synthetic:gpt-4o", "log.jsonl", "synthetic:house (qwen)", "log.jsonl")
