"""Strict parser of a model's reply: a grade that is not given in the agreed form is not known.

Accepted is one JSON object, label -> grade of the scale, alone or inside one code fence. A label or a grade may be in
full-width letters or in another case, and a grade that is a whole number may stand without quotes; nothing else is
guessed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.scale import Scale, plain

_FENCE = re.compile(r"```(?:json)?[ \t\r]*\n(.*)\n?```", re.DOTALL | re.IGNORECASE)
_OPEN_FENCE = re.compile(r"```(?:json)?[ \t\r]*\n", re.IGNORECASE)
_STRING = r'"(?:[^"\\]|\\.)*+"'
_NUMBER = r"-?\d++"
_ITEM = re.compile(
    rf"\s*+({_STRING})\s*+:\s*+(?:({_STRING})\s*+(?:,|\}}\s*+$|$)|({_NUMBER})\s*+(?:,|\}}\s*+$))", re.DOTALL
)
"""One item of a cut reply; a number at the very end may lack digits, so it is not complete."""
_CUT_ITEM = re.compile(
    rf'\s*+(?:"(?:[^"\\]|\\.)*+\\?|{_STRING}\s*+(?::\s*+(?:{_NUMBER}\s*+|"(?:[^"\\]|\\.)*+\\?)?)?)?', re.DOTALL
)

Pairs = list[tuple[str, object]]


class _Object(list[tuple[str, object]]):
    """The items of a JSON object in order, repeated keys kept."""


@dataclass(frozen=True)
class Parsed:
    """What a reply says of the labels it was asked for."""

    grades: Mapping[str, str | None]
    """Every expected label in order; None where the reply gives no grade for it."""
    readable: bool = True
    """False if the reply is no JSON object at all."""
    foreign: int = 0
    """Items whose label was not asked for; ignored."""
    duplicates: int = 0
    """Items beyond the first of their label. A label with different values counts as not graded."""
    wrong: int = 0
    """Expected labels with a value that is no grade of the scale."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the labels without a grade, in order: what is asked again."""
        return tuple(label for label, grade in self.grades.items() if grade is None)


def parse(text: str | None, labels: Sequence[str], scale: Scale, *, cut: bool = False) -> Parsed:
    """Return the grades in a reply; `cut` says that the answer stopped at its length bound.

    Of a cut reply the items that are complete count, and the unfinished one does not. No text is no grade.
    """
    pairs = items(text or "")
    if pairs is None and cut:
        pairs = _complete_pairs(text or "")
    if pairs is None:
        return Parsed(dict.fromkeys(labels), readable=False)
    return _assign(pairs, labels, scale)


def _assign(pairs: Pairs, labels: Sequence[str], scale: Scale) -> Parsed:
    names = {plain(label): label for label in labels}
    values: dict[str, list[str | None]] = {label: [] for label in labels}
    foreign = 0
    for key, value in pairs:
        label = names.get(plain(key))
        if label is None:
            foreign += 1
        else:
            values[label].append(_grade(value, scale))
    return Parsed(
        {label: said[0] if said and len(set(said)) == 1 else None for label, said in values.items()},
        foreign=foreign,
        duplicates=sum(max(len(said) - 1, 0) for said in values.values()),
        wrong=sum(None in said for said in values.values()),
    )


def _grade(value: object, scale: Scale) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return scale.read(value) if isinstance(value, str) else None


def items(text: str) -> Pairs | None:
    """Return the items of the JSON object that a text is, alone or in one code fence, in order; None if it is none."""
    fenced = _FENCE.fullmatch(text.strip())
    try:
        value = json.loads(fenced[1] if fenced else text, object_pairs_hook=_Object)
    except (ValueError, RecursionError):  # nesting thousands deep ends in the latter
        return None
    return value if isinstance(value, _Object) else None


def _complete_pairs(text: str) -> Pairs | None:
    body = text.strip()
    opened = _OPEN_FENCE.match(body)
    body = body[opened.end() :].lstrip() if opened else body
    if not body.startswith("{"):
        return None
    pairs, place = [], 1
    while item := _ITEM.match(body, place):
        pairs.append((item[1], item[2] or item[3]))
        place = item.end()
    if not _CUT_ITEM.fullmatch(body, place):
        return None  # what follows is no item that was cut off, so the whole text is in doubt
    try:
        return [(json.loads(key), json.loads(value)) for key, value in pairs]
    except ValueError:
        return None
