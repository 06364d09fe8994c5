"""Write a run's grades to a file that `replay` judges read: for tests, for docs, for whoever has no key."""

from pathlib import Path

import polars as pl

from curate.files import read_table, replacing


def record(run: Path, path: Path) -> int:
    """Write every grade of a run's panel as TSV (query_id, doc_id, judge, grade); return how many there are.

    A `replay` judge takes the rows of one judge by its `assessor`.
    """
    grades = read_table(run / "judge", "ratings").filter(pl.col("status") == "rated")
    with replacing(path) as part:
        grades.select("query_id", "doc_id", "judge", "grade").write_csv(part, separator="\t")
    return len(grades)
