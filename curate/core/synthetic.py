"""Marks of synthetic queries in the column `source`: `synthetic:MODEL`, plus the family if not clear from the name."""

import re
from dataclasses import dataclass

from curate.core.model_family import family

SYNTHETIC = "synthetic"
UNKNOWN = "unknown"
"""Author of queries that another tool marked as synthetic without naming a model."""
_MARK = re.compile(rf"{SYNTHETIC}(?::(?P<model>[^\s()][^()\n]{{0,150}}?)(?: \((?P<family>[^()\n]{{1,40}})\))?)?")


@dataclass(frozen=True)
class QueryAuthor:
    """The model that wrote a query, and its family; the family is None if unknown."""

    model: str
    family: str | None


def marked(model: str, declared: str | None) -> str:
    """Return the mark of queries written by a model.

    A declared family is added if the model's name does not show it.
    """
    plain = " ".join(re.sub(r"[()]", " ", model).split())[:150]
    return f"{SYNTHETIC}:{plain}" + (f" ({declared})" if declared and family(plain) != declared else "")


def writer(source: object) -> QueryAuthor | None:
    """Return the author of a query with this source; None for a query by a person."""
    match = _MARK.fullmatch(source) if isinstance(source, str) else None
    if match is None:
        return None
    if match["model"] is None:
        return QueryAuthor(UNKNOWN, None)
    return QueryAuthor(match["model"], family(match["model"], match["family"]))
