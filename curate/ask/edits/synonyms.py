"""A dictionary of synonyms: its rows, and what is wrong with them.

A row says that two words mean the same: `term`, `synonym`, `kind`, `source`, and if need be `meaning` (of a word that
stands in several rows), `not_in` (longer words, separated by |, inside which neither word is meant) and
`unseen` (`term`, `synonym` or `both`: a person vouches for a word that no lexicon knows). A row is read both ways.
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
    """A row of a dictionary; words as they are compared, `plain`."""

    line: int
    term: str
    synonym: str
    kind: str
    source: str
    meaning: str = ""
    not_in: tuple[str, ...] = ()
    unseen: str = ""
    spelled: tuple[str, str] = ("", "")
    """Both words as they are written into a text."""

    @property
    def words(self) -> tuple[str, str]:
        """Return both words."""
        return self.term, self.synonym


@dataclass(frozen=True)
class Fault:
    """Why a row cannot be used as it is."""

    line: int
    reason: str
    """One of a few sentences, by which faults are counted."""
    detail: str


def plain(word: str) -> str:
    """Return a word as it is compared: half-width, in lower case, without blanks around it."""
    return unicodedata.normalize("NFKC", word).strip().lower()


def read(text: str, ending: str, where: str) -> list[Entry]:
    """Return the rows of a dictionary in .tsv, .csv or .yaml; DataError names the place and what is expected.

    YAML holds `version: 1` and under `synonyms` a list of mappings; `line` is the place in that list.
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
        data = safe_yaml.parse(text, safe_yaml.DATA)
    except yaml.YAMLError as error:
        raise DataError(f"{where}: not valid YAML ({safe_yaml.problem(error)}); mend it") from error
    rows = data.get("synonyms") if isinstance(data, dict) and data.get("version") == 1 else None
    if not isinstance(rows, list):
        raise DataError(f"{where}: expected `version: 1` and a list `synonyms`; write it in that form")
    for place, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not set(NEEDED) <= set(row) <= set(COLUMNS):
            raise DataError(f"{where}: synonyms[{place}]: expected the keys {', '.join(NEEDED)}; mend the row")
        yield place, row


def _entry(line: int, row: Mapping[str, object], where: str) -> Entry:
    cells = {name: row.get(name) or "" for name in COLUMNS}
    if isinstance(cells["not_in"], list):
        cells["not_in"] = "|".join(map(str, cells["not_in"]))
    said = {name: str(cell).strip() for name, cell in cells.items()}
    if said["kind"] not in KINDS or said["unseen"] not in UNSEEN:
        name = "unseen" if said["kind"] in KINDS else "kind"
        known = ", ".join(KINDS if name == "kind" else filter(None, UNSEEN))
        raise DataError(f"{where}:{line}: {name}: found {said[name]!r}, expected one of {known}; mend the row")
    if not plain(said["term"]) or not plain(said["synonym"]):
        raise DataError(f"{where}:{line}: found an empty word, expected two; complete the row or delete it")
    longer = tuple(word for word in map(plain, said["not_in"].split("|")) if word)
    words = plain(said["term"]), plain(said["synonym"])
    spelled = said["term"], said["synonym"]
    return Entry(line, *words, said["kind"], said["source"], plain(said["meaning"]), longer, said["unseen"], spelled)


def faults(entries: Sequence[Entry], lexicon: Collection[str] | None, longer: Collection[str] = ()) -> list[Fault]:
    """Return what is wrong with a dictionary, by line.

    `lexicon` holds the words that are known to be words, None for any; `longer` the words in which a shorter one
    may be trapped, as 乙肝 is in 乙肝五项: a row with such a shorter one must name them in `not_in`. Longer words of
    the dictionary itself need no naming, for the longest of its words is always the one that is meant.
    """
    found = [*_repeated(entries), *_ambiguous(entries), *_chained(entries), *_trapped(entries, longer)]
    if lexicon is not None:
        found += _unknown(entries, lexicon)
    return sorted(found, key=lambda fault: (fault.line, fault.reason))


def complaint(found: Sequence[Fault], where: str, stage: str) -> DataError:
    """Return the error that lists what is wrong with a dictionary of a stage, the first twenty in full."""
    lines = [f"{where}:{each.line}: {each.reason}: {each.detail}" for each in found[:_SHOWN]]
    more = [f"and {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
    remedy = f"mend these rows, or leave them out with --set {stage}.faults=drop"
    return DataError("\n".join([*lines, *more, remedy]))


def groups(entries: Sequence[Entry]) -> dict[str, str]:
    """Return word -> the first word of all that rows join it to, over however many of them."""
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
    """Find words in several rows that nothing holds together: neither a common meaning nor a row between the others."""
    rows: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        for word in set(entry.words):
            rows[word].append(entry)
    paired = {frozenset(entry.words) for entry in entries}
    for word, here in rows.items():
        joined = [
            Entry(0, _other(one, word), _other(two, word), "", "")
            for one, two in combinations(here, 2)
            if (one.meaning and one.meaning == two.meaning)
            or frozenset((_other(one, word), _other(two, word))) in paired
        ]
        known = groups(joined)
        first = _other(here[0], word)
        for entry in here[1:]:
            other = _other(entry, word)
            if other != first and known.get(other, other) != known.get(first, first):
                said = f"{word} is {first} in line {here[0].line} and {other} here; name one meaning, or delete one"
                yield Fault(entry.line, "one word, two meanings", said)


def _chained(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Find rows that lead from one meaning to another: round any cycle all words mean the same, or one row is wrong."""
    root = groups(entries)
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.meaning:
            known = first.setdefault(root[entry.term], entry)
            if known.meaning != entry.meaning:
                said = (
                    f"synonyms lead from {known.meaning} (line {known.line}) to {entry.meaning}; delete a row between"
                )
                yield Fault(entry.line, "a cycle of different meanings", said)


def _trapped(entries: Sequence[Entry], longer: Collection[str]) -> Iterator[Fault]:
    own = {word for entry in entries for word in entry.words}
    starts: defaultdict[str, list[str]] = defaultdict(list)
    for word in set(longer) - own:
        for part in {word[at:end] for at in range(len(word)) for end in range(at + 1, len(word) + 1)} & own:
            starts[part].append(word)
    for entry in entries:
        missing = sorted({each for word in entry.words for each in starts[word]} - set(entry.not_in))
        if missing:
            said = f"also inside {', '.join(missing)}, where it is not meant; add to not_in: {'|'.join(missing)}"
            yield Fault(entry.line, "a word stands inside longer ones", said)


def _unknown(entries: Sequence[Entry], lexicon: Collection[str]) -> Iterator[Fault]:
    for entry in entries:
        vouched = UNSEEN[entry.unseen]
        missing = [word for at, word in enumerate(entry.words) if word not in lexicon and at not in vouched]
        if missing:
            said = f"{' and '.join(missing)} in no lexicon; correct the word, or mark it in the column unseen"
            yield Fault(entry.line, "a word that no lexicon knows", said)


def _other(entry: Entry, word: str) -> str:
    return entry.synonym if entry.term == word else entry.term
