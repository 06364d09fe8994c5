"""Inspection of a user's data: sources, columns, languages, and commands to suggest if a table is missing."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, permutations
from pathlib import Path

from curate.ask.forecast import SampleTexts
from curate.commands.ingest import Config
from curate.commands.init import pairing
from curate.commands.init.request import InitOptions
from curate.core import records
from curate.core.config import check
from curate.core.errors import ConfigError, CurateError, DataError, UserError
from curate.core.protocols import Progress, quiet
from curate.system.resources import DEMOS
from curate.tables.readers import TABLES, Row, Source, Table
from curate.tables.readers.encoding import BOUNDS
from curate.tables.readers.file import File
from curate.tables.readers.folder import find, readable, subsets
from curate.tables.readers.guess import NoColumnError, guess, has_known_name
from curate.tables.readers.items import LINE, Item, item
from curate.tables.readers.look import TableLook
from curate.tables.readers.look import look as table_look
from curate.tables.readers.passages import passages
from curate.tables.readers.settings import LOOKED, Input, Sources, Spoken, language, sources

_WORDS = {
    "queries": re.compile(
        r"quer|question|topic|ask|frage|pregunta|consulta|domand|問|问|查询|查詢|質問|질문", re.IGNORECASE
    ),
    "corpus": re.compile(
        r"corpus|korpus|do[ck]|passage|answer|article|artikel|collection|antwort|r[eé]ponse|respuest|rispost|"
        r"答|文档|文檔|語料|语料|文章|回答|답변|문서",
        re.IGNORECASE,
    ),
}
"""Table -> pattern of words in file and column names that suggest it, in several languages."""
_LISTED = 8


def need_two_tables(request: InitOptions, config: Input) -> None:
    """Raise ConfigError with commands to type if the source is a single file, or a folder without queries or corpus."""
    if config.source is None or config.source in DEMOS:
        return
    source = Path(config.source).expanduser()
    if source.is_file():
        raise ConfigError(_one_file(source, request))
    needed: list[Table] = [table for table in ("queries", "corpus") if getattr(config, table) is None]
    if not source.is_dir():
        return
    files = find(source, config.split)
    absent = [table for table in needed if not files.of(table)]
    if absent:
        raise ConfigError(_missing_tables(source, absent, request))


def _missing_tables(folder: Path, absent: Sequence[Table], request: InitOptions) -> str:
    """Return a message on a folder's files and missing tables, with commands that name the tables."""
    files = readable(folder)
    names = [path.name for path in files]
    listed = ", ".join([*names[:_LISTED], *(["..."] if len(names) > _LISTED else [])]) or "no file that can be read"
    remaining = request.with_options(source=None) if len(absent) > 1 else request
    choices = [dict(zip(absent, chosen, strict=True)) for chosen in _assigned(files, absent)]
    if len(absent) > 1 and (of_subsets := subsets(folder)):
        choices = [{table: str(path) for table, path in paths.items()} for paths in of_subsets]
    commands = [
        remaining.command(*(word for table, path in paths.items() for word in (f"--{table}", path)))
        for paths in choices
    ]
    return (
        f"{folder}: found {listed}, expected {' and '.join(absent)} (such as {absent[0]}.jsonl, .csv or .xlsx, or a "
        f"folder {absent[0]}); name the files: {', or '.join(commands)}"
    )


def _assigned(files: Sequence[Path], absent: Sequence[Table]) -> list[tuple[str, ...]]:
    """Return one file per missing table, by its name, else "FILE".

    If names are unclear and there are as many files as tables, return every assignment.
    """
    candidates = [[path for path in files if _WORDS[table].search(path.stem)] for table in absent]
    likely = tuple(str(paths[0]) if len(paths) == 1 else "FILE" for paths in candidates)
    if "FILE" in likely and len(files) == len(absent):
        return [tuple(map(str, order)) for order in permutations(files)]
    return [likely]


def _one_file(path: Path, request: InitOptions) -> str:
    """Return a message on the likely content of a single file, with one command per interpretation."""
    query_column, document_column = (_named_column(path, table) for table in TABLES[:2])
    as_queries = request.with_options(source=None, queries=str(path), corpus="FILE").command()
    as_corpus = request.with_options(source=None, queries="FILE", corpus=str(path)).command()
    both = request.with_options(source=None, queries=str(path), corpus=str(path)).command()
    if len(sheets := _sheets(path)) > 1:
        return f"{path}: found a workbook with the sheets {' and '.join(sheets)}; name it as both tables: {both}"
    if query_column and document_column and query_column != document_column:
        return (
            f"{path}: found one file with queries ({query_column}) and documents ({document_column}) side by side, "
            f"expected two tables; to read it as both, with the document of each row as a known positive of its query:"
            f"\n{both}"
        )
    if bool(query_column) != bool(document_column):
        what, absent, command = (
            ("queries", "documents", as_queries) if query_column else ("documents", "queries", as_corpus)
        )
        column = query_column or document_column
        return f"{path}: found one file, of {what} ({column}), expected {absent} as well; name both: {command}"
    return (
        f"{path}: found a file, expected a folder or two files; if it holds queries: {as_queries}; if it holds "
        f"documents: {as_corpus}"
    )


def _sheets(path: Path) -> list[str]:
    """Return the sheets of a workbook that are named like queries or corpus; [] for other files."""
    if path.suffix.lower() != ".xlsx":
        return []
    try:
        sources = [source for group in _as_both_tables(path).tables.values() for source in group]
        return list(dict.fromkeys(source.workbook.name for source in sources if isinstance(source, File)))
    except CurateError:  # which sheets are meant is asked once the file is named
        return []


def _named_column(path: Path, table: Table) -> str | None:
    """Return a file's text column if its name, its cells or the file name suggest the table; else None."""
    words = next((table_name for table_name, pattern in _WORDS.items() if pattern.search(path.stem)), None)
    try:
        source = _as_both_tables(path).tables[table][0]
        if cells := pairing.by_cells(pairing.sentences(source)):
            return cells[table]
        guessed = guess(source, table)
    except (CurateError, OSError):  # that it cannot be read is said once it is named
        return None
    column = {**guessed.usual, **guessed.columns}["text"]
    return column if _WORDS[table].search(column) or words == table else None


def _as_both_tables(path: Path) -> Sources:
    """Return a file as the source of both queries and corpus."""
    return sources(Input.model_validate({table: {"path": [str(path)]} for table in ("queries", "corpus")}))


# Inspection of the data: sources, columns with reasons, and languages.

_ASKED = re.compile(r"ingest\.(?:(?P<table>queries|corpus|qrels)\.)?(?:sheet|delimiter|split|encoding)\b")
"""Pattern of settings that the error message of a reader requests."""
_BOUND = re.compile(r"ingest\.bounds\.(\w+)=NUMBER")


@dataclass(frozen=True)
class DataSources:
    """Sources, table profiles and languages of the user's data."""

    request: InitOptions
    input: Config
    sources: Sources
    tables: Mapping[Table, TableLook]
    """Profiles of the tables that exist."""
    by_cells: Mapping[Table, str] = field(default_factory=dict)
    """Text columns of a file with both tables, if detected from questions and answers in their cells."""

    @property
    def pairs(self) -> bool:
        """Return whether each row is a query with its answer: two columns of one file, without qrels and grades."""
        texts = {chosen(self, table).get("text") for table in self.tables}
        graded = any(has_known_name([name], "qrels", ["score"]) for name in self.tables["queries"].columns)
        return self.sources.one_table and len(texts) == len(self.tables) == 2 and not graded

    @cached_property
    def documents(self) -> int:
        """Return the number of documents, or of passages where documents are cut."""
        settings, corpus = self.input.passages, self.sources.tables["corpus"]
        if settings is None:
            return self.tables["corpus"].rows
        return sum(len(passages(document, settings)) for document in _items(self, "corpus", rows(corpus)))

    @cached_property
    def samples(self) -> SampleTexts:
        """Return the texts of the first rows as a judge reads them; DataError if a table lacks a column."""
        return SampleTexts([*_first_texts(self, "queries")], [*_first_texts(self, "corpus")])

    @cached_property
    def spoken(self) -> Spoken:
        """Return the detected language of the first rows, in total and per table."""
        texts = {"queries": self.samples.queries, "corpus": self.samples.documents}
        overall = language(text for table_texts in texts.values() for text in table_texts)
        return Spoken(overall, {table: language(text) for table, text in texts.items()})

    def shares(self) -> dict[str, tuple[int, int]]:
        """Return table -> (number of the first rows' texts in the detected language, number of all these texts)."""
        texts = {"queries": self.samples.queries, "documents": self.samples.documents}
        counts = {name: Counter(language([text]) for text in table_texts) for name, table_texts in texts.items()}
        return {name: (count[self.spoken.language], count.total()) for name, count in counts.items()}


def look(request: InitOptions, progress: Progress = quiet) -> DataSources:
    """Return the sources and table profiles from one pass over the data.

    ConfigError or DataError, with commands to type, if a table or column is missing.
    """
    config = check(Config, request.setting_at("ingest") or {}, "ingest")
    need_two_tables(request, config)
    try:
        located = sources(config)
        cells, texts = _text_columns(config, located)
        looks: dict[Table, TableLook] = {}
        for table in (table for table in TABLES if located.tables[table]):
            known_columns = {**named(config, table), **({"text": texts[table]} if table in texts else {})}
            taken_columns = [column for side, column in texts.items() if table not in (side, "qrels")]
            looks[table] = table_look(located.tables[table], table, known_columns, progress, taken_columns)
    except UserError as error:
        error.options = error.options or _settings(error, request)
        raise
    return DataSources(request, config, located, looks, cells)


def _text_columns(config: Config, located: Sources) -> tuple[Mapping[Table, str], Mapping[Table, str]]:
    """Return text columns of queries and corpus in one file: those detected from cells, and those detected or given."""
    if not located.one_table:
        return {}, {}
    given_columns = {table: column for table in TABLES if (column := named(config, table).get("text"))}
    source = located.tables["queries"][0]
    cells = pairing.by_cells(pairing.sentences(source))
    if cells and {**cells, **given_columns} == cells:
        return cells, cells
    return {}, given_columns or pairing.by_names([*pairing.text_columns(source)])


def _settings(error: UserError, request: InitOptions) -> list[list[str]]:
    """Return options with the setting that an error requests, one per choice; [] if it requests none."""
    message = str(error)
    if bound := _BOUND.search(message):
        lifted = min(10 * int(getattr(BOUNDS, bound[1])), 900 if bound[1] == "depth" else sys.maxsize)
        return [["--set", f"ingest.bounds.{bound[1]}={lifted}"]]
    match = _ASKED.search(message)
    if match is None:
        return []
    choices = error.choices if isinstance(error, ConfigError) else ()
    table = next((name for name in TABLES if name == match["table"]), None)
    alone = table is not None and request.setting_at("ingest", table, "path") is None
    path = message.partition(": found ")[0]  # a setting of a table needs the name of its file
    files = ("--set", f"ingest.{table}.path={path}") if alone else ()
    values = [json.dumps(choice, ensure_ascii=False) for choice in choices] or ["VALUE"]
    both = [name for name in TABLES[:2] if request.setting_at("ingest", name, "path") == [path]]
    if len(both) > 1 and any(isinstance(choice, list) for choice in choices):  # sheets of one form hold both tables
        return [[word for name in both for word in ("--set", f"ingest.{name}.sheet={value}")] for value in values]
    return [[*files, "--set", f"{match[0]}={value}"] for value in values]


def named(config: Config, table: Table) -> dict[str, str]:
    """Return field -> column, for the columns that the user named."""
    from_columns: dict[str, str] = getattr(config.columns, table).model_dump(exclude_none=True)
    section = getattr(config, table)
    return from_columns | (section.columns.model_dump(exclude_none=True) if section else {})


def rows(group: Sequence[Source]) -> Iterator[Row]:
    """Yield the readable rows of sources."""
    return (row for source in group for row in source.rows() if isinstance(row, Row))


def chosen(user_data: DataSources, table: Table) -> dict[str, str]:
    """Return field -> column; DataError, with a command that names a column, if a field has none."""
    look = user_data.tables[table]
    if look.guess is None:
        usual = "doc_id" if table == "qrels" else "text"
        field = look.error.field if isinstance(look.error, NoColumnError) else usual
        texts = list(pairing.text_columns(user_data.sources.tables[table][0])) if field == "text" else look.columns
        candidates = [name for name in texts if name not in named(user_data.input, table).values()][:_LISTED]
        remedies = [user_data.request.command("--column", f"{table}.{field}={name}") for name in candidates or ["NAME"]]
        raise DataError("\nor say here which column it is: ".join([str(look.error), *remedies]))
    return {**look.guess.usual, **look.guess.columns}


def _items(user_data: DataSources, table: Table, table_rows: Iterable[Row]) -> Iterator[Item]:
    by_field = {**chosen(user_data, table), "id": LINE}  # whatever its id is
    columns = {field_name: (column,) for field_name, column in by_field.items()}
    parsed = (item(row, columns) for row in table_rows)
    return (text for text in parsed if isinstance(text, Item) and not text.empty())


def _first_texts(user_data: DataSources, table: Table) -> Iterator[str]:
    settings = user_data.input.passages if table == "corpus" else None
    for text in _items(user_data, table, islice(rows(user_data.sources.tables[table]), LOOKED)):
        for passage, _, _ in [(text, 0, 0)] if settings is None else passages(text, settings):
            yield records.shown(passage.title, passage.text)
