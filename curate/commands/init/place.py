"""What to type where a user pointed at one file, or at a folder that lacks a table."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from curate.commands.init import pairing
from curate.commands.init.request import InitRequest
from curate.core.errors import ConfigError, CurateError
from curate.system.resources import DEMOS
from curate.tables.readers import TABLES, Table
from curate.tables.readers.file import File
from curate.tables.readers.guess import guess
from curate.tables.readers.layout import find, readable
from curate.tables.readers.settings import Input, Sources, sources

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
