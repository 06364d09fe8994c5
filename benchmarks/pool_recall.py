"""How often a query's own answers are in its pool, by position: over all queries of a legacy set, not only a trial's.

The first 100 are the first 100 of the pool's order, which is reciprocal-rank fusion. The figure is the share of all
qrels found. Run: python -m benchmarks.pool_recall RUN [QUERIES.jsonl TEXT_FIELD QRELS.tsv]
Without the last three it takes queries and qrels of the run itself.
"""

import json
import sys
from functools import reduce
from pathlib import Path

import polars as pl

from curate.ask import build
from curate.commands.pool.stage import pool
from curate.core.protocols import quiet
from curate.core.records import Query
from curate.pipeline.facts import known_ids
from curate.pipeline.stage import Context, home
from curate.retrieval.fusion import Method
from curate.retrieval.id_mapping import ranked
from curate.system.corpus import TableCorpus

DEPTHS = (10, 50, 100, 200, 500)
PANELS = (("bm25",), ("e5",), ("use",), ("bm25", "e5"), ("bm25", "e5", "use"))


def all_queries(path: Path, field: str) -> list[Query]:
    """Return the queries of a JSONL file; `field` is a dotted path to the text."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Query(row["_id"], reduce(lambda value, part: value[part], field.split("."), row)) for row in rows]


def own_answers(path: Path, run: Path) -> pl.DataFrame:
    """Return the pairs of a qrels file under the ids that the run kept."""
    aliases = pl.read_parquet(run / "mask" / "aliases.parquet").filter(pl.col("table") == "corpus")
    kept = pl.col("corpus-id").replace(dict(aliases.select("old_id", "kept_id").iter_rows()))
    qrels = pl.read_csv(path, separator="\t", schema_overrides={"query-id": pl.String, "corpus-id": pl.String})
    return qrels.select(query_id="query-id", doc_id=kept).unique(maintain_order=True)


def main(run: Path, queries: list[Query], answers: pl.DataFrame) -> None:
    """Retrieve with every retriever once and print a row per panel and method."""
    context = Context(run=run, out=run, home=home())
    corpus = TableCorpus(context.folder("diversify"))
    ids = known_ids(context, corpus)
    asked = set(answers["query_id"])
    queries = [query for query in queries if query.query_id in asked]
    found = {
        name: pl.concat(ranked(build.retriever(context, name), corpus, queries, 500, ids, quiet))
        for name in ("bm25", "e5", "use")
    }
    print(f"{len(queries):,} queries, {len(corpus):,} documents, {len(answers):,} own answers")
    print("| retrievers | pool | " + " | ".join(f"first {depth}" for depth in DEPTHS) + " |")
    print("| --- " * (2 + len(DEPTHS)) + "|")
    for panel in PANELS:
        methods: tuple[Method, ...] = ("equal-depth", "rrf") if len(panel) > 1 else ("rrf",)
        for method in methods:
            chosen = pool(pl.concat([found[name] for name in panel]), 500, method)
            places = answers.join(chosen, on=["query_id", "doc_id"], how="left")["position"]
            shares = " | ".join(f"{(places <= depth).sum() / len(places):.1%}" for depth in DEPTHS)
            print(f"| {' + '.join(panel)} | {method if len(panel) > 1 else 'alone'} | {shares} |")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        main(folder, all_queries(Path(sys.argv[2]), sys.argv[3]), own_answers(Path(sys.argv[4]), folder))
    else:
        tables = Context(run=folder, out=folder, home=home())
        rows = tables.read("diversify", "queries").select("query_id", "text").iter_rows()
        main(folder, [Query(*row) for row in rows], tables.read("diversify", "qrels").select("query_id", "doc_id"))
