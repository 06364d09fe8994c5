"""Strict parser of a model's reply: a grade that is not given in the agreed form is not known.

Accepted is one JSON object, label -> grade of the scale, alone, in a code fence or amid other words, and its last comma
may be one too many. Thoughts in front of the answer, a tagged block such as `<think>`, are none. The object may stand
under one key; a grade may be the `grade` of an object; and a list of objects that name a label each is read as well. A
label or a grade may be in full-width letters or in another case, and a grade that is a whole number may stand without
quotes; nothing else is guessed. Of two objects that differ none is the answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.scale import Scale, plain

_FENCE = re.compile(r"```(?:json)?[ \t\r]*\n(.*)\n?```", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"<(\w+)>.*?</\1>|.*?</think>|<\w+>.*", re.DOTALL)
"""A first block in tags, which may lack its end, and then there is no answer, or its beginning: some servers send that.
"""
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(\s*+[}\]])', re.DOTALL)
"""A comma behind which nothing comes, or a text, in which there is none."""
_OPENING = re.compile(r'(\{[^{}"]*+\})|\{|\[\s*+\{')
"""Where an object or a list of some begins; what stands in braces without a quotation mark is none."""
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


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


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
    names = {plain(label): label for label in labels}
    pairs = _pairs(_value(text or "", amid=not cut), names)
    if pairs is None and cut:
        pairs = _complete_pairs(answer(text or ""))
    if pairs is None:
        return Parsed(dict.fromkeys(labels), readable=False)
    return _assign(pairs, names, scale)


def _pairs(value: object, names: Mapping[str, str]) -> Pairs | None:
    """Return the labels and what each is given, of a JSON value in one of the forms that are read; None of another."""
    if isinstance(value, _Object):
        alone = value[0][1] if len(value) == 1 and plain(value[0][0]) not in names else None
        return _pairs_of(alone, names) or value
    return _pairs_of(value, names)


def _pairs_of(value: object, names: Mapping[str, str]) -> Pairs | None:
    if isinstance(value, _Object):
        return value
    if not isinstance(value, list) or not all(isinstance(item, _Object) for item in value):
        return None
    pairs = [(_label(item, names), item) for item in value]
    return pairs if any(label for label, _ in pairs) else None


def _label(item: _Object, names: Mapping[str, str]) -> str:
    """Return the one label that an object in a list names, empty if it names none or several."""
    named = {plain(text) for _, text in item if isinstance(text, str)} & names.keys()
    return named.pop() if len(named) == 1 else ""


def _assign(pairs: Pairs, names: Mapping[str, str], scale: Scale) -> Parsed:
    values: dict[str, list[str | None]] = {label: [] for label in names.values()}
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
    if isinstance(value, _Object):
        given = [grade for key, grade in value if plain(key) == plain("grade")]
        value = given[0] if len(given) == 1 else None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return scale.read(value) if isinstance(value, str) else None


def items(text: str) -> Pairs | None:
    """Return the items of the one JSON object in a text, in order; None if there is none, or two that differ."""
    value = _value(text)
    return value if isinstance(value, _Object) else None


def answer(text: str) -> str:
    """Return a text without the thoughts in front of it."""
    body = text.strip()
    thoughts = _THOUGHTS.match(body)
    return body[thoughts.end() :].strip() if thoughts else body


def _value(text: str, *, amid: bool = True) -> object:
    """Return the JSON object, or list, that is the answer in a text, where `amid` says so amid other words, too.

    None if there is none, or if two differ.
    """
    body = answer(text)
    start = min((place for mark in "{[" if (place := body.find(mark)) >= 0), default=0)
    tidy = body[:start] + _LAST_COMMA.sub(r"\1\2", body[start:])
    for tried, among in ((text.strip(), False), (body, amid), (tidy, amid)):
        fenced = _FENCE.fullmatch(tried)
        try:
            value = json.loads(fenced[1] if fenced else tried, object_pairs_hook=_Object)
        except (ValueError, RecursionError):  # nesting thousands deep ends in the latter
            value = _only(tried) if among else None
        if isinstance(value, list):
            return value
    return None


def _only(text: str) -> object:
    """Return the JSON object, or list of some, that stands in a text, all of them if they are the same."""
    value, place = None, 0
    while opening := _OPENING.search(text, place):
        place = opening.end()
        if opening[1]:
            continue
        try:
            one, place = _DECODER.raw_decode(text, opening.start())
            if value not in (None, one):
                return None
        except (ValueError, RecursionError):
            return None
        value = one
    return value


def _complete_pairs(body: str) -> Pairs | None:
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
