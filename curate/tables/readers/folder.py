"""Files of a folder by table and split, according to its README.md or to the names of files and folders.

The split is the configured one, else `test`, else the only one.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeVar, cast

import yaml

from curate.core import safe_yaml
from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, DataError, TableError
from curate.system.resources import data_file
from curate.tables.readers import Table, encoding
from curate.tables.readers.file import BINARY, ENDINGS

DEFAULT_SPLIT = "test"
USUAL = ("test", "dev", "validation", "valid", "val", "eval", "train")
"""Split names recognised in the file names of queries and corpus."""
Files = TypeVar("Files")


def choose_split(splits: Collection[str], split: str | None, path: str) -> str | None:
    """Return the split to read: the configured one, else `test`, else the only one; None if there are no splits.

    ConfigError if the configured split is missing, or if none of several splits can be chosen.
    """
    if split is not None and split not in splits:
        available = ", ".join(splits) or "none"
        raise ConfigError(f"{path}: found the splits {available}, expected {split!r}; set ingest.split to one of them")
    if split is not None or not splits:
        return split
    if DEFAULT_SPLIT in splits or len(splits) == 1:
        return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else next(iter(splits))
    raise ConfigError(f"{path}: found the splits {', '.join(splits)}, expected to be told which; set ingest.split")


def choose_texts(splits: Mapping[str, Files], table: Table, split: str | None, path: str) -> tuple[str, Files]:
    """Return name and files of the split of queries or corpus to read; ConfigError if none can be chosen.

    The choices in order: `split` or `test`, a split named like the table, the only split.
    """
    for choice in (split or DEFAULT_SPLIT, table):
        if choice in splits:
            return choice, splits[choice]
    if len(splits) == 1:
        return next(iter(splits.items()))
    raise ConfigError(
        f"{path}: found the splits {', '.join(splits) or 'none'} of the {table}, expected one or "
        f"{split or DEFAULT_SPLIT!r}; give its files with ingest.{table}.path"
    )


def unread_splits(table: Table, chosen: str | None, splits: Iterable[str]) -> list[str]:
    """Return a list with one note on the splits of a table that are not read; [] if all are read."""
    others = [name for name in splits if name != chosen]
    if chosen is None or not others:
        return []
    return [f"{table}: the split {chosen} is read, {', '.join(others)} not; ingest.split names another"]


# Files of an MTEB folder by the `configs:` in the head of its README.md.

Configs = Mapping[str, Mapping[str, list[str]]]
"""Configuration -> split -> glob patterns of files."""
_HEAD = safe_yaml.YamlLimits(1_000_000, 100_000)
"""Size limits of a README's YAML block, which may list hundreds of configurations."""


def readme_configs(readme: Path) -> Configs:
    """Return configuration -> split -> patterns from the README's YAML block (between the first `---` lines), or {}."""
    if not readme.is_file():
        return {}
    with readme.open("rb") as stream:
        raw = stream.read(_HEAD.size)
    lines = raw.decode("utf-8", errors="replace").removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---" or "---" not in (line.rstrip() for line in lines[1:]):
        return {}
    end = next(number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---")
    try:
        head = safe_yaml.parse("\n".join(lines[1:end]), _HEAD)
    except yaml.YAMLError as error:
        problem = f"found a head that is not valid YAML ({safe_yaml.problem(error)}), expected `configs:`; correct it"
        raise DataError(f"{readme}:1: {problem}") from error
    entries = head.get("configs") if isinstance(head, dict) else None
    splits_of_config = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("config_name"), str):
            splits_of_config[entry["config_name"]] = _splits_of_readme(entry.get("data_files"))
    return splits_of_config


def _splits_of_readme(data_files: object) -> dict[str, list[str]]:
    if isinstance(data_files, str):
        return {"train": [data_files]}  # what `datasets` calls files without a split
    if isinstance(data_files, dict):
        return {str(split): _listed(patterns) for split, patterns in data_files.items()}
    splits: dict[str, list[str]] = {}
    for entry in data_files if isinstance(data_files, list) else []:
        if isinstance(entry, dict):
            splits.setdefault(str(entry.get("split", "train")), []).extend(_listed(entry.get("path")))
        else:
            splits.setdefault("train", []).extend(_listed(entry))
    return splits


def _listed(patterns: object) -> list[str]:
    return [patterns] if isinstance(patterns, str) else [str(p) for p in patterns] if isinstance(patterns, list) else []


def files_of_readme(
    folder: Path, configs: Configs, split: str | None
) -> tuple[list[Path], list[Path], list[Path], list[Path], list[str]]:
    """Return the files of queries, corpus, qrels and qrels of other splits, and notes on unused files."""
    readme = str(folder / "README.md")
    qrels = configs.get("qrels") or configs.get("default") or {}
    if {"queries", "corpus"} & set(qrels):  # the older layout: texts and qrels in two repositories
        qrels = {}
    chosen = choose_split(qrels, split, readme) if qrels else None
    others = [pattern for name, patterns in qrels.items() if name != chosen for pattern in patterns]
    queries = _matches(folder, _text_patterns(configs, "queries", chosen or split, readme), readme)
    corpus = _matches(folder, _text_patterns(configs, "corpus", chosen or split, readme), readme)
    qrels_files = _matches(folder, qrels[chosen], readme) if chosen else []
    return (queries, corpus, qrels_files, _matches(folder, others, readme), unread_splits("qrels", chosen, qrels))


def _text_patterns(configs: Configs, table: Table, split: str | None, readme: str) -> list[str]:
    splits = configs.get(table)
    if splits is None:
        return list(configs.get("default", {}).get(table, []))
    return choose_texts(splits, table, split, readme)[1]


def _matches(folder: Path, patterns: list[str], readme: str) -> list[Path]:
    matches: list[Path] = []
    for pattern in patterns:
        pure = PurePosixPath(pattern)
        if pure.is_absolute() or ".." in pure.parts:
            raise TableError.at(readme, f"the path {pattern!r}", "a path in the folder", "correct `data_files`")
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        except ValueError:  # such as an empty one
            paths = []
        if not paths:
            raise TableError.at(readme, f"no file that matches {pattern!r}", "at least one", "correct `data_files`")
        matches.extend(path for path in paths if path not in matches)
    return matches


# Files of one table in a folder, by split: shards of any format, or what `datasets.save_to_disk` wrote.

SAVED, SAVED_SPLITS = "state.json", "dataset_dict.json"
"""Files written by `save_to_disk` of `datasets`: in the folder of a split, and in the parent folder of the splits."""
_SHARD = re.compile(r"[-_.]?\d{4,}(-of-\d+)?([-.].*)?$")
_PROSE = {"readme", "license", "licence", "citation", "notice"}
_WHOLE = {"", "part", "data", "qrels", "default"}
"""First parts of file names that are no names of splits."""


def is_data(path: Path) -> bool:
    """Return whether a file can hold a table, judged by its name."""
    ending, packing = encoding.ending(path)
    supported = ending in ENDINGS and not (packing and ENDINGS[ending] in BINARY)
    hidden = path.name.startswith((".", "_"))
    return supported and not hidden and encoding.stem(path).lower() not in _PROSE and path.name not in _BESIDE


_BESIDE = {SAVED, SAVED_SPLITS, "dataset_info.json", "dataset_infos.json"}


def holds_data(folder: Path) -> bool:
    """Return whether a folder or a subfolder contains a file that can hold a table."""
    return any(is_data(path) and path.is_file() for path in folder.rglob("*"))


def shards_of(folder: Path, table: Table, split: str | None) -> tuple[list[Path], list[str]]:
    """Return the files to read in the folder of a table, and notes on splits that are not read.

    DataError without files, ConfigError if none of several splits can be chosen.
    """
    by_split = splits_of(folder, None if table == "qrels" else {*USUAL, *([split] if split else [])})
    if not by_split:
        raise TableError.at(folder, f"no file of {table}", f"one of {', '.join(ENDINGS)}", "check the folder")
    if table == "qrels":
        chosen = choose_split(by_split, split, str(folder)) or DEFAULT_SPLIT
        paths = by_split[chosen]
    else:
        chosen, paths = choose_texts(by_split, table, split, str(folder))
    return paths, unread_splits(table, chosen, by_split)


def splits_of(folder: Path, names: Collection[str] | None) -> dict[str, list[Path]]:
    """Return split -> files of a folder, for all splits or those in `names`.

    Files not named after a split are `test`.
    """
    if (folder / SAVED_SPLITS).is_file():
        return {path.name: _saved(path) for path in sorted(folder.iterdir()) if (path / SAVED).is_file()}
    if (folder / SAVED).is_file():
        return {DEFAULT_SPLIT: _saved(folder)}
    by_split: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.iterdir() if is_data(path) and path.is_file()):
        name = _SHARD.sub("", encoding.stem(path))
        unsplit = name.lower() in _WHOLE if names is None else name not in names
        by_split.setdefault(DEFAULT_SPLIT if unsplit else name, []).append(path)
    return by_split or _nested(folder, names)


def _nested(folder: Path, names: Collection[str] | None) -> dict[str, list[Path]]:
    """Return split -> files in subfolders: each is a split, or one is a subset (such as `default`) with the splits."""
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and holds_data(path)]
    subset = next((path for path in below if path.name == "default"), None)
    if subset or (len(below) == 1 and below[0].name not in (names or USUAL)):
        return splits_of(subset or below[0], names)
    return {path.name: [file for split in splits_of(path, ()).values() for file in split] for path in below}


def _saved(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder that `save_to_disk` wrote; DataError if one is missing."""
    state_path = folder / SAVED
    try:
        state = json.loads(state_path.read_text(encoding="utf-8"))
        paths = [folder / str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError.at(state_path, "no state of a data set", "`_data_files`", "save it again") from error
    if state.get("_indices_data_files"):
        raise TableError.at(
            state_path,
            "rows chosen by an index",
            "a plain data set",
            "save it again with dataset.flatten_indices().save_to_disk(FOLDER)",
        )
    lost = next((path for path in paths if not path.is_file()), None)
    if lost:
        raise DataError(f"{lost}: no such file, though {SAVED} names it; copy the whole folder again")
    return paths


# Files of a folder, by its README.md (MTEB), else by the names of its files and folders (BEIR, MTEB, save_to_disk).

_FIRST: dict[Table, tuple[str, ...]] = {"qrels": (".tsv", ".csv")}
"""Table -> preferred file extensions if the table exists in several formats."""
_LABELS = ("default", "data")
"""Alternative names of the qrels folder on the hub, next to the folders of queries and corpus."""


@dataclass(frozen=True)
class Parts:
    """Files of a folder by table; an absent table has an empty list."""

    queries: list[Path] = field(default_factory=list)
    corpus: list[Path] = field(default_factory=list)
    qrels: list[Path] = field(default_factory=list)
    other_qrels: list[Path] = field(default_factory=list)
    """Qrels of other splits; their queries are excluded."""
    notes: list[str] = field(default_factory=list)
    """One sentence per table on its splits that are not read."""

    def of(self, table: Table) -> list[Path]:
        """Return the files of one table."""
        return {"queries": self.queries, "corpus": self.corpus, "qrels": self.qrels}[table]


def find(folder: Path, split: str | None) -> Parts:
    """Return the files of a folder by table; the split defaults to `test`, else to the only one.

    A folder without tables that holds one folder alone, as of an unpacked archive, stands for that one.
    """
    configs = _only_subset(readme_configs(folder / "README.md"))
    if configs:
        return Parts(*files_of_readme(folder, configs, split))
    tables = _parts_by_name(folder, split)
    entries = [path for path in folder.iterdir() if not path.name.startswith((".", "__"))]
    has_tables = tables.queries or tables.corpus or tables.qrels
    return find(entries[0], split) if not has_tables and len(entries) == 1 and entries[0].is_dir() else tables


def _only_subset(configs: Configs) -> Configs:
    """Return the configurations of MTEB's newer layout, such as `zh-queries`, without the subset if there is one."""
    prefixes = subset_prefixes(configs)
    if "queries" in configs or len(prefixes) != 1:
        return configs
    return {name.removeprefix(f"{prefixes[0]}-"): splits for name, splits in configs.items()}


def subset_prefixes(names: Iterable[str]) -> list[str]:
    """Return the subsets, such as `zh`, of which there are both `zh-queries` and `zh-corpus`."""
    subset_names = set(names)
    prefixes = [name.removesuffix("-queries") for name in subset_names if name.endswith("-queries")]
    return [prefix for prefix in prefixes if f"{prefix}-corpus" in subset_names]


def subsets(folder: Path) -> list[dict[Table, Path]]:
    """Return table -> folder of each subset of MTEB's newer layout, such as `zh-queries` and `zh-corpus`."""
    folders = {path.name: path for path in _sorted(folder) if path.is_dir()}
    tables: tuple[Table, ...] = ("queries", "corpus", "qrels")
    return [
        {table: folders[f"{prefix}-{table}"] for table in tables if f"{prefix}-{table}" in folders}
        for prefix in sorted(subset_prefixes(folders))
    ]


def readable(folder: Path) -> list[Path]:
    """Return the files and folders that could be a table, for error messages."""
    below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [path for path in below if (holds_data(path) if path.is_dir() else is_data(path))]


def _parts_by_name(folder: Path, split: str | None) -> Parts:
    labels = _labels(folder, split)
    chosen = choose_split(labels, split, str(folder / "qrels"))
    others = [path for name, paths in labels.items() if name != chosen for path in paths]
    notes = unread_splits("qrels", chosen, labels)
    texts: dict[Table, list[Path]] = {}
    for table in cast("tuple[Table, ...]", ("queries", "corpus")):
        texts_folder = _folder(folder, table)
        single = _file(folder, table) or ([] if texts_folder else _table_shards(folder, table))
        of_folder = splits_of(texts_folder, {*USUAL, *labels}) if texts_folder and not single else {}
        by_split = {DEFAULT_SPLIT: single} if single else of_folder
        name, texts[table] = choose_texts(by_split, table, chosen, str(folder / table)) if by_split else ("", [])
        notes += unread_splits(table, name, by_split)
    return Parts(texts["queries"], texts["corpus"], labels.get(chosen or "", []), others, notes)


def _labels(folder: Path, split: str | None) -> dict[str, list[Path]]:
    """Return split -> qrels files: those of the qrels folder, else a single file as the only split."""
    qrels_folder = _folder(folder, "qrels") or _label_folder(folder)
    by_split = splits_of(qrels_folder, None) if qrels_folder else _of_older_repository(folder)
    single = _file(folder, "qrels")
    return {DEFAULT_SPLIT: single} if not by_split and single and split is None else by_split


def _label_folder(folder: Path) -> Path | None:
    """Return the folder of qrels named `default` or `data`, next to those of queries and corpus; None without one."""
    if not (_folder(folder, "queries") and _folder(folder, "corpus")):
        return None
    return next((path for name in _LABELS if (path := folder / name).is_dir()), None)


def _of_older_repository(folder: Path) -> dict[str, list[Path]]:
    """Return split -> qrels files for a corpus in `data/corpus-*.parquet`: of the same folder, else of `NAME-qrels`."""
    if not _table_shards(folder, "corpus"):
        return {}
    inside = _table_shards(folder, "qrels")
    sibling = folder.resolve().with_name(f"{folder.resolve().name}-qrels")
    data_folder = sibling / "data" if (sibling / "data").is_dir() else sibling
    return {DEFAULT_SPLIT: inside} if inside else splits_of(data_folder, None) if data_folder.is_dir() else {}


def _table_shards(folder: Path, table: Table) -> list[Path]:
    """Return the files `data/NAME-*` of a table, the layout of C-MTEB's older repositories."""
    data_folder = folder / "data"
    files = sorted(data_folder.iterdir()) if data_folder.is_dir() else []
    prefixes = {path: path.name.lower().split("-")[0] for path in files if is_data(path) and "-" in path.name}
    return [path for path, name in prefixes.items() if name in _names()[table]]


def _file(folder: Path, table: Table) -> list[Path]:
    """Return a list with a table's file, the first combination of name and format that exists; [] if none does."""
    endings = dict.fromkeys((*_FIRST.get(table, ()), *ENDINGS))
    files = {path.name.lower(): path for path in _sorted(folder) if path.is_file() and is_data(path)}
    names = (
        f"{name}{end}{packing}"
        for name in _names()[table]
        for end in endings
        for packing in ("", *encoding.COMPRESSIONS)
    )
    return [files[name] for name in names if name in files][:1]


def _folder(folder: Path, table: Table) -> Path | None:
    folders = {path.name.lower(): path for path in _sorted(folder) if path.is_dir()}
    alone = next(iter(subsets(folder)), {}) if len(subsets(folder)) == 1 else {}
    return next((folders[name] for name in _names()[table] if name in folders), alone.get(table))


def _sorted(folder: Path) -> Iterable[Path]:
    return sorted(folder.iterdir(), reverse=True)  # of names that differ in case alone the first is taken


@cache
def _names() -> dict[Table, list[str]]:
    return cast("dict[Table, list[str]]", parse_yaml(data_file("tables/readers/folder.yaml").read_text("utf-8")))
