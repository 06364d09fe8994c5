"""Word lists from the YAML files of `pii`, and patterns made from them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from curate.core.config import parse_yaml
from curate.system.resources import data_file

_FOLDERS = ("pii", "pii/recognisers", "pii/person_names")
"""Folders of the word lists, next to the recognisers that use them."""


@cache
def words(name: str) -> dict[str, list[str]]:
    """Return the word lists in `NAME.yaml` in file order; a nested list has a dotted key.

    A text is split into words, and a number is a list of one.
    """
    paths = [data_file(f"{folder}/{name}.yaml") for folder in _FOLDERS]
    path = next((path for path in paths if path.is_file()), paths[0])
    lists = parse_yaml(path.read_text(encoding="utf-8"))
    if not isinstance(lists, dict):
        raise TypeError(f"{path} holds no lists by name")
    return {key: list(dict.fromkeys(entries)) for key, entries in _flat(lists)}


def _flat(lists: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, list[str]]]:
    for key, entries in lists.items():
        if isinstance(entries, dict):
            yield from _flat(entries, f"{above}{key}.")
        else:
            yield f"{above}{key}", entries if isinstance(entries, list) else str(entries).split()


def compiled(source: Callable[[], str]) -> Callable[[], re.Pattern[str]]:
    """Return a function that compiles a pattern at its first call; large patterns are slow and few are needed."""
    return cache(lambda: re.compile(source()))


def longest_first(*lists: Iterable[str]) -> list[str]:
    """Return all words, longest first: the order of alternatives in a pattern."""
    return sorted({word for group in lists for word in group}, key=lambda word: (-len(word), word))


def either(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words; also suitable for triggers."""
    return f"(?:{'|'.join(map(re.escape, longest_first(*lists)))})"


def one_of(*lists: Iterable[str]) -> str:
    """Return a pattern for the longest matching word; hundreds of words cost little more than ten."""
    groups: dict[str, list[str]] = {}
    for word in longest_first(*lists):
        groups.setdefault(word[0], []).append(re.escape(word))
    return _halved(sorted(groups.items()))


_ALTERNATIVES = 64
"""Maximum number of alternatives that are not halved: halving fewer saves no time and triples compilation."""


def _halved(groups: list[tuple[str, list[str]]]) -> str:
    """Return a pattern that selects the first character by bisection, because `re` tries alternatives one by one."""
    if len(groups) <= _ALTERNATIVES:
        return f"(?:{'|'.join(word for _, group in groups for word in group)})"
    left, right = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    return (
        "(?:"
        + "|".join(f"(?=[{''.join(re.escape(first) for first, _ in half)}]){_halved(half)}" for half in (left, right))
        + ")"
    )


def any_of(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words in a narrowed text; Latin words must not follow a Latin letter."""
    every = longest_first(*lists)
    fronted = (("(?<![A-Za-z])" if word[0].isascii() else "") + re.escape(word) for word in every)
    first = "".join(sorted({re.escape(word[0]) for word in every}))
    # one look at a character instead of one per word
    return f"(?=[{first}])(?:{'|'.join(fronted)})"


def raw(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words in a text before `narrow`, in any width and case; for triggers."""
    return "(?i:" + "|".join("".join(map(_raw, word)) for word in longest_first(*lists)) + ")"


def _raw(character: str) -> str:
    if character == " ":
        return r"\s"
    wide = f"|{chr(ord(character) + 0xFEE0)}" if "!" <= character <= "~" else ""
    return f"(?:{re.escape(character)}{wide})"
