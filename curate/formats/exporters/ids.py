"""Ids of queries and documents that cannot be taken for one another."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import polars as pl

from curate.core.protocols import Benchmark
from curate.formats.kinds import kinds
from curate.system.corpus import PrefixedCorpus


def prefixed(benchmark: Benchmark) -> tuple[Benchmark, pl.DataFrame | None]:
    """Return the benchmark with `q-` and `d-` before all ids and the map of them, if any id is used on both sides.

    Where no query id is a document id the benchmark comes back as it is, with None. The map has the columns table
    (queries or corpus), old_id and new_id, queries first, each in the order of its table.
    """
    queries = benchmark.queries["query_id"].to_list()
    documents = [item.doc_id for item in chain.from_iterable(benchmark.corpus.batches())]
    if set(queries).isdisjoint(documents):
        return benchmark, None
    new = {"query_id": "q-" + pl.col("query_id"), "doc_id": "d-" + pl.col("doc_id")}
    renamed = replace(
        benchmark,
        corpus=PrefixedCorpus(benchmark.corpus, "d-"),
        queries=benchmark.queries.with_columns(query_id=new["query_id"]),
        qrels=benchmark.qrels.with_columns(**new),
        candidates=benchmark.candidates.with_columns(**new),
        verdicts=benchmark.verdicts.with_columns(**new),
        graded=None if benchmark.graded is None else benchmark.graded.with_columns(**new),
        tables=_renamed(benchmark.tables, new),
    )
    rows = [("queries", key, f"q-{key}") for key in queries] + [("corpus", key, f"d-{key}") for key in documents]
    return renamed, pl.DataFrame(rows, schema=["table", "old_id", "new_id"], orient="row")


def _renamed(tables: Mapping[str, pl.DataFrame], new: Mapping[str, pl.Expr]) -> dict[str, pl.DataFrame]:
    """Return the tables of kinds under the new ids."""
    return {kind.table: kind.renamed(tables[kind.table], new) for kind in kinds() if kind.table in tables}
