"""Gradients of the panel's grades: nothing is written, every judged pair has its median grade as level."""

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
    """Return a row per judged pair of at most so many queries, and why other queries have none.

    The level is the gain of the median grade, of an even number of grades the worse of the middle two.
    """
    scale = context.scale
    if scale.order != "ordinal":
        return [], dict.fromkeys(queries, "the labels of the scale have no order")
    judged = verdicts(context)
    there = set(judged["query_id"])
    drawn = shuffled([query for query in queries if query in there], context.seed, "gradient", CONSENSUS)[:most]
    dropped = {
        query: "beyond gradient.consensus" if query in there else "no judged document"
        for query in queries
        if query not in set(drawn)
    }
    chosen = judged.filter(pl.col("query_id").is_in(drawn))
    texts = {
        name: shown(document.title, document.text)
        for name, document in documents(context, set(chosen["doc_id"])).items()
    }
    found: list[dict[str, object]] = []
    for query_id, doc_id, verdict, votes in chosen.select("query_id", "doc_id", "verdict", "votes").iter_rows():
        level = grade_level(votes, scale)
        if level is not None and doc_id in texts:
            row = {"item_id": f"consensus-{query_id}-{doc_id}", "kind": CONSENSUS, "variant": CONSENSUS, "level": level}
            row |= {"source": texts[doc_id], "destination": queries[query_id], "query_id": query_id}
            row |= {"source_id": doc_id, "alternate_id": None, "pair_id": f"consensus-{query_id}", "verdict": verdict}
            said = {vote["judge"]: vote["grade"] for vote in votes if vote["grade"] in scale.labels}
            found.append({**row, "votes": answers(said)})
    graded = {str(row["query_id"]) for row in found}
    return found, dropped | {each: "no grade" for each in drawn if each not in graded}


def grade_level(votes: list[dict[str, str]], scale: Scale) -> float | None:
    """Return the gain of the median grade; None without a grade."""
    median = scale.lower_median(vote["grade"] for vote in votes if vote["grade"] in scale.labels)
    return None if median is None else float(scale.gain(median))
