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
"""Preferred endings of a table that is present in several formats."""
_LABELS = ("default", "data")
"""Folders of qrels beside those of queries and corpus, as the hub stores them."""


@dataclass(frozen=True)
class Parts:
    """Files of a folder, a list per table; empty for an absent table."""

    queries: list[Path] = field(default_factory=list)
    corpus: list[Path] = field(default_factory=list)
    qrels: list[Path] = field(default_factory=list)
    other_qrels: list[Path] = field(default_factory=list)
    """Qrels of the other splits, whose queries are left out."""
    notes: list[str] = field(default_factory=list)
    """One sentence per choice among several candidates."""

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
        by_split = _texts(folder, table, {*USUAL, *labels})
        name, texts[table] = choose_texts(by_split, table, chosen, str(folder / table)) if by_split else ("", [])
        notes += unread(table, name, by_split)
    return Parts(texts["queries"], texts["corpus"], labels.get(chosen or "", []), others, notes)


def _labels(folder: Path, split: str | None) -> dict[str, list[Path]]:
    """Return split -> files of the qrels: those of a folder, else one file, which has no split."""
    qrels_folder = _folder(folder, "qrels") or _label_folder(folder)
    by_split = shards.splits(qrels_folder, None) if qrels_folder else _of_older_repository(folder)
    single = _file(folder, "qrels")
    return {DEFAULT_SPLIT: single} if not by_split and single and split is None else by_split


def _label_folder(folder: Path) -> Path | None:
    """Return the qrels folder beside those of queries and corpus if it is named otherwise; None if there is none."""
    if not (_folder(folder, "queries") and _folder(folder, "corpus")):
        return None
    return next((path for name in _LABELS if (path := folder / name).is_dir()), None)


def _of_older_repository(folder: Path) -> dict[str, list[Path]]:
    """Return split -> files of the qrels beside `data/corpus-*.parquet`: of that folder, else of `NAME-qrels/data`."""
    if not _shards(folder, "corpus"):
        return {}
    inside = _shards(folder, "qrels")
    sibling = folder.resolve().with_name(f"{folder.resolve().name}-qrels")
    data_folder = sibling / "data" if (sibling / "data").is_dir() else sibling
    return {DEFAULT_SPLIT: inside} if inside else shards.splits(data_folder, None) if data_folder.is_dir() else {}


def _shards(folder: Path, table: Table) -> list[Path]:
    """Return the files `data/NAME-*` of a table, as C-MTEB's repositories had them."""
    data_folder = folder / "data"
    files = sorted(data_folder.iterdir()) if data_folder.is_dir() else []
    prefixes = {path: path.name.lower().split("-")[0] for path in files if shards.is_data(path) and "-" in path.name}
    return [path for path, name in prefixes.items() if name in _names()[table]]


def _texts(folder: Path, table: Table, splits: set[str]) -> dict[str, list[Path]]:
    texts_folder = _folder(folder, table)
    single = _file(folder, table) or ([] if texts_folder else _shards(folder, table))
    return {DEFAULT_SPLIT: single} if single else shards.splits(texts_folder, splits) if texts_folder else {}


def _file(folder: Path, table: Table) -> list[Path]:
    """Return the file of a table: by the first of its names, in the first of the formats; empty if there is none."""
    endings = dict.fromkeys((*_FIRST.get(table, ()), *ENDINGS))
    files = {path.name.lower(): path for path in _sorted(folder) if path.is_file() and shards.is_data(path)}
    names = (f"{name}{end}{packing}" for name in _names()[table] for end in endings for packing in ("", *packed.CODECS))
    return [files[name] for name in names if name in files][:1]


def _folder(folder: Path, table: Table) -> Path | None:
    folders = {path.name.lower(): path for path in _sorted(folder) if path.is_dir()}
    return next((folders[name] for name in _names()[table] if name in folders), None)


def _sorted(folder: Path) -> Iterable[Path]:
    return sorted(folder.iterdir(), reverse=True)  # of names that differ in case alone the first is taken


@cache
def _names() -> dict[Table, list[str]]:
    return cast("dict[Table, list[str]]", parse_yaml(data_file("tables/readers/folder.yaml").read_text("utf-8")))
