"""Fourteen sources as people have them: every kind of file, each with repeated ids, empty and long texts, HTML."""

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

QUERIES, DOCUMENTS = 12, 30
"""That can be read; beside them every source has rows that cannot."""
LONG, CELL = 50_000, 32_767
"""Characters of the longest text, and of a cell of Excel at most."""
TOPICS = ("高血压", "胃溃疡", "偏头痛", "痛风", "失眠", "贫血")
Rows = list[dict[str, str]]


def queries() -> Rows:
    """Return the queries, with one whose id was there before and one that is empty."""
    found = [{"id": str(100 + n), "text": f"{TOPICS[n % 6]}患者,第{n}天能喝咖啡吗; 要吃药吗"} for n in range(QUERIES)]
    return [*found, {"id": "100", "text": "又是同一个编号"}, {"id": "900", "text": " "}]


def corpus() -> Rows:
    """Return the documents, one of 50,000 characters and one in HTML, with a repeated id and an empty text."""
    texts = [f"{TOPICS[n % 6]}的第{n}条建议: 少喝咖啡, 按时服药, p<0.05, 保持心情舒畅" for n in range(DOCUMENTS)]
    texts[3] = (texts[3] * (LONG // len(texts[3]) + 1))[:LONG]
    texts[4] = f"<div class='a'><p>{texts[4]}</p><p>10<sup>9</sup>&nbsp;个</p></div>"
    found = [{"id": str(n), "title": f"标题{n}", "text": text} for n, text in enumerate(texts)]
    return [*found, {"id": "7", "title": "", "text": "又是同一个编号"}, {"id": "901", "title": "", "text": ""}]


def qrels() -> list[tuple[str, str, int]]:
    """Return a relevant document per query."""
    return [(str(100 + n), str(n), 1) for n in range(QUERIES)]


@dataclass(frozen=True)
class Everyday:
    """One source, and what a user sets to read it."""

    ingest: Mapping[str, Any]
    qrels: int = QUERIES
    queries: int = QUERIES
    documents: int = DOCUMENTS
    longest: int = LONG
    notes: Sequence[str] = field(default_factory=tuple)


def table(path: Path, rows: Iterable[Sequence[str]], sign: str, encoding: str = "utf-8") -> str:
    """Write a CSV as a spreadsheet program does, with a broken row at its end."""
    with path.open("w", encoding=encoding, newline="") as stream:
        csv.writer(stream, delimiter=sign).writerows(rows)
        stream.write(f"1{sign}2{sign}3{sign}4{sign}5{sign}6\r\n")
    return str(path)


def cells(rows: Rows, *header: str) -> list[list[str]]:
    """Return rows under a header of other names."""
    return [list(header), *([row[name] for name in rows[0]] for row in rows)]


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return JSONL with a line that is cut off."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows) + b'{"id": "cut off\n'


def shards(folder: Path, rows: Rows, name: str = "train", count: int = 2) -> str:
    """Write Parquet shards as the hub names them."""
    folder.mkdir(parents=True)
    for at, part in enumerate(parts(rows, count)):
        pq.write_table(pa.Table.from_pylist(part), folder / f"{name}-{at:05}-of-{count:05}.parquet")
    return str(folder)


def parts(rows: Rows, count: int) -> list[Rows]:
    """Return rows in so many parts, in their order."""
    size = -(-len(rows) // count)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def saved(folder: Path, rows: Rows) -> None:
    """Write what `datasets.save_to_disk` writes."""
    folder.mkdir(parents=True)
    names = [f"data-{at:05}-of-00002.arrow" for at in range(2)]
    for name, part in zip(names, map(pa.Table.from_pylist, parts(rows, 2)), strict=True):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, part.schema) as stream:
            stream.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "f", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def labels(path: Path, pairs: Iterable[tuple[str, str, int]] = ()) -> str:
    """Write qrels as BEIR has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [("query-id", "corpus-id", "score"), *(pairs or qrels())]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return str(path)


def semicolons(folder: Path) -> Everyday:
    """A CSV of a German Excel: semicolons, a byte order mark, commas in every text."""
    asked = table(folder / "q.csv", cells(queries(), "ID", "Question Text"), ";", "utf-8-sig")
    answers = table(folder / "c.csv", cells(corpus(), "ID", "Headline", "Answer Text"), ";", "utf-8-sig")
    names = {"queries": {"id": "ID", "text": "Question Text"}, "corpus": {"id": "ID", "title": "Headline"}}
    names["corpus"]["text"] = "Answer Text"
    return Everyday({"queries": {"path": asked}, "corpus": {"path": answers}, "columns": names}, qrels=0)


def tabs(folder: Path) -> Everyday:
    """A CSV with tabs between its cells, and one with bars."""
    asked = table(folder / "q.csv", cells(queries(), "id", "text"), "\t")
    answers = table(folder / "c.csv", cells(corpus(), "id", "title", "text"), "|")
    marked = labels(folder / "qrels.tsv")
    return Everyday({"queries": {"path": asked}, "corpus": {"path": answers}, "qrels": {"path": marked}})


def gbk(folder: Path) -> Everyday:
    """Two CSV of a Chinese Windows."""
    asked = table(folder / "q.csv", cells(queries(), "编号", "问题"), ";", "gb18030")
    answers = table(folder / "c.csv", cells(corpus(), "编号", "标题", "答案"), ",", "gb18030")
    names = {"queries": {"id": "编号", "text": "问题"}, "corpus": {"id": "编号", "title": "标题", "text": "答案"}}
    return Everyday({"queries": {"path": asked}, "corpus": {"path": answers}, "columns": names}, qrels=0)


def workbook(folder: Path) -> Everyday:
    """One Excel file with a sheet per table; ids and scores are numbers."""
    book = openpyxl.Workbook()
    for name, rows in (("queries", queries()), ("corpus", corpus())):
        page = book.create_sheet(name)
        page.append(list(rows[0]))
        for row in rows:
            page.append([int(row["id"]), *([*row.values()][1:])])
    page = book.create_sheet("qrels")
    for pair in (("query_id", "doc_id", "score"), *qrels()):
        page.append([int(each) if each.isdigit() else each for each in map(str, pair)])
    book["corpus"].append(["=1+1", "a formula", "whose value was never stored"])
    book.save(folder / "book.xlsx")
    tables = {name: {"path": str(folder / "book.xlsx")} for name in ("queries", "corpus", "qrels")}
    return Everyday(tables, longest=CELL)


def save_to_disk(folder: Path) -> Everyday:
    """A folder with data sets of the package datasets."""
    saved(folder / "set" / "queries", queries())
    saved(folder / "set" / "corpus", corpus())
    labels(folder / "set" / "qrels" / "test.tsv")
    return Everyday({"source": str(folder / "set")})


def dataset_dict(folder: Path) -> Everyday:
    """A corpus of several splits, saved as one, and queries beside it."""
    for split in ("train", "test"):
        saved(folder / "texts" / split, corpus())
    (folder / "texts" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    (folder / "q.jsonl").write_bytes(lines(queries()))
    asked, answers = {"path": str(folder / "q.jsonl")}, {"path": str(folder / "texts")}
    said = "corpus: the split test is read, train not"
    return Everyday({"queries": asked, "corpus": answers}, qrels=0, notes=[said])


def gzipped(folder: Path) -> Everyday:
    """A BEIR folder whose files are packed."""
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress(lines(queries())))
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(lines(corpus())))
    packed = Path(labels(folder / "qrels" / "test.tsv"))
    packed.with_suffix(".tsv.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    return Everyday({"source": str(folder)})


def zstd(folder: Path) -> Everyday:
    """Packed CSV and JSON, by zstandard."""
    table(folder / "q.csv", cells(queries(), "id", "text"), ",")
    for name, content in (("q.csv.zst", (folder / "q.csv").read_bytes()), ("c.ndjson.zst", lines(corpus()))):
        with pa.CompressedOutputStream(str(folder / name), "zstd") as stream:
            stream.write(content)
    return Everyday({"queries": {"path": f"{folder}/q.csv.zst"}, "corpus": {"path": f"{folder}/c.ndjson.zst"}}, qrels=0)


def parquet_folder(folder: Path) -> Everyday:
    """Folders of Parquet shards."""
    asked, answers = shards(folder / "asked", queries()), shards(folder / "answers", corpus(), "part", 3)
    return Everyday({"queries": {"path": asked}, "corpus": {"path": answers}}, qrels=0)


def mteb(folder: Path) -> Everyday:
    """An MTEB folder as the hub stores it, without its README."""
    shards(folder / "corpus", corpus(), "test")
    shards(folder / "queries" / "default", queries(), "test", 1)
    pairs = [{"query-id": query, "corpus-id": document, "score": str(score)} for query, document, score in qrels()]
    shards(folder / "qrels" / "default", pairs, "test", 1)
    pq.write_table(pa.Table.from_pylist(pairs[:1]), folder / "qrels" / "default" / "train-00000-of-00001.parquet")
    return Everyday({"source": str(folder)}, notes=["qrels: the split test is read, train not"])


def trec(folder: Path) -> Everyday:
    """A folder with TREC qrels, and a broken line in them."""
    (folder / "queries.jsonl").write_bytes(lines(queries()))
    (folder / "corpus.jsonl").write_bytes(lines(corpus()))
    rows = [f"{query} 0 {document} {score}\n" for query, document, score in qrels()]
    (folder / "qrels.txt").write_text("".join([*rows, "104 0 4\n"]))
    return Everyday({"source": str(folder)})


def headerless(folder: Path) -> Everyday:
    """Tables of MS MARCO's kind, without a line of names."""
    for name, rows in (
        ("queries", queries()),
        ("collection", [{"id": row["id"], "text": row["text"]} for row in corpus()]),
    ):
        (folder / f"{name}.tsv").write_text("".join(f"{row['id']}\t{row['text']}\n" for row in rows), encoding="utf-8")
    (folder / "qrels.dev.tsv").write_text("".join(f"{q}\t0\t{d}\t{s}\n" for q, d, s in qrels()))
    columns = {"id": "column_1", "text": "column_2"}
    tables = {
        table: {"path": str(folder / f"{name}.tsv"), "header": False, "columns": columns}
        for table, name in (("queries", "queries"), ("corpus", "collection"))
    }
    return Everyday({**tables, "qrels": {"path": str(folder / "qrels.dev.tsv")}})


def json_list(folder: Path) -> Everyday:
    """Lists of JSON objects, ids within them, and HTML that is stripped."""
    rows = [{"meta": {"id": row["id"]}, "Text": row["text"]} for row in corpus()]
    (folder / "c.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    (folder / "q.json.gz").write_bytes(gzip.compress(json.dumps(queries(), ensure_ascii=False).encode()))
    answers = {"path": str(folder / "c.json"), "columns": {"id": "meta.id", "text": "Text"}}
    asked = {"path": str(folder / "q.json.gz")}
    said = "1 documents hold HTML, which was stripped"
    return Everyday({"queries": asked, "corpus": answers, "html": "strip"}, qrels=0, notes=[said])


class IrDocument(NamedTuple):
    """A document as ir_datasets gives it."""

    doc_id: str
    title: str
    text: str


class IrQuery(NamedTuple):
    """A query as ir_datasets gives it."""

    query_id: str
    text: str


class IrQrel(NamedTuple):
    """A label as ir_datasets gives it."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class IrDataset:
    """The part of a data set of ir_datasets that its documentation promises and that is used here."""

    def __getattr__(self, name: str) -> Callable[[], Any]:
        kind, _, what = name.rpartition("_")
        if name.startswith("has_"):
            return lambda: True
        rows: dict[str, list[Any]] = {
            "docs": [IrDocument(*row.values()) for row in corpus()],
            "queries": [IrQuery(*row.values()) for row in queries()],
            "qrels": [IrQrel(query, document, score, "0") for query, document, score in qrels()],
        }
        return lambda: islice(rows[kind], None) if what == "iter" else len(rows[kind])


def ir_datasets() -> ModuleType:
    """Return a module with the function that ir_datasets documents, and one data set."""
    module = ModuleType("ir_datasets")
    known = {"beir/everyday/test": IrDataset()}
    module.load = known.__getitem__  # type: ignore[attr-defined]
    module.__version__ = "0.5"  # type: ignore[attr-defined]
    return module


def irds(_: Path) -> Everyday:
    """A data set by its id."""
    return Everyday({"source": "irds:beir/everyday/test"})


SOURCES: tuple[Callable[[Path], Everyday], ...] = (
    semicolons, tabs, gbk, workbook, save_to_disk, dataset_dict, gzipped, zstd, parquet_folder, mteb, trec, headerless,
    json_list, irds,
)  # fmt: skip
