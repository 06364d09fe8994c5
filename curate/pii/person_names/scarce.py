"""Names in free text with a character that is scarce outside names: 刘燚说, 高祎的片子; no title or label needed."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, narrow, trigger
from curate.pii.person_names.lexicon import is_chinese, known, surnames
from curate.pii.person_names.sought import BEFORE_SCARCE, SCARCE
from curate.pii.person_names.weights import full
from curate.pii.spans import behind_found, in_order

_SCARCE_BAR = 5.5
"""Minimum total weight of characters and context."""
_GAIN = 0.5
"""Minimum gain of the characters alone over ordinary words."""
_SCARCE = re.compile(SCARCE)
_FIRST = frozenset(surnames())


@trigger(BEFORE_SCARCE, needs=CHINESE)
def bare(text: str) -> list[Span]:
    """Return full names whose given name has a character that is scarce outside names: 孟骁, 曹淏然."""
    text = narrow(text)
    return in_order(_scarce_names(text), "name", "name_scarce")


def _scarce_names(text: str) -> Iterator[tuple[int, int]]:
    last_end = 0
    for match in _SCARCE.finditer(text):
        if match.start() < last_end or text[match.start() - 1 : match.end()] in known().compounds:
            continue
        best = max(_weighed(text, match.start(), last_end), default=None)
        if best is not None:
            _, start, last_end = best
            yield start, last_end


def _weighed(text: str, position: int, last_end: int) -> Iterator[tuple[float, int, int]]:
    """Yield (weight, start, end) of the names around a scarce character that reach the minimum weight."""
    for start in range(max(last_end, position - 3), position):
        if text[start] not in _FIRST:
            continue
        seen, less = behind_found(text, start) if start == last_end else (text, 0)
        for end in range(position + 1, min(position + 3, len(text) + 1)):
            is_run = all(is_chinese(text, index) for index in range(start, end))
            weights = full(seen, start - less, end - less) if is_run else None
            if weights is not None and weights.front >= 0 and weights.gain >= _GAIN and weights.total >= _SCARCE_BAR:
                yield weights.total, start, end
