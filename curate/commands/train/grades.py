"""Scores of documents in a file of triples: read from a row, and refused where they cannot be soft targets."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from curate.core.errors import DataError

FEWEST = 3
"""Different scores; two of them say no more than positive and negative do."""


def in_row(place: str, row: Mapping[str, Any], column: str, count: int) -> list[float]:
    """Return the scores of the documents in a column; DataError if they are not as many numbers, 0 or more."""
    name = f"{column}_scores"
    value = row.get(name)
    if isinstance(value, str):
        with suppress(json.JSONDecodeError):  # the sentence below shows what was found
            value = json.loads(value)
    found = value if isinstance(value, list) else [] if value is None else [value]
    right = all(isinstance(each, int | float) and math.isfinite(each) and each >= 0 for each in found)
    if len(found) != count or not right:
        raise DataError(
            f"{place}: found {value!r} in {name}, expected a number of 0 or more per document of {column} ({count}); "
            "`curate train-set` writes them, or take recipe contrastive, which needs none"
        )
    return [float(each) for each in found]


def check(place: Path, queries: int, found: Mapping[tuple[int, int], float]) -> None:
    """Raise DataError if the scores of all queries say nothing that positives and negatives do not say."""
    different = sorted({*found.values()})
    if len(different) < FEWEST:
        raise DataError(
            f"{place}: the scores have {len(different)} different values ({', '.join(map(str, different))}), expected "
            f"{FEWEST} or more: fewer are no graded targets; take recipe contrastive"
        )
    if none := queries - len({query for (query, _), score in found.items() if score > 0}):
        raise DataError(
            f"{place}: {none:,} of {queries:,} queries have no document with a score above 0, expected one per query; "
            "drop those queries"
        )
