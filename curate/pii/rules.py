"""Rules as data: patterns in YAML, the words around them, and the recognisers that they make.

A file of rules holds lists of words, `patterns` by name, and `recognisers` by name (see `RuleRecogniser`). A pattern is
a regular expression of Python. It may stand on several lines: line ends, the white space around them, and lines that
begin with `# ` do not count. In it stand

- `{name}` for another pattern of the file, or for one of `SHARED`; `{file/name}` for one of another file;
- `{any_of:list}` or `{raw:list, file/list}` for lists of words, in one of the ways of `WORDS`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Any

from curate.core.records import Span
from curate.pii import patterns
from curate.pii.spans import in_order
from curate.pii.words import (
    any_of,
    either,
    endings,
    entries,
    label,
    loose_last,
    loose_latin,
    loosely,
    one_of,
    openings,
    raw,
    shortest,
    spaced,
    words,
    written,
)

WORDS: Mapping[str, Callable[..., str]] = {
    "any_of": any_of,
    "either": either,
    "endings": endings,
    "first_signs": lambda *lists: "".join(sorted({word[0] for word in chain(*lists)})),
    "label": label,
    "loose_last": loose_last,
    "loose_latin": loose_latin,
    "loosely": loosely,
    "one_of": one_of,
    "openings": openings,
    "plain": lambda *lists: "|".join(chain(*lists)),
    "raw": raw,
    "shortest": shortest,
    "signs": lambda *lists: "".join(sorted({sign for word in chain(*lists) for sign in word})),
    "spaced": spaced,
    "written": written,
}
"""Ways to write lists of words in a pattern.

Those without a function of `words`: words that are patterns, and their first or all characters for a class.
"""
SHARED = {
    "alone": patterns.ALONE,
    "chinese": patterns.CHINESE,
    "cjk": patterns.CHINESE[1:-1],
    "dash": patterns.DASH,
    "decimal": patterns.DECIMAL,
    "digit": patterns.DIGIT,
    "dot": patterns.DOT,
    "ended": patterns.ENDED,
    "full_width": patterns.FULL_WIDTH,
    "nine": patterns.NINE,
    "numerals": patterns.NUMERALS,
    "raw_space": patterns.RAW_SPACE,
    "space": patterns.SPACE,
    "three_digits": patterns.THREE_DIGITS,
    "two_signs": patterns.TWO_SIGNS,
}
"""Patterns that every file may use."""
READINGS: Mapping[str, Callable[[str], Sequence[str]]] = {
    "narrow": lambda text: (patterns.narrow(text),),
    "digits": lambda text: (patterns.digits(text),),
    "spelled": patterns.readings,
}
"""Ways to read a text before a rule is looked for; none changes an offset."""
_HOLE = re.compile(r"\{(?:(?P<way>[a-z_]+):)?(?P<names>[a-z][a-z0-9_./, ]*)\}")
BEFORE = 30
"""Number of characters before a match in which a veto looks."""


class RuleFile:
    """The patterns of one file, and others that `computed` returns by name; both are read at the first use."""

    def __init__(self, file: str, computed: Callable[[], Mapping[str, str]] = dict) -> None:
        self.file = file
        self._computed = computed
        self._sources: dict[str, str] = {}
        self._compiled: dict[str, re.Pattern[str]] = {}

    @property
    def recognisers(self) -> Mapping[str, Any]:
        """Return the entries of the recognisers by name."""
        entry_by_name: Mapping[str, Any] = entries(self.file)["recognisers"]
        return entry_by_name

    @cached_property
    def _others(self) -> Mapping[str, str]:
        return {**SHARED, **self._computed()}

    def source(self, name: str) -> str:
        """Return the regular expression of a pattern's name."""
        if name not in self._sources:
            written = entries(self.file).get("patterns", {})
            self._sources[name] = self.filled(written[name]) if name in written else self._others[name]
        return self._sources[name]

    def pattern(self, name: str) -> re.Pattern[str]:
        """Return a pattern by its name, compiled at the first call."""
        if name not in self._compiled:
            self._compiled[name] = re.compile(self.source(name))
        return self._compiled[name]

    def filled(self, text: str) -> str:
        """Return a pattern as a regular expression: its lines joined, and what its braces name filled in."""
        if "\n" in text:
            text = "".join(line for line in map(str.strip, text.splitlines()) if not line.startswith("# "))
        return _HOLE.sub(self._fill, text)

    def _fill(self, hole: re.Match[str]) -> str:
        names = [name.strip().rpartition("/") for name in hole["names"].split(",")]
        if hole["way"]:
            return WORDS[hole["way"]](*(words(file or self.file)[name] for file, _, name in names))
        ((file, _, name),) = names
        return (rules(file) if file else self).source(name)


@cache
def rules(file: str) -> RuleFile:
    """Return the rules of `FILE.yaml`, always the same object."""
    return RuleFile(file)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A match of a rule: what may be personal data, and the text around it."""

    raw: str
    """The text as it was given; `text` is its reading, with equal offsets."""
    match: re.Match[str]
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the text in which the rule matched."""
        return self.match.string

    @property
    def value(self) -> str:
        """Return the possible personal data."""
        return self.match.string[self.start : self.end]


Check = Callable[[Candidate], bool]
Extent = tuple[int, int]
"""Start and end of what is found."""


@dataclass(frozen=True)
class _Veto:
    """Patterns that together make a candidate none: before the match, of the whole value, and behind the value."""

    before: re.Pattern[str] | None
    value: re.Pattern[str] | None
    behind: re.Pattern[str] | None

    def __call__(self, candidate: Candidate) -> bool:
        if self.value and not self.value.fullmatch(candidate.value):
            return False
        if self.behind and not self.behind.match(candidate.text, candidate.end):
            return False
        first = candidate.match.start()
        return not self.before or self.before.search(candidate.text[max(0, first - BEFORE) : first]) is not None


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    readings: Callable[[str], Sequence[str]]
    trim: str
    digits: int
    checks: Sequence[Check]
    vetoes: Sequence[_Veto]
    more: re.Pattern[str] | None

    def candidates(self, text: str) -> Iterator[Candidate]:
        """Yield what the rule finds; the group `value`, if it took part, is the personal data."""
        has_value = "value" in self.pattern.groupindex
        for reading in self.readings(text):
            for match in self.pattern.finditer(reading):
                start, end = match.span("value") if has_value and match["value"] is not None else match.span()
                end = start + len(reading[start:end].rstrip(self.trim))
                candidate = Candidate(text, match, start, end)
                if self._holds(candidate):
                    yield candidate
                    yield from self._further(candidate)

    def _holds(self, candidate: Candidate) -> bool:
        if self.digits and sum(map(str.isdigit, candidate.value)) < self.digits:
            return False
        return all(check(candidate) for check in self.checks) and not any(veto(candidate) for veto in self.vetoes)

    def _further(self, candidate: Candidate) -> Iterator[Candidate]:
        end = candidate.end
        while self.more and (match := self.more.match(candidate.text, end)):
            start, end = match.span("value")
            yield Candidate(candidate.raw, match, start, end)


class RuleRecogniser:
    """A recogniser made of rules: a function from a text to spans.

    Its entry in YAML has `kind`, `finds` (what it finds, in a sentence), `triggers` (chains of patterns; each text with
    a span matches all patterns of one chain) and `rules`. A rule has a `pattern`, and perhaps

    - `after`: lists of words of which one stands before it, loosely written, and `link`, what may stand between;
    - `reading`: how the text is read (see `READINGS`);
    - `trim`: signs that are no part of the value at its end;
    - `digits`: the minimum number of digits; `valid`: names of checks, all of which must hold;
    - `unless`: vetoes, each of patterns `before` the match, of the whole `value` and `behind` it, which hold together;
    - `more`: a pattern of a further value directly behind one that was found.

    All but the pattern may stand beside `rules`, for each of them. `like` and `unlike` are texts with and without a
    span. `checks` are the functions that `valid` names; `further` finds in a text what no rule can say.
    """

    def __init__(
        self,
        file: RuleFile,
        name: str,
        further: Callable[[str], Iterator[Extent]] | None = None,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        self.name = name
        self._file, self._checks, self._entry = file, checks or {}, file.recognisers[name]
        self._further = further
        self.kind, self.like, self.unlike = (str(self._entry[key]) for key in ("kind", "like", "unlike"))
        self.__doc__ = f"Return {self._entry['finds']}"

    def __call__(self, text: str) -> list[Span]:
        """Return what is found as spans in order and without overlap."""
        return in_order(self.extents(text), self.kind, self.name)

    def extents(self, text: str) -> Iterator[Extent]:
        """Yield (start, end) of everything found, in any order and possibly overlapping."""
        for rule in self._all:
            for candidate in rule.candidates(text):
                yield candidate.start, candidate.end
        if self._further:
            yield from self._further(text)

    @cached_property
    def triggers(self) -> tuple[tuple[str, ...], ...]:
        """Return the triggers, as `patterns.trigger` attaches them to a function."""
        return tuple(tuple(map(self._file.filled, steps)) for steps in self._entry["triggers"])

    @cached_property
    def _all(self) -> list[_Rule]:
        return [self._rule({**self._entry, **rule}) for rule in self._entry.get("rules", ())]

    def _rule(self, entry: Mapping[str, Any]) -> _Rule:
        pattern = entry["pattern"]
        if "after" in entry:
            lists = ", ".join(_several(entry["after"]))
            pattern = f"{{label:{lists}}}{entry.get('link', '{identity/link}')}(?P<value>{pattern})"
        return _Rule(
            pattern=self._compiled(pattern),
            readings=READINGS[entry.get("reading", "narrow")],
            trim=entry.get("trim", ""),
            digits=entry.get("digits", 0),
            checks=[self._checks[name] for name in _several(entry.get("valid", ()))],
            vetoes=[self._veto(veto) for veto in entry.get("unless", ())],
            more=self._compiled(entry["more"]) if "more" in entry else None,
        )

    def _veto(self, veto: Mapping[str, str]) -> _Veto:
        preceding = self._compiled(f"(?:{veto['before']})\\Z") if "before" in veto else None
        value, behind = (self._compiled(veto[key]) if key in veto else None for key in ("value", "behind"))
        return _Veto(preceding, value, behind)

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        return re.compile(self._file.filled(pattern))


def _several(names: str | Iterable[str]) -> Iterable[str]:
    """Return names, one of which may stand alone in YAML."""
    return (names,) if isinstance(names, str) else names
