"""Datasets of the package ir_datasets (`irds:beir/scifact/test`) and mteb tasks as sources of rows."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from curate.core.config import digest
from curate.core.errors import ConfigError, RunFailed, TableError
from curate.system import hub
from curate.system.extras import needed
from curate.tables.readers import TABLES, Row, Source, Table
from curate.tables.readers.folder import DEFAULT_SPLIT, choose_split

PREFIX = "irds:"
_KINDS: Mapping[Table, str] = {"queries": "queries", "corpus": "docs", "qrels": "qrels"}
"""Table -> its name in ir_datasets."""
_TEXTS = ("text", "body", "abstract", "query")
"""Text fields to look for in records without the method `default_text`."""


def tables(name: str) -> Iterator[tuple[Table, list[Source]]]:
    """Yield (table, sources) of an ir_datasets dataset.

    ConfigError if its id is unknown, DataError if a table is missing.
    """
    package = _package()
    try:
        dataset = package.load(name)
    except KeyError as error:
        raise ConfigError(
            f"ingest.source: ir_datasets knows no data set {name!r}; see https://ir-datasets.com, and give an id with "
            "queries, such as irds:beir/scifact/test"
        ) from error
    for table in TABLES:
        if getattr(dataset, f"has_{_KINDS[table]}")():
            yield table, [IrdsTable(name, table, dataset)]
        elif table != "qrels":
            raise TableError.at(
                f"{PREFIX}{name}", f"no {_KINDS[table]}", str(_KINDS[table]), "give the id of a split of it"
            )


def _package() -> Any:  # noqa: ANN401 - a module of another package
    with needed(f"ingest.source: {PREFIX} stands for a data set of ir_datasets, which"):
        import ir_datasets
    return ir_datasets


@dataclass(frozen=True)
class IrdsTable:
    """One table of an ir_datasets dataset."""

    id: str
    table: Table
    data: Any

    @property
    def location(self) -> str:
        """Return the prefixed id of the dataset and the name of the table."""
        return f"{PREFIX}{self.id} {self.table}"

    @property
    def name(self) -> str:
        """Return the id of the dataset."""
        return self.id

    def size(self) -> int:
        """Return the number of records; 1 if the dataset does not report it."""
        count = getattr(self.data, f"{_KINDS[self.table]}_count", None)
        return int((count() if count else None) or 1)

    def header(self) -> list[str] | None:
        """Return None: every record has its own fields."""
        return None

    def rows(self, columns: Collection[str] = ()) -> Iterator[Row]:  # noqa: ARG002 - a record is read whole
        """Yield the records in the order of the dataset; RunFailed if they cannot be fetched."""
        read = getattr(self.data, f"{_KINDS[self.table]}_iter")
        try:
            for number, record in enumerate(read(), start=1):
                yield Row(number, _values(record, self.table), number)
        except (OSError, ValueError, RuntimeError) as error:  # no network, a changed file, terms not accepted
            raise RunFailed(
                f"{self.location}: cannot be loaded by ir_datasets ({type(error).__name__}); check the network, or "
                "follow what https://ir-datasets.com says about this data set"
            ) from error

    def digest(self) -> str:
        """Return a digest of the id, the table and the version of ir_datasets."""
        return digest([self.id, self.table, str(getattr(_package(), "__version__", ""))])


def _values(record: Any, table: Table) -> dict[str, object]:  # noqa: ANN401 - named tuples of another package
    values: dict[str, object] = dict(record._asdict())
    if table == "qrels" or "text" in values:
        return values
    default_text = getattr(record, "default_text", None)
    text = default_text() if default_text else next((values[name] for name in _TEXTS if name in values), None)
    return {**values, "text": text}


# A retrieval task of mteb, by its name, as a source of rows.


class MtebTask(Protocol):
    """Attributes and methods of an mteb retrieval task that are used here."""

    metadata: Any
    dataset: Any

    @property
    def eval_splits(self) -> list[str]:
        """Return the splits that the task evaluates on."""
        ...

    def load_data(self) -> None:
        """Fetch the data, from the hub or its cache."""
        ...


def named(name: str) -> MtebTask:
    """Return the mteb task of this name; MissingExtra without mteb, ConfigError if mteb has no such task."""
    with needed(f"ingest.source: {name!r} is no folder here, so it names an mteb task, which"):
        import mteb

    try:
        task: MtebTask = mteb.get_task(name)
    except KeyError as error:
        near = re.search(r"Did you mean: '([^']+)'", str(error))
        hint = f"did you mean {near[1]!r}? " if near else ""
        raise ConfigError(
            f"ingest.source: {name!r} is neither a folder nor a task of mteb; {hint}give the path of a folder"
        ) from error
    if task.metadata.type not in ("Retrieval", "Reranking"):
        raise ConfigError(f"ingest.source: the mteb task {name!r} is a {task.metadata.type}, expected a Retrieval task")
    return task


@dataclass(frozen=True)
class TaskTable:
    """One table of an mteb task."""

    task: MtebTask
    table: Table
    split: str | None = None

    @property
    def location(self) -> str:
        """Return the task's name and the table."""
        return f"{self.name} {self.table}"

    @property
    def name(self) -> str:
        """Return the task's name."""
        return str(self.task.metadata.name)

    @cached_property
    def _split(self) -> str:
        return choose_split(self.task.eval_splits, self.split, self.name) or DEFAULT_SPLIT

    @cached_property
    def _data(self) -> Mapping[str, Any]:
        where = self.task.metadata.dataset
        copied = f"--repo-type dataset --revision {where['revision']} --local-dir {self.name}"
        local = (
            f"with a network run `hf download {where['path']} {copied}`, and give that folder in place of the name, as "
            f"in `curate audit ./{self.name}`"
        )
        cached = Path(where["path"]).exists() or hub.holds_dataset(where["path"])
        if why := hub.unreachable(cached=cached):
            raise RunFailed(f"{self.name}: {why}; {local}")
        try:
            self.task.load_data()
        except (OSError, ValueError) as error:  # no such repository, a damaged cache
            raise RunFailed(f"{self.name}: the data cannot be loaded ({hub.first_line(error)}); {local}") from error
        subsets = self.task.dataset
        if len(subsets) != 1:
            raise ConfigError(f"{self.name}: found {len(subsets)} subsets, expected one; give a folder instead")
        split_data: Mapping[str, Any] = next(iter(subsets.values()))[self._split]
        return split_data

    def size(self) -> int:
        """Return the number of rows."""
        if self.table == "qrels":
            return sum(len(scores) for scores in self._data["relevant_docs"].values())
        return len(self._data[self.table])

    def header(self) -> list[str] | None:
        """Return the names of the columns; None for qrels."""
        return None if self.table == "qrels" else list(self._data[self.table].column_names)

    def rows(self, columns: Collection[str] = ()) -> Iterator[Row]:  # noqa: ARG002 - a task's rows are small
        """Yield the rows in the task's order."""
        values = self._pairs() if self.table == "qrels" else iter(self._data[self.table])
        for number, row in enumerate(values, start=1):
            yield Row(number, row, number)

    def _pairs(self) -> Iterator[dict[str, object]]:
        for query, scores in self._data["relevant_docs"].items():
            for document, score in scores.items():
                yield {"query-id": query, "corpus-id": document, "score": score}

    def digest(self) -> str:
        """Return a digest of the task's name, its repository and revision, and the split."""
        where = self.task.metadata.dataset
        return digest([self.name, str(where["path"]), str(where["revision"]), self._split])
