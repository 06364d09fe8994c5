"""What addresses and institutions share: names of places, and text in simplified characters."""

from collections.abc import Iterable
from functools import cache, lru_cache

from curate.pii.text import narrow
from curate.pii.words import compiled, one_of, words

NUMBER = r"(?:[0-9]{1,5}|[一二三四五六七八九十百零〇两]{1,6})"
"""A number of a house, floor or hospital."""


@cache
def _simplified() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in words("places")["traditional"]}


_traditional = compiled(lambda: f"[{''.join(map(chr, _simplified()))}]")


@lru_cache(maxsize=8)
def fold(text: str) -> str:
    """Return the narrowed text with traditional characters simplified, one for one; every offset stays."""
    narrowed = narrow(text)
    return narrowed.translate(_simplified()) if _traditional().search(narrowed) else narrowed


@cache
def place() -> str:
    """Return a pattern for a province, cities, counties and a district in a row, with their endings or not."""
    lists = words("places")
    province = f"{one_of(lists['provinces'])}{one_of(lists['province_endings'])}?"
    city = f"{one_of(lists['cities'], lists['counties'])}(?:自治州|地区|市|州|盟|县)?"
    return f"(?:{province} ?(?:{city}){{0,2}}|(?:{city}){{1,2}})(?:{one_of(lists['districts'])}区?)?"


def written(texts: Iterable[str]) -> str:
    """Return a pattern for one of the words in traditional or simplified characters, digits full-width or not."""
    forms = _forms()
    return f"(?:{'|'.join(''.join(f'[{c}{forms[c]}]' if c in forms else c for c in text) for text in texts)})"


def one_character(characters: Iterable[str]) -> str:
    """Return a pattern for one of the characters, in the same forms."""
    return f"[{''.join(sorted(character + _forms().get(character, '') for character in set(characters)))}]"


@cache
def _forms() -> dict[str, str]:
    forms = {str(digit): chr(0xFF10 + digit) for digit in range(10)}
    for pair in words("places")["traditional"]:
        forms[pair[1]] = forms.get(pair[1], "") + pair[0]
    return forms
