"""Masking of columns of texts in Parquet and Arrow; schema, batches, compression and all other columns stay."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from curate.commands.anonymise.pieces import Fields
from curate.core.errors import TableError
from curate.pii.masking import Masked
from curate.tables.readers.parquet import Columnar

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 1 << 26
"""Bytes in memory from which a row group is split into several."""
Nested = None | str | list["Nested"]


@dataclass
class Rows:
    """Some rows of a file that are masked together."""

    batch: "pa.RecordBatch"
    columns: Sequence[tuple[Sequence[str], list[Nested]]]
    """Path of every column of texts, of more than one name within a struct, and its values."""
    start: int
    """Number of the first row, from 1."""
    last: bool = False
    """Whether these are the last rows of a row group, or of a batch of an Arrow file."""
    numbers: int = 0

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return int(self.batch.num_rows)

    @cached_property
    def texts(self) -> list[tuple[int, str, str]]:
        """Return (row number, field, text) of every text to mask."""
        return [
            (row, ".".join(map(str, path)), text)
            for names, values in self.columns
            for row, content in enumerate(values, start=self.start)
            for path, text in _strings(content, (*names,))
        ]

    def masked(self, masked: Sequence[Masked]) -> "pa.RecordBatch":
        """Return the rows with their masked texts."""
        import pyarrow as pa

        texts, batch = iter(masked), self.batch
        for names, values in self.columns:
            new = [_refilled(content, texts) for content in values]
            if new != values:
                column = pa.array(new, type=_column(batch, names).type)
                rebuilt = _replaced(batch.to_struct_array(), names, column)
                batch = pa.RecordBatch.from_arrays(rebuilt.flatten(), schema=batch.schema)
        return batch


def _strings(content: Nested, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(content, str):
        yield path, content
    for index, element in enumerate(content if isinstance(content, list) else ()):
        yield from _strings(element, (*path, index))


def _refilled(content: Nested, texts: Iterator[Masked]) -> Nested:
    if isinstance(content, list):
        return [_refilled(element, texts) for element in content]
    return content if content is None else next(texts).text


def _column(batch: "pa.RecordBatch", names: Sequence[str]) -> "pa.Array":
    import pyarrow.compute as pc

    column = batch.column(names[0])
    return pc.struct_field(column, list(names[1:])) if names[1:] else column


def _replaced(array: "pa.StructArray", names: Sequence[str], column: "pa.Array") -> "pa.StructArray":
    """Return a struct array with the field at the path `names` replaced by `column`; nulls stay nulls."""
    import pyarrow as pa

    fields, children = list(array.type), list(array.flatten())
    index = array.type.get_field_index(names[0])
    children[index] = _replaced(children[index], names[1:], column) if names[1:] else column
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


class ColumnarFile:
    """A Parquet or Arrow file that is read in batches."""

    def __init__(self, file: Columnar, fields: Fields) -> None:
        self._file, self._schema = file, file.schema()
        self.rows = file.size()
        self._names = _chosen(self._schema, fields, str(file.path))
        kinds = {self._schema.field(names[0]).type for names in self._names}
        if file.format == "arrow" and any("dictionary" in str(kind) for kind in kinds):
            raise TableError.at(file.path, "a dictionary of texts", "texts", "save the file as Parquet")

    def parts(self) -> Iterator[Rows]:
        """Yield the rows in order."""
        for start, batch, last in self._file.batches():
            columns = [(names, self._file.values(_column(batch, names), start)) for names in self._names]
            yield Rows(batch, columns, start, last)

    @contextmanager
    def writer(self, stream: BinaryIO) -> Iterator["ColumnarWriter"]:
        """Yield a writer of a file of this format, with its schema; of Parquet also with its settings."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._file.format == "parquet":
            with pq.ParquetWriter(stream, self._schema, **_settings(self._file.metadata())) as parquet:
                yield ColumnarWriter(lambda table: parquet.write_table(table, row_group_size=max(len(table), 1)))
        else:
            new = pa.ipc.new_stream if self._file.is_stream() else pa.ipc.new_file
            with new(pa.PythonFile(stream, "w"), self._schema) as arrow:
                yield ColumnarWriter(
                    lambda table: [arrow.write_batch(batch) for batch in table.combine_chunks().to_batches()]
                )


class ColumnarWriter:
    """Writer of masked rows in the row groups of the original file; large groups are split."""

    def __init__(self, write: Callable[["pa.Table"], object]) -> None:
        self._write = write
        self._waiting: list[pa.RecordBatch] = []

    def write(self, rows: Rows, masked: Sequence[Masked]) -> None:
        """Write rows, with their masked texts."""
        import pyarrow as pa

        self._waiting.append(rows.masked(masked))
        if rows.last or sum(batch.nbytes for batch in self._waiting) > GROUP:
            self._write(pa.Table.from_batches(self._waiting))
            self._waiting = []


def _chosen(schema: "pa.Schema", fields: Fields, path: str) -> list[Sequence[str]]:
    """Return the path of every column to mask; DataError if one is missing or is not text."""
    kinds = {".".join(names): (names, kind) for names, kind in reversed([*_kinds(schema, ())])}
    columns = [*reversed(kinds)]
    fields = fields.among([name for name in columns if _textual(kinds[name][1])], path)
    chosen = []
    for name in fields.columns(columns, path):
        names, kind = kinds[name]
        if not _textual(kind):
            raise TableError.at(path, f"{kind} as {name!r}", "text or lists of it", "name another column with --field")
        chosen.append(names)
    return chosen


def _kinds(fields: Iterable["pa.Field"], above: Sequence[str]) -> Iterator[tuple[Sequence[str], "pa.DataType"]]:
    """Yield the path and the type of every column, then those of the fields of structs."""
    from pyarrow import types

    for field in fields:
        yield (*above, field.name), field.type
    for field in fields:
        if types.is_struct(field.type):
            yield from _kinds([field.type.field(index) for index in range(field.type.num_fields)], (*above, field.name))


def _textual(kind: "pa.DataType") -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _textual(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _textual(kind.value_type)
    return cast("bool", types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _settings(metadata: Any) -> dict[str, object]:  # noqa: ANN401 - pyarrow has no types
    """Return the settings with which a Parquet file was written (compression, dictionaries, ...)."""
    first = metadata.row_group(0) if metadata.num_row_groups else None
    columns = [first.column(index) for index in range(first.num_columns)] if first else []
    return {
        "version": metadata.format_version,
        "compression": {column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE") for column in columns}
        or "NONE",
        "use_dictionary": [column.path_in_schema for column in columns if column.has_dictionary_page],
        "write_statistics": [column.path_in_schema for column in columns if column.is_stats_set],
        "use_deprecated_int96_timestamps": any(column.physical_type == "INT96" for column in columns),
        "store_schema": b"ARROW:schema" in (metadata.metadata or {}),
    }
