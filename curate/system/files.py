"""Atomic writing of files (a temporary name, then a rename), tables as Parquet files, and digests of files."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
from filelock import FileLock

from curate.core.errors import DataError
from curate.core.records import TABLES, Columns
from curate.core.scale import FIVE, Scale

LABELS = "labels.json"
"""File in the folder of `ingest` with the lowest relevant score of original labels, if the user set one."""
BATCH = 2_000
"""Rows per batch when a table is read or written in batches: about a megabyte of Chinese text."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` on success and is removed on failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)  # the name that the user knows
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8, with lines ending in a line feed."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically, with sorted keys and indented."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def append_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Append records to a file of JSON lines that only its owner can read; they are on the disk when this returns."""
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    with FileLock(f"{path}.lock"), open(path, "ab+", opener=partial(os.open, mode=0o600)) as stream:
        if stream.tell() and os.pread(stream.fileno(), 1, stream.tell() - 1) != b"\n":
            lines = "\n" + lines  # what a crash left of a line must not swallow this one
        stream.write(lines.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, record) of a file of JSON lines, if it is there; DataError for a damaged line.

    The beginning of a record, which a crash left, is skipped: `append_lines` did not return.
    """
    for number, line in enumerate(path.read_bytes().split(b"\n") if path.is_file() else (), start=1):
        try:
            record = json.loads(line) if line.strip() else None
        except ValueError as error:
            if line.startswith(b"{") and not line.endswith(b"}"):
                continue
            raise DataError(f"{path}:{number}: found a damaged line, expected JSON; take the line out") from error
        if isinstance(record, dict):
            yield number, record


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; DataError if the file is not valid JSON or has no object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); delete it and run again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object; delete it and run again")
    return content


def read_scale(folder: Path) -> Scale:
    """Return the scale of the grades, from the folder of `judge`; the default scale of five grades if it has no file.

    DataError if the file is damaged.
    """
    path = folder / "scale.json"
    try:
        return Scale.from_json(read_json(path)["scale"]) if path.exists() else FIVE
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a scale ({error}); run `curate judge` again") from error


def read_relevant_from(ingested: Path) -> int | None:
    """Return the lowest relevant score of original labels, from the folder of `ingest`.

    None if the user set none: then every score above 0 means relevant.
    """
    path = ingested / LABELS
    return int(read_json(path)["relevant_from"]) if path.exists() else None


def read_positives(qrels: pl.DataFrame, ingested: Path) -> pl.DataFrame:
    """Return the rows of `qrels` with a relevant score, by the threshold in the folder of `ingest`; by default 1."""
    return qrels.filter(pl.col("score") >= (read_relevant_from(ingested) or 1))


def write_scale(folder: Path, scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> None:
    """Write the scale of the grades into the folder of `judge`, with `meanings`: language -> grade -> its meaning."""
    write_json(folder / "scale.json", {"scale": scale.to_json(), "meanings": meanings})


def read_meanings(folder: Path) -> dict[str, dict[str, str]]:
    """Return language -> grade -> its meaning, from the folder of `judge`; empty if it has none."""
    path = folder / "scale.json"
    return dict(read_json(path).get("meanings") or {}) if path.exists() else {}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """Return relative path -> SHA-256 (hex) of every file below a folder, sorted, without hidden files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths}


def replace_folder(new: Path, old: Path) -> None:
    """Replace folder `old` by `new`; if the process is killed in between, `old` is missing but never incomplete."""
    grave = old.with_name(f".{old.name}.old")
    remove(grave)
    if old.exists():
        old.replace(grave)
    new.replace(old)
    remove(grave)


def remove(folder: Path) -> None:
    """Remove a folder and its content, or a file; a link is removed, not its target."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def frame(name: str, rows: Iterable[Mapping[str, object]] = ()) -> pl.DataFrame:
    """Return rows as the table `name`, with its columns and types by `TABLES`; a missing key is null."""
    table = TABLES[name]
    return pl.DataFrame([[row.get(column) for column in table] for row in rows], schema=table, orient="row")


class Gathered:
    """Collector of the rows of a table; stored as columns, since a dict per row takes several times the memory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: list[pl.DataFrame] = []
        self._waiting: list[Mapping[str, object]] = []

    def append(self, row: Mapping[str, object]) -> None:
        """Append one row."""
        self._waiting.append(row)
        if len(self._waiting) >= BATCH:
            self._settle()

    def table(self) -> pl.DataFrame:
        """Return all rows, in the order in which they were appended."""
        self._settle()
        return pl.concat([frame(self.name), *self._parts])

    def _settle(self) -> None:
        if self._waiting:
            self._parts.append(frame(self.name, self._waiting))
            self._waiting = []


def write_table(folder: Path, name: str, table: pl.DataFrame, columns: Columns | None = None) -> None:
    """Write a table as `NAME.parquet` atomically, with the columns and types of `columns`, by default of `TABLES`."""
    import pyarrow.parquet as pq

    typed = table.select(pl.col(column).cast(kind) for column, kind in (columns or TABLES[name]).items())
    with replacing(folder / f"{name}.parquet") as temporary:  # pyarrow says "disk full" as OSError, polars does not
        pq.write_table(typed.to_arrow(), temporary, compression="zstd", write_statistics=False)


def there(folder: Path, name: str) -> bool:
    """Return whether a folder has a table of that name."""
    return (folder / f"{name}.parquet").is_file()


def read_table(folder: Path, name: str, columns: Columns | None = None) -> pl.DataFrame:
    """Return the table `NAME.parquet` of a folder; DataError if it is missing or has other columns or types.

    `columns` are those to expect of a table that is not in `TABLES`.
    """
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise DataError(f"{path}: no such table; run the stage `{folder.name}` first")
    table = pl.read_parquet(path)
    if dict(table.schema) != dict(pl.Schema(columns or TABLES[name])):
        raise DataError(f"{path}: its columns are not those of a {name} table; run `{folder.name}` again with --force")
    return table


def height(folder: Path, name: str) -> int:
    """Return the number of rows of a table, without reading them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / f"{name}.parquet") as file:
        return int(file.metadata.num_rows)


def column(folder: Path, name: str, key: str) -> pl.Series:
    """Return the column `key` of a table, without reading the other columns, such as texts."""
    return pl.read_parquet(folder / f"{name}.parquet", columns=[key])[key]


def batches(folder: Path, name: str, size: int = BATCH) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in frames of at most `size` rows, to read a corpus larger than memory."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / f"{name}.parquet") as file:
        for batch in file.iter_batches(batch_size=size):
            rows = pl.from_arrow(batch)
            assert isinstance(rows, pl.DataFrame)
            yield rows.cast(dict(TABLES[name]))  # type: ignore[arg-type]


class TableWriter:
    """Writer of a table in batches; the file is only in place once the `with` block has ended without an error."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.path, self.rows = name, folder / f"{name}.parquet", 0
        self._temporary = self.path.with_name(f".{name}.parquet.{os.getpid()}")
        self._waiting: list[Mapping[str, object]] = []

    def __enter__(self) -> Self:
        import pyarrow.parquet as pq

        schema = frame(self.name).to_arrow().schema
        self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd", write_statistics=False)
        return self

    def add(self, row: Mapping[str, object]) -> None:
        """Append one row."""
        self._waiting.append(row)
        if len(self._waiting) >= BATCH:
            self._flush()

    def extend(self, table: pl.DataFrame) -> None:
        """Append a frame that has the table's columns and types."""
        self._flush()
        if len(table):
            self._writer.write_table(table.to_arrow())
            self.rows += len(table)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.extend(frame(self.name, waiting))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            self._temporary.replace(self.path)
        else:
            self._temporary.unlink(missing_ok=True)
