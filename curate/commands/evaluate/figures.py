"""Figures of an evaluation: leading way of scoring contested pairs, baselines, tests, headroom, difficulty.

mteb counts contested pairs as not relevant. For ranking systems, that was the worst of ten ways of scoring where judges
often disagree. So scores with the gain of the median grade lead if grades are known. Otherwise condensed scores lead,
unless a model contributed to the pool or panel and thereby influences which pairs are removed. No nDCG is an absolute
score: see `corrected`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl

from curate.commands.evaluate import averages, corrected, query_sources
from curate.commands.evaluate.averages import BenchmarkScores
from curate.commands.evaluate.board import Board
from curate.commands.evaluate.corrected import ScoreReview
from curate.commands.evaluate.item_scores import MEDIAN, READINGS
from curate.commands.evaluate.mteb_models import BM25
from curate.commands.evaluate.scoring import Scored, point
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.config import Json
from curate.core.records import TABLES
from curate.pipeline.stage import home
from curate.retrieval.retrievers.bm25 import cutter
from curate.stats import difficulty, significance
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.difficulty import Measured
from curate.stats.rank_correlation import tau_ap, tau_b
from curate.stats.significance import needed
from curate.system.files import sha256

STOCK, CONDENSED, _ = READINGS
ORDERED = (STOCK, CONDENSED, MEDIAN)


def lead(task: EvaluationTask, models: Sequence[str]) -> str:
    """Return the way of scoring by which a task's models are ranked: median, else condensed, else mteb's default."""
    if not task.verdicts or task.gains:
        return STOCK
    if MEDIAN in task.readings:
        return MEDIAN
    return STOCK if any(name in names for names in task.parts.values() for name in models) else CONDENSED


def orders(board: Board) -> list[Json]:
    """Return tau-b and tau_AP of the models' rankings under each two ways of scoring in `ORDERED`.

    The first is the reference. All scores are on the same queries. Empty for one model, for a task without verdicts,
    and for graded labels.
    """
    readings = [name for name in ORDERED if name in board.task.readings]
    if not board.task.verdicts or board.task.gains or len(board.scored) < 2:
        return []
    scores = {
        name: {scored.model: round(point(board.task.scorer, scored.values, name), DIGITS) for scored in board.scored}
        for name in readings
    }
    return [
        _reading_correlation(first, second, scores[first], scores[second])
        for first, second in combinations(readings, 2)
    ]


def _reading_correlation(
    first_reading: str, second_reading: str, first: Mapping[str, float], second: Mapping[str, float]
) -> Json:
    """Return tau-b and tau_AP of two scorings of the models; both None if all scores of one are equal."""
    kendall = tau_b(first, second)
    ap_correlation = None if kendall is None else tau_ap(first, second)
    return {
        "one": first_reading,
        "other": second_reading,
        "tau_b": _round_estimate(kendall),
        "tau_ap": _round_estimate(ap_correlation),
    }


# Models against the strongest trivial baseline of a task.


def against_floors(board: Board) -> dict[str, Any] | None:
    """Return the best baseline, and every model's difference from it; None without baselines.

    `above`: whether the 95 % interval of the difference, on shared resamples, is above 0. `smallest`: the minimum
    detectable difference (80 % power).
    """
    if not board.floors:
        return None
    best = max(board.floors, key=lambda floor: board.led(floor.scored))
    column = len(board.scored) + list(board.floors).index(best)
    points = board.points
    rows: list[dict[str, Any]] = []
    for index, scored in enumerate(board.scored):
        differences = board.drawn[:, index] - board.drawn[:, column]
        difference = from_replicates(float(points[index] - points[column]), differences, board.items)
        defined = differences[~np.isnan(differences)]
        deviation = float(defined.std()) * math.sqrt(board.items) if len(defined) else 0.0  # of one item
        rows.append(
            {
                "model": scored.model,
                **difference.to_json(),
                "above": difference.low is not None and difference.low > 0,
                "smallest": round(needed(0.0, deviation, board.items)[1], DIGITS) if len(defined) else None,
            }
        )
    rows.sort(key=lambda row: (-row["value"], row["model"]))
    return {"best": best.name, "sort": best.sort, "score": round(board.led(best.scored), DIGITS), "models": rows}


# Figures of a task: intervals, pairs of models, sufficient number of queries, headroom, difficulty.

CLEAR = 0.05
"""Maximum adjusted p of a significant difference."""


def of_task(
    board: Board, seed: int, reviews: Sequence[ScoreReview] = (), against: str | None = None
) -> dict[str, Json]:
    """Return all figures of one task."""
    task, first = board.task, board.scored[0]
    pairs, rows = _pairs(board, seed), _rows(board)
    return {
        "name": task.name,
        "card": None if task.folder is None else sha256(task.folder / "README.md"),
        "kind": task.kind.mteb.type,
        "unit": task.scorer.unit,
        "measure": task.measure,
        "shown": task.kind.mteb.shown,
        "queries": board.items,
        "rows": len(first.queries),
        "lead": board.lead,
        "circular": [scored.model for scored in board.scored if scored.model in task.circular],
        "orders": orders(board),
        "undecided": task.undecided if task.verdicts else 0,
        "contested": _contested(task),
        "levels": corrected.levels(board, reviews),
        "verdicts": bool(task.verdicts),
        "judged": task.kind.judged,
        "graded": bool(task.gains),
        "scores": rows[: len(board.scored)],
        "floors": rows[len(board.scored) :],
        "against_floors": against_floors(board),
        "exchanged": task.scorer.exchanged,
        "pairs": pairs,
        **averages.of_pairs(pairs, board.items, against),
        "enough": _enough(board, pairs),
        "headroom": _headroom(board),
        "difficulty": _hardness(board, seed),
        "sources": query_sources.apart(board, seed),
    }


def _contested(task: EvaluationTask) -> dict[str, Json] | None:
    """Return the number and share of contested pairs, including those of excluded queries; None without verdicts."""
    verdicts = [verdict for row in task.verdicts.values() for verdict in row.values()]
    if not verdicts:
        return None
    count, judged = verdicts.count("contested") + task.lost["contested"], len(verdicts) + task.lost["pairs"]
    return {"pairs": count, "judged": judged, "share": round(count / judged, DIGITS)}


def _rows(board: Board) -> list[Json]:
    """Return one row per model, best first, then per baseline, with all known ways of scoring."""
    readings = board.task.readings if board.task.verdicts or board.task.gains else READINGS[:1]
    by_reading, further_figures = {reading: board.figures(reading) for reading in readings}, board.beside()
    index_by_id = {id(scored): index for index, scored in enumerate(board.every)}
    floors = sorted(board.floors, key=lambda floor: (-board.led(floor.scored), floor.name))
    order = [*((scored, None) for scored in board.ranked), *((floor.scored, floor.sort) for floor in floors)]
    return [
        {
            "model": scored.model,
            "main": scored.main,
            "lead": round(board.led(scored), DIGITS),
            "best": sort is None and board.led(scored) == board.led(board.ranked[0]),
            **({} if sort is None else {"floor": sort}),
            **{reading: figures[index_by_id[id(scored)]].to_json() for reading, figures in by_reading.items()},
            "beside": further_figures[index_by_id[id(scored)]],
            **{
                name: round(count / scored.shown, DIGITS) if scored.shown else None
                for name, count in (("holes_at_10", scored.holes), ("doubtful_at_10", scored.doubtful))
            },
            "queries_a_second": scored.queries_a_second,
            "machine": scored.machine,
            "precision": scored.precision,
            "batch": scored.batch,
            "width": scored.width,
            "weights": list(scored.weights),
            "precision_check": scored.precision_check,
            "inputs": list(scored.inputs),
            "metrics": dict(scored.metrics),
        }
        for scored, sort in order
    ]


def _pairs(board: Board, seed: int) -> list[dict[str, Any]]:
    names, scorer = [scored.model for scored in board.scored], board.task.scorer
    if scorer.exchanged:
        sums = [scorer.sums(scored.values, board.lead) for scored in board.scored]
        comparisons = significance.compare(names, sums, scorer.statistic, seed)
    else:
        points = [point(scorer, scored.values) for scored in board.scored]
        comparisons = significance.compare_bootstrapped(names, points, board.drawn[:, : len(names)], board.items)
    return [{name: _round_estimate(estimate) for name, estimate in asdict(pair).items()} for pair in comparisons]


def _enough(board: Board, pairs: Sequence[dict[str, Any]]) -> dict[str, Json]:
    """Return the tests between neighbours in the ranking, and how many of these and of all pairs are significant."""
    order = [scored.model for scored in board.ranked]
    neighbours = {frozenset(both) for both in pairwise(order)}
    rows = [pair for pair in pairs if {pair["one"], pair["other"]} in neighbours]
    rows.sort(key=lambda pair: order.index(pair["one"]))
    return {
        "neighbours": rows,
        "most": max((pair["enough"] for pair in rows if pair["enough"] is not None), default=None),
        **{
            name: sum(pair["adjusted"] <= CLEAR for pair in tested_pairs)
            for name, tested_pairs in (("told_apart", rows), ("of_all", pairs))
        },
    }


def _headroom(board: Board) -> dict[str, Json]:
    """Return the score of the best model, and its distance from 1.

    If every item has a score, also the score with the best model per item, and the numbers of items that no model, or
    every model, solves.
    """
    best = max(scored.main for scored in board.scored)
    headroom: dict[str, Json] = {"best": best, "left": round(1 - best, DIGITS)}
    if not board.task.scorer.single:
        return headroom
    table = np.array([scored.values["stock"] for scored in board.scored])
    return {
        **headroom,
        "best_of_all": round(float(table.max(axis=0).mean()), DIGITS),
        "nobody": int((table.max(axis=0) <= 0).sum()),
        "everybody": int((table.min(axis=0) >= 1 - 1e-9).sum()),
    }


def _hardness(board: Board, seed: int) -> list[Json] | None:
    """Return groups of queries by BM25's best rank of a relevant document, with every model's mean score.

    None if BM25 was not evaluated, or the task is not retrieval.
    """
    baseline = next((scored for scored in board.scored if scored.model == BM25), None)
    if baseline is None or not board.task.scorer.searched:
        return None
    counted = _measured(board.task, baseline)
    bands = difficulty.bands(counted)
    index_by_query = {query: index for index, query in enumerate(baseline.queries)}
    rows: list[Json] = []
    for group in difficulty.by_rank(counted, seed):
        indices = [index_by_query[query] for query, name in bands.items() if name == group.name]
        means = {
            scored.model: round(float(np.mean(np.array(scored.values[board.lead])[indices])), DIGITS)
            for scored in board.scored
        }
        rows.append(
            {
                "best_rank": group.name,
                "queries": group.queries,
                "share": group.share,
                "overlap": group.overlap.to_json(),
                "length": group.length.to_json(),
                "scores": means,
            }
        )
    return rows


def _measured(task: EvaluationTask, baseline: Scored) -> list[Measured]:
    """Return the difficulty of every query: length, words shared with its relevant documents, their best BM25 rank."""
    cut = cutter("words", home() / "cache")
    task_data = task.data
    labels = {
        query: [doc for doc, gain in docs.items() if gain > 0] for query, docs in task_data["relevant_docs"].items()
    }
    relevant_docs = {doc for query in baseline.queries for doc in labels[query]}
    corpus, ids = task_data["corpus"], task_data["corpus"]["id"]
    relevant_corpus = corpus.select([index for index, doc in enumerate(ids) if doc in relevant_docs])
    titles = relevant_corpus["title"] if "title" in relevant_corpus.column_names else [""] * len(relevant_corpus)
    words = {
        doc: frozenset(cut(f"{title or ''} {text}"))
        for doc, title, text in zip(relevant_corpus["id"], titles, relevant_corpus["text"], strict=True)
    }
    texts = dict(zip(task_data["queries"]["id"], task_data["queries"]["text"], strict=True))
    return [
        difficulty.measure(
            query, texts[query], frozenset(cut(texts[query])), [words[doc] for doc in labels[query]], rank
        )
        for query, rank in zip(baseline.queries, baseline.first, strict=True)
    ]


def of_legacy(new: Board, old: Board, seed: int) -> dict[str, Json]:
    """Return the rank correlation of two tasks of the same type, and every model's scores on both."""
    sides = [BenchmarkScores(board.scores(board.scored, board.lead), board.items) for board in (new, old)]
    same = new.scored[0].queries == old.scored[0].queries
    correlations = averages.compare(sides[0], sides[1], seed, same_queries=same)
    both = zip(new.scored, old.scored, strict=True)
    return {
        "new": new.task.name,
        "old": old.task.name,
        "source": old.task.source,
        "kind": new.task.kind.mteb.type,
        "same_queries": same,
        **asdict(correlations),
        "fewest": averages.FEWEST,
        "leads": [new.lead, old.lead],
        "scores": [
            {
                "model": new_scored.model,
                "new": round(new.led(new_scored), DIGITS),
                "old": round(old.led(old_scored), DIGITS),
            }
            for new_scored, old_scored in both
        ],
    }


def per_query(boards: Sequence[Board]) -> pl.DataFrame:
    """Return one row per task, query and model: scores per way of scoring, rank of the first relevant document."""
    tables = []
    for board in boards:
        for scored in board.scored:
            if not board.task.scorer.single:
                continue
            columns: Mapping[str, object] = {
                "task": [board.task.name] * len(scored.queries),
                "query_id": scored.queries,
                "model": [scored.model] * len(scored.queries),
                **{reading: scored.values[reading] for reading in board.task.readings},
                "first_relevant": pl.Series(scored.first, dtype=pl.Int64),
            }
            tables.append(pl.DataFrame(columns))
    return pl.concat(tables, how="diagonal").sort("task", "query_id", "model") if tables else pl.DataFrame()


def tops(boards: Sequence[Board]) -> pl.DataFrame:
    """Return the table `tops`: the top ten documents of every model for every query of retrieval tasks.

    Only for tasks labelled by the panel's verdicts on documents, because no run judged the queries of other tasks.
    """
    rows = [
        (board.task.name, query, scored.model, rank, doc)
        for board in boards
        if board.task.kind.judged
        for scored in board.scored
        for query, top in zip(scored.queries, scored.top, strict=False)  # empty where nothing was searched
        for rank, doc in enumerate(top, start=1)
    ]
    return pl.DataFrame(rows, TABLES["tops"], orient="row")


def _round_estimate(estimate: Json) -> Json:
    return round(estimate, DIGITS) if isinstance(estimate, float) else estimate
