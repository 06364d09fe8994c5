"""Tables of kinds whose labels are no verdicts on documents (sts, classification, ...), compared row by row."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from curate.core.config import Json
from curate.pipeline.foreign_files import is_run
from curate.tables.exporters.reading import own_kinds

Rows = Mapping[tuple[str, str], Counter[str]]
"""Kind and table -> its rows as text, each with how often it stands there."""


def compared(before: Path, after: Path) -> list[dict[str, Json]]:
    """Return a row per table that differs: rows on both sides, and those of each alone; as both were last exported.

    Empty unless both have an export in mteb's format, for only that one holds such tables.
    """
    one, other = _rows(before), _rows(after)
    if one is None or other is None:
        return []
    none: Counter[str] = Counter()
    found = {key: (one.get(key, none), other.get(key, none)) for key in sorted({*one, *other})}
    return [
        {
            "kind": kind,
            "table": table,
            "both": (left & right).total(),
            "before_only": (left - right).total(),
            "after_only": (right - left).total(),
        }
        for (kind, table), (left, right) in found.items()
        if left != right
    ]


def _rows(place: Path) -> Rows | None:
    folders = (place / "export" / "mteb",) if is_run(place) else (place, place / "mteb")
    folder = next((each for each in folders if (each / "tasks.py").is_file()), None)
    if folder is None:
        return None
    return {
        (kind, name): Counter(map(str, table.iter_rows()))
        for kind, tables in own_kinds(folder).items()
        for name, table in tables.items()
    }
