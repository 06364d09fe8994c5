"""Scores by difficulty of the queries: BM25's best rank of a relevant document."""

from collections.abc import Mapping

import numpy as np

from curate.commands.evaluate.board import Board
from curate.commands.evaluate.ranking_models import BM25
from curate.commands.evaluate.scoring import Scored
from curate.commands.evaluate.tasks import EvaluationTask
from curate.core.figures import Figure, Record, figure
from curate.pipeline.stage import home
from curate.retrieval.retrievers.bm25 import cutter
from curate.stats import difficulty
from curate.stats.bootstrap import DIGITS
from curate.stats.difficulty import Measured


class DifficultyBand(Record, schema_name="difficulty"):
    """Queries of one difficulty."""

    best_rank: str = figure("band of BM25's best rank of a relevant document")
    queries: int = figure("queries of the band")
    share: float = figure("share of all queries")
    overlap: Figure = figure("share of the query's words in its closest positive", digits=2)
    length: Figure = figure("mean number of characters of a query")
    scores: Mapping[str, float | None] = figure("model -> mean score on these queries")


def by_difficulty(board: Board) -> tuple[DifficultyBand, ...] | None:
    """Return groups of queries by BM25's best rank of a relevant document, with every model's mean score.

    None if BM25 was not evaluated, or the task is not retrieval.
    """
    baseline = next((scored for scored in board.scored if scored.model == BM25), None)
    if baseline is None or not board.task.scorer.searched:
        return None
    counted = _measured(board.task, baseline)
    bands = difficulty.bands(counted)
    index_by_query = {query: index for index, query in enumerate(baseline.queries)}
    rows = []
    for group in difficulty.by_rank(counted, board.seed):
        indices = [index_by_query[query] for query, name in bands.items() if name == group.name]
        means = {
            scored.model: round(float(np.mean(np.array(scored.values[board.lead])[indices])), DIGITS)
            for scored in board.scored
        }
        rows.append(DifficultyBand(group.name, group.queries, group.share, group.overlap, group.length, means))
    return tuple(rows)


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
