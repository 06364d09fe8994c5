"""A data set of the package ir_datasets, by its id, as sources of rows: `irds:beir/scifact/test`."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from curate.core.config import digest
from curate.core.errors import ConfigError, DataError, RunFailed
from curate.system.extras import needed
from curate.tables.readers import TABLES, Row, Source, Table

PREFIX = "irds:"
_KINDS: Mapping[Table, str] = {"queries": "queries", "corpus": "docs", "qrels": "qrels"}
"""Table -> what ir_datasets calls it."""
_TEXTS = ("text", "body", "abstract", "query")
"""Fields that hold the text of a record which has no method `default_text`."""


def tables(name: str) -> Iterator[tuple[Table, list[Source]]]:
    """Yield the tables of a data set; ConfigError if ir_datasets does not know its id, DataError if one is missing."""
    package = _package()
    try:
        found = package.load(name)
    except KeyError as error:
        raise ConfigError(
            f"ingest.source: ir_datasets knows no data set {name!r}; see https://ir-datasets.com, and give an id with "
            "queries, such as irds:beir/scifact/test"
        ) from error
    for table in TABLES:
        if getattr(found, f"has_{_KINDS[table]}")():
            yield table, [IrdsTable(name, table, found)]
        elif table != "qrels":
            raise DataError(f"{PREFIX}{name}: found no {_KINDS[table]}, expected some; give the id of a split of it")


def _package() -> Any:  # noqa: ANN401 - a module of another package
    with needed(f"ingest.source: {PREFIX} stands for a data set of ir_datasets, which"):
        import ir_datasets
    return ir_datasets


@dataclass(frozen=True)
class IrdsTable:
    """One table of a data set."""

    id: str
    table: Table
    data: Any

    @property
    def place(self) -> str:
        """Return the id and the table."""
        return f"{PREFIX}{self.id} {self.table}"

    @property
    def name(self) -> str:
        """Return the id of the data set."""
        return self.id

    def size(self) -> int:
        """Return the number of records; 1 where the data set does not count them."""
        count = getattr(self.data, f"{_KINDS[self.table]}_count", None)
        return int((count() if count else None) or 1)

    def header(self) -> list[str] | None:
        """Return None: every record has its own fields."""
        return None

    def rows(self, wanted: Collection[str] = ()) -> Iterator[Row]:  # noqa: ARG002 - a record is read whole
        """Yield the records in the order of the data set; RunFailed if they cannot be fetched."""
        read = getattr(self.data, f"{_KINDS[self.table]}_iter")
        try:
            for number, record in enumerate(read(), start=1):
                yield Row(number, _values(record, self.table), number)
        except (OSError, ValueError, RuntimeError) as error:  # no network, a changed file, terms not accepted
            raise RunFailed(
                f"{self.place}: cannot be loaded by ir_datasets ({type(error).__name__}); check the network, or follow "
                "what https://ir-datasets.com says about this data set"
            ) from error

    def digest(self) -> str:
        """Return a digest of the id, the table and the version of ir_datasets."""
        return digest([self.id, self.table, str(getattr(_package(), "__version__", ""))])


def _values(record: Any, table: Table) -> dict[str, object]:  # noqa: ANN401 - named tuples of another package
    values: dict[str, object] = dict(record._asdict())
    if table == "qrels" or "text" in values:
        return values
    told = getattr(record, "default_text", None)
    text = told() if told else next((values[name] for name in _TEXTS if name in values), None)
    return {**values, "text": text}
