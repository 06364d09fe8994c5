"""Word lists from the YAML files of `pii`, and patterns made from them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from curate.core.config import parse_yaml
from curate.pii.patterns import RAW_SPACE, narrow
from curate.system.resources import data_file

_FOLDERS = ("pii", "pii/recognisers", "pii/person_names")
"""Folders of the word lists, next to the recognisers that use them."""
RULES = ("patterns", "recognisers")
"""Keys of a file that hold rules (see `rules`); every other key holds a word list."""


@cache
def entries(name: str) -> dict[str, Any]:
    """Return the content of `NAME.yaml`."""
    paths = [data_file(f"{folder}/{name}.yaml") for folder in _FOLDERS]
    path = next((path for path in paths if path.is_file()), paths[0])
    content = parse_yaml(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise TypeError(f"{path} holds no lists by name")
    return content


@cache
def words(name: str) -> dict[str, list[str]]:
    """Return the word lists in `NAME.yaml` in file order; a nested list has a dotted key.

    A text is split into words, and a number is a list of one.
    """
    lists = {key: entry for key, entry in entries(name).items() if key not in RULES}
    return {key: list(dict.fromkeys(listed)) for key, listed in _flat(lists)}


def _flat(lists: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, list[str]]]:
    for key, listed in lists.items():
        if isinstance(listed, dict):
            yield from _flat(listed, f"{above}{key}.")
        else:
            yield f"{above}{key}", listed if isinstance(listed, list) else str(listed).split()


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


def spaced(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words with spaces of any width, for triggers."""
    return "(?:" + "|".join(re.escape(word).replace(re.escape(" "), r"\s") for word in longest_first(*lists)) + ")"


def raw(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words in a text before `narrow`, in any width and case; for triggers."""
    return "(?i:" + "|".join("".join(map(_raw, word)) for word in longest_first(*lists)) + ")"


def _raw(character: str) -> str:
    if character == " ":
        return r"\s"
    wide = f"|{chr(ord(character) + 0xFEE0)}" if "!" <= character <= "~" else ""
    return f"(?:{re.escape(character)}{wide})"


# Words as people type them: in any case, full-width, traditional or spaced.

_TRADITIONAL = dict(
    zip(
        "号证码编护历诊门检医银账户标条乡来台湾驾驶国体统样报单处脑镜产别档识试验参险储汇转邮农业军结线内肠妇",
        "號證碼編護歷診門檢醫銀賬戶標條鄉來臺灣駕駛國體統樣報單處腦鏡產別檔識試驗參險儲匯轉郵農業軍結線內腸婦",
        strict=True,
    )
)
_PERHAPS_SPACE = f"[{RAW_SPACE}]?"


def loosely(*lists: Iterable[str]) -> str:
    """Return a pattern for any of the words, also for triggers: in any case, full-width, traditional or spaced."""
    return "|".join(map(_loose, longest_first(*lists)))


def label(*lists: Iterable[str]) -> str:
    """Return a pattern as `loosely` does, for a narrowed text; Latin words must not follow a Latin letter."""
    every = longest_first(*lists)
    fronted = (f"{'(?<![A-Za-z])' * word[0].isascii()}{_loose(word)}" for word in every)
    first = "".join(sorted({variant for word in every for variant in _variants(word[0])}))
    # one look at a character instead of one per word
    return f"(?=[{first}])(?:{'|'.join(fronted)})"


def loose_last(*lists: Iterable[str]) -> str:
    """Return a pattern for the last characters of the words that do not end in Latin letters, as `loosely` does."""
    return loosely({word[-1] for word in chain(*lists) if not word[-1].isascii()})


def loose_latin(*lists: Iterable[str]) -> str:
    """Return a pattern for the words that end in Latin letters or signs, as `loosely` does."""
    return loosely(word for word in chain(*lists) if word[-1].isascii())


def _loose(word: str) -> str:
    return "".join(map(_sign, word)).removeprefix(_PERHAPS_SPACE)


def _sign(character: str) -> str:
    if character == " ":
        return _PERHAPS_SPACE
    variants = _variants(character)
    apart = _PERHAPS_SPACE * (not character.isascii())
    return f"{apart}[{variants}]" if len(variants) > 1 else f"{apart}{re.escape(character)}"


def _variants(character: str) -> str:
    """Return a character with its variants: case, full width, traditional form."""
    if character.isascii() and character.isalpha():
        small, capital = character.lower(), character.upper()
        return f"{small}{capital}{chr(ord(small) + 0xFEE0)}{chr(ord(capital) + 0xFEE0)}"
    return character + _TRADITIONAL.get(character, "")


# Place names in traditional and simplified characters.


@cache
def _simplified() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in words("places")["traditional"]}


_traditional = compiled(lambda: f"[{''.join(map(chr, _simplified()))}]")


@lru_cache(maxsize=8)
def fold(text: str) -> str:
    """Return the narrowed text with traditional characters simplified one by one; offsets are unchanged."""
    narrowed = narrow(text)
    return narrowed.translate(_simplified()) if _traditional().search(narrowed) else narrowed


@cache
def _forms() -> dict[str, str]:
    """Return a character -> its traditional or full-width forms."""
    forms = {str(digit): chr(0xFF10 + digit) for digit in range(10)}
    for pair in words("places")["traditional"]:
        forms[pair[1]] = forms.get(pair[1], "") + pair[0]
    return forms


def written(*lists: Iterable[str]) -> str:
    """Return a pattern for one of the words in traditional or simplified characters, digits full-width or not."""
    forms = _forms()
    return f"(?:{'|'.join(''.join(f'[{c}{forms[c]}]' if c in forms else c for c in text) for text in chain(*lists))})"


def shortest(*lists: Iterable[str]) -> str:
    """Return a pattern as `written` does, of those words that contain no other one; for triggers."""
    every = sorted(set(chain(*lists)))
    return written(word for word in every if not any(shorter in word for shorter in every if shorter != word))


def openings(*lists: Iterable[str]) -> str:
    """Return a pattern for two characters with which words begin, a smaller automaton than `written`."""
    pairs = zip(*(word[:2] for word in chain(*lists)), strict=True)
    return "".join(_one_character(characters) for characters in pairs)


def endings(*lists: Iterable[str]) -> str:
    """Return a pattern for one of the last characters of the words, in the same variants as `written`."""
    return _one_character(word[-1] for word in chain(*lists))


def _one_character(characters: Iterable[str]) -> str:
    return f"[{''.join(sorted(character + _forms().get(character, '') for character in set(characters)))}]"
