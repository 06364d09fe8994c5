"""Candidates for a reranker: some positives and some negatives per query, drawn by seed."""

from typing import Literal

import polars as pl
from pydantic import Field

from curate.core import sampling
from curate.core.config import Section
from curate.core.records import TABLES
from curate.core.scale import Scale


class Rerank(Section):
    """How a reranker's candidates are drawn."""

    enabled: bool = True
    positives: int = Field(default=10, ge=1, description="of a query, at most; beyond 10 MAP@10 cannot reach 1")
    negatives: int = Field(default=20, ge=1, description="negatives of a query, exactly")
    draw: Literal["uniform", "by_grade", "by_rank"] = Field(
        default="uniform", description="by_grade takes the best-graded negatives first, by_rank the best-ranked"
    )
    queries: int | None = Field(
        default=None,
        ge=1,
        exclude_if=lambda value: value is None,  # so that no manifest and no digest of before is another one
        description="size of a query set of its own, drawn by the seed, whose queries are in no retrieval task; "
        "by default both tasks share their queries",
    )

    @property
    def apart(self) -> bool:
        """Return whether reranking has queries of its own."""
        return self.enabled and self.queries is not None


def candidates(
    verdicts: pl.DataFrame, pool: pl.DataFrame, rerank: Rerank, seed: int, scale: Scale
) -> tuple[pl.DataFrame, list[str]]:
    """Return a reranker's candidates (query_id, doc_id, score) and the queries that have too few negatives.

    A query gives at most `positives` of its positives and exactly `negatives` of its negatives, both
    drawn by seed; contested and incomplete pairs are never candidates. Of a query set of its own so many queries are
    drawn by seed as it is to have, all if there are no more.
    """
    position = pool.select("query_id", "doc_id", "position")
    judged = verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"])).join(
        position, on=["query_id", "doc_id"]
    )
    rows: list[dict[str, object]] = []
    short: list[str] = []
    for (query_id,), pairs in judged.sort("query_id", "doc_id").group_by("query_id", maintain_order=True):
        kinds = {
            bool(key[0]): part for key, part in pairs.group_by(pl.col("verdict") == "relevant", maintain_order=True)
        }
        if True not in kinds:
            continue
        if False not in kinds or len(kinds[False]) < rerank.negatives:
            short.append(str(query_id))
            continue
        positives = sampling.shuffled(kinds[True]["doc_id"].to_list(), seed, "rerank", "positives", str(query_id))
        negatives = _ordered(kinds[False], rerank.draw, seed, str(query_id), scale)
        for score, chosen in ((1, positives[: rerank.positives]), (0, negatives[: rerank.negatives])):
            rows.extend({"query_id": query_id, "doc_id": doc_id, "score": score} for doc_id in sorted(chosen))
    found = pl.DataFrame(rows, TABLES["qrels"]).sort("query_id", "doc_id")
    if rerank.queries is not None:
        asked = found["query_id"].unique().sort().to_list()
        drawn = sampling.shuffled(asked, seed, "rerank", "queries")[: rerank.queries]
        found = found.filter(pl.col("query_id").is_in(drawn))
    return found, short


def _ordered(negatives: pl.DataFrame, draw: str, seed: int, query_id: str, scale: Scale) -> list[str]:
    """Return a query's negatives, those that are drawn first in front; chance decides between equals."""
    rows = sampling.shuffled(
        list(negatives.select("doc_id", "votes", "position").iter_rows()), seed, "rerank", query_id
    )
    if draw == "by_grade":
        rows.sort(key=lambda row: sum(scale.place(vote["grade"]) for vote in row[1] if vote["grade"]))
    elif draw == "by_rank":
        rows.sort(key=lambda row: row[2])
    return [row[0] for row in rows]
