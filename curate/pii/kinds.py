"""Kinds of personal data, and the placeholders that stand in their place."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from curate.core.config import parse_yaml
from curate.system.resources import data_file

FILLER = "＊"
"""Fills a placeholder up to the length of what it stands for."""
GONE = "■"
"""Stands for a character where there is no room for a word; like a bracket, it is part of no recogniser's pattern."""


@cache
def kinds() -> Mapping[str, Mapping[str, str]]:
    """Return kind -> language -> its word."""
    found = parse_yaml(data_file("pii/kinds.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def placeholder(kind: str, language: str) -> str:
    """Return what stands in the place of a kind, such as `[电话]`; a kind of a user's own is its own word."""
    words = kinds().get(kind)
    return f"[{kind if words is None else words['zh' if language.startswith('zh') else 'en']}]"


def tag(kind: str, language: str, length: int) -> str:
    """Return a placeholder of exactly that length, such as `[电话＊＊＊＊＊＊＊]`; `■` where its word has no room."""
    whole = placeholder(kind, language)
    return GONE * length if length < len(whole) else f"{whole[:-1]}{FILLER * (length - len(whole))}]"


def placeholders(own: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of all placeholders and tags in every language, those of a user's own kinds included."""
    words = {word for each in kinds().values() for word in each.values()} | set(own)
    listed = "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
    return re.compile(rf"\[(?:{listed}){FILLER}*\]|{GONE}+")
