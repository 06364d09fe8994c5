"""The mark of synthetic queries in the column `source`: `synthetic:MODEL`, with the family where the name hides it."""

import re
from dataclasses import dataclass

from curate.core.model_family import family

SYNTHETIC = "synthetic"
UNKNOWN = "unknown"
"""The writer of queries that another tool marked without naming one."""
_MARK = re.compile(rf"{SYNTHETIC}(?::(?P<model>[^\s()][^()\n]{{0,150}}?)(?: \((?P<family>[^()\n]{{1,40}})\))?)?")


@dataclass(frozen=True)
class QueryAuthor:
    """The model that wrote a query, and its family; None where no family is known."""

    model: str
    family: str | None


def marked(model: str, declared: str | None) -> str:
    """Return the mark of queries that a model wrote; a declared family is named where the model's name hides it."""
    plain = " ".join(re.sub(r"[()]", " ", model).split())[:150]
    return f"{SYNTHETIC}:{plain}" + (f" ({declared})" if declared and family(plain) != declared else "")


def writer(source: object) -> QueryAuthor | None:
    """Return who wrote a query with this source; None for a query of people."""
    match = _MARK.fullmatch(source) if isinstance(source, str) else None
    if match is None:
        return None
    if match["model"] is None:
        return QueryAuthor(UNKNOWN, None)
    return QueryAuthor(match["model"], family(match["model"], match["family"]))
