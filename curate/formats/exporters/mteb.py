"""Write a benchmark as folders that stock mteb and `datasets` load offline, a folder per task.

`datasets` caches a local folder by its base name and the text of its README alone, so every Parquet file carries a hash
of its content in its name: another export is another README.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import Document
from curate.formats.exporters import mteb_tasks
from curate.formats.exporters.card import Table, TaskMetadata, card, overview
from curate.formats.exporters.lengths import Lengths
from curate.formats.exporters.mteb_content import Content, content_of, counts, rounded
from curate.system.files import BATCH, sha256, write_text

if TYPE_CHECKING:
    import pyarrow as pa

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
_PAIRS = {"score": pl.col("label"), "query-id": pl.col("query_id"), "pair-id": pl.col("pair_id")}
_STS = ("sentence1", "sentence2", "score", "kind", "pair-id", "query-id", "term", "synonym")
_ORDER = ("corpus", "queries", "qrels", "top_ranked", "grades", "contested", "pairs")
SPLITS = ("test", "train")
"""Of pairs of sentences; all other tables have `test` alone."""


def export(benchmark: Benchmark, folder: Path) -> None:
    """Write `retrieval/`, `reranking/` if there are candidates and `sts/` if there are pairs of sentences.

    Each has a README and its Parquet files; `tasks.py` registers them in mteb, and a README above them names them all.
    """
    tables: dict[TaskMetadata, list[Table]] = {}
    for task in _tasks(benchmark):
        below = folder / task.folder
        if task.kind == "STS":
            assert benchmark.pairs is not None
            tables[task] = _write_sts(benchmark, below, task, benchmark.pairs)
        else:
            tables[task] = _write_task(benchmark, below, task, content_of(benchmark, task))
    write_text(folder / "tasks.py", Path(mteb_tasks.__file__).read_text(encoding="utf-8"))
    write_text(folder / "README.md", overview(benchmark, tables))


def readmes(benchmark: Benchmark, folder: Path) -> dict[str, str]:
    """Return the READMEs that a written folder must have, by file: made of the benchmark and of the tables there."""
    tables = {task: _tables(folder / task.folder) for task in _tasks(benchmark)}
    cards = {
        f"{task.folder}/README.md": card(benchmark, task, there, _figures(benchmark, task))
        for task, there in tables.items()
    }
    return {**cards, "README.md": overview(benchmark, tables)}


def _tasks(benchmark: Benchmark) -> list[TaskMetadata]:
    """Return the tasks of a benchmark, in the order of their folders."""
    language, name = mteb_language(benchmark.language), benchmark.name
    found = [TaskMetadata(f"{name}-retrieval", "Retrieval", language, "ndcg_at_10", graded=benchmark.replaced)]
    if benchmark.graded is not None and not benchmark.replaced:
        found.append(TaskMetadata(f"{name}-graded", "Retrieval", language, "ndcg_at_10", graded=True, beside=True))
    if benchmark.candidates.height:
        found.append(TaskMetadata(f"{name}-reranking", "Reranking", language, "map_at_10"))
    if benchmark.pairs is not None and benchmark.pairs.height:
        found.append(TaskMetadata(f"{name}-sts", "STS", language, "cosine_pearson"))
    return found


def _figures(benchmark: Benchmark, task: TaskMetadata) -> Json:
    """Return the figures of one folder, counted anew."""
    if task.kind == "STS":
        assert benchmark.pairs is not None
        return [_pair_counts(split, part) for split, part in _parts(benchmark.pairs).items()]
    content = content_of(benchmark, task)
    lengths = Lengths(content.size)
    deque(lengths.passing(content.documents), maxlen=0)
    return counts(content, lengths)


def _tables(folder: Path) -> list[Table]:
    """Return the tables that lie in one task's folder, in the order in which they are written."""
    import pyarrow.parquet as pq

    found: list[Table] = []
    for config, split in ((config, split) for config in _ORDER for split in SPLITS):
        name = config if split == "test" else f"{config}-{split}"
        for path in folder.glob(f"{name}-{'[0-9a-f]' * 16}.parquet"):
            with pq.ParquetFile(path) as file:
                rows, columns = file.metadata.num_rows, file.schema_arrow
            if not columns.equals(_schema(config)):
                raise DataError(f"{folder.name}/{path.name}: its columns are not those of the table {config}")
            found.append(Table(config, path.name, rows, columns.names, split))
    return found


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


def _write_task(benchmark: Benchmark, folder: Path, task: TaskMetadata, content: Content) -> list[Table]:
    """Write one task's folder: its tables first, then the README that names them."""
    folder.mkdir()
    lengths = Lengths(content.size)
    tables = [
        _write(folder, "corpus", _frames(lengths.passing(content.documents))),
        _write(folder, "queries", [content.queries.select(id="query_id", text="text")]),
        _write(folder, "qrels", [_keyed(content.qrels, "score")]),
    ]
    if content.ranked is not None:
        tables.append(_write(folder, "top_ranked", [content.ranked.select(**_RANKED)]))
    by_judge = pl.element().sort_by(pl.element().struct.field("judge"))
    grades = content.verdicts.with_columns(pl.col("votes").list.eval(by_judge))
    contested = grades.filter(pl.col("verdict") == "contested")
    tables.append(_write(folder, "grades", [_keyed(grades, "verdict", "votes")]))
    if contested.height:  # `datasets` cannot read a file without rows
        tables.append(_write(folder, "contested", [_keyed(contested, "votes")]))
    write_text(folder / "README.md", card(benchmark, task, tables, counts(content, lengths)))
    return tables


def _write_sts(benchmark: Benchmark, folder: Path, task: TaskMetadata, pairs: pl.DataFrame) -> list[Table]:
    """Write the pairs of sentences, a file per split, sorted by id: the score is the label."""
    folder.mkdir()
    parts = _parts(pairs)
    tables = [
        _write(folder, "pairs", [part.select(**{name: _PAIRS.get(name, pl.col(name)) for name in _STS})], split)
        for split, part in parts.items()
    ]
    write_text(folder / "README.md", card(benchmark, task, tables, _figures(benchmark, task)))
    return tables


def _parts(pairs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the pairs of sentences of each split that has any, sorted by id."""
    parts = {split: pairs.filter(pl.col("split") == split).sort("pair_id") for split in SPLITS}
    return {split: part for split, part in parts.items() if part.height}


def _keyed(pairs: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return pairs sorted by key, under mteb's names of the key."""
    return pairs.sort("query_id", "doc_id").select(**_KEYS, **{name: pl.col(name) for name in columns})


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
        "contested": pair | {"votes": votes},
        "pairs": dict.fromkeys(_STS, text) | {"score": pa.int32()},
    }
    return pa.schema(schemas[config])


def _write(folder: Path, config: str, frames: Iterable[pl.DataFrame], split: str = "test") -> Table:
    """Stream frames into one Parquet file, then name it by its content."""
    import pyarrow.parquet as pq

    schema, beside, rows = _schema(config), folder / f".{config}.parquet", 0
    with pq.ParquetWriter(beside, schema, compression="zstd", write_statistics=False) as writer:
        for frame in frames:
            writer.write_table(frame.to_arrow().cast(schema))
            rows += frame.height
    name = config if split == "test" else f"{config}-{split}"
    path = folder / f"{name}-{sha256(beside)[:16]}.parquet"
    beside.rename(path)
    return Table(config, path.name, rows, schema.names, split)


def _pair_counts(split: str, pairs: pl.DataFrame) -> dict[str, Json]:
    """Return the figures of one split of the pairs of sentences."""
    lengths = Lengths(0)
    kinds = dict(pairs["kind"].value_counts().sort("kind").iter_rows())
    return {
        "split": split,
        "pairs": pairs.height,
        "label 1": f"{pairs['label'].sum() / pairs.height:.2%}",
        **kinds,
        "tokens of sentence1": rounded(lengths.mean_of(pairs["sentence1"].to_list())),
        "tokens of sentence2": rounded(lengths.mean_of(pairs["sentence2"].to_list())),
    }
