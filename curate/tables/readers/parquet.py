"""Rows of Parquet and Arrow files; an Arrow file may be a stream, as `datasets.save_to_disk` writes it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curate.core.errors import DataError
from curate.system.files import BATCH
from curate.tables.readers import Row
from curate.tables.readers.encoding import BOUNDS, Bounds

_BYTES = 1 << 24
"""Approximate bytes of rows that are read at once."""
_MAGIC = b"ARROW1"
"""First bytes of an Arrow file (IPC file format); a stream does not have them."""


@dataclass(frozen=True)
class Columnar:
    """A Parquet or Arrow file."""

    path: Path
    format: Literal["parquet", "arrow"]
    bounds: Bounds = BOUNDS

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        with self._opened() as file:
            return list((file.schema_arrow if self.format == "parquet" else file.schema).names)

    def size(self) -> int:
        """Return the number of rows."""
        with self._opened() as file:
            return int(file.metadata.num_rows) if self.format == "parquet" else sum(b.num_rows for b in _batches(file))

    def rows(self, wanted: Collection[str]) -> Iterator[Row]:
        """Yield the rows with the `wanted` columns; with all columns if `wanted` is empty."""
        columns = [name for name in self.columns() if not wanted or name in wanted]
        number = 0
        with self._opened() as file:
            parquet = self.format == "parquet"
            for batch in _parts(file, columns) if parquet else _batches(file, columns):
                self._need_short(batch, number + 1)
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values, number)

    def _need_short(self, batch: Any, row: int) -> None:  # noqa: ANN401 - pyarrow has no types
        """Raise DataError if some rows, of which the first has the number `row`, cannot all be short."""
        if batch.nbytes > self.bounds.record and len(batch) == 1:
            raise DataError(
                f"{self.path}:{row}: found a record of {batch.nbytes:,} bytes, expected at most "
                f"{self.bounds.record:,}; {self.bounds.remedy('record')}"
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Yield pyarrow's reader of the file; DataError if it is damaged or has another format."""
        import pyarrow as pa

        try:
            with _parquet(self.path) if self.format == "parquet" else _arrow(self.path) as file:
                yield file
        except (pa.ArrowInvalid, OSError) as error:
            kind = self.format.capitalize()
            raise DataError(f"{self.path}: found no sound {kind} file, expected one; write it again") from error


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield file


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    import pyarrow as pa

    with path.open("rb") as stream:
        is_file = stream.read(len(_MAGIC)) == _MAGIC
    with (
        pa.memory_map(str(path)) as source,
        pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source) as file,
    ):
        yield file


def _parts(file: Any, columns: list[str]) -> Iterator[Any]:  # noqa: ANN401
    """Yield the rows of a Parquet file in batches of limited size, by the mean size of a row in its group."""
    for group in range(file.num_row_groups):
        about = file.metadata.row_group(group)
        fit = _BYTES * about.num_rows // max(about.total_byte_size, 1)
        yield from file.iter_batches(min(BATCH, max(fit, 1)), row_groups=[group], columns=columns)


def _batches(file: Any, columns: list[str] | None = None) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Yield the record batches of an Arrow reader, with the given columns, in slices of at most `BATCH` rows."""
    stored = (
        (file.get_batch(index) for index in range(file.num_record_batches))
        if hasattr(file, "num_record_batches")
        else file
    )
    for batch in stored:
        chosen = batch if columns is None else batch.select(columns)
        yield from (chosen.slice(start, BATCH) for start in range(0, batch.num_rows, BATCH))
