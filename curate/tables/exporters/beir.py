"""Write a benchmark as a BEIR folder: corpus.jsonl, queries.jsonl and qrels/test.tsv."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from curate.core.protocols import Benchmark


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write the retrieval task in BEIR's format; binary labels omit contested pairs, and ids are always JSON strings.

    `corpus.jsonl` holds {_id, title, text}, `queries.jsonl` {_id, text}, and `qrels/test.tsv` the positives under the
    header query-id, corpus-id, score. Graded labels with their gains replace the positives, or are written to
    `qrels/graded.tsv` (`split="graded"` of BEIR's loader). The corpus is streamed.
    """
    documents = (document for batch in benchmark.corpus.batches() for document in batch)
    _write_lines(
        folder / "corpus.jsonl",
        ({"_id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in documents),
    )
    _write_lines(
        folder / "queries.jsonl",
        ({"_id": key, "text": text} for key, text in benchmark.queries.select("query_id", "text").iter_rows()),
    )
    (folder / "qrels").mkdir()
    _write_qrels(folder / "qrels" / "test.tsv", benchmark.labels)
    if benchmark.graded is not None and not benchmark.replaced:
        _write_qrels(folder / "qrels" / "graded.tsv", benchmark.gains)


def _write_qrels(path: Path, labels: pl.DataFrame) -> None:
    rows = labels.select("query_id", "doc_id", "score").sort("query_id", "doc_id")
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write("query-id\tcorpus-id\tscore\n")
        stream.writelines(f"{query}\t{document}\t{score}\n" for query, document, score in rows.iter_rows())


def _write_lines(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
