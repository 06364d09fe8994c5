"""The texts of a run, as judges and people see them."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from curate.core.records import shown
from curate.review.sample import Sample
from curate.system.files import read_table


def texts(run: Path, doc_ids: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the queries of a run, and the passages of some documents; only these are read into memory."""
    return _texts(run / "diversify", doc_ids)


def _texts(kept: Path, doc_ids: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    queries = dict(read_table(kept, "queries").select("query_id", "text").iter_rows())
    wanted = pl.Series(sorted(set(doc_ids)), dtype=pl.String)
    corpus = pl.scan_parquet(kept / "corpus.parquet").filter(pl.col("doc_id").is_in(wanted.implode()))
    rows = corpus.select("doc_id", "title", "text").collect().iter_rows()
    return queries, {doc_id: shown(title, text) for doc_id, title, text in rows}


def outdated(sample: Sample, kept: Path) -> set[tuple[str, str]]:
    """Return the pairs of a sample whose texts are not those that people read; `kept` is the folder of diversify."""
    rows = [(*ids, *read) for ids, read in sample.survey.select("ids", "texts").iter_rows()]
    queries, passages = _texts(kept, (row[1] for row in rows))
    return {(query, doc) for query, doc, *read in rows if [queries.get(query), passages.get(doc)] != read}
