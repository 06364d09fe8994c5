"""Read an export of any format: its texts, and its tables of labels, each with the name of the expected labels."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from curate.core.errors import DataError
from curate.system.files import BATCH, frame
from curate.tables.kinds import kinds

Frames = Iterator[pl.DataFrame]
_QRELS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Int32}
_NAMES = {"id": "doc_id", "query-id": "query_id", "corpus-id": "doc_id"}


RETRIEVAL_QUERIES = "retrieval queries"
"""Name of the retrieval task's queries; the reranking task may have other queries."""


@dataclass(frozen=True)
class ExportContents:
    """Contents of an export folder."""

    queries: pl.DataFrame
    """query_id, text."""
    documents: Callable[[], Frames]
    """Function that yields batches of documents: doc_id, title, text."""
    tables: Mapping[str, tuple[str, pl.DataFrame]]
    """File -> (name of the expected labels, see `curate.runs.derive.expected`; table of the labels in the file)."""
    kinds: Mapping[str, Mapping[str, pl.DataFrame]] = field(default_factory=dict)
    """Kind whose labels are not verdicts on documents -> configuration and split, such as `pairs-train` -> table."""
    reranks: bool = False
    """Whether the format includes the candidates of a reranker, if the benchmark has any."""
    triples: pl.DataFrame | None = None
    """query_id, positive_id, negative_id of a training set; None for other formats."""


def mteb(folder: Path) -> ExportContents:
    """Read the task folders; kinds whose labels are not verdicts on documents are returned in `kinds`.

    Retrieval or reranking may be absent (too small a task is not exported).
    """
    tables: dict[str, tuple[str, pl.DataFrame]] = {}
    one, two = folder / "retrieval", folder / "reranking"
    of_corpus = [task for task in (one, two) if task.is_dir()]
    if one.is_dir():
        for config, kind in (("qrels", "qrels"), ("grades", "grades"), ("contested", "contested")):
            _add(tables, one, config, kind)
    if two.is_dir():
        for config in ("qrels", "top_ranked", "grades", "contested", "queries", "corpus"):
            _add(tables, two, config, f"reranking {config}")
    three = folder / "graded"
    if three.is_dir():
        for config, kind in (("qrels", "graded"), ("grades", "grades"), ("contested", "contested")):
            _add(tables, three, config, kind)
        _add(tables, three, "queries", "graded queries")
        if (corpus := _only(three, "corpus").name) != _only(
            one, "corpus"
        ).name:  # the names contain the digest of the content
            raise DataError(f"graded/{corpus}: it is another corpus than that of retrieval")
    if one.is_dir():
        _add(tables, one, "queries", RETRIEVAL_QUERIES)
    query_tables = [table for labels, table in tables.values() if labels in (RETRIEVAL_QUERIES, "reranking queries")]
    empty = pl.DataFrame(schema={"query_id": pl.String, "text": pl.String})
    queries = pl.concat([*query_tables[::-1], empty]).unique("query_id", keep="first", maintain_order=True)

    def documents() -> Frames:
        return _batches(_only(of_corpus[0], "corpus")) if of_corpus else iter(())

    return ExportContents(queries, documents, tables, own_kinds(folder), reranks=True)


def own_kinds(folder: Path) -> dict[str, dict[str, pl.DataFrame]]:
    """Return kind -> its tables, for the kinds whose labels are not verdicts on documents."""
    return {
        kind.name: written for kind in kinds() if not kind.judged and (written := _tables_of_kind(folder / kind.name))
    }


def _tables_of_kind(folder: Path) -> dict[str, pl.DataFrame]:
    """Return the tables in the folder of a kind, by configuration and split, such as `pairs` and `pairs-train`."""
    tables: dict[str, pl.DataFrame] = {}
    for path in sorted(folder.glob("*-*.parquet")):
        name = path.stem.rpartition("-")[0]
        if name in tables:
            raise DataError(f"{folder.name}: expected one file {name}-HASH.parquet, found more")
        tables[name] = pl.read_parquet(path)
    return tables


def beir(folder: Path) -> ExportContents:
    """Read corpus.jsonl, queries.jsonl and qrels/test.tsv, and qrels/graded.tsv if present."""
    tables = {"qrels/test.tsv": ("qrels", _tsv(folder / "qrels" / "test.tsv"))}
    if (graded := folder / "qrels" / "graded.tsv").is_file():
        tables["qrels/graded.tsv"] = ("graded", _tsv(graded))
    return ExportContents(
        next(_lines(folder / "queries.jsonl", {"query_id": "_id", "text": "text"}, in_one=True)),
        lambda: _lines(folder / "corpus.jsonl", {"doc_id": "_id", "title": "title", "text": "text"}),
        tables,
    )


def _tsv(path: Path) -> pl.DataFrame:
    rows = pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None)
    return rows.select(query_id="query-id", doc_id="corpus-id", score=pl.col("score").cast(pl.Int32))


def trec(folder: Path) -> ExportContents:
    """Read docs.jsonl, topics.jsonl, topics.tsv (a table to verify), qrels.txt and, if present, qrels-graded.txt."""
    tables = {"qrels.txt": ("judged", _txt(folder / "qrels.txt"))}
    if (graded := folder / "qrels-graded.txt").is_file():
        tables["qrels-graded.txt"] = ("graded judged", _txt(graded))
    queries = next(_lines(folder / "topics.jsonl", {"query_id": "qid", "text": "text"}, in_one=True))
    topics = [line.split("\t", 1) for line in (folder / "topics.tsv").read_text(encoding="utf-8").splitlines()]
    return ExportContents(
        queries,
        lambda: _lines(folder / "docs.jsonl", {"doc_id": "docno", "title": "title", "text": "text"}),
        {
            **tables,
            "topics.tsv": ("topics", pl.DataFrame(topics, {"query_id": pl.String, "text": pl.String}, orient="row")),
        },
    )


def triples(folder: Path) -> ExportContents:
    """Read the Parquet tables of a training set; `triples.jsonl` contains nothing more and is not read."""
    documents = pl.read_parquet(_only(folder, "documents"))
    return ExportContents(
        pl.read_parquet(_only(folder, "queries")),
        lambda: iter([documents.select("doc_id", "text", title=pl.lit("")).select("doc_id", "title", "text")]),
        {},
        triples=pl.read_parquet(_only(folder, "train")),
    )


def _txt(path: Path) -> pl.DataFrame:
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return pl.DataFrame([(query, doc, int(score)) for query, _, doc, score in lines], _QRELS, orient="row")


def _add(tables: dict[str, tuple[str, pl.DataFrame]], folder: Path, config: str, kind: str) -> None:
    if config == "contested" and not list(folder.glob("contested-*.parquet")):  # an empty table is not written
        empty = frame("contested").select("query_id", "doc_id", "votes")
        tables[f"{folder.name}/contested"] = (kind, empty)
        return
    path = _only(folder, config)
    table = pl.read_parquet(path)
    if config == "queries":
        table = table.rename({"id": "query_id"})
    tables[f"{folder.name}/{path.name}"] = (kind, table.rename(_NAMES, strict=False))


def _only(folder: Path, config: str) -> Path:
    """Return the only Parquet file of a configuration; DataError if there is none, or more than one."""
    paths = sorted(folder.glob(f"{config}-*.parquet"))
    if len(paths) != 1:
        raise DataError(f"{folder}: expected one file {config}-HASH.parquet, found {len(paths)}")
    return paths[0]


def _batches(path: Path) -> Frames:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=10 * BATCH):
            documents = pl.from_arrow(batch)
            assert isinstance(documents, pl.DataFrame)
            yield documents.select(doc_id="id", title="title", text="text")


def _lines(path: Path, columns: Mapping[str, str], *, in_one: bool = False) -> Frames:
    """Yield columns (name -> JSON key) of a JSONL file in batches; `in_one`: as a single frame."""
    schema, rows = dict.fromkeys(columns, pl.String), list[tuple[str, ...]]()
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            rows.append(tuple(row[key] for key in columns.values()))
            if len(rows) == 10 * BATCH and not in_one:
                yield pl.DataFrame(rows, schema, orient="row")
                rows = []
    yield pl.DataFrame(rows, schema, orient="row")
