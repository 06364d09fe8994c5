"""Files of a folder, by its README.md (MTEB), else by the names of its files and folders (BEIR, MTEB, save_to_disk)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

from curate.core.config import parse_yaml
from curate.system.resources import data_file
from curate.tables.readers import Table, packed, readme, shards
from curate.tables.readers.file import ENDINGS
from curate.tables.readers.splits import DEFAULT_SPLIT, USUAL, choose, choose_texts, unread

_FIRST: dict[Table, tuple[str, ...]] = {"qrels": (".tsv", ".csv")}
"""Endings that go before others where a table is there in several formats."""
_LABELS = ("default", "data")
"""Folders of qrels beside those of queries and corpus, as the hub stores them."""


@dataclass(frozen=True)
class Parts:
    """The files of a folder, a list per table; a table that is not there has none."""

    queries: list[Path] = field(default_factory=list)
    corpus: list[Path] = field(default_factory=list)
    qrels: list[Path] = field(default_factory=list)
    other_qrels: list[Path] = field(default_factory=list)
    """Qrels of the splits that were not asked for: their queries are no part of this one."""
    notes: list[str] = field(default_factory=list)
    """What was chosen among several, a sentence each."""

    def of(self, table: Table) -> list[Path]:
        """Return the files of one table."""
        return {"queries": self.queries, "corpus": self.corpus, "qrels": self.qrels}[table]


def find(folder: Path, split: str | None) -> Parts:
    """Return the files of a folder; without a split it is `test`, or the only one there is."""
    configs = readme.configs(folder / "README.md")
    return Parts(*readme.files(folder, configs, split)) if configs else _named(folder, split)


def readable(folder: Path) -> list[Path]:
    """Return what could be a table in a folder, for the command that names it: files, and folders with files."""
    below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [path for path in below if (shards.holds_data(path) if path.is_dir() else shards.is_data(path))]


def _named(folder: Path, split: str | None) -> Parts:
    labels = _labels(folder, split)
    chosen = choose(labels, split, str(folder / "qrels"))
    others = [path for name, paths in labels.items() if name != chosen for path in paths]
    notes = unread("qrels", chosen, labels)
    texts: dict[Table, list[Path]] = {}
    for table in cast("tuple[Table, ...]", ("queries", "corpus")):
        found = _texts(folder, table, {*USUAL, *labels})
        name, texts[table] = choose_texts(found, table, chosen, str(folder / table)) if found else ("", [])
        notes += unread(table, name, found)
    return Parts(texts["queries"], texts["corpus"], labels.get(chosen or "", []), others, notes)


def _labels(folder: Path, split: str | None) -> dict[str, list[Path]]:
    """Return split -> files of the qrels: those of a folder, else one file, which has no split."""
    place = _folder(folder, "qrels") or _beside(folder)
    found = shards.splits(place, None) if place else _of_older_repository(folder)
    single = _file(folder, "qrels")
    return {DEFAULT_SPLIT: single} if not found and single and split is None else found


def _beside(folder: Path) -> Path | None:
    """Return the folder of qrels beside folders of queries and corpus, if it has another name."""
    if not (_folder(folder, "queries") and _folder(folder, "corpus")):
        return None
    return next((path for name in _LABELS if (path := folder / name).is_dir()), None)


def _of_older_repository(folder: Path) -> dict[str, list[Path]]:
    """Return split -> files of the qrels beside `data/corpus-*.parquet`: of that folder, else of `NAME-qrels/data`."""
    if not _shards(folder, "corpus"):
        return {}
    inside = _shards(folder, "qrels")
    beside = folder.resolve().with_name(f"{folder.resolve().name}-qrels")
    data = beside / "data" if (beside / "data").is_dir() else beside
    return {DEFAULT_SPLIT: inside} if inside else shards.splits(data, None) if data.is_dir() else {}


def _shards(folder: Path, table: Table) -> list[Path]:
    """Return the files `data/NAME-*` of a table, as C-MTEB's repositories had them."""
    data = folder / "data"
    files = sorted(data.iterdir()) if data.is_dir() else []
    named = {path: path.name.lower().split("-")[0] for path in files if shards.is_data(path) and "-" in path.name}
    return [path for path, name in named.items() if name in _names()[table]]


def _texts(folder: Path, table: Table, known: set[str]) -> dict[str, list[Path]]:
    place = _folder(folder, table)
    single = _file(folder, table) or ([] if place else _shards(folder, table))
    return {DEFAULT_SPLIT: single} if single else shards.splits(place, known) if place else {}


def _file(folder: Path, table: Table) -> list[Path]:
    """Return the file of a table: by the first of its names, in the first of the formats; empty if there is none."""
    endings = dict.fromkeys((*_FIRST.get(table, ()), *ENDINGS))
    there = {path.name.lower(): path for path in _sorted(folder) if path.is_file() and shards.is_data(path)}
    names = (f"{name}{end}{packing}" for name in _names()[table] for end in endings for packing in ("", *packed.CODECS))
    return [there[name] for name in names if name in there][:1]


def _folder(folder: Path, table: Table) -> Path | None:
    there = {path.name.lower(): path for path in _sorted(folder) if path.is_dir()}
    return next((there[name] for name in _names()[table] if name in there), None)


def _sorted(folder: Path) -> Iterable[Path]:
    return sorted(folder.iterdir(), reverse=True)  # of names that differ in case alone the first is taken


@cache
def _names() -> dict[Table, list[str]]:
    return cast("dict[Table, list[str]]", parse_yaml(data_file("tables/readers/folder.yaml").read_text("utf-8")))
