"""Exporter of training data: FlagEmbedding's JSONL with texts, and Parquet tables of ids for sentence-transformers.

Positives are the candidates with score 1, negatives those with score 0.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.system.files import sha256, write_text
from curate.tables.exporters.card import TRIPLES, Table, environment, front_matter, markdown

LISTS = "triples.jsonl"
_OWN = ("license", "source", "instruction", "judges", "weak_judges", "scores", "mined")


@dataclass(frozen=True)
class TriplesContent:
    """Contents of a triples folder: lines of `triples.jsonl`, one per query, and Parquet tables by name."""

    lists: pl.DataFrame
    """query_id, and the lists pos and neg of {doc_id, worth (mean gain of the judges' grades)}, highest first."""
    lines: Iterable[str]
    """Iterator that can be read once, so that the texts of a large set are not in memory twice."""
    tables: Mapping[str, pl.DataFrame]


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write `triples.jsonl`, the tables `train`, `queries` and `documents`, and a README on them.

    A line of `triples.jsonl` is a query: {query, pos, neg}, where pos and neg are lists of texts. With the fact
    `scores` it also has pos_scores and neg_scores: mean gains of a pair's grades (with five grades 4 for S to 0 for D).
    With the fact `instruction` it also has prompt. A row of `train` holds query_id, positive_id and negative_id: the
    n-th positive with the n-th negative; the shorter list is repeated up to the length of the longer one. Best grades
    come first. DataError if a query has no positive or no negative.
    """
    triples = content(benchmark)
    with (folder / LISTS).open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(triples.lines)
    tables = [_write(folder, name, table) for name, table in triples.tables.items()]
    write_text(folder / "README.md", readme(benchmark, triples, tables))


def content(benchmark: Benchmark) -> TriplesContent:
    """Return the contents of the folder that `export` writes."""
    lists, doc_ids = _lists(benchmark), set(benchmark.candidates["doc_id"])
    texts = {doc.doc_id: doc.shown() for batch in benchmark.corpus.batches() for doc in batch if doc.doc_id in doc_ids}
    queries = benchmark.queries.join(lists, on="query_id", how="semi", maintain_order="left")
    rows = _lines(benchmark, lists, dict(queries.select("query_id", "text").iter_rows()), texts)
    tables = {
        "train": _triples(lists),
        "queries": queries.select("query_id", "text"),
        "documents": pl.DataFrame(list(texts.items()), {"doc_id": pl.String, "text": pl.String}, orient="row"),
    }
    return TriplesContent(lists, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows), tables)


def alone(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with only those queries and verdicts that belong to its candidates."""
    chosen = benchmark.candidates
    return replace(
        benchmark,
        queries=benchmark.queries.join(chosen, on="query_id", how="semi", maintain_order="left"),
        verdicts=benchmark.verdicts.join(chosen, on=["query_id", "doc_id"], how="semi", maintain_order="left"),
    )


def _lists(benchmark: Benchmark) -> pl.DataFrame:
    """Return query_id and the lists pos and neg of {doc_id, worth}, best mean gain first; sorted by query."""
    gains = dict(zip(benchmark.scale.labels, benchmark.scale.gains, strict=True))
    gain = pl.element().struct.field("grade").replace_strict(gains, default=None, return_dtype=pl.Float64)
    worth = pl.col("votes").list.eval(gain).list.mean().round(5)
    graded = benchmark.verdicts.select("query_id", "doc_id", worth=worth)
    rows = benchmark.candidates.join(graded, on=["query_id", "doc_id"], how="left")
    side = pl.struct("doc_id", "worth")
    lists = (
        rows.sort("query_id", "worth", "doc_id", descending=[False, True, False], nulls_last=True)
        .group_by("query_id", maintain_order=True)
        .agg(pos=side.filter(pl.col("score") > 0), neg=side.filter(pl.col("score") == 0))
    )
    lame = lists.filter((pl.col("pos").list.len() == 0) | (pl.col("neg").list.len() == 0))
    if lists.is_empty() or len(lame):
        raise DataError(
            f"triples: found {len(lists):,} queries with candidates, of which {len(lame):,} have no positive or no "
            "negative; expected one or more queries with both; see `curate train-set`, or export.rerank"
        )
    return lists


def _lines(
    benchmark: Benchmark, lists: pl.DataFrame, queries: Mapping[str, str], texts: Mapping[str, str]
) -> Iterator[dict[str, Json]]:
    """Yield the rows of `triples.jsonl`."""
    prompt, scored = benchmark.facts.get("instruction"), bool(benchmark.facts.get("scores"))
    for query_id, *sides in lists.iter_rows():
        row: dict[str, Json] = {"query": queries[query_id]}
        row |= {
            name: [texts[entry["doc_id"]] for entry in side] for name, side in zip(("pos", "neg"), sides, strict=True)
        }
        if scored:
            columns = zip(("pos_scores", "neg_scores"), sides, strict=True)
            row |= {name: [entry["worth"] for entry in side] for name, side in columns}
        yield {**row, "prompt": str(prompt)} if prompt else row


def _triples(lists: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, positive_id and negative_id, a row per triple."""
    longest = pl.max_horizontal(pl.col("pos").list.len(), pl.col("neg").list.len())
    rows = lists.with_columns(at=pl.int_ranges(longest)).explode("at")
    return rows.select(
        "query_id",
        **{
            name: pl.col(side).list.get(pl.col("at") % pl.col(side).list.len()).struct.field("doc_id")
            for name, side in (("positive_id", "pos"), ("negative_id", "neg"))
        },
    )


def _write(folder: Path, config: str, table: pl.DataFrame) -> Table:
    """Write a Parquet file with the digest of its content in its name, since `datasets` caches by name."""
    import pyarrow.parquet as pq

    temporary = folder / f".{config}.parquet"
    pq.write_table(table.to_arrow(), temporary, compression="zstd", write_statistics=False)
    path = folder / f"{config}-{sha256(temporary)[:16]}.parquet"
    temporary.rename(path)
    return Table(config, path.name, len(table), table.columns)


def readme(benchmark: Benchmark, triples: TriplesContent, tables: Sequence[Table]) -> str:
    """Return the README of a triples folder."""
    lists = triples.lists
    facts = benchmark.facts
    front = {
        "pretty_name": f"{benchmark.name} (triples)",
        "language": [benchmark.language.partition("-")[0]],
        **({"license": str(facts["license"])} if facts.get("license") else {}),
        "task_categories": ["text-ranking"],
        "tags": ["sentence-transformers", "text"],
        "configs": [
            {"config_name": table.config, "data_files": [{"split": "train", "path": table.file}]}
            | ({"default": True} if table.config == "train" else {})
            for table in tables
        ],
    }
    pairs = {name: int(lists[name].list.len().sum()) for name in ("pos", "neg")}
    counts = {table.config.replace("train", "triples"): table.rows for table in tables} | {
        "positives": pairs["pos"],
        "negatives": pairs["neg"],
    }
    return (
        environment()
        .get_template(TRIPLES)
        .render(
            front=front_matter(front),
            name=markdown(benchmark.name),
            facts={key: facts.get(key) for key in _OWN},
            construction={key: fact for key, fact in facts.items() if key not in _OWN},
            counts=counts,
            tables=tables,
        )
    )
