"""Write a benchmark as TREC files: qrels.txt, topics.tsv, topics.jsonl and docs.jsonl."""

import json
from pathlib import Path

import polars as pl

from curate.core.protocols import Benchmark, Corpus


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write the retrieval task for trec_eval and other tools that read TREC formats.

    `qrels.txt` (`qid 0 docid rel`) holds the positives as 1 and the negatives as 0. Contested and incomplete pairs are
    omitted, so measures that distinguish unjudged documents (bpref, condensed lists) treat them as unjudged. Graded
    labels replace these qrels or are in `qrels-graded.txt`: one line per pair with a gain, 0 included, also for
    contested pairs. `topics.tsv` is `qid<tab>text` with each run of white space replaced by one space. `topics.jsonl`
    holds {qid, text} with the text unchanged, `docs.jsonl` {docno, title, text}. The corpus is streamed.
    """
    documents = _write_documents(folder / "docs.jsonl", benchmark.corpus)
    topics = benchmark.queries.select(qid="query_id", text="text")
    with (folder / "topics.jsonl").open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in topics.iter_rows(named=True))
    with (folder / "topics.tsv").open("w", encoding="utf-8", newline="\n") as stream:
        for key, text in benchmark.queries.select("query_id", "text").iter_rows():
            stream.write(f"{key}\t{' '.join(text.split())}\n")
    tables = {} if benchmark.replaced else {"qrels.txt": judged(benchmark)}
    if benchmark.graded is not None:
        tables["qrels.txt" if benchmark.replaced else "qrels-graded.txt"] = benchmark.graded.drop("contested")
    for name, rows in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="\n") as stream:
            for query, document, score in rows.iter_rows():
                if document in documents:  # a refined corpus no longer holds every document that was judged
                    stream.write(f"{query} 0 {document} {score}\n")


def judged(benchmark: Benchmark) -> pl.DataFrame:
    """Return query_id, doc_id, score of the benchmark's queries: positives 1, negatives 0, sorted by key."""
    keys = ["query_id", "doc_id"]
    positives = benchmark.qrels.select(*keys, pl.col("score").cast(pl.Int32))
    negatives = (
        benchmark.verdicts.filter(pl.col("verdict") == "not relevant")
        .join(benchmark.queries, on="query_id", how="semi")
        .join(positives, on=keys, how="anti")
        .select(*keys, pl.lit(0, pl.Int32).alias("score"))
    )
    return pl.concat([positives, negatives]).sort(keys)


def _write_documents(path: Path, corpus: Corpus) -> set[str]:
    """Write one JSON object per document and return the ids."""
    ids: set[str] = set()
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for batch in corpus.batches():
            for document in batch:
                row = {"docno": document.doc_id, "title": document.title, "text": document.text}
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
                ids.add(document.doc_id)
    return ids
