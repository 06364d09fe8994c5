"""Families of models, by the spellings of a table and else guessed from the beginning of a name."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from curate.core.config import parse_yaml

_NAME, _BETWEEN = re.compile(r"[a-z]+"), re.compile(r"[\s_.:/-]+")
LANGUAGES, EMBEDDINGS = "languages", "embeddings"


def family(model: str, declared: str | None = None) -> str | None:
    """Return the family of a model: the declared one, else by its name's spelling, its vendor's, its first letters.

    `gpt` of openai/gpt-4o-mini and of text-embedding-3-small, `bge` of BAAI/bge-m3 and of the declared family BAAI.
    None for a name that begins with no letter.
    """
    if declared:
        return next((name for name, spellings in _known().items() if _plain(declared) in spellings), declared)
    vendor, _, own = model.rpartition("/")
    found = _spelled(own) or _spelled(vendor)
    if found:
        return found
    begins = _NAME.match(own.lower())
    return begins[0] if begins else None


def begins_as(name: str) -> str | None:
    """Return the family of language models with whose spelling a name begins; None for other names."""
    vendor, _, own = name.rpartition("/")
    parts = (LANGUAGES,)
    return _spelled(own, parts, beginning=True) or _spelled(vendor, parts, beginning=True)


def _spelled(name: str, parts: Sequence[str] = (LANGUAGES, EMBEDDINGS), *, beginning: bool = False) -> str | None:
    """Return the family whose spelling stands first in a name as words, the longest of those."""
    text, found = _plain(name), list[tuple[int, int, str]]()
    for part in parts:
        for kin, spellings in _table()[part].items():
            for spelling in spellings:
                at = re.search(rf"(?<![a-z0-9]){re.escape(spelling)}(?![a-z])", text)
                if at and not (beginning and at.start()):
                    found.append((at.start(), -len(spelling), kin))
    return min(found)[2] if found else None


def _plain(name: str) -> str:
    return _BETWEEN.sub("-", name.strip().lower())


def _known() -> Mapping[str, Sequence[str]]:
    """Return family -> its spellings, of all parts of the table."""
    return {kin: (kin, *spellings) for part in _table().values() for kin, spellings in part.items()}


@cache
def _table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    path = Path(__file__).with_name("model_families.yaml")
    found: Mapping[str, Mapping[str, Sequence[str]]] = parse_yaml(path.read_text(encoding="utf-8"))
    return found
