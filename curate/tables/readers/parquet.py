"""Rows of Parquet and Arrow files; an Arrow file may be a stream, as `datasets.save_to_disk` writes it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from curate.core.errors import TableError
from curate.system.files import BATCH
from curate.tables.readers import Row
from curate.tables.readers.encoding import BOUNDS, Bounds

_BYTES = 1 << 24
"""Approximate bytes of rows that are read at once."""
_BUFFER = 1 << 20
"""Bytes of a Parquet file's column that are read at once."""
_MAGIC = b"ARROW1"
"""First bytes of an Arrow file (IPC file format); a stream does not have them."""


@dataclass(frozen=True)
class Columnar:
    """A Parquet or Arrow file."""

    path: Path
    format: Literal["parquet", "arrow"]
    bounds: Bounds = BOUNDS
    source: BinaryIO | None = None
    """Stream with the bytes, if they are not those of `path`, which then is their name in messages."""

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.schema().names)

    def schema(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return pyarrow's schema."""
        with self._opened() as file:
            return file.schema_arrow if self.format == "parquet" else file.schema

    def metadata(self) -> Any:  # noqa: ANN401
        """Return pyarrow's metadata of a Parquet file."""
        with self._opened() as file:
            return file.metadata

    def is_stream(self) -> bool:
        """Return whether an Arrow file is a stream, without an index of its batches."""
        with self._opened() as file:
            return not hasattr(file, "num_record_batches")

    def size(self) -> int:
        """Return the number of rows."""
        if self.format == "parquet":
            return int(self.metadata().num_rows)
        with self._opened() as file:
            return sum(batch.num_rows for batch, _ in _batches(file))

    def rows(self, columns: Collection[str]) -> Iterator[Row]:
        """Yield the rows with the named columns; with all columns if none is named."""
        present = [name for name in self.columns() if not columns or name in columns]
        for first, batch, _ in self.batches(present):
            for number, values in enumerate(self.values(batch, first), start=first):
                yield Row(number, values, number)

    def batches(self, columns: list[str] | None = None) -> Iterator[tuple[int, Any, bool]]:
        """Yield (number of the first row, rows, whether they end a row group or a batch of the file) in order."""
        first = 1
        with self._opened() as file:
            for batch, last in (_parts if self.format == "parquet" else _batches)(file, columns):
                self.bounds.need_few(first - 1 + len(batch), str(self.path))
                self._need_short(batch, first)
                yield first, batch, last
                first += len(batch)

    def values(self, rows: Any, first: int) -> list[Any]:  # noqa: ANN401
        """Return rows, or a column of them, as objects of Python; DataError for texts that are no UTF-8."""
        try:
            return list(rows.to_pylist())
        except UnicodeDecodeError as error:
            raise TableError.at(
                f"{self.path}: row {first} or behind it", "bytes that are no UTF-8", "text", "write it again"
            ) from error

    def _need_short(self, batch: Any, row: int) -> None:  # noqa: ANN401 - pyarrow has no types
        """Raise DataError if some rows, of which the first has the number `row`, cannot all be short."""
        if batch.nbytes > self.bounds.record and len(batch) == 1:
            raise TableError.at(
                f"{self.path}:{row}",
                f"a record of {batch.nbytes:,} bytes",
                f"at most {self.bounds.record:,}",
                self.bounds.remedy("record"),
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Yield pyarrow's reader of the file; DataError if it is damaged or has another format."""
        import pyarrow as pa

        try:
            with (_parquet if self.format == "parquet" else _arrow)(self.source or self.path) as file:
                yield file
        except (pa.ArrowInvalid, OSError) as error:
            kind = self.format.capitalize()
            raise TableError.at(self.path, f"no sound {kind} file", f"a sound {kind} file", "write it again") from error


@contextmanager
def _parquet(source: Path | BinaryIO) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, buffer_size=_BUFFER) as file:
        yield file


@contextmanager
def _arrow(source: Path | BinaryIO) -> Iterator[Any]:
    import pyarrow as pa

    if not isinstance(source, Path):
        source.seek(0)
    with pa.memory_map(str(source)) if isinstance(source, Path) else nullcontext(pa.PythonFile(source, "r")) as stream:
        is_file = stream.read(len(_MAGIC)) == _MAGIC
        stream.seek(0)
        with pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream) as file:
            yield file


def _parts(file: Any, columns: list[str] | None) -> Iterator[tuple[Any, bool]]:  # noqa: ANN401
    """Yield the rows of a Parquet file in batches of limited size, by the mean size of a row in its group."""
    for group in range(file.num_row_groups):
        about = file.metadata.row_group(group)
        fit, remaining = _BYTES * about.num_rows // max(about.total_byte_size, 1), about.num_rows
        for batch in file.iter_batches(min(BATCH, max(fit, 1)), row_groups=[group], columns=columns):
            remaining -= len(batch)
            yield batch, not remaining


def _batches(file: Any, columns: list[str] | None = None) -> Iterator[tuple[Any, bool]]:  # noqa: ANN401
    """Yield the record batches of an Arrow reader, with the given columns, in slices of at most `BATCH` rows."""
    stored = (
        (file.get_batch(index) for index in range(file.num_record_batches))
        if hasattr(file, "num_record_batches")
        else file
    )
    for batch in stored:
        chosen = batch if columns is None else batch.select(columns)
        for start in range(0, batch.num_rows, BATCH):
            yield chosen.slice(start, BATCH), start + BATCH >= batch.num_rows
