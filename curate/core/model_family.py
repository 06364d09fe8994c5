"""Families of models, from a table of spellings, or else guessed from the beginning of a model's name."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from curate.core.config import parse_yaml

_NAME, _BETWEEN = re.compile(r"[a-z]+"), re.compile(r"[\s_.:/-]+")
LANGUAGES, EMBEDDINGS = "languages", "embeddings"


def family(model: str, declared: str | None = None) -> str | None:
    """Return the family of a model: declared, else by known spellings in its name or vendor, else its first letters."""
    if declared:
        return next(
            (
                kin
                for table in _table().values()
                for kin, spellings in table.items()
                if _plain(declared) in (kin, *spellings)
            ),
            declared,
        )
    vendor, _, model_name = model.rpartition("/")
    spelled = _spelled(model_name) or _spelled(vendor)
    if spelled:
        return spelled
    begins = _NAME.match(model_name.lower())
    return begins[0] if begins else None


def begins_as(name: str) -> str | None:
    """Return the family of language models with whose spelling a name begins; None for other names."""
    vendor, _, model_name = name.rpartition("/")
    tables = (LANGUAGES,)
    return _spelled(model_name, tables, beginning=True) or _spelled(vendor, tables, beginning=True)


def _spelled(name: str, tables: Sequence[str] = (LANGUAGES, EMBEDDINGS), *, beginning: bool = False) -> str | None:
    """Return the family whose spelling occurs first in a name as a separate word (the longest on ties), or None."""
    text, matches = _plain(name), list[tuple[int, int, str]]()
    for table in tables:
        for kin, spellings in _table()[table].items():
            for spelling in spellings:
                match = re.search(rf"(?<![a-z0-9]){re.escape(spelling)}(?![a-z])", text)
                if match and not (beginning and match.start()):
                    matches.append((match.start(), -len(spelling), kin))
    return min(matches)[2] if matches else None


def _plain(name: str) -> str:
    return _BETWEEN.sub("-", name.strip().lower())


@cache
def _table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    path = Path(__file__).with_name("model_families.yaml")
    tables: Mapping[str, Mapping[str, Sequence[str]]] = parse_yaml(path.read_text(encoding="utf-8"))
    return tables
