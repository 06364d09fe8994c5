"""Settled answers: one grade per pair from all samples of a run."""

from pathlib import Path

import polars as pl

from curate.review.desk import Desk
from curate.review.sample import Sample

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.String, "weight": pl.Float64}


def settled(run: Path) -> pl.DataFrame:
    """Return the pairs that people graded: query_id, doc_id, grade, and how many pairs of the pool the row stands for.

    Only drawn rows of samples on relevance, not their controls. Of a pair in several samples the first counts, by name.
    """
    folders = sorted(path.parent for path in (run / "reviews").glob("*/design.json"))
    desks = [Desk(sample) for sample in map(Sample.load, folders) if sample.design.form == "relevance"]
    rows = [row for desk in desks for row in _rows(desk)]
    return pl.DataFrame(rows, SCHEMA, orient="row").unique(["query_id", "doc_id"], keep="first", maintain_order=True)


def _rows(desk: Desk) -> list[tuple[str, str, str, float]]:
    said = {person: desk.said(person) for person in desk.people()}
    columns = ["row_id", "ids", "assessors", "probability"]
    drawn = desk.sample.survey.filter(pl.col("expected").is_null()).select(columns).iter_rows()
    rows = []
    for row_id, ids, readers, probability in drawn:
        answers = {person: each for person in said if row_id in said[person] and (each := said[person][row_id].answer)}
        answer = desk.settled(readers, answers)
        if answer is not None:
            rows.append((ids[0], ids[1], answer, 1 / probability))
    return rows
