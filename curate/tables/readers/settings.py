"""Input settings of a pipeline file, the sources that they configure, and language detection by script."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from curate.core.config import Json, Section
from curate.core.errors import ConfigError, DataError
from curate.core.languages import base_language
from curate.system import resources
from curate.tables.readers import TABLES, Source, Table, public_datasets
from curate.tables.readers import folder as layout
from curate.tables.readers import folder as shards
from curate.tables.readers import text_rows as delimiter
from curate.tables.readers.encoding import BOUNDS, Bounds, Encoding
from curate.tables.readers.file import File, Format, format_of
from curate.tables.readers.forms import Chat
from curate.tables.readers.items import NAMES, Item, Names, check_header, item, needed_columns
from curate.tables.readers.public_datasets import TaskTable, named

Delimiter = Annotated[str, AfterValidator(delimiter.named)]
SheetNames = Annotated[
    list[str], BeforeValidator(lambda value: [str(name) for name in (value if isinstance(value, list) else [value])])
]
"""Names of sheets, or one of them; a number such as 2026 is converted to text."""
Paths = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


SHOWN = 8
"""Maximum number of file names in one message."""


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

    path: Paths = Field(description="a file or a folder of files, or a list of them")
    format: Literal["auto", "jsonl", "csv", "tsv", "xlsx", "parquet", "arrow", "trec", "tagged", "txt"] = Field(
        default="auto", description="`auto` goes by the ending; `txt` is a text per line, `trec` qrels without a header"
    )
    delimiter: Delimiter | None = Field(
        default=None, description="between the cells of a CSV or TSV file, such as `;` or `tab`; found without it"
    )
    header: bool = Field(
        default=True, description="false: the first row holds data, and the columns are column_1, column_2, ..."
    )
    sheet: SheetNames | None = Field(
        default=None,
        description="sheet of an .xlsx file, or a list of sheets of one form; without it the only one with data, or "
        "that of the table's name",
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


class LabelColumns(Section):
    """Columns of the labels of texts."""

    id: str | None = Field(default=None, description="of the query or document")
    label: str | None = Field(default=None, description="a name, a number, or a list of them; empty is no label")
    group: str | None = Field(
        default=None, description="what texts belong to, such as a person or a page: one split holds all texts of it"
    )


class LabelsFile(FileSection):
    """Where the classes of texts come from: files, or a column of the queries or documents themselves."""

    path: Paths = Field(
        default=[],
        description="a file, a folder or a list; without it `columns.label` is a column of the texts' own files",
    )
    side: Literal["queries", "corpus"] = Field(default="queries", description="whose labels these are")
    origin: Literal["given", "keyword", "category", "search"] = Field(
        default="given",
        description="how they came about: given by people, an author's keyword, a category above it, or the words "
        "that the texts were searched by",
    )
    columns: LabelColumns = LabelColumns()


class BoundsSection(Section):
    """How large a record, a table and an archive may be; a larger one is refused."""

    record: int = Field(default=BOUNDS.record, ge=1, description="bytes of a line, an element of a list or a cell")
    ratio: int = Field(
        default=BOUNDS.ratio, ge=1, description="size of an archive's content relative to the archive, from 64 MB on"
    )
    rows: int = Field(default=BOUNDS.rows, ge=1, description="rows of a table")
    columns: int = Field(default=BOUNDS.columns, ge=1, description="columns of a table")
    depth: int = Field(default=BOUNDS.depth, ge=1, le=900, description="levels of lists and objects in a JSON record")


SpeakerNames = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class ChatColumns(Section):
    """A file of queries and documents with a row per utterance."""

    speaker: str = Field(description="column of who speaks")
    text: str = Field(description="column of what is said")
    asks: SpeakerNames = Field(
        default=[], description="speakers whose utterances are the queries; what others say next is the answer"
    )
    answers: SpeakerNames = Field(default=[], description="speakers who answer, if all others ask")
    session: str | None = Field(default=None, description="column of the conversation")

    @model_validator(mode="after")
    def _need_one_side(self) -> Self:
        if bool(self.asks) == bool(self.answers):
            raise ValueError("expected asks or answers, found both or neither")
        return self


class PassageSettings(Section):
    """Length of the passages that documents are cut into."""

    tokens: int = Field(default=300, ge=20, description="most tokens of a passage, title apart (estimated)")
    overlap: int = Field(
        default=0, ge=0, description="tokens of whole sentences that a passage repeats of the one before"
    )
    title: bool = Field(default=True, description="whether every passage has the title of its document")


class Input(Section):
    """Where queries, corpus and qrels come from."""

    source: str | None = Field(
        default=None,
        description="a folder (BEIR or MTEB layout), an mteb task, `irds:` with an id of ir_datasets, or `demo`",
    )
    queries: QueriesFile | None = Field(default=None, description="files of queries, in place of those of the source")
    corpus: CorpusFile | None = Field(default=None, description="files of documents, in place of those of the source")
    qrels: QrelsFile | None = Field(default=None, description="files of qrels, in place of those of the source")
    columns: Columns = Columns()
    chat: ChatColumns | None = Field(
        default=None,
        exclude_if=lambda chat: chat is None,  # so that no ingest of before is out of date
        description="columns of a chat, if queries and documents are one",
    )
    passages: PassageSettings | None = Field(
        default=None,
        exclude_if=lambda settings: settings is None,  # so that no ingest of before is out of date
        description="cut documents into passages, whose ids are that of the document with #0, #1, ...; settings of "
        "their length under `split` mean the same",
    )
    split: str | None = Field(default=None, description="split of the qrels; without it `test`, or the only one")
    encoding: Encoding | Literal["auto"] = "auto"
    bounds: BoundsSection = Field(default=BoundsSection(), exclude=True)  # they change no table
    no_queries: Literal["stop", "allow"] = Field(
        default="stop",
        exclude=True,
        description="`allow` goes on with a corpus alone, for which `curate queries` writes queries",
    )

    @model_validator(mode="before")
    @classmethod
    def _split_of_texts(cls, settings: object) -> object:
        """Move a mapping under `split`, which says how texts are cut and not which qrels are read, to `passages`."""
        if not isinstance(settings, Mapping) or not isinstance(settings.get("split"), Mapping):
            return settings
        return {"passages": settings["split"]} | {name: value for name, value in settings.items() if name != "split"}

    def names(self, table: Table) -> Names:
        """Return field -> candidate column names: the configured one, else the default names."""
        configured = getattr(self.columns, table).model_dump(exclude_none=True)
        section = getattr(self, table)
        if section is not None:
            configured |= section.columns.model_dump(exclude_none=True)
        return {field: (configured[field],) if field in configured else names for field, names in NAMES[table].items()}


@dataclass(frozen=True)
class Sources:
    """Sources by table."""

    tables: Mapping[Table, Sequence[Source]]
    other_qrels: Sequence[Source] = field(default_factory=list)
    """Qrels of the folder's other splits; their queries are excluded."""
    notes: Sequence[str] = ()
    """One sentence per table on its splits that are not read."""

    @property
    def one_table(self) -> bool:
        """Return whether queries and corpus are read from the same files and, in a workbook, the same sheets."""
        queries, corpus = (
            [
                (file.path.resolve(), file.workbook.name if file.kind == "xlsx" else None)
                for file in self.tables.get(table, ())
                if isinstance(file, File)
            ]
            for table in ("queries", "corpus")
        )
        return queries == corpus and len(queries) == len(self.tables.get("queries", ())) > 0

    def digests(self) -> dict[str, Json]:
        """Return [name, digest] of every source, per table and for `other_qrels`."""
        groups = [*self.tables.items(), ("other_qrels", self.other_qrels)]
        return {table: [[source.name, source.digest()] for source in group] for table, group in groups}


def sources(config: Input) -> Sources:
    """Return the configured sources; no file is read except a README.

    ConfigError, DataError or MissingExtra if one is missing; the message names the remedy.
    """
    of_files = {table: files_of(config, table) for table in TABLES if getattr(config, table) is not None}
    of_folder = Sources({}) if config.source is None else _from_source(config.source, config)
    tables = {
        table: of_files[table].tables[table] if table in of_files else of_folder.tables.get(table, [])
        for table in TABLES
    }
    tables |= _of_one_file(tables, config.chat)
    for table in ("queries", "corpus"):
        if not tables[table] and not (table == "queries" and config.no_queries == "allow"):
            hint = _CORPUS_ALONE if table == "queries" else ""
            raise ConfigError(
                f"ingest: found no {table}; {_MISSING.format(table=table)}{hint}{_candidates_clause(config.source)}"
            )
    folder_notes = [
        note for note in of_folder.notes if not note.startswith(tuple(of_files))
    ]  # without notes on tables that are read from files
    notes = [*folder_notes, *(note for table_sources in of_files.values() for note in table_sources.notes)]
    return Sources(tables, [] if "qrels" in of_files else of_folder.other_qrels, notes)


def _of_one_file(
    tables: Mapping[Table, Sequence[Source]], columns: ChatColumns | None
) -> dict[Table, Sequence[Source]]:
    """Return the sources of a file that was given for queries and documents, and its qrels if it states some."""
    queries, corpus = ([file for file in tables[table] if isinstance(file, File)] for table in ("queries", "corpus"))
    paths = [[file.path.resolve() for file in files] for files in (queries, corpus)]
    if not queries or paths[0] != paths[1] or len(queries) + len(corpus) != len(tables["queries"]) * 2:
        return {}
    if len(queries) == 1 and queries[0].kind == "xlsx" and not tables["qrels"]:
        judged = replace(queries[0], table="qrels", sheet=None)
        sheet = judged.workbook.fitting()
        return {"qrels": [judged]} if sheet and sheet not in {queries[0].workbook.name, corpus[0].workbook.name} else {}
    if [file.sheet for file in queries] != [file.sheet for file in corpus]:
        return {}
    chat = (
        None
        if columns is None
        else Chat(columns.speaker, columns.text, frozenset(columns.asks), columns.session, frozenset(columns.answers))
    )
    queries, corpus = ([replace(file, both=True, chat=chat) for file in files] for files in (queries, corpus))
    qrels = tables["qrels"]
    if queries[0].form is not None and "qrels" in queries[0].form.tables and not qrels:
        stated = [replace(file, table="qrels") for file in queries]
        qrels = stated if any(True for file in stated for _ in file.rows()) else []  # words may be no grades
    return {"queries": queries, "corpus": corpus, "qrels": qrels}


_MISSING = (
    "set ingest.source to a folder with {table}.jsonl (BEIR), with a folder {table} or with a README.md that has "
    "`configs:` (MTEB), or ingest.{table}.path to a file"
)
_CORPUS_ALONE = "; with a corpus alone give --set ingest.no_queries=allow, and have queries written by `curate queries`"


def _candidates_clause(source: str | None) -> str:
    """Return a clause that lists the files of a folder that may be tables; empty without any."""
    folder = Path(source or "").expanduser()
    names = [path.name for path in layout.readable(folder)] if source and folder.is_dir() else []
    others = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"; {source} holds {', '.join(names[:SHOWN])}{others}" if names else ""


def files_of(config: Input, table: Table) -> Sources:
    """Return the sources of one table from the files and folders in the settings."""
    section: FileSection = getattr(config, table)
    paths: list[Path] = []
    notes: list[str] = []
    for path in (Path(text).expanduser() for text in section.path):
        if path.is_dir():
            shard_paths, shard_notes = shards.shards_of(path, table, config.split)
            paths, notes = paths + shard_paths, notes + shard_notes
        elif path.is_file():
            paths.append(path)
        else:
            raise DataError(f"{path}: no such file; set ingest.{table}.path to the file of the {table}")
    return Sources({table: _numbered(paths, table, config)}, notes=notes)


def _numbered(paths: Sequence[Path], table: Table, config: Input) -> list[File]:
    """Return the files as sources.

    If line numbers serve as ids, those of the second file have the prefix `2-`, and so on.
    """
    section: FileSection | None = getattr(config, table)
    places = [(path, sheet) for path in paths for sheet in (section.sheet if section and section.sheet else [None])]
    prefixes = ["", *(f"{number}-" for number in range(2, len(places) + 1))]
    return [_file(*place, table, config, prefix) for place, prefix in zip(places, prefixes, strict=False)]


def _file(path: Path, sheet: str | None, table: Table, config: Input, prefix: str) -> File:
    section: FileSection | None = getattr(config, table)
    configured = section.format if section else "auto"
    format_: Format = format_of(path) if configured == "auto" else configured
    bounds = Bounds(**config.bounds.model_dump())
    file = File(path, format_, config.encoding, table=table, line_prefix=prefix, bounds=bounds)
    if section is None:
        return file
    return replace(file, delimiter=section.delimiter, has_header=section.header, sheet=sheet)


def _from_source(source: str, config: Input) -> Sources:
    if source.startswith(public_datasets.PREFIX):
        return Sources(dict(public_datasets.tables(source.removeprefix(public_datasets.PREFIX))))
    folder = resources.demo(source) if source in resources.DEMOS else Path(source).expanduser()
    if folder.is_dir():
        layout_files = layout.find(folder, config.split)
        plain = Input(
            encoding=config.encoding, bounds=config.bounds
        )  # settings of single files do not apply to the files of a folder
        tables: dict[Table, Sequence[Source]] = {t: _numbered(layout_files.of(t), t, plain) for t in TABLES}
        return Sources(tables, _numbered(layout_files.other_qrels, "qrels", plain), layout_files.notes)
    if folder.exists():
        raise ConfigError(f"{folder}: found a file, expected a folder; set ingest.queries.path and ingest.corpus.path")
    if len(folder.parts) > 1 or source.startswith((".", "~")):
        raise DataError(f"{folder}: no such folder; set ingest.source to a folder with queries.jsonl and corpus.jsonl")
    task = named(source)
    return Sources({table: [TaskTable(task, table, config.split)] for table in TABLES})


# The language of texts by their script: what every command detects before it asks a model.

LOOKED, FILES = 200, 10
"""Number of first rows per file, and of first files per table, from which the language is detected."""
LETTERS: Mapping[str, str] = {"ja": "[\u3040-\u30ff]", "ko": "[\uac00-\ud7af]", "zh": "[\u4e00-\u9fff]"}
"""Language -> pattern of its characters, tried in order; Chinese is last, because Japanese shares its characters."""
OTHER = "en"
"""Language assumed for all other scripts."""


@dataclass(frozen=True)
class Spoken:
    """Detected language of all texts, and that of each table (queries, corpus)."""

    language: str
    tables: Mapping[str, str]

    def fits(self, language: str) -> bool:
        """Return whether a tag such as zh or zh-CN is the language of all texts or of one of the two tables."""
        return base_language(language) in {self.language, *self.tables.values()}

    def __str__(self) -> str:
        """Return the language, followed by those of the tables if they differ."""
        by_table = ", ".join(f"{table} {language}" for table, language in self.tables.items())
        return self.language if len(set(self.tables.values())) < 2 else f"{self.language} ({by_table})"


def language(texts: Iterable[str]) -> str:
    """Return the first language whose script has over a tenth of the characters; `OTHER` (English) if there is none."""
    text = "".join(texts)
    shares = ((name, len(text) - len(re.sub(letters, "", text))) for name, letters in LETTERS.items())
    return next((name for name, count in shares if 10 * count > len(text)), OTHER)


def spoken(config: Input, found: Sources | None = None) -> Spoken:
    """Return the languages of the sources, detected by script from their first rows.

    ConfigError, DataError, MissingExtra or RunFailed if a source is missing or cannot be loaded.
    """
    found = found or sources(config)
    texts = {table: [*_texts(config, found, table)] for table in ("queries", "corpus")}
    overall = language(text for table_texts in texts.values() for text in table_texts)
    return Spoken(overall, {table: language(text) for table, text in texts.items() if text})


def _texts(config: Input, origins: Sources, table: Table) -> Iterator[str]:
    names = config.names(table)
    for source in origins.tables[table][:FILES]:
        check_header(source, table, names)
        for row in islice(source.rows(needed_columns(names)), LOOKED):
            converted = item(row, names)
            if isinstance(converted, Item):
                yield f"{converted.title}{converted.text}"
