"""Gradients from the panel's grades: no text is generated; the level of a judged pair is its median grade."""

from collections.abc import Mapping

import polars as pl

from curate.commands.gradient.editing import answers
from curate.commands.gradient.mixes import documents, verdicts
from curate.core.records import shown
from curate.core.sampling import shuffled
from curate.core.scale import Scale
from curate.pipeline.stage import Context

CONSENSUS = "consensus"


def rows(
    context: Context, queries: Mapping[str, str], most: int | None
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Return a row per judged pair of at most `most` queries, and query -> reason for the others.

    The level is the gain of the lower median grade: of an even number, the worse of the middle two.
    """
    scale = context.scale
    if scale.order != "ordinal":
        return [], dict.fromkeys(queries, "the labels of the scale have no order")
    judged = verdicts(context)
    judged_queries = set(judged["query_id"])
    drawn = shuffled([query for query in queries if query in judged_queries], context.seed, "gradient", CONSENSUS)[
        :most
    ]
    dropped = {
        query: "beyond gradient.consensus" if query in judged_queries else "no judged document"
        for query in queries
        if query not in set(drawn)
    }
    chosen = judged.filter(pl.col("query_id").is_in(drawn))
    texts = {
        name: shown(document.title, document.text)
        for name, document in documents(context, set(chosen["doc_id"])).items()
    }
    rows: list[dict[str, object]] = []
    for query_id, doc_id, verdict, votes in chosen.select("query_id", "doc_id", "verdict", "votes").iter_rows():
        level = grade_level(votes, scale)
        if level is not None and doc_id in texts:
            row = {"item_id": f"consensus-{query_id}-{doc_id}", "kind": CONSENSUS, "variant": CONSENSUS, "level": level}
            row |= {"source": texts[doc_id], "destination": queries[query_id], "query_id": query_id}
            row |= {"source_id": doc_id, "alternate_id": None, "pair_id": f"consensus-{query_id}", "verdict": verdict}
            grade_by_judge = {vote["judge"]: vote["grade"] for vote in votes if vote["grade"] in scale.labels}
            rows.append({**row, "votes": answers(grade_by_judge)})
    graded = {str(row["query_id"]) for row in rows}
    return rows, dropped | {query: "no grade" for query in drawn if query not in graded}


def grade_level(votes: list[dict[str, str]], scale: Scale) -> float | None:
    """Return the gain of the median grade; None without a grade."""
    median = scale.lower_median(vote["grade"] for vote in votes if vote["grade"] in scale.labels)
    return None if median is None else float(scale.gain(median))
