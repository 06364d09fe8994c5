"""Spaced names in free text: 张 小明 with any white space, weighed against words such as 白 细胞 and 高 血压."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, narrow, trigger
from curate.pii.person_names.lattice import lattice, single
from curate.pii.person_names.lexicon import CJK, is_chinese, surnames
from curate.pii.person_names.sought import SEPARATED
from curate.pii.person_names.weights import NAME, behind, behind_word, front, given_weight, run_at, surname_weight
from curate.pii.spans import behind_found, in_order

_GIVEN = rf"[{CJK}](?: {{1,2}}(?=[{CJK}](?![{CJK}]))(?![男女]))?[{CJK}]"
_SPACED = re.compile(rf"(?P<surname>[{surnames()}][{CJK}]?) {{1,3}}(?=(?P<given>{_GIVEN}))")
_SPACED_BAR = 3.5
_ALONE = 3.0
"""Weight of a surname between a boundary and a space, where a single character is rarely a word."""
_INSIDE = 4.0
"""Penalty of a surname that ends a word, as in 麻醉医师 雷崟."""
_SPREAD = 4.0
"""Penalty if all characters are separated by spaces, as in tables and headings."""


@trigger(f"[{surnames()}][ \u00a0\u2007\u202f\u3000]{{1,3}}[{CJK}]", needs=(CHINESE, SEPARATED))
def spaced(text: str) -> list[Span]:
    """Return names with a space after the surname and a given name of two characters."""
    text = narrow(text)
    return in_order(_spaced_names(text), "name", "name_spaced")


def _spaced_names(text: str) -> Iterator[tuple[int, int]]:
    last_end = -1
    for match in _SPACED.finditer(text):
        for length in (1, 2):
            start, end = match.end("surname") - length, match.end("given")
            seen, less = behind_found(text, start) if start == last_end else (text, 0)
            offsets = (offset - less for offset in (start, match.end("surname"), match.start("given"), end))
            if start >= match.start() and _spaced_weight(seen, *offsets) >= _SPACED_BAR:
                last_end = end
                yield start, end
                break


def _spaced_weight(text: str, start: int, middle: int, given_start: int, end: int) -> float:
    """Return the weight of a name; minus infinity if a part cannot be one."""
    first, second = surname_weight(text[start:middle]), given_weight(text[given_start:end].replace(" ", ""))
    if first is None or second is None:
        return float("-inf")
    left, right = run_at(text, start)[0], run_at(text, given_start)[1]
    before, after = lattice(text[left:middle]), lattice(text[given_start:right])
    gained = before.gain(start - left, middle - left, NAME + first)
    gained -= _INSIDE * (middle - start == 1 and behind_word(text, middle))
    if " " in text[given_start:end]:
        gained += second - sum(single(letter) for letter in text[given_start:end] if letter != " ") - _SPREAD
    else:
        gained += after.gain(0, end - given_start, second)
    apart = start == 0 or not is_chinese(text, start - 1)
    return gained + (_ALONE if apart else 0.0) + front(text, start) + behind(text, end)
