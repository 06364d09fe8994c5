"""Files of one table in a folder, by split: shards of any format, or what `datasets.save_to_disk` wrote.

A split is a subfolder (`test/0000.parquet`), or what a file's name begins with (`test-00000-of-00002.parquet`).
"""

import json
import re
from collections.abc import Collection
from pathlib import Path

from curate.core.errors import DataError
from curate.tables.readers import Table, packed
from curate.tables.readers.file import BINARY, ENDINGS
from curate.tables.readers.splits import DEFAULT_SPLIT, USUAL, choose, choose_texts, unread

SAVED, SAVED_SPLITS = "state.json", "dataset_dict.json"
"""Files that `save_to_disk` writes beside the Arrow files of a data set, and into the folder of several splits."""
_SHARD = re.compile(r"[-_.]?\d{4,}(-of-\d+)?([-.].*)?$")
_PROSE = {"readme", "license", "licence", "citation", "notice"}
_WHOLE = {"", "part", "data", "qrels", "default"}
"""Beginnings of names that are no splits."""


def is_data(path: Path) -> bool:
    """Return whether a file can hold a table, by its name."""
    ending, packing = packed.ending(path)
    supported = ending in ENDINGS and not (packing and ENDINGS[ending] in BINARY)
    hidden = path.name.startswith((".", "_"))
    return supported and not hidden and packed.stem(path).lower() not in _PROSE and path.name not in _BESIDE


_BESIDE = {SAVED, SAVED_SPLITS, "dataset_info.json", "dataset_infos.json"}


def holds_data(folder: Path) -> bool:
    """Return whether a folder, or one below it, holds a file that can be one of a table."""
    return any(is_data(path) and path.is_file() for path in folder.rglob("*"))


def files(folder: Path, table: Table, split: str | None) -> tuple[list[Path], list[str]]:
    """Return the files of a table's folder that are to be read, and notes on those that are not.

    DataError if there is none, ConfigError if there are several splits and nobody has said which.
    """
    by_split = splits(folder, None if table == "qrels" else {*USUAL, *([split] if split else [])})
    if not by_split:
        raise DataError(f"{folder}: found no file of {table}, expected one of {', '.join(ENDINGS)}; check the folder")
    if table == "qrels":
        chosen = choose(by_split, split, str(folder)) or DEFAULT_SPLIT
        paths = by_split[chosen]
    else:
        chosen, paths = choose_texts(by_split, table, split, str(folder))
    return paths, unread(table, chosen, by_split)


def splits(folder: Path, known: Collection[str] | None) -> dict[str, list[Path]]:
    """Return split -> files of a folder, `test` for those that name none; of any name, or only the `known` ones."""
    if (folder / SAVED_SPLITS).is_file():
        return {path.name: _saved(path) for path in sorted(folder.iterdir()) if (path / SAVED).is_file()}
    if (folder / SAVED).is_file():
        return {DEFAULT_SPLIT: _saved(folder)}
    by_split: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.iterdir() if is_data(path) and path.is_file()):
        name = _SHARD.sub("", packed.stem(path))
        unsplit = name.lower() in _WHOLE if known is None else name not in known
        by_split.setdefault(DEFAULT_SPLIT if unsplit else name, []).append(path)
    return by_split or _nested(folder, known)


def _nested(folder: Path, known: Collection[str] | None) -> dict[str, list[Path]]:
    """Return split -> files where the files lie in subfolders: of splits, or of one subset, such as `default`."""
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and holds_data(path)]
    subset = next((path for path in below if path.name == "default"), None)
    if subset or (len(below) == 1 and below[0].name not in (known or USUAL)):
        return splits(subset or below[0], known)
    return {path.name: [file for split in splits(path, ()).values() for file in split] for path in below}


def _saved(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder that `save_to_disk` wrote; DataError if one is missing."""
    state_path = folder / SAVED
    try:
        state = json.loads(state_path.read_text(encoding="utf-8"))
        paths = [folder / str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{state_path}: found no state of a data set, expected `_data_files`; save it again") from error
    if state.get("_indices_data_files"):
        raise DataError(
            f"{state_path}: found rows chosen by an index, expected a plain data set; save it again with "
            "dataset.flatten_indices().save_to_disk(FOLDER)"
        )
    lost = next((path for path in paths if not path.is_file()), None)
    if lost:
        raise DataError(f"{lost}: no such file, though {SAVED} names it; copy the whole folder again")
    return paths
