"""Look for values that must not be published in every file of a folder: bytes, and the cells of Parquet tables."""

import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

SHORTEST = 8
"""A shorter value, such as `low`, would be found in any text."""
_BATCH = 20_000


def holding(folder: Path, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (file, name) for each file below a folder in which the value of a name can be read."""
    wanted = {name: _forms(value) for name, value in values.items() if len(value) >= SHORTEST}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()) if wanted else ():
        for name, forms in wanted.items():
            if _in_bytes(path, forms) or (path.suffix == ".parquet" and _in_cells(path, forms)):
                yield path.relative_to(folder).as_posix(), name


def _forms(value: str) -> list[str]:
    """Return how a value may be written: as it is, and as JSON writes it."""
    return sorted({value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]})


def _in_bytes(path: Path, forms: Sequence[str]) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(form.encode()) >= 0 for form in forms)


def _in_cells(path: Path, forms: Sequence[str]) -> bool:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            table = pl.from_arrow(batch)
            assert isinstance(table, pl.DataFrame)
            if any(_contains(column, forms) for column in table):
                return True
    return False


def _contains(column: pl.Series, forms: Sequence[str]) -> bool:
    """Say whether a form stands in a cell of a column, lists and structs included."""
    if isinstance(column.dtype, pl.List):
        return _contains(column.explode(), forms)
    if isinstance(column.dtype, pl.Struct):
        return any(_contains(column.struct.field(field.name), forms) for field in column.dtype.fields)
    return column.dtype == pl.String and bool(column.str.contains_any(list(forms)).any())
