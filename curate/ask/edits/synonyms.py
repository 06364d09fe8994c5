"""A dictionary of synonyms: its rows, and their faults.

A row says that two words mean the same: `term`, `synonym`, `kind`, `source`, and if need be `meaning` (of a word in
several rows), `not_in` (longer words, separated by |, inside which neither word is meant) and `unseen` (`term`,
`synonym` or `both`: a person has confirmed a word that no lexicon contains). A row is read both ways.
"""

import csv
import io
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import yaml

from curate.core import safe_yaml
from curate.core.errors import DataError

KINDS = ("exact", "lay-professional", "abbreviation", "brand-generic")
NEEDED = ("term", "synonym", "kind", "source")
COLUMNS = (*NEEDED, "meaning", "not_in", "unseen")
UNSEEN = {"": (), "term": (0,), "synonym": (1,), "both": (0, 1)}
_SHOWN = 20


@dataclass(frozen=True)
class Entry:
    """A row of a dictionary; `term`, `synonym` and `not_in` are normalised by `plain`."""

    line: int
    term: str
    synonym: str
    kind: str
    source: str
    meaning: str = ""
    not_in: tuple[str, ...] = ()
    unseen: str = ""
    spelled: tuple[str, str] = ("", "")
    """Both words in the form that is written into a text."""

    @property
    def words(self) -> tuple[str, str]:
        """Return term and synonym."""
        return self.term, self.synonym


@dataclass(frozen=True)
class Fault:
    """The reason why a row cannot be used as it is."""

    line: int
    reason: str
    """One of a few fixed sentences, by which faults are counted."""
    detail: str


def plain(word: str) -> str:
    """Return a word normalised for comparison: NFKC (half-width), lower case, stripped."""
    return unicodedata.normalize("NFKC", word).strip().lower()


def read(text: str, ending: str, where: str) -> list[Entry]:
    """Return the rows of a dictionary in .tsv, .csv or .yaml; DataError names the line and the expected form.

    YAML holds `version: 1` and under `synonyms` a list of mappings; `line` is the position in that list, from 1.
    """
    if ending not in (".tsv", ".csv", ".yaml", ".yml"):
        raise DataError(f"{where}: found the ending {ending!r}, expected .tsv, .csv or .yaml; save it as one of these")
    rows = _yaml(text, where) if ending in (".yaml", ".yml") else _table(text, "\t" if ending == ".tsv" else ",", where)
    return [_entry(line, row, where) for line, row in rows]


def _table(text: str, delimiter: str, where: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=delimiter)
    head = next(reader, [])
    if not set(NEEDED) <= set(head) <= set(COLUMNS):
        raise DataError(
            f"{where}:1: found the columns {', '.join(head) or 'none'}, expected {', '.join(NEEDED)} and if need be "
            f"{', '.join(COLUMNS[len(NEEDED) :])}; name them in the first line"
        )
    for cells in reader:
        if len(cells) > len(head) or (cells and len(cells) < len(NEEDED)):
            raise DataError(f"{where}:{reader.line_num}: found {len(cells)} cells, expected {len(head)}; mend the line")
        if cells:
            yield reader.line_num, dict(zip(head, cells, strict=False))


def _yaml(text: str, where: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    try:
        content = safe_yaml.parse(text, safe_yaml.DATA)
    except yaml.YAMLError as error:
        raise DataError(f"{where}: not valid YAML ({safe_yaml.problem(error)}); mend it") from error
    rows = content.get("synonyms") if isinstance(content, dict) and content.get("version") == 1 else None
    if not isinstance(rows, list):
        raise DataError(f"{where}: expected `version: 1` and a list `synonyms`; write it in that form")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not set(NEEDED) <= set(row) <= set(COLUMNS):
            raise DataError(f"{where}: synonyms[{number}]: expected the keys {', '.join(NEEDED)}; mend the row")
        yield number, row


def _entry(line: int, row: Mapping[str, object], where: str) -> Entry:
    cells = {name: row.get(name) or "" for name in COLUMNS}
    if isinstance(cells["not_in"], list):
        cells["not_in"] = "|".join(map(str, cells["not_in"]))
    texts = {name: str(cell).strip() for name, cell in cells.items()}
    if texts["kind"] not in KINDS or texts["unseen"] not in UNSEEN:
        name = "unseen" if texts["kind"] in KINDS else "kind"
        choices = ", ".join(KINDS if name == "kind" else filter(None, UNSEEN))
        raise DataError(f"{where}:{line}: {name}: found {texts[name]!r}, expected one of {choices}; mend the row")
    if not plain(texts["term"]) or not plain(texts["synonym"]):
        raise DataError(f"{where}:{line}: found an empty word, expected two; complete the row or delete it")
    longer = tuple(word for word in map(plain, texts["not_in"].split("|")) if word)
    words = plain(texts["term"]), plain(texts["synonym"])
    spelled = texts["term"], texts["synonym"]
    return Entry(
        line, *words, texts["kind"], texts["source"], plain(texts["meaning"]), longer, texts["unseen"], spelled
    )


def faults(entries: Sequence[Entry], lexicon: Collection[str] | None, longer: Collection[str] = ()) -> list[Fault]:
    """Return the faults of a dictionary, by line.

    `lexicon` is the set of valid words; None accepts any. `longer` are words that contain a shorter, unrelated one, as
    乙肝五项 contains 乙肝: a row with the shorter word must list the longer ones in `not_in`. Longer words of the
    dictionary itself need not be listed, since the longest match wins.
    """
    faulty = [*_repeated(entries), *_ambiguous(entries), *_chained(entries), *_trapped(entries, longer)]
    if lexicon is not None:
        faulty += _unknown(entries, lexicon)
    return sorted(faulty, key=lambda fault: (fault.line, fault.reason))


def complaint(found: Sequence[Fault], where: str, stage: str) -> DataError:
    """Return the error that lists the faults of a stage's dictionary, the first `_SHOWN` of them in full."""
    lines = [f"{where}:{fault.line}: {fault.reason}: {fault.detail}" for fault in found[:_SHOWN]]
    remaining = [f"and {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
    remedy = f"mend these rows, or leave them out with --set {stage}.faults=drop"
    return DataError("\n".join([*lines, *remaining, remedy]))


def groups(entries: Sequence[Entry]) -> dict[str, str]:
    """Return word -> the first word, in alphabetical order, of its connected component, rows as edges (union-find)."""
    root: dict[str, str] = {}

    def find(word: str) -> str:
        while root.setdefault(word, word) != word:
            root[word] = root[root[word]]
            word = root[word]
        return word

    for entry in entries:
        one, two = sorted(map(find, entry.words))
        root[two] = one
    return {word: find(word) for word in root}


def _repeated(entries: Sequence[Entry]) -> Iterator[Fault]:
    first: dict[frozenset[str], int] = {}
    for entry in entries:
        if entry.term == entry.synonym:
            yield Fault(entry.line, "a word is its own synonym", entry.term)
        elif (line := first.setdefault(frozenset(entry.words), entry.line)) != entry.line:
            yield Fault(entry.line, "the pair stands there already", f"see line {line}")


def _ambiguous(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Find words in several rows whose synonyms neither share a meaning nor form a row with each other."""
    rows: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        for word in set(entry.words):
            rows[word].append(entry)
    paired = {frozenset(entry.words) for entry in entries}
    for word, sharing in rows.items():
        joined = [
            Entry(0, _partner(one, word), _partner(two, word), "", "")
            for one, two in combinations(sharing, 2)
            if (one.meaning and one.meaning == two.meaning)
            or frozenset((_partner(one, word), _partner(two, word))) in paired
        ]
        roots = groups(joined)
        first = _partner(sharing[0], word)
        for entry in sharing[1:]:
            synonym = _partner(entry, word)
            if synonym != first and roots.get(synonym, synonym) != roots.get(first, first):
                line = sharing[0].line
                detail = f"{word} is {first} in line {line} and {synonym} here; name one meaning, or delete one"
                yield Fault(entry.line, "one word, two meanings", detail)


def _chained(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Find rows that connect different meanings: words of a connected component mean the same, or a row is wrong."""
    root = groups(entries)
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.meaning:
            earlier = first.setdefault(root[entry.term], entry)
            if earlier.meaning != entry.meaning:
                detail = (
                    f"synonyms lead from {earlier.meaning} (line {earlier.line}) to {entry.meaning}; "
                    "delete a row between"
                )
                yield Fault(entry.line, "a cycle of different meanings", detail)


def _trapped(entries: Sequence[Entry], longer: Collection[str]) -> Iterator[Fault]:
    words = {word for entry in entries for word in entry.words}
    starts: defaultdict[str, list[str]] = defaultdict(list)
    for word in set(longer) - words:
        for substring in {
            word[start:end] for start in range(len(word)) for end in range(start + 1, len(word) + 1)
        } & words:
            starts[substring].append(word)
    for entry in entries:
        missing = sorted({name for word in entry.words for name in starts[word]} - set(entry.not_in))
        if missing:
            detail = f"also inside {', '.join(missing)}, where it is not meant; add to not_in: {'|'.join(missing)}"
            yield Fault(entry.line, "a word stands inside longer ones", detail)


def _unknown(entries: Sequence[Entry], lexicon: Collection[str]) -> Iterator[Fault]:
    for entry in entries:
        vouched = UNSEEN[entry.unseen]
        missing = [word for index, word in enumerate(entry.words) if word not in lexicon and index not in vouched]
        if missing:
            detail = f"{' and '.join(missing)} in no lexicon; correct the word, or mark it in the column unseen"
            yield Fault(entry.line, "a word that no lexicon knows", detail)


def _partner(entry: Entry, word: str) -> str:
    return entry.synonym if entry.term == word else entry.term
