"""One file as a source of rows: JSONL, CSV, TSV, Parquet, or a text a line."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from curate.errors import ConfigError, DataError
from curate.files import BATCH, sha256
from curate.readers import Problem, Row, text
from curate.readers.encoding import Encoding, detect

Format = Literal["jsonl", "csv", "tsv", "parquet", "txt"]
_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".txt": "txt",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def format_of(path: Path) -> Format:
    """Return the format that a file's ending stands for; ConfigError if it stands for none."""
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise ConfigError(
            f"{path}: found the ending {ending or 'none'!r}, expected one of {', '.join(_ENDINGS)}; "
            "name the format with ingest.queries.format, ingest.corpus.format or ingest.qrels.format"
        )
    return _ENDINGS[ending]


@dataclass(frozen=True)
class File:
    """A file of rows."""

    path: Path
    format: Format
    encoding: Encoding | Literal["auto"] = "auto"
    delimiter: str | None = None
    """Between the cells of a CSV or TSV file; None is a comma or a tab."""
    option: str | None = "ingest.encoding"
    """What names the encoding; None where nothing does."""

    @property
    def place(self) -> str:
        """Return the path as it was given."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Return the base name."""
        return self.path.name

    @cached_property
    def _encoding(self) -> Encoding:
        return detect(self.path, self.option) if self.encoding == "auto" else self.encoding

    def size(self) -> int:
        """Return the bytes of a text file, or the rows of a Parquet file."""
        if self.format != "parquet":
            return self.path.stat().st_size
        with self._parquet() as file:
            return int(file.metadata.num_rows)

    def header(self) -> list[str] | None:
        """Return the names of the columns; None for JSONL."""
        if self.format == "jsonl":
            return None
        if self.format == "parquet":
            with self._parquet() as file:
                return list(file.schema_arrow.names)
        if self.format == "txt":
            return [text.COLUMN]
        return text.header(self.path, self._encoding, self.delimiter or _DELIMITERS[self.format])

    def rows(self, wanted: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield the rows in order; of a Parquet file only the `wanted` columns, all if none is named."""
        if self.format == "jsonl":
            return text.jsonl(self.path, self._encoding)
        if self.format == "parquet":
            return self._parquet_rows(wanted)
        if self.format == "txt":
            return text.plain(self.path, self._encoding)
        return text.table(self.path, self._encoding, self.delimiter or _DELIMITERS[self.format])

    def digest(self) -> str:
        """Return the SHA-256 of the content; DataError if the file cannot be read."""
        try:
            state = self.path.stat()
            return _digest(self.path, state.st_size, state.st_mtime_ns)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror}); check the path and its rights") from error

    @contextmanager
    def _parquet(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - pyarrow has no types
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                yield file
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self.path}: found no sound Parquet file, expected one; write it again") from error

    def _parquet_rows(self, wanted: Collection[str]) -> Iterator[Row]:
        with self._parquet() as file:
            columns = [name for name in file.schema_arrow.names if not wanted or name in wanted]
            number = 0
            for batch in file.iter_batches(batch_size=BATCH, columns=columns):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values, number)


@lru_cache(maxsize=256)
def _digest(path: Path, _size: int, _changed: int) -> str:
    return sha256(path)
