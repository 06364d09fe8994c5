"""Write a benchmark as folders that stock mteb and `datasets` load offline, and load them again.

`datasets` caches a local folder by its base name and the text of its README alone, so every Parquet file carries a hash
of its content in its name: another export is another README.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import yaml

from curate.config import Json
from curate.errors import DataError, MissingExtra
from curate.exporters.card import Table, Task, card
from curate.files import BATCH, sha256, write_text
from curate.protocols import Benchmark, Corpus
from curate.records import Document

if TYPE_CHECKING:
    import pyarrow as pa
    from mteb.abstasks.retrieval import AbsTaskRetrieval

LANGUAGES: Mapping[str, str] = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "ja": "jpn-Jpan",
    "ko": "kor-Hang",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "zh": "cmn-Hans",
    "zh-HK": "cmn-Hant",
    "zh-Hant": "cmn-Hant",
    "zh-TW": "cmn-Hant",
}
"""Language tags as people write them -> ISO 639-3 and script, as mteb wants them."""

_KEYS = {"query-id": pl.col("query_id"), "corpus-id": pl.col("doc_id")}
_RANKED = {"query-id": pl.col("query_id"), "corpus-ids": pl.col("doc_id")}


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write `retrieval/` and, if there are candidates, `reranking/`, each with a README and its Parquet files."""
    language, name = mteb_language(benchmark.language), benchmark.name
    task = Task(f"{name}-retrieval", "Retrieval", language, "ndcg_at_10")
    _write_task(benchmark, folder / "retrieval", task, _retrieval(benchmark))
    if benchmark.candidates.height:
        task = Task(f"{name}-reranking", "Reranking", language, "map_at_10")
        _write_task(benchmark, folder / "reranking", task, _reranking(benchmark))


def mteb_language(language: str) -> str:
    """Return mteb's code of a language: `zh` and `zh-CN` give `cmn-Hans`; one such as `vie-Latn` is already a code."""
    if len(language) == 8 and language[3] == "-":
        return language
    parts = language.split("-")
    for size in range(len(parts), 0, -1):
        if code := LANGUAGES.get("-".join(parts[:size])):
            return code
    raise DataError(
        f"language {language!r}: mteb's code of it is not known here; give ISO 639-3 and script, such as vie-Latn"
    )


@dataclass(frozen=True)
class _Content:
    """The tables of one task; `ranked` holds query_id and the list of its candidates, None for retrieval."""

    queries: pl.DataFrame
    documents: Iterable[Document]
    qrels: pl.DataFrame
    ranked: pl.DataFrame | None
    verdicts: pl.DataFrame


def _retrieval(benchmark: Benchmark) -> _Content:
    """Return the whole corpus, all queries, the positives and every judged pair."""
    return _Content(benchmark.queries, _rows(benchmark.corpus), benchmark.qrels, None, benchmark.verdicts)


def _reranking(benchmark: Benchmark) -> _Content:
    """Return the candidates, their documents and queries, and every judged pair of these queries."""
    qrels = benchmark.candidates
    wanted = set(qrels["doc_id"])
    # Sorted by id: the order in which a reranker is given its candidates must not tell which are positives.
    ranked = qrels.sort("query_id", "doc_id").group_by("query_id", maintain_order=True).agg("doc_id")
    return _Content(
        queries=benchmark.queries.join(qrels, on="query_id", how="semi", maintain_order="left"),
        documents=(item for item in _rows(benchmark.corpus) if item.doc_id in wanted),
        qrels=qrels,
        ranked=ranked,
        verdicts=benchmark.verdicts.join(qrels, on="query_id", how="semi"),
    )


def _write_task(benchmark: Benchmark, folder: Path, task: Task, content: _Content) -> None:
    """Write one task's folder: its tables first, then the README that names them."""
    folder.mkdir()
    tables = [
        _write(folder, "corpus", _frames(content.documents)),
        _write(folder, "queries", [content.queries.select(id="query_id", text="text")]),
        _write(folder, "qrels", [_keyed(content.qrels, "score")]),
    ]
    if content.ranked is not None:
        tables.append(_write(folder, "top_ranked", [content.ranked.select(**_RANKED)]))
    by_judge = pl.element().sort_by(pl.element().struct.field("judge"))
    grades = content.verdicts.with_columns(pl.col("votes").list.eval(by_judge))
    tables.append(_write(folder, "grades", [_keyed(grades, "verdict", "votes")]))
    counts = _counts(content, tables[0].rows)
    write_text(folder / "README.md", card(benchmark, task, tables, counts))


def _keyed(pairs: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return pairs sorted by key, under mteb's names of the key."""
    return pairs.sort("query_id", "doc_id").select(**_KEYS, **{name: pl.col(name) for name in columns})


def _rows(corpus: Corpus) -> Iterator[Document]:
    return chain.from_iterable(corpus.batches())


def _frames(documents: Iterable[Document]) -> Iterator[pl.DataFrame]:
    """Yield the corpus in frames of one size, so that the bytes do not depend on how it was batched before."""
    stream = iter(documents)
    while batch := list(islice(stream, BATCH)):
        rows = [(item.doc_id, item.title, item.text) for item in batch]
        yield pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String, "text": pl.String}, orient="row")


def _schema(config: str) -> "pa.Schema":
    """Return the columns of one configuration, in the types that mteb reads."""
    import pyarrow as pa

    text = pa.string()
    pair = {"query-id": text, "corpus-id": text}
    votes = pa.list_(pa.struct({"judge": text, "grade": text}))
    schemas = {
        "corpus": {"id": text, "title": text, "text": text},
        "queries": {"id": text, "text": text},
        "qrels": pair | {"score": pa.int32()},
        "top_ranked": {"query-id": text, "corpus-ids": pa.list_(text)},
        "grades": pair | {"verdict": text, "votes": votes},
    }
    return pa.schema(schemas[config])


def _write(folder: Path, config: str, frames: Iterable[pl.DataFrame]) -> Table:
    """Stream frames into one Parquet file, then name it by its content."""
    import pyarrow.parquet as pq

    schema, beside, rows = _schema(config), folder / f".{config}.parquet", 0
    with pq.ParquetWriter(beside, schema, compression="zstd", write_statistics=False) as writer:
        for frame in frames:
            writer.write_table(frame.to_arrow().cast(schema))
            rows += frame.height
    path = folder / f"{config}-{sha256(beside)[:16]}.parquet"
    beside.rename(path)
    return Table(config, path.name, rows, schema.names)


def _counts(content: _Content, documents: int) -> dict[str, Json]:
    """Return the figures of one folder; a mean over no query is None."""
    queries = content.queries.height
    positives = content.qrels.filter(pl.col("score") > 0).height
    negatives = content.qrels.height - positives
    of_verdict = dict(content.verdicts["verdict"].value_counts().sort("verdict").iter_rows())
    return {
        "queries": queries,
        "documents": documents,
        "positives": positives,
        "positives a query": positives / queries if queries else None,
        **({"negatives": negatives, "negatives a query": negatives / queries} if queries and negatives else {}),
        "judged pairs": content.verdicts.height,
        **{f"judged pairs, {verdict}": count for verdict, count in of_verdict.items()},
    }


def load_task(folder: str | Path) -> "AbsTaskRetrieval":
    """Return the mteb task of a written folder (`retrieval/` or `reranking/`), ready for `mteb.evaluate`.

    Name, type, description, language, main score and instruction come from the README. The revision is the README's
    digest, so that results of two exports cannot be mixed up; mteb's own cache ignores it, so evaluate with
    `cache=None`.
    """
    try:
        from mteb.abstasks.retrieval import AbsTaskRetrieval
        from mteb.abstasks.task_metadata import TaskMetadata
    except ImportError as error:
        raise MissingExtra("mteb is not installed; install it with: pip install 'curate-ir[eval]'") from error
    folder = Path(folder)
    readme = folder / "README.md"
    block = _front(readme)
    metadata = TaskMetadata(
        dataset={"path": str(folder.resolve()), "revision": sha256(readme)},
        eval_splits=["test"],
        **block,
    )
    made: AbsTaskRetrieval = type("Exported", (AbsTaskRetrieval,), {"metadata": metadata})()
    return made


def _front(readme: Path) -> dict[str, Sequence[str] | Mapping[str, str] | str]:
    """Return the `mteb` mapping of a README's YAML block; DataError if there is none."""
    parts = readme.read_text(encoding="utf-8").split("---\n", 2) if readme.is_file() else []
    front = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0] else None
    block = front.get("mteb") if isinstance(front, dict) else None
    if not isinstance(block, dict):
        raise DataError(f"{readme}: no YAML block with a key `mteb`; give a folder that the exporter `mteb` wrote")
    return block
