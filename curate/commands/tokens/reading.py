"""Texts to count tokens of: a run's tables, a folder of queries and documents, an export, or one file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from curate.core import records
from curate.core.errors import ConfigError, DataError
from curate.pipeline.folder import table_path
from curate.pipeline.foreign_files import is_run
from curate.tables.readers import Problem, Table, layout
from curate.tables.readers.file import File, format_of
from curate.tables.readers.items import LINE, NAMES, Names, item, wanted
from curate.tables.readers.text_rows import shown_names

BELOW = ("", "retrieval", "beir", "mteb/retrieval", "export/beir", "export/mteb/retrieval")
"""Where in a folder its queries and documents may lie, first choice first."""
TABLES: Mapping[Table, str] = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class TextPart:
    """Texts of one role: queries or documents."""

    name: str
    role: str
    files: Sequence[File]
    names: Names = field(repr=False)

    def texts(self) -> Iterator[str]:
        """Yield every text as an encoder reads it, title first; DataError at the first row that cannot be read."""
        for file in self.files:
            for row in file.rows(wanted(self.names)):
                found = item(row, self.names)
                if isinstance(found, Problem):
                    raise DataError(found.sentence(file.place))
                yield records.shown(found.title, found.text)


def parts(place: Path, column: str | None = None) -> list[TextPart]:
    """Return the texts of a place, queries first; `column` names the one that holds a file's texts."""
    if place.is_file():
        return [_file(place, column)]
    if column is not None:
        raise ConfigError(f"--column {column}: found the folder {place}, expected a file with it; leave it out")
    if not place.is_dir():
        raise DataError(f"{place}: no such file or folder, expected one with texts; check the path")
    if is_run(place):
        return _of_run(place)
    for below in BELOW:
        if found := _of_folder(place / below):
            return found
    held = ", ".join(path.name for path in layout.readable(place)[:10]) or "no table"
    raise DataError(
        f"{place}: found {held}, expected a run folder, an export, or queries.jsonl or corpus.jsonl; give a single "
        "file by its own path"
    )


def _of_run(run: Path) -> list[TextPart]:
    names = {"queries": {"id": ("query_id",)}, "corpus": {"id": ("doc_id",), "title": ("title",)}}
    return [
        TextPart(_called(table), role, [_opened(table_path(run, table), table)], names[table] | {"text": ("text",)})
        for table, role in TABLES.items()
    ]


def _of_folder(folder: Path) -> list[TextPart]:
    if not folder.is_dir():
        return []
    found = layout.find(folder, None)
    return [
        TextPart(_called(table), role, [_opened(path, table) for path in found.of(table)], NAMES[table])
        for table, role in TABLES.items()
        if found.of(table)
    ]


def _file(path: Path, column: str | None) -> TextPart:
    """Return a file's texts: those of the column that is named, else of `text` or `query`, after `title`."""
    file = _opened(path, "corpus")
    texts = (column,) if column else (*NAMES["corpus"]["text"], "query")
    head = file.header()
    if head is not None and not any(name in head for name in texts):
        raise DataError(
            f"{path}: found the columns {shown_names(head)}, expected {' or '.join(texts)}; name the one that holds "
            "the texts with --column"
        )
    titles: Names = {} if column else {"title": NAMES["corpus"]["title"]}
    return TextPart(path.name, "document", [file], {"id": (LINE,), **titles, "text": texts})


def _opened(path: Path, table: Table) -> File:
    return File(path, format_of(path), table=table)


def _called(table: Table) -> str:
    return "documents" if table == "corpus" else table
