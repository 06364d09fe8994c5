"""What to type where a user pointed at one file, or at a folder that lacks a table."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, permutations
from pathlib import Path

from curate.ask.forecast import SampleTexts
from curate.commands.ingest import Config
from curate.commands.init import pairing
from curate.commands.init.request import InitRequest
from curate.core import records
from curate.core.config import check
from curate.core.errors import ConfigError, CurateError, DataError, UserError
from curate.core.protocols import Progress, quiet
from curate.system.resources import DEMOS
from curate.tables.readers import TABLES, Row, Source, Table
from curate.tables.readers.file import File
from curate.tables.readers.folder import find, readable
from curate.tables.readers.guess import guess, has_known_name
from curate.tables.readers.items import LINE, Item, item
from curate.tables.readers.look import TableLook
from curate.tables.readers.look import look as table_look
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
"""Words in the name of a file that holds a table, in the languages of its users."""
_LISTED = 8


def need_two_tables(request: InitRequest, config: Input) -> None:
    """Raise ConfigError if the source is one file, or a folder without queries or corpus, saying what to type."""
    if config.source is None or config.source in DEMOS:
        return
    place = Path(config.source).expanduser()
    if place.is_file():
        raise ConfigError(_one_file(place, request))
    needed: list[Table] = [table for table in ("queries", "corpus") if getattr(config, table) is None]
    if not place.is_dir():
        return
    parts = find(place, config.split)
    absent = [table for table in needed if not parts.of(table)]
    if absent:
        raise ConfigError(_lacking(place, absent, request))


def _lacking(place: Path, absent: Sequence[Table], request: InitRequest) -> str:
    """Return what a folder holds, what it lacks, and the command that names its files."""
    files = readable(place)
    names = [path.name for path in files]
    held = ", ".join([*names[:_LISTED], *(["..."] if len(names) > _LISTED else [])]) or "no file that can be read"
    rest = replace(request, source=None) if len(absent) > 1 else request
    commands = [
        rest.command(*(word for table, file in zip(absent, chosen, strict=True) for word in (f"--{table}", file)))
        for chosen in _assigned(files, absent)
    ]
    return (
        f"{place}: found {held}, expected {' and '.join(absent)} (such as {absent[0]}.jsonl, .csv or .xlsx, or a "
        f"folder {absent[0]}); name the files: {', or '.join(commands)}"
    )


def _assigned(files: Sequence[Path], absent: Sequence[Table]) -> list[tuple[str, ...]]:
    """Return which files may be the tables that are lacking: by their names, else of as many files in every order."""
    likely = tuple(_likely(files, table) for table in absent)
    if "FILE" in likely and len(files) == len(absent):
        return [tuple(map(str, order)) for order in permutations(files)]
    return [likely]


def _likely(files: Sequence[Path], table: Table) -> str:
    """Return the one file whose name speaks for a table; FILE if there is none, or several."""
    likely = [path for path in files if _WORDS[table].search(path.stem)]
    return str(likely[0]) if len(likely) == 1 else "FILE"


def _one_file(path: Path, request: InitRequest) -> str:
    """Return what a single file seems to hold, and the commands that take it for that."""
    asked, told = (_named_column(path, table) for table in TABLES[:2])
    as_queries = replace(request, source=None, queries=str(path), corpus="FILE").command()
    as_corpus = replace(request, source=None, queries="FILE", corpus=str(path)).command()
    both = replace(request, source=None, queries=str(path), corpus=str(path)).command()
    if len(sheets := _sheets(path)) > 1:
        return f"{path}: found a workbook with the sheets {' and '.join(sheets)}; name it as both tables: {both}"
    if asked and told and asked != told:
        return (
            f"{path}: found one file with queries ({asked}) and documents ({told}) side by side, expected two tables; "
            f"{both} reads it as both, and takes the document of each row for a known positive of its query"
        )
    if bool(asked) != bool(told):
        what, other, command = ("queries", "documents", as_queries) if asked else ("documents", "queries", as_corpus)
        return f"{path}: found one file, of {what} ({asked or told}), expected {other} as well; name both: {command}"
    return (
        f"{path}: found a file, expected a folder or two files; if it holds queries: {as_queries}; if it holds "
        f"documents: {as_corpus}"
    )


def _sheets(path: Path) -> list[str]:
    """Return the sheets of a workbook that are named like queries and corpus; none of any other file."""
    if path.suffix.lower() != ".xlsx":
        return []
    try:
        found = [source for group in _both(path).tables.values() for source in group]
        return list(dict.fromkeys(each.workbook.name for each in found if isinstance(each, File)))
    except CurateError:  # which sheets are meant is asked once the file is named
        return []


def _named_column(path: Path, table: Table) -> str | None:
    """Return the column of a file that is named like the text of one table, or that the file's own name speaks for."""
    words = next((each for each, pattern in _WORDS.items() if pattern.search(path.stem)), None)
    try:
        source = _both(path).tables[table][0]
        if cells := pairing.by_cells(pairing.sentences(source)):
            return cells[table]
        found = guess(source, table)
    except (CurateError, OSError):  # that it cannot be read is said once it is named
        return None
    column = {**found.usual, **found.columns}["text"]
    return column if _WORDS[table].search(column) or words == table else None


def _both(path: Path) -> Sources:
    """Return a file as queries and as corpus."""
    return sources(Input.model_validate({table: {"path": [str(path)]} for table in ("queries", "corpus")}))


# Data as `curate init` finds them: sources, columns and why, languages, and whether anything is to be asked.

_ASKED = re.compile(r"ingest\.(?:(?P<table>queries|corpus|qrels)\.)?(?:sheet|delimiter|split|encoding)\b")
"""Settings by which a reader asks to be told; what they mean is in its sentence."""


@dataclass(frozen=True)
class DataSources:
    """What lies where a user pointed."""

    request: InitRequest
    input: Config
    sources: Sources
    tables: Mapping[Table, TableLook]
    """Every table that there is."""
    by_cells: Mapping[Table, str] = field(default_factory=dict)
    """Of one file that is both tables, the columns of questions and answers, where what stands in them told."""

    @property
    def pairs(self) -> bool:
        """Say whether each row is a query and its answer: two columns of one file, no qrels, no column of grades."""
        texts = {chosen(self, table).get("text") for table in self.tables}
        graded = any(has_known_name([name], "qrels", ["score"]) for name in self.tables["queries"].columns)
        return self.sources.one_table and len(texts) == len(self.tables) == 2 and not graded

    @cached_property
    def samples(self) -> SampleTexts:
        """Return the texts of the first rows, as a judge is shown them; DataError if a table lacks a column."""
        return SampleTexts([*_first(self, "queries")], [*_first(self, "corpus")])

    @cached_property
    def spoken(self) -> Spoken:
        """Return the language of the texts of the first rows, and that of queries and documents alone."""
        texts = {"queries": self.samples.queries, "corpus": self.samples.documents}
        whole = language(text for each in texts.values() for text in each)
        return Spoken(whole, {table: language(text) for table, text in texts.items()})

    def shares(self) -> dict[str, tuple[int, int]]:
        """Return table -> texts of the first rows that are of the detected language alone, and texts in all."""
        texts = {"queries": self.samples.queries, "documents": self.samples.documents}
        counts = {name: Counter(language([text]) for text in each) for name, each in texts.items()}
        return {name: (count[self.spoken.language], count.total()) for name, count in counts.items()}


def look(request: InitRequest, progress: Progress = quiet) -> DataSources:
    """Look at the data, in one pass, and return what they are.

    ConfigError or DataError, saying what to type, if something is missing or no column can hold what is needed.
    """
    config = check(Config, request.said("ingest") or {}, "ingest")
    need_two_tables(request, config)
    try:
        found = sources(config)
        cells, texts = _sides(config, found)
        looks: dict[Table, TableLook] = {}
        for table in (table for table in TABLES if found.tables[table]):
            known = {**named(config, table), **({"text": texts[table]} if table in texts else {})}
            other = [column for side, column in texts.items() if table not in (side, "qrels")]
            looks[table] = table_look(found.tables[table], table, known, progress, other)
    except UserError as error:
        if remedies := _settings(error, request):
            raise type(error)("\n".join([str(error), *(f"here: {remedy}" for remedy in remedies)])) from error
        raise
    return DataSources(request, config, found, looks, cells)


def _sides(config: Config, found: Sources) -> tuple[Mapping[Table, str], Mapping[Table, str]]:
    """Return the text columns of queries and corpus in one file: those that cells told, and all that are known."""
    if not found.one_table:
        return {}, {}
    said = {table: column for table in TABLES if (column := named(config, table).get("text"))}
    cells = pairing.by_cells(pairing.sentences(found.tables["queries"][0]))
    return (cells, cells) if cells and {**cells, **said} == cells else ({}, said)


def _settings(error: UserError, request: InitRequest) -> list[str]:
    """Return the commands that give the setting which an error asks for, one per choice; none if it asks for none."""
    said = str(error)
    asked = _ASKED.search(said)
    if asked is None:
        return []
    choices = error.choices if isinstance(error, ConfigError) else ()
    table = next((each for each in TABLES if each == asked["table"]), None)
    alone = table is not None and request.said("ingest", table, "path") is None
    path = said.partition(": found ")[0]  # a setting of a table needs the name of its file
    files = ("--set", f"ingest.{table}.path={path}") if alone else ()
    values = [json.dumps(choice, ensure_ascii=False) for choice in choices] or ["VALUE"]
    return [request.command(*files, "--set", f"{asked[0]}={value}") for value in values]


def named(config: Config, table: Table) -> dict[str, str]:
    """Return field -> column, of those that the user named."""
    own: dict[str, str] = getattr(config.columns, table).model_dump(exclude_none=True)
    section = getattr(config, table)
    return own | (section.columns.model_dump(exclude_none=True) if section else {})


def rows(group: Sequence[Source]) -> Iterator[Row]:
    """Yield the rows of sources that can be read."""
    return (row for source in group for row in source.rows() if isinstance(row, Row))


def chosen(found: DataSources, table: Table) -> dict[str, str]:
    """Return field -> column; DataError, with a command that names a column, if a field has none."""
    look = found.tables[table]
    if look.guess is None:
        field = "doc_id" if table == "qrels" else "text"
        remedy = found.request.command("--column", f"{table}.{field}=NAME")
        raise DataError(f"{look.trouble}\nor say here which column it is: {remedy}")
    return {**look.guess.usual, **look.guess.columns}


def _first(found: DataSources, table: Table) -> Iterator[str]:
    names = {each: (column,) for each, column in {**chosen(found, table), "id": LINE}.items()}  # whatever its id is
    for row in islice(rows(found.sources.tables[table]), LOOKED):
        read = item(row, names)
        if isinstance(read, Item) and not read.empty():
            yield records.shown(read.title, read.text)
