"""Doubts about columns: what `curate init` asks instead of deciding, and the options that settle each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from curate.commands.init import pairing
from curate.commands.init.looking import DataSources, chosen, named, rows
from curate.commands.init.request import InitRequest
from curate.core.errors import DataError
from curate.pii.settings import Masking, masker
from curate.pipeline.edit import flow
from curate.tables.readers import Table
from curate.tables.readers.file import File
from curate.tables.readers.guess import TABULAR, guess, has_known_name
from curate.tables.readers.items import LINE, as_id, plain
from curate.tables.readers.look import IdColumn, TableLook

SAMPLE = 40
"""Letters of a sample value, once it is masked."""
OFFERED = 4
"""Columns that are offered, at most."""
_MASKED = 400
"""Letters of a value that are masked for a sample: recognisers look at what stands around a name."""
_ALIKE = 0.5
"""A column whose texts are at least so long, as a share of the longest, may as well be the text."""
_STANDS: Mapping[Table, str] = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class DoubtChoice:
    """One way to settle a doubt."""

    options: tuple[tuple[str, str], ...]
    """The options that say so, each with its value."""
    said: str


@dataclass(frozen=True)
class Doubt:
    """What cannot be decided from the data, and the ways to settle it."""

    sentence: str
    choices: Sequence[DoubtChoice]

    def remedy(self, request: InitRequest) -> str:
        """Return the doubt as an error that ends with commands to copy."""
        lines = [f"{choice.said}:\n  {request.also(choice.options).command()}" for choice in self.choices]
        return "\n".join([f"{self.sentence}; type one of these", *lines])


def doubt(found: DataSources) -> Doubt | None:
    """Return the first thing that has to be asked; None if all is plain.

    DataError, with a command that names a column, if a table has none for a field and no choice would help.
    """
    for table, look in found.tables.items():
        paths = _paths(found, look) if look.headless else None
        if paths is not None and found.request.said("ingest", table, "header") is None:
            return _which_row(look, paths)
        if look.guess is None and table != "qrels" and _lacks_id(found, look):
            return _no_id(found, look)
        columns = chosen(found, table)
        if table == "queries" and (pair := _which_pair(found)):
            return pair
        plain_text = "text" not in columns or table in found.by_cells or "text" in named(found.input, table)
        if not plain_text and (rivals := _rivals(found, look, columns)):
            return _which_text(look, rivals)
        bad = look.id.repeated + look.id.missing if look.id else 0
        if look.id and bad and found.input.on_error == "stop":
            return _which_id(found, look, look.id)
    return None


def _paths(found: DataSources, look: TableLook) -> tuple[tuple[str, str], ...] | None:
    """Return the options that name a table's files, as its other settings need; None where they cannot be named."""
    files = [source.path for source in found.sources.tables[look.table] if isinstance(source, File)]
    if getattr(found.input, look.table) is not None:
        return ()
    return (("--set", f"ingest.{look.table}.path={flow(str(files[0]))}"),) if len(files) == 1 else None


def _which_row(look: TableLook, paths: tuple[tuple[str, str], ...]) -> Doubt:
    names = DoubtChoice((*paths, ("--set", f"ingest.{look.table}.header=true")), "take it for names all the same")
    said = f"{look.place}: the first row looks like data, where names of columns are expected"
    return Doubt(said, [_first_row(look, paths), names])


def _first_row(look: TableLook, paths: tuple[tuple[str, str], ...]) -> DoubtChoice:
    header = ("--set", f"ingest.{look.table}.header=false")
    return DoubtChoice((*paths, header), "read the first row as data too; the columns are column_1, column_2, ...")


def _lacks_id(found: DataSources, look: TableLook) -> bool:
    """Say whether a table lacks nothing but a column of ids."""
    try:
        guess(found.sources.tables[look.table][0], look.table, {**named(found.input, look.table), "id": LINE})
    except DataError:
        return False
    return "id" not in named(found.input, look.table)


def _no_id(found: DataSources, look: TableLook) -> Doubt:
    choices = [*_others(found, look.table, LINE)] or _like_ids(found, look.table)
    choices.append(_lines(found, look.table))
    paths = _paths(found, look)
    if look.format in TABULAR and look.header and paths is not None and not has_known_name(look.columns, look.table):
        choices.append(_first_row(look, paths))
    return Doubt(look.trouble, choices)


def _others(found: DataSources, table: Table, but: str) -> list[DoubtChoice]:
    return [
        DoubtChoice((("--column", f"{table}.id={name}"),), f"take {name} for the id, which differs in every row")
        for name in _unique(found, table, but)
    ]


def _like_ids(found: DataSources, table: Table) -> list[DoubtChoice]:
    """Return the columns that look like ids in the first rows though some rows repeat one or have none; short first."""
    columns = pairing.text_columns(found.sources.tables[table][0])
    length = {name: sum(map(len, values)) / len(values) for name, values in columns.items()}
    text = max(length, key=lambda name: length[name], default="")
    fitting = [
        name
        for name, values in columns.items()
        if name != text
        and 2 * len(set(values)) > len(values)
        and sum(map(bool, map(_name, values))) > 0.9 * len(values)
    ]
    return [
        DoubtChoice((("--column", f"{table}.id={name}"),), f"take {name} for the id, though rows repeat one or lack it")
        for name in sorted(fitting, key=lambda name: length[name])[:OFFERED]
    ]


def _lines(found: DataSources, table: Table) -> DoubtChoice:
    unmatched = "; the qrels will not match them" if "qrels" in found.tables else ""
    return DoubtChoice((("--column", f"{table}.id={LINE}"),), f"take line numbers for ids{unmatched}")


def _which_id(found: DataSources, look: TableLook, about: IdColumn) -> Doubt:
    faults = []
    if about.repeated:
        example = f" ({about.example})" if about.example else ""
        faults.append(f"{about.repeated:,} of {look.rows:,} rows repeat one{example}")
    if about.missing:
        faults.append(f"{about.missing:,} of {look.rows:,} rows have none without white space")
    likely = "was named as" if about.by == "user" else "looks like"
    what = "line numbers are the ids" if about.column == LINE else f"{about.column} {likely} the id"
    choices = _others(found, look.table, about.column)
    if about.column != LINE:
        choices.append(_lines(found, look.table))
    kept = f"keep {'line numbers' if about.column == LINE else about.column}, and drop rows that cannot be used"
    choices.append(DoubtChoice((("--set", "ingest.on_error=drop"),), f"{kept}: of equal ids the first stays"))
    return Doubt(f"{look.place}: {what} of the {look.table}, but {' and '.join(faults)}", choices)


def _which_pair(found: DataSources) -> Doubt | None:
    """Return what to ask where one column of a file would be queries and documents alike, though it has others."""
    columns = pairing.sentences(found.sources.tables["queries"][0]) if found.sources.one_table else {}
    if len(columns) < len(_STANDS) or any(found.tables[table].guess is None for table in _STANDS):
        return None
    said = {table: named(found.input, table).get("text") for table in _STANDS}
    text = chosen(found, "corpus")["text"]
    if chosen(found, "queries")["text"] != text or all(said.values()):
        return None
    length = {name: sum(map(len, column)) / len(column) for name, column in columns.items()}
    sides = sorted(permutations(columns, 2), key=lambda pair: length[pair[0]] - length[pair[1]])  # questions are short
    fitting = [
        pair for pair in sides if all(each in (None, name) for each, name in zip(said.values(), pair, strict=True))
    ]
    choices = [
        DoubtChoice((("--column", f"queries.text={one}"), ("--column", f"corpus.text={other}")), words)
        for one, other in [*fitting[:OFFERED], (text, text)]
        for words in [
            f"take {one} for queries, such as {_sample(columns.get(one, [one]))!r}, and {other} for documents"
        ]
    ]
    names = " or ".join(columns)
    return Doubt(
        f"{found.tables['queries'].place}: cannot tell which of {names} holds queries and which documents", choices
    )


def _which_text(look: TableLook, rivals: Mapping[str, Sequence[str]]) -> Doubt:
    names = list(rivals)[:OFFERED]
    choices = [_as_text(look.table, name, rivals[name]) for name in names]
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    return Doubt(f"{look.place}: {which} may each hold the text of a {_STANDS[look.table]}", choices)


def _as_text(table: Table, name: str, texts: Sequence[str]) -> DoubtChoice:
    mean = round(sum(map(len, texts)) / len(texts))
    said = f"take {name}, {mean:,} characters on average, such as {_sample(texts)!r}"
    return DoubtChoice((("--column", f"{table}.text={name}"),), said)


def _rivals(found: DataSources, look: TableLook, taken: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return the columns that may as well hold the text, with their values, the likeliest first; empty if it is plain.

    A usual name is plain. Beside another known name it is every column with one, beside none every column with texts
    that differ and are about as long.
    """
    text = taken["text"]
    if look.guess is None or "text" in look.guess.usual:
        return {}
    others = {column for field, column in taken.items() if field != "text"}
    columns = {
        name: texts
        for name, texts in pairing.text_columns(found.sources.tables[look.table][0]).items()
        if name not in others
    }
    if _names_text(text, look.table):
        alike = [name for name in columns if _names_text(name, look.table)]
    else:
        length = {name: sum(map(len, texts)) / len(texts) for name, texts in columns.items()}
        differ = [name for name, texts in columns.items() if 2 * len(set(texts)) > len(texts)]
        alike = [name for name in differ if length[name] >= _ALIKE * length.get(text, 0)]
    ordered = sorted(alike, key=lambda name: name != text)
    return {name: columns[name] for name in ordered} if len({*ordered, text}) > 1 else {}


def _names_text(column: str, table: Table) -> bool:
    """Say whether a column is named like a text, and not like a title, which is one only where nothing else is."""
    return has_known_name([column], table, ["text"]) and not has_known_name([column], "corpus", ["title"])


def _unique(found: DataSources, table: Table, but: str) -> list[str]:
    """Return the columns that could be ids: short and without white space, and different in every row."""
    seen: dict[str, set[str]] = {}
    lost: set[str] = {but}
    for number, row in enumerate(rows(found.sources.tables[table])):
        values = {name: _name(value) for name, value in _flat(row.values) if name not in lost}
        for name in values if number == 0 else seen.keys() - lost:
            value, before = values.get(name), seen.setdefault(name, set())
            if not value or value in before:
                lost.add(name)
            else:
                before.add(value)
    return [name for name in seen if name not in lost][:OFFERED]


def _name(value: object) -> str:
    """Return a value as an id; empty if it can be none, or is likelier a text."""
    name = as_id(value)
    return name if plain(name) and not any(map(str.isspace, name)) else ""


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in values.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return found


def _sample(texts: Sequence[str]) -> str:
    """Return the beginning of a text on one line, personal data masked."""
    text = masker(Masking(), "en", b"").mask(texts[0][:_MASKED]).text
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= SAMPLE else f"{line[: SAMPLE - 1]}…"
