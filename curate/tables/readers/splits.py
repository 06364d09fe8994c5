"""Choice of a split: the one that is asked for, else `test`, else the only one."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from curate.core.errors import ConfigError
from curate.tables.readers import Table

DEFAULT_SPLIT = "test"
USUAL = ("test", "dev", "validation", "valid", "val", "eval", "train")
"""Split names that may occur in the file names of texts."""
Files = TypeVar("Files")


def choose(splits: Collection[str], split: str | None, place: str) -> str | None:
    """Return the split to read: the one asked for, else `test`, else the only one; None if there is none at all."""
    if split is not None and split not in splits:
        available = ", ".join(splits) or "none"
        raise ConfigError(f"{place}: found the splits {available}, expected {split!r}; set ingest.split to one of them")
    if split is not None or not splits:
        return split
    if DEFAULT_SPLIT in splits or len(splits) == 1:
        return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else next(iter(splits))
    raise ConfigError(f"{place}: found the splits {', '.join(splits)}, expected to be told which; set ingest.split")


def choose_texts(splits: Mapping[str, Files], table: Table, split: str | None, place: str) -> tuple[str, Files]:
    """Return name and files of the texts to read: of the split, of the table's name, or of the only split there is."""
    for choice in (split or DEFAULT_SPLIT, table):
        if choice in splits:
            return choice, splits[choice]
    if len(splits) == 1:
        return next(iter(splits.items()))
    raise ConfigError(
        f"{place}: found the splits {', '.join(splits) or 'none'} of the {table}, expected one or "
        f"{split or DEFAULT_SPLIT!r}; give its files with ingest.{table}.path"
    )


def unread(table: Table, chosen: str | None, splits: Iterable[str]) -> list[str]:
    """Return a note on the splits of a table that are not read; none if all are."""
    others = [name for name in splits if name != chosen]
    if chosen is None or not others:
        return []
    return [f"{table}: the split {chosen} is read, {', '.join(others)} not; ingest.split names another"]
