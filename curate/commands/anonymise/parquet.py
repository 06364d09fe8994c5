"""Masking of columns of texts in Parquet; schema, compression, row groups and all other columns stay."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, cast

from curate.commands.anonymise.raw_lines import Fields
from curate.core.errors import DataError
from curate.pii.masking import Masked
from curate.system.files import BATCH
from curate.tables.readers.text_rows import shown_names

if TYPE_CHECKING:
    import pyarrow as pa

BYTES = 1 << 24
"""Approximate bytes of rows held in memory at once."""
GROUP = 1 << 26
"""Bytes in memory from which a row group is split into several."""
Nested = None | str | list["Nested"]


@dataclass
class Rows:
    """Some rows of a file that are masked together."""

    batch: "pa.RecordBatch"
    names: Sequence[Sequence[str]]
    """Columns of texts; each is a path of names, of more than one within a struct."""
    start: int
    """Number of the first row, from 1."""
    last: bool = False
    """Whether these are the last rows of a row group."""
    numbers: int = 0

    def __post_init__(self) -> None:
        self.values: list[list[Nested]] = [_column(self.batch, names).to_pylist() for names in self.names]
        self.size: int = self.batch.num_rows

    @cached_property
    def texts(self) -> list[tuple[int, str, str]]:
        """Return (row number, field, text) of every text to mask."""
        return [
            (row, ".".join(map(str, path)), text)
            for names, values in zip(self.names, self.values, strict=True)
            for row, content in enumerate(values, start=self.start)
            for path, text in _strings(content, (*names,))
        ]

    def masked(self, masked: Sequence[Masked]) -> "pa.RecordBatch":
        """Return the rows with their masked texts."""
        import pyarrow as pa

        texts, batch = iter(masked), self.batch
        for names, values in zip(self.names, self.values, strict=True):
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


class ParquetFile:
    """A Parquet file that is read in batches."""

    def __init__(self, stream: BinaryIO, fields: Fields, path: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._file = pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: found no sound Parquet file, expected one; write it again") from error
        self.rows: int = self._file.metadata.num_rows
        self._names = _chosen(self._file.schema_arrow, fields, path)
        self._path = path

    def parts(self) -> Iterator[Rows]:
        """Yield the rows in order; DataError if they cannot be read or are not valid UTF-8."""
        import pyarrow as pa

        row = 1
        try:
            for group in range(self._file.num_row_groups):
                about = self._file.metadata.row_group(group)
                fit = BYTES * about.num_rows // max(about.total_byte_size, 1)
                end = row + about.num_rows
                for batch in self._file.iter_batches(min(BATCH, max(fit, 1)), row_groups=[group]):
                    yield Rows(batch, self._names, row, last=row + len(batch) == end)
                    row += len(batch)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self._path}: row {row}: the file is damaged here; write it again") from error
        except UnicodeDecodeError:
            raise DataError(
                f"{self._path}: row {row} or behind it: found bytes that are no UTF-8, expected text; write it again"
            ) from None

    @contextmanager
    def writer(self, stream: BinaryIO) -> Iterator["ParquetWriter"]:
        """Yield a writer of a file with this schema and compression."""
        import pyarrow.parquet as pq

        with pq.ParquetWriter(stream, self._file.schema_arrow, **_settings(self._file)) as writer:
            yield ParquetWriter(writer)


class ParquetWriter:
    """Writer of masked rows in the row groups of the original file; large groups are split."""

    def __init__(self, writer: object) -> None:
        self._writer = writer
        self._waiting: list[pa.RecordBatch] = []

    def write(self, rows: Rows, masked: Sequence[Masked]) -> None:
        """Write rows, with their masked texts, as row groups."""
        import pyarrow as pa

        self._waiting.append(rows.masked(masked))
        if rows.last or sum(batch.nbytes for batch in self._waiting) > GROUP:
            table = pa.Table.from_batches(self._waiting)
            self._waiting = []
            self._writer.write_table(table, row_group_size=max(len(table), 1))  # type: ignore[attr-defined]


def _chosen(schema: "pa.Schema", fields: Fields, path: str) -> list[list[str]]:
    """Return, per field to mask, the path of its column as names; DataError if one is missing or is not text."""
    import pyarrow as pa

    chosen = []
    for name in fields.names:
        names = [name] if name in schema.names else name.split(".")
        kind: pa.DataType = pa.struct(list(schema))
        for step in names:
            index = kind.get_field_index(step) if pa.types.is_struct(kind) else -1
            if index < 0:
                break
            kind = kind.field(index).type
        else:
            if not _textual(kind):
                raise DataError(
                    f"{path}: found {kind} as {name!r}, expected text or lists of it; name another column with --field"
                )
            chosen.append(names)
            continue
        if name not in fields.optional:
            raise DataError(
                f"{path}: found the columns {shown_names(schema.names)}, expected {name!r}; name the column of the "
                "texts with --field"
            )
    if not chosen:
        raise DataError(f"{path}: found none of {', '.join(fields.names)}; name the column of the texts with --field")
    return chosen


def _textual(kind: "pa.DataType") -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _textual(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _textual(kind.value_type)
    return cast("bool", types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _settings(file: object) -> dict[str, object]:
    """Return the settings with which a file was written (compression, dictionaries, ...), from its metadata."""
    metadata = file.metadata  # type: ignore[attr-defined]
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
