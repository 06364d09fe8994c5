"""`csv`: a benchmark as three files that every spreadsheet opens."""

import csv
from collections.abc import Iterable
from pathlib import Path

from curate import Benchmark


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write queries.csv, corpus.csv and qrels.csv; a pair that is not decided has no line.

    The same benchmark must give the same bytes: rows are sorted, and nothing holds a time or a path.
    """
    documents = (item for batch in benchmark.corpus.batches() for item in batch)  # one batch at a time in memory
    write(folder / "queries.csv", ("query_id", "text"), benchmark.queries.select("query_id", "text").iter_rows())
    write(folder / "corpus.csv", ("doc_id", "title", "text"), ((it.doc_id, it.title, it.text) for it in documents))
    columns = ("query_id", "doc_id", "score")
    write(folder / "qrels.csv", columns, benchmark.qrels.select(columns).sort(columns).iter_rows())


def write(path: Path, header: Iterable[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Write a header and rows, lines ended as on Unix."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(header)
        lines.writerows(rows)
