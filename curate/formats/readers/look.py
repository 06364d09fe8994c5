"""STAND-IN until h_files is merged: what one pass over a table finds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from curate.core.errors import DataError
from curate.formats.readers import Problem, Source, Table
from curate.formats.readers.file import File
from curate.formats.readers.guess import Guess, guess
from curate.formats.readers.items import LINE, NAMES, Item, item, pair

LONG = 32_000
_HTML = re.compile(r"<(?:/?[a-zA-Z][a-zA-Z0-9]*\b[^<>]*|!--.*?--)>")


@dataclass(frozen=True)
class IdColumn:
    column: str
    repeated: int
    missing: int
    by: Literal["name", "values", "user"]
    example: str = ""


@dataclass(frozen=True)
class TableLook:
    table: Table
    place: str
    format: str
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    packed: str | None
    header: bool
    headless: bool
    columns: Sequence[str]
    guess: Guess | None
    trouble: str
    id: IdColumn | None
    rows: int
    problems: int
    problem: str
    empty: int
    html: int
    long: int
    longest: int


def look(sources: Sequence[Source], table: Table, named: Mapping[str, str] = {}) -> TableLook:
    try:
        guessed = guess(sources[0], table, named)
    except DataError as error:
        guessed, trouble = None, str(error)
    else:
        trouble = ""
    names = {each: (column,) for each, column in {**guessed.usual, **guessed.columns}.items()} if guessed else NAMES[table]
    loose = {**names, "id": (LINE,)} if "id" in names else names
    rows = problems = repeated = missing = empty = html = long = longest = 0
    problem = example = ""
    seen: dict[str, int] = {}
    for source in sources:
        for row in source.rows():
            if isinstance(row, Problem):
                problems += 1
                problem = problem or row.sentence(source.place)
                continue
            rows += 1
            if guessed is None:
                continue
            if table == "qrels":
                found = pair(row, names)
                if isinstance(found, Problem):
                    problems += 1
                    problem = problem or found.sentence(source.place)
                continue
            found = item(row, names)
            if isinstance(found, Problem):
                read = item(row, loose)
                if isinstance(read, Item):
                    missing += 1
                else:
                    problems += 1
                    problem = problem or found.sentence(source.place)
                    continue
            else:
                read = found
                if found.id in seen:
                    repeated += 1
                    example = example or f"{found.id!r} in rows {seen[found.id]} and {row.line}"
                else:
                    seen[found.id] = row.line
            text = read.text
            empty += read.empty()
            html += bool(_HTML.search(text))
            long += len(text) > LONG
            longest = max(longest, len(text))
    first = sources[0]
    form = first.format if isinstance(first, File) else "task"
    column = names["id"][0] if guessed and "id" in names else None
    by = "user" if "id" in named else "name"
    return TableLook(
        table, first.place + (f" and {len(sources) - 1} more" if len(sources) > 1 else ""), form,
        first._encoding if isinstance(first, File) and form in ("csv", "tsv", "jsonl", "txt") else None,
        {"csv": ",", "tsv": "\t"}.get(form), None, None, True, False, (), guessed, trouble,
        IdColumn(column, repeated, missing, by, example) if column else None,
        rows, problems, problem, empty, html, long, longest,
    )
