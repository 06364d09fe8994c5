"""Names in English records: behind labels (Attending: Sarah Thompson), before degrees (A. Patel, MD), in signatures."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import FULL_WIDTH, TWO_SIGNS, narrow, trigger
from curate.pii.person_names.lexicon import given_names
from curate.pii.spans import in_order
from curate.pii.words import longest_first, words

_LISTS = words("clinical")
_UP = r"A-Z\u00c0-\u00de"
_CAPITAL = f"[{_UP}]"
_REST = r"[a-z\u00df-\u024f]{1,20}"
_WORD = rf"(?:(?:Mc|Mac|O['’]|D['’]|St\. ?){_CAPITAL}{_REST}|{_CAPITAL}{_REST}(?:-{_CAPITAL}{_REST})?)"
_INITIAL = rf"{_CAPITAL}(?:\.|(?![A-Za-z.]))"
_PARTICLE = r"(?:van|von|de|der|den|del|della|di|da|dos|la|le|el|al|bin|ibn|ter|ten|du|zu)"
_TITLE = r"(?:(?:Dr|Mr|Mrs|Ms|Miss|Prof|Sr|Rev|Nurse|Doctor|Professor|Sister)\.? )?"
_STRAIGHT = rf"(?:{_WORD}|{_INITIAL})(?:[ ](?:{_WORD}|{_INITIAL}|{_PARTICLE}(?= ))){{0,4}}"
_REVERSED = rf"{_WORD}(?: {_WORD})?, ?{_WORD}(?: (?:{_WORD}|{_INITIAL}))?(?![a-z])"
_CAPITALS = rf"{_CAPITAL}{{2,20}}(?:['’-]{_CAPITAL}{{2,20}})?,? {_CAPITAL}{{2,20}}(?: {_CAPITAL}\.?)?(?![A-Za-z])"
_NAME = rf"{_TITLE}(?P<name>{_CAPITALS}|{_REVERSED}|{_STRAIGHT})"
_COMMON = frozenset(word.casefold() for word in _LISTS["common"])
_NO_NAME = re.compile(
    r"(?:ology|ologist|ics|tion|sion|ment|ness|ity|ing|ly|ous|ive|able|ible|itis|osis|ectomy|otomy|oma|ism|ship|gram"
    r"|graphy|scopy|emia|uria|pathy|therapy|eal|ial|ional)\Z"
)
"""Endings of English words that names of people rarely have; a listed given name beside such a word counts more."""


def _either(name: str) -> str:
    return "|".join(re.escape(word).replace(r"\ ", "[ ]") for word in longest_first(_LISTS[name]))


_DEGREE = rf"(?:{_either('credentials')})(?![A-Za-z]|\.[A-Z]| [0-9]{{5}})"
_STATES = re.compile(r"(?:MD|PA|DO)(?![A-Za-z])")
"""Degrees that are also a state, an illness or a word: Baltimore, MD and Duchenne MD."""
_FIELD = re.compile(rf"(?:(?:[:：]|- )[ \t]{{0,4}}|(?<= [Bb]y) |(?<= BY) )(?=[{_UP}])")
_LABEL = re.compile(rf"(?<![A-Za-z])(?i:(?P<sure>{_either('sure')})|{_either('doubtful')})(?:\(s\))?[ \t]{{0,3}}\Z")
_LONGEST_LABEL = 32
_LABELLED = re.compile(_NAME)
_BEHIND = re.compile(rf", ?(?P<degree>{_DEGREE})")
_IN_FRONT = re.compile(rf"(?<![A-Za-z])(?P<name>{_STRAIGHT})\Z")
_REACH = 60
"""Maximum number of characters of a name before a degree."""
_CLOSED = re.compile(
    r"(?:[Rr]egards|[Ss]incerely|[Ff]aithfully|[Tt]ruly|[Rr]espectfully(?: submitted)?|[Ww]ishes|[Cc]heers"
    rf"|[Gg]ratefully|[Cc]ordially),? ?\n\s{{0,4}}{_TITLE}(?P<name>{_STRAIGHT})(?=[ ,.]{{0,2}}(?:\n|$|{_DEGREE}))"
)
_LABELS = longest_first(_LISTS["sure"], _LISTS["doubtful"])


def _loosely(entries: Iterable[str]) -> Iterator[str]:
    """Yield a pattern of each entry with spaces of any width, for triggers."""
    return (re.escape(entry).replace("\\ ", r"\s") for entry in entries)


@trigger(
    rf"(?i:{'|'.join(_loosely(_LABELS))})(?:\(s\))?\s*(?:[:：]|-\s)\s*{_CAPITAL}",
    rf"(?i:{'|'.join(_loosely(label for label in _LABELS if label.endswith(' by')))})\s{_CAPITAL}",
    rf"[a-zA-Z.],\s?(?:{'|'.join(_loosely(longest_first(_LISTS['credentials'])))})(?:[^A-Za-z]|$)",
    r"(?:egards|incerely|aithfully|ruly|ubmitted|ectfully|ishes|heers|atefully|ordially),?\s?\n",
    FULL_WIDTH,
    needs=TWO_SIGNS,
)
def clinical(text: str) -> list[Span]:
    """Return names of English records: behind labels such as Attending:, before degrees such as MD, in signatures."""
    return in_order(_name_extents(narrow(text)), "name", "name_clinical")


def _name_extents(text: str) -> Iterator[tuple[int, int]]:
    for field in _FIELD.finditer(text):
        label = _LABEL.search(text, max(0, field.start() - _LONGEST_LABEL), field.start())
        match = _LABELLED.match(text, field.end()) if label else None
        extent = _name(text, *match.span("name"), sure=label["sure"] is not None) if label and match else None
        if extent is not None:
            yield extent
    for match in _CLOSED.finditer(text):
        extent = _name(text, *match.span("name"), sure=True)
        if extent is not None:
            yield extent
    yield from _with_degrees(text)


def _with_degrees(text: str) -> Iterator[tuple[int, int]]:
    """Yield names of two words or more before a degree; before one that is also a state, a given name or an initial."""
    for degree in _BEHIND.finditer(text):
        low = max(0, degree.start() - _REACH)
        match = _IN_FRONT.search(text, low, degree.start())
        extent = _name(text, *match.span("name"), sure=False) if match else None
        if match is None or extent is None or extent[1] != degree.start():
            continue
        name = match["name"].split()
        telling = any(len(word.strip(".")) == 1 or word.casefold() in given_names() for word in name)
        if len(name) > 1 and (telling or not _STATES.match(degree["degree"])):
            yield extent


def _name(text: str, start: int, end: int, *, sure: bool) -> tuple[int, int] | None:
    """Return (start, end) of the name that a match begins with, up to the first common word; None if it is none."""
    pieces = list(re.finditer(r"[^\s,]+", text[start:end]))
    kept = next((number for number, piece in enumerate(pieces) if _is_common(piece[0])), len(pieces))
    name = [piece[0].strip(".") for piece in pieces[:kept]]
    while name and name[-1].islower():
        name.pop()
    full = [word for word in name if len(word) > 1]
    if not full:
        return None
    end = start + pieces[len(name) - 1].end()
    listed = any(word.casefold() in given_names() for word in full)
    told = _has_degree(text, end) or _titled().search(text, max(0, start - 10), start) is not None
    if len(name) == 1:
        return (start, end) if listed or told or (sure and _ends_field(text, end)) else None
    if listed or told or sure or len(full) < len(name):
        return start, end
    return None if any(_NO_NAME.search(word.casefold()) for word in full) else (start, end)


def _is_common(word: str) -> bool:
    plain = word.strip(".").removesuffix("'s").removesuffix("’s")
    return len(plain) > 1 and plain.casefold() in _COMMON


def _ends_field(text: str, end: int) -> bool:
    return re.match(r"[ \t]{0,3}(?:[\n,;|)(]|$|\d)", text[end : end + 6]) is not None


@cache
def _titled() -> re.Pattern[str]:
    return re.compile(rf"{_TITLE}\Z".replace(")?\\Z", ")\\Z"))


def _has_degree(text: str, end: int) -> bool:
    return re.compile(rf",? {_DEGREE}").match(text, end) is not None
