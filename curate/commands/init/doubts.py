"""Doubts of `curate init` about columns: questions to the user, and the options that answer them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from curate.commands.init import pairing
from curate.commands.init.looking import DataSources, chosen, named, rows
from curate.commands.init.request import InitOptions
from curate.core.errors import DataError
from curate.pii.settings import Masking, masker
from curate.pipeline.pipeline_edit import flow
from curate.tables.readers import Table
from curate.tables.readers.file import File
from curate.tables.readers.guess import TABULAR, first_columns, guess, has_known_name
from curate.tables.readers.items import LINE, as_id, plain
from curate.tables.readers.look import IdColumn, TableLook

SAMPLE = 40
"""Maximum number of characters of a masked sample."""
OFFERED = 4
"""Maximum number of columns to choose from."""
_MASKED = 400
"""Number of characters that are masked before the sample is cut, because recognisers need the context of a name."""
_ALIKE = 0.5
"""Minimum mean length of another possible text column, relative to the detected one."""
_STANDS: Mapping[Table, str] = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class DoubtChoice:
    """One possible answer to a question about the data."""

    options: tuple[tuple[str, str], ...]
    """(Option, value) pairs that the answer adds to the command."""
    action: str


@dataclass(frozen=True)
class Doubt:
    """A question about the data, with possible answers."""

    sentence: str
    choices: Sequence[DoubtChoice]
    sure: bool = False
    """Whether the first choice is taken without asking."""

    def remedy(self, request: InitOptions) -> str:
        """Return the question as an error message that ends with one command per answer."""
        lines = [f"{choice.action}:\n  {request.with_assignments(choice.options).command()}" for choice in self.choices]
        return "\n".join([f"{self.sentence}; type one of these", *lines])


def doubt(user_data: DataSources) -> Doubt | None:
    """Return the first question about a table's columns; None if there is none.

    DataError, with a command that names a column, if a field has no column and no answer would help.
    """
    _need_two_kinds(user_data)
    asks_chat = user_data.sources.one_table and user_data.input.chat is None
    return (_chat(user_data) if asks_chat else None) or _of_columns(user_data)


def _of_columns(user_data: DataSources) -> Doubt | None:
    for table, look in user_data.tables.items():
        paths = _paths(user_data, look) if look.headless else None
        if paths is not None and user_data.request.setting_at("ingest", table, "header") is None:
            return _which_row(look, paths, _numbered(user_data, look))
        if look.guess is None and table != "qrels" and _lacks_id(user_data, look):
            return _no_id(user_data, look)
        columns = chosen(user_data, table)
        if table == "queries" and (pair := _which_pair(user_data)):
            return pair
        plain_text = "text" not in columns or table in user_data.by_cells or "text" in named(user_data.input, table)
        if not plain_text and (rivals := _rivals(user_data, look, columns)):
            return _which_text(look, rivals)
        bad = look.id.repeated + look.id.missing if look.id else 0
        if look.id and bad and user_data.input.on_error == "stop":
            return _which_id(user_data, look, look.id)
    return None


def _need_two_kinds(user_data: DataSources) -> None:
    """Raise DataError, with commands to type, if every query is a document, as where a column was taken for both."""
    queries, corpus = (user_data.tables[table] for table in ("queries", "corpus"))
    if not queries.guess or not corpus.guess or queries.rows != corpus.rows or queries.content != corpus.content:
        return
    request, text_columns = user_data.request, [named(user_data.input, table).get("text") for table in _STANDS]
    several = user_data.sources.one_table and len(pairing.sentences(user_data.sources.tables["queries"][0])) > 1
    if several and not all(text_columns):
        return  # it is asked which columns are meant
    raise DataError(
        f"{queries.location}: found queries that equal the documents, text for text, expected two kinds of texts; give "
        f"another file: {request.command('--corpus', 'FILE')}"
    )


def _chat(user_data: DataSources) -> Doubt | None:
    """Return the question who asks in a chat, which is sure if the texts tell it; None if the file is no chat."""
    source = user_data.sources.tables["queries"][0]
    if isinstance(source, File) and source.form is not None:
        return None
    columns = pairing.chat(source)
    if columns is None:
        return None
    speakers = sorted(columns.asking, key=lambda who: -columns.asking[who])
    choices = []
    for who in speakers[:OFFERED]:
        side = (
            {"answers": [speaker for speaker in speakers if speaker != who]}
            if who == pairing.OTHERS
            else {"asks": [who]}
        )
        setting = {"speaker": columns.speaker, "text": columns.text, **side}
        setting |= {"session": columns.session} if columns.session else {}
        value = f"ingest.chat={flow(setting)}"
        choices.append(
            DoubtChoice((("--set", value),), f"{who} asks: their utterances are queries, what others say next answers")
        )
    location = user_data.tables["queries"].location
    return Doubt(
        f"{location}: a row is an utterance ({columns.speaker}: {', '.join(speakers)})",
        choices,
        columns.asker is not None,
    )


def _paths(user_data: DataSources, look: TableLook) -> tuple[tuple[str, str], ...] | None:
    """Return the options that name a table's file, as the option for its header needs; None if it has several files."""
    files = [source.path for source in user_data.sources.tables[look.table] if isinstance(source, File)]
    if getattr(user_data.input, look.table) is not None:
        return ()
    return (("--set", f"ingest.{look.table}.path={flow(str(files[0]))}"),) if len(files) == 1 else None


def _numbered(user_data: DataSources, look: TableLook) -> bool:
    """Return whether a column holds whole numbers alone, its name among them: then the first row is data for sure."""
    columns, count = first_columns(user_data.sources.tables[look.table][0])
    return any(
        name.isdecimal() and len(values) == count and all(str(cell).isdecimal() for cell in values)
        for name, values in columns.items()
    )


def _which_row(look: TableLook, paths: tuple[tuple[str, str], ...], sure: bool) -> Doubt:
    names = DoubtChoice((*paths, ("--set", f"ingest.{look.table}.header=true")), "take it for names all the same")
    problem = f"{look.location}: the first row looks like data, where names of columns are expected"
    return Doubt(problem, [_first_row(look, paths), names], sure)


def _first_row(look: TableLook, paths: tuple[tuple[str, str], ...]) -> DoubtChoice:
    header = ("--set", f"ingest.{look.table}.header=false")
    return DoubtChoice((*paths, header), "read the first row as data too; the columns are column_1, column_2, ...")


def _lacks_id(user_data: DataSources, look: TableLook) -> bool:
    """Return whether the id column is the only missing one."""
    try:
        guess(user_data.sources.tables[look.table][0], look.table, {**named(user_data.input, look.table), "id": LINE})
    except DataError:
        return False
    return "id" not in named(user_data.input, look.table)


def _no_id(user_data: DataSources, look: TableLook) -> Doubt:
    choices = [*_unique_columns(user_data, look.table, LINE)] or _like_ids(user_data, look.table)
    choices.append(_line_numbers(user_data, look.table))
    paths = _paths(user_data, look)
    if look.format in TABULAR and look.header and paths is not None and not has_known_name(look.columns, look.table):
        choices.append(_first_row(look, paths))
    return Doubt(str(look.error), choices)


def _unique_columns(user_data: DataSources, table: Table, excluded: str) -> list[DoubtChoice]:
    return [
        DoubtChoice(_id_options(user_data, table, name), f"take {name} for the id, which differs in every row")
        for name in _unique(user_data, table, excluded)
    ]


def _like_ids(user_data: DataSources, table: Table) -> list[DoubtChoice]:
    """Return the columns with id-like values in the first rows, shortest values first.

    Repeated or missing values do not exclude a column.
    """
    columns = pairing.text_columns(user_data.sources.tables[table][0])
    length = {name: sum(map(len, values)) / len(values) for name, values in columns.items()}
    text = max(length, key=lambda name: length[name], default="")
    fitting = [
        name
        for name, values in columns.items()
        if name != text
        and 2 * len(set(values)) > len(values)
        and sum(map(bool, map(_as_short_id, values))) > 0.9 * len(values)
    ]
    return [
        DoubtChoice(_id_options(user_data, table, name), f"take {name} for the id, though rows repeat one or lack it")
        for name in sorted(fitting, key=lambda name: length[name])[:OFFERED]
    ]


def _line_numbers(user_data: DataSources, table: Table) -> DoubtChoice:
    unmatched = "; the qrels will not match them" if "qrels" in user_data.tables else ""
    return DoubtChoice(_id_options(user_data, table, LINE), f"take line numbers for ids{unmatched}")


def _id_options(user_data: DataSources, table: Table, column: str) -> tuple[tuple[str, str], ...]:
    """Return the options that name the id column of a table; if a row holds a query and a document, of both."""
    tables: list[Table] = [table]
    if user_data.sources.one_table:
        tables += [side for side in _STANDS if side != table and "id" not in named(user_data.input, side)]
    return tuple(("--column", f"{name}.id={column}") for name in tables)


def _which_id(user_data: DataSources, look: TableLook, about: IdColumn) -> Doubt:
    faults = []
    if about.repeated:
        example = f" ({about.example})" if about.example else ""
        faults.append(f"{about.repeated:,} of {look.rows:,} rows repeat one{example}")
    if about.missing:
        faults.append(f"{about.missing:,} of {look.rows:,} rows have none without white space")
    likely = "was named as" if about.by == "user" else "looks like"
    what = "line numbers are the ids" if about.column == LINE else f"{about.column} {likely} the id"
    choices = _unique_columns(user_data, look.table, about.column)
    if about.column != LINE:
        choices.append(_line_numbers(user_data, look.table))
    if about.repeated + about.missing <= user_data.input.max_drop * look.rows:  # else `ingest` stops at so many
        action = f"keep {'line numbers' if about.column == LINE else about.column}, and drop rows that cannot be used"
        choices.append(DoubtChoice((("--set", "ingest.on_error=drop"),), f"{action}: of equal ids the first stays"))
    return Doubt(f"{look.location}: {what} of the {look.table}, but {' and '.join(faults)}", choices)


def _which_pair(user_data: DataSources) -> Doubt | None:
    """Return a question if one column would be both queries and documents, or if several may be either."""
    columns = pairing.sentences(user_data.sources.tables["queries"][0]) if user_data.sources.one_table else {}
    if len(columns) < len(_STANDS) or any(user_data.tables[table].guess is None for table in _STANDS):
        return None
    given_columns = {table: named(user_data.input, table).get("text") for table in _STANDS}
    texts = {table: chosen(user_data, table)["text"] for table in _STANDS}
    open_tables = [table for table in _STANDS if not given_columns[table] and table not in user_data.by_cells]
    rivals = [_rivals(user_data, user_data.tables[table], chosen(user_data, table)) for table in open_tables]
    if all(given_columns.values()) or (texts["queries"] != texts["corpus"] and not any(rivals)):
        return None
    length = {name: sum(map(len, column)) / len(column) for name, column in columns.items()}
    sides = sorted(permutations(columns, 2), key=lambda pair: length[pair[0]] - length[pair[1]])  # questions are short
    fitting = [
        pair
        for pair in sides
        if all(given_column in (None, name) for given_column, name in zip(given_columns.values(), pair, strict=True))
    ]
    choices = []
    for query_column, document_column in fitting[:OFFERED]:
        options = ("--column", f"queries.text={query_column}"), ("--column", f"corpus.text={document_column}")
        sample = _sample(columns.get(query_column, [query_column]))
        action = f"take {query_column} for queries, such as {sample!r}, and {document_column} for documents"
        choices.append(DoubtChoice(options, action))
    names = " or ".join(columns)
    return Doubt(
        f"{user_data.tables['queries'].location}: cannot tell which of {names} holds queries and which documents",
        choices,
    )


def _which_text(look: TableLook, rivals: Mapping[str, Sequence[str]]) -> Doubt:
    names = list(rivals)[:OFFERED]
    choices = []
    for name in names:
        mean = round(sum(map(len, rivals[name])) / len(rivals[name]))
        action = f"take {name}, {mean:,} characters on average, such as {_sample(rivals[name])!r}"
        choices.append(DoubtChoice((("--column", f"{look.table}.text={name}"),), action))
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    return Doubt(f"{look.location}: {which} may each hold the text of a {_STANDS[look.table]}", choices)


def _rivals(user_data: DataSources, look: TableLook, columns_by_field: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return column -> values, for columns that may hold the text, likeliest first; {} if there is no doubt.

    A default name leaves no doubt. If the detected column has another known name, its rivals are columns with such a
    name; otherwise, columns of mostly distinct texts of similar length.
    """
    text = columns_by_field["text"]
    if look.guess is None or "text" in look.guess.usual or look.format == "tagged":
        return {}
    others = {column for field, column in columns_by_field.items() if field != "text"}
    if user_data.sources.one_table:  # what is named like a text of the other table is no rival
        opposite = next(table for table in _STANDS if table != look.table)
        opposite_text = chosen(user_data, opposite)["text"]
        others |= {opposite_text} - {text} if _names_text(opposite_text, opposite) else set()
    columns = {
        name: texts
        for name, texts in pairing.text_columns(user_data.sources.tables[look.table][0]).items()
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
    """Return whether a column is named like a text, and not like a title, which is a text only as a last resort."""
    return has_known_name([column], table, ["text"]) and not has_known_name([column], "corpus", ["title"])


def _unique(user_data: DataSources, table: Table, excluded: str) -> list[str]:
    """Return the columns whose cells are valid ids without white space and different in every row."""
    seen: dict[str, set[str]] = {}
    rejected: set[str] = {excluded}
    for number, row in enumerate(rows(user_data.sources.tables[table])):
        values = {name: _as_short_id(cell) for name, cell in _flat(row.values) if name not in rejected}
        for name in values if number == 0 else seen.keys() - rejected:
            identifier, earlier = values.get(name), seen.setdefault(name, set())
            if not identifier or identifier in earlier:
                rejected.add(name)
            else:
                earlier.add(identifier)
    return [name for name in seen if name not in rejected][:OFFERED]


def _as_short_id(cell: object) -> str:
    """Return a cell as an id; empty if it is invalid or contains white space."""
    name = as_id(cell)
    return name if plain(name) and not any(map(str.isspace, name)) else ""


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    columns: list[tuple[str, object]] = []
    for name, cell in values.items():
        columns += _flat(cell, f"{prefix}{name}.") if isinstance(cell, Mapping) else [(f"{prefix}{name}", cell)]
    return columns


def _sample(texts: Sequence[str]) -> str:
    """Return the beginning of the first text on one line, with personal data masked."""
    text = masker(Masking(), "en", b"").mask(texts[0][:_MASKED]).text
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= SAMPLE else f"{line[: SAMPLE - 1]}…"
