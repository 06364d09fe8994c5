"""Export of a ledger to Parquet and import of exports, to merge the replies of several machines in one ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from curate.core.errors import DataError
from curate.core.scale import Scale
from curate.ledger import identities
from curate.ledger.identities import seal
from curate.ledger.rows import Call, Kept, PassageRow, Rating
from curate.ledger.store import Ledger
from curate.ledger.tables import ADDED, KEPT, MIGRATIONS
from curate.system.files import replacing

CHUNK = 5_000
"""Maximum number of rows in memory."""
_MARK = b"curate ledger"
_ARROW = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def export(ledger: Ledger, folder: Path) -> dict[Kept, int]:
    """Write a consistent snapshot: one Parquet file per table, sorted by key; return the number of rows per table."""
    folder.mkdir(parents=True, exist_ok=True)
    with ledger.database.transaction("snapshot") as connection:
        return {name: _write(connection, table, folder / f"{name}.parquet") for name, table in KEPT.items()}


def import_(ledger: Ledger, folder: Path) -> dict[Kept, int]:
    """Add the rows of an export that the ledger lacks; return the number of new rows per table.

    DataError if a file is missing or has an unknown version, or if a rubric has another scale in this ledger; then
    nothing is added. Existing rows are not changed: a second import adds nothing, and an interrupted import can be
    repeated.
    """
    tables = _exported(folder)
    counts_before = {name: ledger.count(name) for name in KEPT}
    if "rubrics" in tables:
        rubric_scales = _scales(folder / "rubrics.parquet")
        with ledger.database.transaction() as connection:
            identities.add(connection, rubric_scales)
    for name, table in tables.items():
        with _opened(folder / f"{name}.parquet", table) as file:
            for batch in file.iter_batches(batch_size=CHUNK):
                values = dict(zip(batch.schema.names, (column.to_pylist() for column in batch.columns), strict=True))
                rows = zip(*(values.get(column, [None] * len(batch)) for column in table.c.keys()), strict=True)  # noqa: SIM118
                ledger.merge(name, list(rows))
    with ledger.database.transaction() as connection:
        seal(connection)  # identities that an export of an earlier version holds in plain
    return {name: ledger.count(name) - counts_before[name] for name in KEPT}


def _exported(folder: Path) -> dict[Kept, sa.TableClause]:
    """Return the tables of an export, according to its ledger version; DataError if one is missing or unreadable."""
    with _opened(folder / "judges.parquet", KEPT["judges"]) as file:
        version = int(file.schema_arrow.metadata[_MARK])
    tables = {name: table for name, table in KEPT.items() if ADDED.get(name, 1) <= version}
    for name, table in tables.items():
        with _opened(folder / f"{name}.parquet", table):
            pass
    return tables


def _scales(path: Path) -> dict[str, Scale]:
    with _opened(path, KEPT["rubrics"]) as file:
        rows = file.read().to_pylist()
    parsed = {row["rubric_digest"]: identities.parsed(row["scale"]) for row in rows}
    if wrong := sorted(name for name, scale in parsed.items() if scale is None):
        raise DataError(f"{path}: what stands for rubric {wrong[0]} is no scale; export that ledger again")
    return {name: scale for name, scale in parsed.items() if scale is not None}


def _write(connection: sa.Connection, table: sa.TableClause, path: Path) -> int:
    schema, written = _schema(table), 0
    query = sa.select(table).order_by(next(iter(table.c)))
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for rows in connection.execution_options(yield_per=CHUNK).execute(query).partitions():
            columns = zip(*rows, strict=True)
            writer.write_batch(pa.record_batch([*map(pa.array, columns, schema.types)], schema))
            written += len(rows)
    return written


@contextmanager
def _opened(path: Path, table: sa.TableClause) -> Iterator[pq.ParquetFile]:
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a folder that `curate ledger export` wrote")
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: not a whole Parquet file; export that ledger again") from error
    with file:
        schema, versions = file.schema_arrow, range(1, len(MIGRATIONS) + 1)
        if not any(schema.equals(_schema(table, version), check_metadata=True) for version in versions):
            version = (schema.metadata or {}).get(_MARK, b"none").decode()
            raise DataError(
                f"{path}: its columns are those of ledger version {version}, expected {len(MIGRATIONS)}; export it "
                "again with this version of curate"
            )
        yield file


def _schema(table: sa.TableClause, version: int = len(MIGRATIONS)) -> pa.Schema:
    declared = {field.name: field.type for record in (Call, Rating, PassageRow) for field in fields(record)}
    # an optional field, `int | None`, counts as its type
    kinds = {name: {declared.get(name), *get_args(declared.get(name))} for name in table.c.keys()}  # noqa: SIM118 - a collection of columns
    kinds = {name: types for name, types in kinds.items() if ADDED.get(name, 1) <= version}
    columns = [
        (name, next((arrow for kind, arrow in _ARROW.items() if kind in types), pa.string()))
        for name, types in kinds.items()
    ]
    return pa.schema(columns, {_MARK: str(version).encode()})
