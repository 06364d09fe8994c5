"""Data as `curate init` finds them: sources, columns and why, languages, and whether anything is to be asked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from curate.core import records
from curate.core.config import check
from curate.core.errors import DataError
from curate.core.protocols import Progress, quiet
from curate.formats.readers import TABLES, Row, Source, Table
from curate.formats.readers.items import LINE, Item, item
from curate.formats.readers.language import LOOKED, Spoken, language
from curate.formats.readers.look import TableLook
from curate.formats.readers.look import look as table_look
from curate.formats.readers.settings import Sources, sources
from curate.runs.init.place import need_two_tables
from curate.runs.init.price import SampleTexts
from curate.runs.init.request import InitRequest
from curate.stages.ingest.config import Config


@dataclass(frozen=True)
class DataSources:
    """What lies where a user pointed."""

    request: InitRequest
    input: Config
    sources: Sources
    tables: Mapping[Table, TableLook]
    """Every table that there is."""
    samples: SampleTexts
    """Of the first rows, as a judge is shown them."""

    @cached_property
    def spoken(self) -> Spoken:
        """Return the language of the texts of the first rows, and that of queries and documents alone."""
        texts = {"queries": self.samples.queries, "corpus": self.samples.documents}
        whole = language(text for each in texts.values() for text in each)
        return Spoken(whole, {table: language(each) for table, each in texts.items()})

    def shares(self) -> dict[str, tuple[int, int]]:
        """Return table -> texts of the first rows that are of the detected language alone, and texts in all."""
        texts = {"queries": self.samples.queries, "documents": self.samples.documents}
        counts = {name: Counter(language([text]) for text in each) for name, each in texts.items()}
        return {name: (each[self.spoken.language], each.total()) for name, each in counts.items()}


def look(request: InitRequest, progress: Progress = quiet) -> DataSources:
    """Look at the data, in one pass, and return what they are.

    ConfigError or DataError, saying what to type, if something is missing or no column can hold what is needed.
    """
    config = check(Config, request.said("ingest") or {}, "ingest")
    need_two_tables(request, config)
    found = sources(config)
    tables: list[Table] = [table for table in TABLES if found.tables[table]]
    looks: dict[Table, TableLook] = {}
    for number, table in enumerate(tables):
        progress("looking", len(tables), number)
        looks[table] = _plain(table_look(found.tables[table], table, named(config, table)), request)
    progress("looking", len(tables), len(tables))
    texts = {table: [*_first(found, looks[table])] for table in tables if table != "qrels"}
    return DataSources(request, config, found, looks, SampleTexts(texts["queries"], texts["corpus"]))


def named(config: Config, table: Table) -> dict[str, str]:
    """Return field -> column, of those that the user named."""
    own: dict[str, str] = getattr(config.columns, table).model_dump(exclude_none=True)
    section = getattr(config, table)
    return own | (section.columns.model_dump(exclude_none=True) if section else {})


def rows(group: Sequence[Source]) -> Iterator[Row]:
    """Yield the rows of sources that can be read."""
    return (row for source in group for row in source.rows() if isinstance(row, Row))


def _plain(found: TableLook, request: InitRequest) -> TableLook:
    """Return a look; DataError, with the command that names a column, if a field has none."""
    if found.guess is None:
        field = "query_id" if found.table == "qrels" else "text"
        remedy = request.command("--column", f"{found.table}.{field}=NAME")
        raise DataError(f"{found.trouble}\nname columns on the command line with: {remedy}")
    return found


def _first(found: Sources, table: TableLook) -> Iterator[str]:
    """Yield the texts of a table's first rows, with their titles, as a judge is shown them."""
    assert table.guess is not None
    chosen = {**table.guess.usual, **table.guess.columns, "id": LINE}  # a text counts whatever its id is
    names = {each: (column,) for each, column in chosen.items()}
    for row in islice(rows(found.tables[table.table]), LOOKED):
        read = item(row, names)
        if isinstance(read, Item) and not read.empty():
            yield records.shown(read.title, read.text)
