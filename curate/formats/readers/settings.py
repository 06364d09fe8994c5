"""What a pipeline file says about its input, and the sources that this stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from curate.core.config import Json, Section
from curate.core.errors import ConfigError, DataError
from curate.formats.readers import TABLES, Source, Table
from curate.formats.readers.file import File, Format, format_of
from curate.formats.readers.items import NAMES, Names
from curate.formats.readers.layout import Parts, find
from curate.formats.readers.task import TaskTable, named
from curate.system import resources

Paths = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class QueryColumns(Section):
    """Columns of queries; a dotted name such as `metadata.title` reaches into JSON objects."""

    id: str | None = Field(default=None, description="`<line>` for a table without ids: the line's number is the id")
    text: str | None = None


class CorpusColumns(QueryColumns):
    """Columns of documents."""

    title: str | None = None


class QrelsColumns(Section):
    """Columns of qrels."""

    query_id: str | None = None
    doc_id: str | None = None
    score: str | None = None


class Columns(Section):
    """Columns of all three tables; what is not named here is looked for under the names of BEIR and MTEB."""

    queries: QueryColumns = QueryColumns()
    corpus: CorpusColumns = CorpusColumns()
    qrels: QrelsColumns = QrelsColumns()


class FileSection(Section):
    """The files of one table."""

    path: Paths = Field(description="a path, or a list of them")
    format: Literal["auto", "jsonl", "csv", "tsv", "parquet", "txt"] = Field(
        default="auto", description="`auto` goes by the ending; `txt` is a text per line"
    )


class QueriesFile(FileSection):
    """The files of the queries."""

    columns: QueryColumns = QueryColumns()


class CorpusFile(FileSection):
    """The files of the corpus."""

    columns: CorpusColumns = CorpusColumns()


class QrelsFile(FileSection):
    """The files of the qrels."""

    columns: QrelsColumns = QrelsColumns()


class Input(Section):
    """Where queries, corpus and qrels come from."""

    source: str | None = Field(
        default=None, description="a folder (BEIR or MTEB layout), the name of an mteb task, or `demo`"
    )
    queries: QueriesFile | None = Field(default=None, description="files of queries, in place of those of the source")
    corpus: CorpusFile | None = Field(default=None, description="files of documents, in place of those of the source")
    qrels: QrelsFile | None = Field(default=None, description="files of qrels, in place of those of the source")
    columns: Columns = Columns()
    split: str | None = Field(default=None, description="split of the qrels; without it `test`, or the only one")
    encoding: Literal["auto", "utf-8", "utf-16", "gb18030", "big5"] = "auto"

    def names(self, table: Table) -> Names:
        """Return field -> column names to try: the user's own one, else the usual ones."""
        own = getattr(self.columns, table).model_dump(exclude_none=True)
        section = getattr(self, table)
        if section is not None:
            own |= section.columns.model_dump(exclude_none=True)
        return {field: (own[field],) if field in own else names for field, names in NAMES[table].items()}


@dataclass(frozen=True)
class Sources:
    """The sources of every table."""

    tables: Mapping[Table, Sequence[Source]]
    other_qrels: Sequence[Source] = field(default_factory=list)
    """Qrels of the other splits of a folder; their queries are left out."""

    def digests(self) -> dict[str, Json]:
        """Return name and digest of every source, per table and for `other_qrels`."""
        groups = [*self.tables.items(), ("other_qrels", self.other_qrels)]
        return {table: [[source.name, source.digest()] for source in group] for table, group in groups}


def sources(config: Input) -> Sources:
    """Return the sources that the settings stand for.

    ConfigError, DataError or MissingExtra if one is missing, saying what to type; nothing but a README is read.
    """
    own = {table: _files(config, table) for table in TABLES if getattr(config, table) is not None}
    found = Sources({}) if config.source is None else _of(config.source, config)
    tables = {table: own.get(table) or found.tables.get(table, []) for table in TABLES}
    for table in ("queries", "corpus"):
        if not tables[table]:
            raise ConfigError(
                f"ingest: found no {table}; set ingest.source to a folder with {table}.jsonl (BEIR) or with a "
                f"README.md that has `configs:` (MTEB), or ingest.{table}.path to a file"
            )
    return Sources(tables, [] if "qrels" in own else found.other_qrels)


def _files(config: Input, table: Table) -> list[File]:
    section: FileSection = getattr(config, table)
    paths = [Path(path).expanduser() for path in section.path]
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path}: no such file; set ingest.{table}.path to the file of the {table}")
    return [_file(path, config, None if section.format == "auto" else section.format) for path in paths]


def _file(path: Path, config: Input, format_: Format | None = None) -> File:
    return File(path, format_ or format_of(path), config.encoding)


def _of(source: str, config: Input) -> Sources:
    folder = resources.demo(source) if source in resources.DEMOS else Path(source).expanduser()
    if folder.is_dir():
        parts: Parts = find(folder, config.split)
        tables: dict[Table, Sequence[Source]] = {t: [_file(path, config) for path in parts.of(t)] for t in TABLES}
        return Sources(tables, [_file(path, config) for path in parts.other_qrels])
    if folder.exists():
        raise ConfigError(f"{folder}: found a file, expected a folder; set ingest.queries.path and ingest.corpus.path")
    if len(folder.parts) > 1 or source.startswith((".", "~")):
        raise DataError(f"{folder}: no such folder; set ingest.source to a folder with queries.jsonl and corpus.jsonl")
    task = named(source)
    return Sources({table: [TaskTable(task, table, config.split)] for table in TABLES})
