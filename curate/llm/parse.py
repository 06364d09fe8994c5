"""Strict parser of a model's reply: a grade in any other form than the agreed one does not count.

Accepted: one JSON object, label -> grade of the scale, alone, in a code fence or within other text, with at most a
trailing comma. Thoughts before the answer, a tagged block such as `<think>`, are skipped. The object may be the value
of a single key; a grade may be the `grade` of an object; a list of objects that name a label each is accepted, too.
Labels and grades may be full-width or in another case, whole-number grades unquoted; nothing else is guessed. Two
differing objects are no answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.scale import Scale, plain

_FENCE = re.compile(r"```(?:json)?[ \t\r]*\n(.*)\n?```", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"<(\w+)>.*?</\1>|.*?</think>|<\w+>.*", re.DOTALL)
"""A first block in tags; without its end tag there is no answer; some servers send only the end tag."""
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(\s*+[}\]])', re.DOTALL)
"""A trailing comma; strings are matched too, so that commas in them are skipped."""
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
    """The grades in a reply for the requested labels."""

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
        """Return the labels without a grade, in order; these are asked again."""
        return tuple(label for label, grade in self.grades.items() if grade is None)


def parse(text: str | None, labels: Sequence[str], scale: Scale, *, cut: bool = False) -> Parsed:
    """Return the grades in a reply; `cut`: the answer stopped at its token limit, so only its complete items count."""
    names = {plain(label): label for label in labels}
    pairs = _pairs(_value(text or "", amid=not cut), names)
    if pairs is None and cut:
        pairs = _complete_pairs(answer(text or ""))
    if pairs is None:
        return Parsed(dict.fromkeys(labels), readable=False)
    return _assign(pairs, names, scale)


def _pairs(content: object, names: Mapping[str, str]) -> Pairs | None:
    """Return the labels and their grades in JSON of an accepted form; None for another form."""
    if isinstance(content, _Object):
        alone = content[0][1] if len(content) == 1 and plain(content[0][0]) not in names else None
        return _pairs_of(alone, names) or content
    return _pairs_of(content, names)


def _pairs_of(content: object, names: Mapping[str, str]) -> Pairs | None:
    if isinstance(content, _Object):
        return content
    if not isinstance(content, list) or not all(isinstance(entry, _Object) for entry in content):
        return None
    pairs = [(_label(entry, names), entry) for entry in content]
    return pairs if any(label for label, _ in pairs) else None


def _label(entry: _Object, names: Mapping[str, str]) -> str:
    """Return the only label that an object in a list names; empty if it names none or several."""
    matching = {plain(text) for _, text in entry if isinstance(text, str)} & names.keys()
    return matching.pop() if len(matching) == 1 else ""


def _assign(pairs: Pairs, names: Mapping[str, str], scale: Scale) -> Parsed:
    values: dict[str, list[str | None]] = {label: [] for label in names.values()}
    foreign = 0
    for key, content in pairs:
        label = names.get(plain(key))
        if label is None:
            foreign += 1
        else:
            values[label].append(_grade(content, scale))
    return Parsed(
        {label: grades[0] if grades and len(set(grades)) == 1 else None for label, grades in values.items()},
        foreign=foreign,
        duplicates=sum(max(len(grades) - 1, 0) for grades in values.values()),
        wrong=sum(None in grades for grades in values.values()),
    )


def _grade(content: object, scale: Scale) -> str | None:
    if isinstance(content, _Object):
        grades = [grade for key, grade in content if plain(key) == plain("grade")]
        content = grades[0] if len(grades) == 1 else None
    if isinstance(content, int) and not isinstance(content, bool):
        content = str(content)
    return scale.read(content) if isinstance(content, str) else None


def items(text: str) -> Pairs | None:
    """Return the items of the only JSON object in a text, in order; None without one, or with two that differ."""
    content = _value(text)
    return content if isinstance(content, _Object) else None


def answer(text: str) -> str:
    """Return a text without leading thoughts."""
    body = text.strip()
    thoughts = _THOUGHTS.match(body)
    return body[thoughts.end() :].strip() if thoughts else body


def _value(text: str, *, amid: bool = True) -> object:
    """Return the JSON object or list that is the answer in a text, with `amid` also within other text.

    None if there is none, or if two differ.
    """
    body = answer(text)
    start = min((index for mark in "{[" if (index := body.find(mark)) >= 0), default=0)
    tidy = body[:start] + _LAST_COMMA.sub(r"\1\2", body[start:])
    for tried, among in ((text.strip(), False), (body, amid), (tidy, amid)):
        fenced = _FENCE.fullmatch(tried)
        try:
            content = json.loads(fenced[1] if fenced else tried, object_pairs_hook=_Object)
        except (ValueError, RecursionError):  # nesting thousands deep ends in the latter
            content = _only(tried) if among else None
        if isinstance(content, list):
            return content
    return None


def _only(text: str) -> object:
    """Return the JSON object, or list of objects, within a text; None if there are several that differ."""
    content, position = None, 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening[1]:
            continue
        try:
            one, position = _DECODER.raw_decode(text, opening.start())
            if content not in (None, one):
                return None
        except (ValueError, RecursionError):
            return None
        content = one
    return content


def _complete_pairs(body: str) -> Pairs | None:
    opened = _OPEN_FENCE.match(body)
    body = body[opened.end() :].lstrip() if opened else body
    if not body.startswith("{"):
        return None
    pairs, position = [], 1
    while match := _ITEM.match(body, position):
        pairs.append((match[1], match[2] or match[3]))
        position = match.end()
    if not _CUT_ITEM.fullmatch(body, position):
        return None  # the rest is no truncated item, so the whole text is unreadable
    try:
        return [(json.loads(key), json.loads(grade)) for key, grade in pairs]
    except ValueError:
        return None
