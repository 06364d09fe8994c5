"""Doubts about columns: what `curate init` asks instead of deciding, and the options that settle each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from curate.core.config import parse_yaml
from curate.formats.readers import Table
from curate.formats.readers.guess import LOOKED
from curate.formats.readers.items import LINE, NAMES, plain
from curate.formats.readers.look import IdColumn, TableLook
from curate.pii.settings import Masking, masker
from curate.runs.init.looking import DataSources, named, rows
from curate.system.resources import data_file

SAMPLE = 40
"""Letters of a sample value, once it is masked."""
OFFERED = 4
"""Columns that are offered, at most."""
_MASKED = 400
"""Letters of a value that are masked for a sample: recognisers look at what stands around a name."""
_ALIKE = 0.5
"""A column whose texts are at least so long, as a share of the longest, may as well be the text."""
_STANDS = {"queries": "query", "corpus": "document"}


@dataclass(frozen=True)
class Choice:
    """One way to settle a doubt."""

    words: tuple[str, str]
    """The option that says so, and its value."""
    said: str


@dataclass(frozen=True)
class Doubt:
    """What cannot be decided from the data, and the ways to settle it."""

    sentence: str
    choices: Sequence[Choice]

    def remedy(self, found: DataSources) -> str:
        """Return the doubt as an error that ends with commands to copy."""
        lines = [f"{each.said}:\n  {found.request.also(each.words).command()}" for each in self.choices]
        return "\n".join([f"{self.sentence}; type one of these", *lines])


def doubt(found: DataSources) -> Doubt | None:
    """Return the first thing that has to be asked; None if all is plain."""
    for table in ("queries", "corpus"):
        look, own = found.tables[table], named(found.input, table)
        if "text" not in own and (rivals := _rivals(found, look)):
            return _which_text(look, rivals)
        bad = look.id.repeated + look.id.missing if look.id else 0
        if look.id and bad and found.input.on_error == "stop":
            return _which_id(found, look, look.id)
    return None


def _which_id(found: DataSources, look: TableLook, about: IdColumn) -> Doubt:
    faults = []
    if about.repeated:
        example = f" ({about.example})" if about.example else ""
        faults.append(f"{about.repeated:,} of {look.rows:,} rows repeat one{example}")
    if about.missing:
        faults.append(f"{about.missing:,} of {look.rows:,} rows have none without white space")
    likely = "was named as" if about.by == "user" else "looks like"
    what = "line numbers are the ids" if about.column == LINE else f"{about.column} {likely} the id"
    unmatched = "; the qrels will not match them" if "qrels" in found.tables else ""
    place = f"{look.table}.id"
    choices = [
        Choice(("--column", f"{place}={name}"), f"take {name} for the id, which differs in every row")
        for name in _unique(found, look.table, about.column)
    ]
    if about.column != LINE:
        choices.append(Choice(("--column", f"{place}={LINE}"), f"take line numbers for ids{unmatched}"))
    kept = f"keep {'line numbers' if about.column == LINE else about.column}, and drop rows that cannot be used"
    choices.append(Choice(("--set", "ingest.on_error=drop"), f"{kept}: of equal ids the first stays"))
    return Doubt(f"{look.place}: {what} of the {look.table}, but {' and '.join(faults)}", choices)


def _which_text(look: TableLook, rivals: Mapping[str, Sequence[str]]) -> Doubt:
    names = list(rivals)[:OFFERED]
    choices = [
        Choice(("--column", f"{look.table}.text={name}"), f"take {name}, such as {_sample(rivals[name])!r}")
        for name in names
    ]
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    return Doubt(f"{look.place}: {which} may each hold the text of a {_STANDS[look.table]}", choices)


def _rivals(found: DataSources, look: TableLook) -> dict[str, Sequence[str]]:
    """Return the columns that may as well hold the text, with their values, the likeliest first; empty if it is plain.

    A usual name is plain. Beside another known name it is every column with one, beside none every column with texts
    that differ and are about as long.
    """
    guessed = look.guess
    if guessed is None or "text" in guessed.usual:
        return {}
    chosen = guessed.columns["text"]
    taken = {*guessed.columns.values(), *guessed.usual.values()} - {chosen}
    columns = {name: texts for name, texts in _columns(found, look.table).items() if name not in taken}
    if chosen not in columns:
        return {}
    known = _known(look.table, "text") - _known("corpus", "title")  # which hold the text only where nothing else does
    if _bare(chosen) in known:
        alike = [name for name in columns if _bare(name) in known]
    else:
        length = {name: sum(map(len, texts)) / len(texts) for name, texts in columns.items()}
        differ = [name for name, texts in columns.items() if 2 * len(set(texts)) > len(texts)]
        alike = [name for name in differ if length[name] >= _ALIKE * length[chosen]]
    ordered = sorted(alike, key=lambda name: name != chosen)
    return {name: columns[name] for name in ordered} if len({*ordered, chosen}) > 1 else {}


def _columns(found: DataSources, table: Table) -> dict[str, list[str]]:
    """Return column -> its texts in the first rows, of columns that hold nothing but texts."""
    columns: dict[str, list[str]] = {}
    other: set[str] = set()
    for row in islice(rows(found.sources.tables[table]), LOOKED):
        for name, value in _flat(row.values):
            if isinstance(value, str):
                columns.setdefault(name, []).extend([value] if value.strip() else [])
            elif value is not None:
                other.add(name)
    return {name: texts for name, texts in columns.items() if texts and name not in other}


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
    name = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return name if plain(name) and not any(map(str.isspace, name)) else ""


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in values.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return found


def is_known(table: Table, field: str, column: str) -> bool:
    """Say whether a column is named as people name that field, in any case, wherever in an object it lies."""
    return _bare(column) in _known(table, field)


@cache
def _known(table: Table, field: str) -> frozenset[str]:
    names = parse_yaml(data_file("formats/readers/columns.yaml").read_text(encoding="utf-8"))
    return frozenset(_bare(str(name)) for name in (*names[table].get(field, ()), *NAMES[table][field]))


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip().lower()


def _sample(texts: Sequence[str]) -> str:
    """Return the beginning of a text on one line, personal data masked."""
    text = masker(Masking(), "en", b"").mask(texts[0][:_MASKED]).text
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= SAMPLE else f"{line[: SAMPLE - 1]}…"
