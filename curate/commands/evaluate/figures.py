"""The reading of doubt by which models are ordered and compared, and how alike the readings order them.

Stock tools count contested pairs as not relevant, which was the worst of ten ways to order systems where judges often
disagree. So the gain of the median grade leads where it is known; else condensed scores, unless a model had a part in
the pool or the panel, for then it decides what is condensed away. No reading of nDCG is a level: see `corrected`.
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
from curate.retrieval.retrievers.tokens import cutter
from curate.stats import difficulty, significance
from curate.stats.bootstrap import DIGITS, from_replicates
from curate.stats.difficulty import Measured
from curate.stats.rank_correlation import tau_ap, tau_b
from curate.stats.significance import needed
from curate.stats.tally import Floats
from curate.system.files import sha256

STOCK, CONDENSED, _ = READINGS
ORDERED = (STOCK, CONDENSED, MEDIAN)


def lead(task: EvaluationTask, models: Sequence[str]) -> str:
    """Return the reading by which a task's models are ordered: median, else condensed, else stock."""
    if not task.verdicts or task.gains:
        return STOCK
    if MEDIAN in task.readings:
        return MEDIAN
    return STOCK if any(name in names for names in task.parts.values() for name in models) else CONDENSED


def orders(board: Board) -> list[Json]:
    """Return tau-b and tau_AP of the models' orders under every two readings of `ORDERED`, the first taken as given.

    Scores are those of the same queries. Empty for one model, and for a task without pairs in doubt or with gains.
    """
    known = [name for name in ORDERED if name in board.task.readings]
    if not board.task.verdicts or board.task.gains or len(board.scored) < 2:
        return []
    scores = {name: _reading_scores(board, name) for name in known}
    return [_alike(one, other, scores[one], scores[other]) for one, other in combinations(known, 2)]


def _alike(one: str, other: str, first: Mapping[str, float], second: Mapping[str, float]) -> Json:
    """Return tau-b and tau_AP; neither where one of the two orders nothing, as all its scores are one."""
    alike = tau_b(first, second)
    above = None if alike is None else tau_ap(first, second)
    return {"one": one, "other": other, "tau_b": _round_estimate(alike), "tau_ap": _round_estimate(above)}


def _reading_scores(board: Board, reading: str) -> Mapping[str, float]:
    return {each.model: round(point(board.task.scorer, each.values, reading), DIGITS) for each in board.scored}


# Models against the best floor or shortcut of a task: one that is not above it has shown nothing.


def against_floors(board: Board) -> dict[str, Any] | None:
    """Return the best floor and every model's distance from it; None without floors.

    `above` says whether the 95 % interval of the distance, on the same resampled items, lies above 0. `smallest` is the
    distance that these items would show in 80 of 100 cases.
    """
    if not board.floors:
        return None
    best = max(board.floors, key=lambda floor: board.led(floor.scored))
    column = len(board.scored) + list(board.floors).index(best)
    points = board.points
    rows: list[dict[str, Any]] = []
    for place, scored in enumerate(board.scored):
        apart = board.drawn[:, place] - board.drawn[:, column]
        found = from_replicates(float(points[place] - points[column]), apart, board.items)
        rows.append(
            {
                "model": scored.model,
                **found.shown(),
                "above": found.low is not None and found.low > 0,
                "smallest": _smallest(apart, board.items),
            }
        )
    rows.sort(key=lambda row: (-row["value"], row["model"]))
    return {"best": best.name, "sort": best.sort, "score": round(board.led(best.scored), DIGITS), "models": rows}


def _smallest(apart: Floats, items: int) -> float | None:
    defined = apart[~np.isnan(apart)]
    return round(needed(0.0, float(defined.std()) * math.sqrt(items), items)[1], DIGITS) if len(defined) else None


# What scores prove: intervals, pairs of models, how many queries are enough, headroom, difficulty, distinctness.

CLEAR = 0.05
"""Adjusted p up to which two models are told apart."""


def of_task(
    board: Board, seed: int, reviews: Sequence[ScoreReview] = (), against: str | None = None
) -> dict[str, Json]:
    """Return the figures of one task."""
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
        "circular": [each.model for each in board.scored if each.model in task.circular],
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
    """Return how many judged pairs are contested, those of lost queries too; None where no verdict is known."""
    said = [verdict for row in task.verdicts.values() for verdict in row.values()]
    if not said:
        return None
    count, judged = said.count("contested") + task.lost["contested"], len(said) + task.lost["pairs"]
    return {"pairs": count, "judged": judged, "share": round(count / judged, DIGITS)}


def _rows(board: Board) -> list[Json]:
    """Return every model's line, best first, then every floor's; readings of doubt where verdicts are known."""
    known = board.task.readings if board.task.verdicts or board.task.gains else READINGS[:1]
    by_reading, beside = {reading: board.figures(reading) for reading in known}, board.beside()
    places = {id(each): place for place, each in enumerate(board.every)}
    floors = sorted(board.floors, key=lambda floor: (-board.led(floor.scored), floor.name))
    order = [*((each, None) for each in board.ranked), *((floor.scored, floor.sort) for floor in floors)]
    return [
        {
            "model": scored.model,
            "main": scored.main,
            "lead": round(board.led(scored), DIGITS),
            "best": sort is None and board.led(scored) == board.led(board.ranked[0]),
            **({} if sort is None else {"floor": sort}),
            **{reading: figures[places[id(scored)]].shown() for reading, figures in by_reading.items()},
            "beside": beside[places[id(scored)]],
            **_at_ten(scored),
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


def _at_ten(scored: Scored) -> dict[str, Json]:
    at_ten = {"holes_at_10": scored.holes, "doubtful_at_10": scored.doubtful}
    return {name: round(found / scored.shown, DIGITS) if scored.shown else None for name, found in at_ten.items()}


def _pairs(board: Board, seed: int) -> list[dict[str, Any]]:
    names, scorer = [each.model for each in board.scored], board.task.scorer
    if scorer.exchanged:
        sums = [scorer.sums(each.values, board.lead) for each in board.scored]
        found = significance.compare(names, sums, scorer.statistic, seed)
    else:
        points = [point(scorer, each.values) for each in board.scored]
        found = significance.compare_bootstrapped(names, points, board.drawn[:, : len(names)], board.items)
    return [{name: _round_estimate(value) for name, value in asdict(pair).items()} for pair in found]


def _enough(board: Board, pairs: Sequence[dict[str, Any]]) -> dict[str, Json]:
    """Return what neighbours in the order need, and how many of them, and of all pairs, are told apart.

    `most` are the queries that would tell the hardest of the neighbours apart.
    """
    order = [each.model for each in board.ranked]
    beside = {frozenset(both) for both in pairwise(order)}
    rows = [pair for pair in pairs if {pair["one"], pair["other"]} in beside]
    rows.sort(key=lambda pair: order.index(pair["one"]))
    return {
        "neighbours": rows,
        "most": max((pair["enough"] for pair in rows if pair["enough"] is not None), default=None),
        **{
            name: sum(pair["adjusted"] <= CLEAR for pair in some)
            for name, some in (("told_apart", rows), ("of_all", pairs))
        },
    }


def _headroom(board: Board) -> dict[str, Json]:
    """Return how far the best model is from 1, and how many queries no model or every model gets right.

    Only the former for pairs of sentences, which have no score of their own.
    """
    best = max(each.main for each in board.scored)
    found: dict[str, Json] = {"best": best, "left": round(1 - best, DIGITS)}
    if not board.task.scorer.single:
        return found
    table = np.array([each.values["stock"] for each in board.scored])
    return {
        **found,
        "best_of_all": round(float(table.max(axis=0).mean()), DIGITS),
        "nobody": int((table.max(axis=0) <= 0).sum()),
        "everybody": int((table.min(axis=0) >= 1 - 1e-9).sum()),
    }


def _hardness(board: Board, seed: int) -> list[Json] | None:
    """Return the queries by BM25's best rank of a relevant document, with every model's mean score.

    None where BM25 was not evaluated, or nothing is retrieved.
    """
    baseline = next((each for each in board.scored if each.model == BM25), None)
    if baseline is None or not board.task.scorer.searched:
        return None
    counted = _measured(board.task, baseline)
    bands = difficulty.bands(counted)
    places = {query: place for place, query in enumerate(baseline.queries)}
    rows: list[Json] = []
    for group in difficulty.by_rank(counted, seed):
        inside = [places[query] for query, name in bands.items() if name == group.name]
        means = {
            each.model: round(float(np.mean(np.array(each.values[board.lead])[inside])), DIGITS)
            for each in board.scored
        }
        rows.append(
            {
                "best_rank": group.name,
                "queries": group.queries,
                "share": group.share,
                "overlap": group.overlap.shown(),
                "length": group.length.shown(),
                "scores": means,
            }
        )
    return rows


def _measured(task: EvaluationTask, baseline: Scored) -> list[Measured]:
    """Return what can be counted of every query: length, words shared with its relevant documents, BM25's rank."""
    cut = cutter("words", home() / "cache")
    data = task.data
    labels = {query: [doc for doc, gain in docs.items() if gain > 0] for query, docs in data["relevant_docs"].items()}
    wanted = {doc for query in baseline.queries for doc in labels[query]}
    corpus, ids = data["corpus"], data["corpus"]["id"]
    kept = corpus.select([place for place, doc in enumerate(ids) if doc in wanted])
    titles = kept["title"] if "title" in kept.column_names else [""] * len(kept)
    words = {
        doc: frozenset(cut(f"{title or ''} {text}"))
        for doc, title, text in zip(kept["id"], titles, kept["text"], strict=True)
    }
    texts = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))
    return [
        difficulty.measure(
            query, texts[query], frozenset(cut(texts[query])), [words[doc] for doc in labels[query]], rank
        )
        for query, rank in zip(baseline.queries, baseline.first, strict=True)
    ]


def of_legacy(new: Board, old: Board, seed: int) -> dict[str, Json]:
    """Return how alike two tasks of one kind order the models, and every model's two scores."""
    sides = [BenchmarkScores(board.scores(board.scored, board.lead), board.items) for board in (new, old)]
    same = new.scored[0].queries == old.scored[0].queries
    found = averages.compare(sides[0], sides[1], seed, same_queries=same)
    both = zip(new.scored, old.scored, strict=True)
    return {
        "new": new.task.name,
        "old": old.task.name,
        "source": old.task.source,
        "kind": new.task.kind.mteb.type,
        "same_queries": same,
        **asdict(found),
        "fewest": averages.FEWEST,
        "leads": [new.lead, old.lead],
        "scores": [
            {"model": one.model, "new": round(new.led(one), DIGITS), "old": round(old.led(other), DIGITS)}
            for one, other in both
        ],
    }


def per_query(boards: Sequence[Board]) -> pl.DataFrame:
    """Return one row per task, query and model: its score by reading of doubt, and the first relevant rank."""
    parts = []
    for board in boards:
        for each in board.scored:
            if not board.task.scorer.single:
                continue
            columns: Mapping[str, object] = {
                "task": [board.task.name] * len(each.queries),
                "query_id": each.queries,
                "model": [each.model] * len(each.queries),
                **{reading: each.values[reading] for reading in board.task.readings},
                "first_relevant": pl.Series(each.first, dtype=pl.Int64),
            }
            parts.append(pl.DataFrame(columns))
    return pl.concat(parts, how="diagonal").sort("task", "query_id", "model") if parts else pl.DataFrame()


def tops(boards: Sequence[Board]) -> pl.DataFrame:
    """Return the `tops` table: every model's first ten documents for every query, of tasks that search a corpus.

    Only tasks whose labels are the panel's verdicts on documents: others have queries that no run judged.
    """
    rows = [
        (board.task.name, query, each.model, rank, doc)
        for board in boards
        if board.task.kind.judged
        for each in board.scored
        for query, top in zip(each.queries, each.top, strict=False)  # empty where nothing was searched
        for rank, doc in enumerate(top, start=1)
    ]
    return pl.DataFrame(rows, TABLES["tops"], orient="row")


def _round_estimate(estimate: Json) -> Json:
    return round(estimate, DIGITS) if isinstance(estimate, float) else estimate
