"""Foreign and minority names in Chinese characters: with dots, in parts, or alone in a form field."""

from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import RULES, around
from curate.pii.person_names.lattice import lattice
from curate.pii.person_names.lexicon import Trust, WordList, is_chinese, known, lists, name_at
from curate.pii.person_names.weights import begins, behind, front, run_at
from curate.pii.rules import RuleFile, RuleRecogniser
from curate.pii.words import fold, words

_LISTS = words("name_parts")
_SOUNDS = frozenset("".join([*_LISTS["sounds"], *_LISTS["telling"], *lists()["foreign"]])) - set("的是了说我你他她")
"""Characters that transcribed names are made of."""


def _computed() -> dict[str, str]:
    return {
        "separated": RULES.source("separated"),
        "raw_separator": RULES.source("separator"),
        "two_sounds": f"[{''.join(sorted(_SOUNDS))}]{{2}}",
    }


_RULES = RuleFile("name_parts", _computed)
_PATTERN = _RULES.pattern

# Foreign and minority names in Chinese characters: with dots (买买提·吐尔逊), or alone in a form field.

_DOTS = "·•・‧∙"
_FIRST = frozenset(word[0] for word in lists()["minority"])


def _dotted(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    for match in _PATTERN("dotted").finditer(text):
        if (
            _PATTERN("capital").search(match[0])
            and len(match[0]) > 3
            and not _PATTERN("initials").fullmatch(match[0])
            and not _PATTERN("institution").match(text, match.end())
            and text[max(0, match.start() - 1) : match.start()] != "《"
        ):
            yield match.span()


name_dotted = RuleRecogniser(_RULES, "name_dotted", _dotted)


def foreign_at(text: str, start: int) -> int | None:
    """Return the end of a dotted name or Chinese minority name that begins at `start`; None if there is none."""
    dotted = _PATTERN("dotted").match(text, start) if any(dot in text for dot in _DOTS) else None
    match = dotted or (_PATTERN("minority").match(text, start) if text[start : start + 1] in _FIRST else None)
    return match.end() if match else None


def any_name_at(text: str, start: int, trust: Trust) -> int | None:
    """Return the end of a dotted, minority or Han Chinese name that begins at `start`; None if there is none."""
    if not is_chinese(text, start):
        return foreign_at(text, start)
    match = _PATTERN("any_dotted").match(text, start)
    plausible = match is not None and known().function.isdisjoint(match[0])
    return match.end() if match and plausible else foreign_at(text, start) or name_at(text, start, trust)


def sounds_at(text: str, start: int) -> int | None:
    """Return the end of three to six characters of transcribed names at `start`; None if more Chinese follows."""
    match = _PATTERN("transcribed").match(text, start)
    return match.end() if match else None


# Foreign and minority names in parts with any separator: 买买提·吐尔逊, 扎西-顿珠, 玛丽 约翰逊.

_PART_DOTS = _RULES.source("part_dot")
_LONGEST = 9
_PART = -5.0
_SOUND = -4.3
_TELLING = -3.0
"""Log weights of a part, of each of its characters, and of a typical word in it."""
_BAR, _UNKNOWN_BAR, _ALONE_BAR = 4.0, 18.0, 8.0
"""Minimum weights of a name: in general; without a dot and without a typical part; beginning with a word of `alone`."""
_STRONG, _PLAIN, _BLANK = 4.0, 1.0, -1.0
"""Weights of a separator between parts: a dot, another sign, a space."""


_TELLING_WORDS, _NO_PERSON = (WordList(_LISTS[name]) for name in ("telling", "no_person"))


def _parts(original: str) -> Iterator[tuple[int, int]]:
    text = fold(original)
    for run in _PATTERN("run").finditer(text):
        yield from _names(text, *run.span())


def _names(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the names in `text[low:high]`, which consists of runs of characters with separators."""
    cuts = [(cut.start(), cut.end()) for cut in _PATTERN("separator").finditer(text, low, high)]
    ends = [low, *(edge for cut in cuts for edge in cut), high]
    runs = list(zip(ends[::2], ends[1::2], strict=True))
    index = 0
    while index + 1 < len(runs):
        name = _heaviest_name(text, runs[index:])
        if name is None:
            index += 1
        else:
            start, end, used = name
            yield start, end
            index += used


def _heaviest_name(text: str, runs: list[tuple[int, int]]) -> tuple[int, int, int] | None:
    """Return (start, end, number of runs) of the name with the highest weight that begins in the first run."""
    best: tuple[float, int, int, int] | None = None
    for count, inner, strong in _lengths(text, runs):
        last = runs[count - 1]
        for start, head in _heads(text, *runs[0]):
            for end, tail in _tails(text, last[0]):
                total = head + inner + tail + front(text, start) + behind(text, end)
                sure = strong or _sure(text, (start, runs[0][1]), (last[0], end), total)
                if sure and (best is None or total > best[0]) and not _before_thing(text, end):
                    best = total, start, end, count
    return best[1:] if best is not None and best[0] >= _BAR else None


def _lengths(text: str, runs: list[tuple[int, int]]) -> Iterator[tuple[int, float, bool]]:
    """Yield (number of runs, weight between first and last run, whether all separators are dots) of possible names."""
    inner, strong = 0.0, True
    for count in range(2, len(runs) + 1):
        previous, last = runs[count - 2], runs[count - 1]
        middle = _middle_gain(text, *previous) if count > 2 else 0.0
        if middle is None:
            return
        separator = text[previous[1] : last[0]].strip(" ")
        joint = _BLANK if not separator else _STRONG if separator in _PART_DOTS else _PLAIN
        inner, strong = inner + joint + middle, strong and joint == _STRONG
        yield count, inner, strong


def _sure(text: str, head: tuple[int, int], tail: tuple[int, int], total: float) -> bool:
    """Return whether parts with this total weight are a name although no dot separates them.

    A part is typical, or a sign separates them and length and weight suffice; a first word of `alone` needs weight.
    """
    pieces = text[slice(*head)], text[slice(*tail)]
    if pieces[0] in _LISTS["alone"]:
        return total >= _ALONE_BAR
    if min(map(len, pieces)) < 2:
        return False
    signed = text[head[1] : tail[0]].strip(" ") != ""
    return any(map(_is_typical, pieces)) or (signed and sum(map(len, pieces)) >= 5 and total >= _UNKNOWN_BAR)


def _is_typical(piece: str) -> bool:
    return len(piece) > 1 and any(_TELLING_WORDS.after(piece, index) > 1 for index in range(len(piece)))


def _before_thing(text: str, end: int) -> bool:
    """Return whether the next word makes the name an institution, a sign, a test or a medicine: 约翰·霍普金斯医院."""
    stop = end
    while stop < min(len(text), end + _LONGEST) and text[stop] in _SOUNDS:
        stop += 1
    for position in range(end, stop + 1):
        length = _NO_PERSON.after(text, position)
        if length and begins(text, position, position + length):
            return True
    return False


def _heads(text: str, low: int, high: int) -> Iterator[tuple[int, float]]:
    """Yield (start, gain over ordinary words) of every possible first part."""
    run_start = run_at(text, high - 1)[0]
    ways = lattice(text[run_start:high])
    for start in range(high - 1, max(low, high - _LONGEST) - 1, -1):
        if text[start] not in _SOUNDS:
            return
        if start >= run_start and around().front.after(text, start)[0] < 2:
            yield start, ways.gain(start - run_start, high - run_start, _part_weight(text[start:high]))


def _tails(text: str, low: int) -> Iterator[tuple[int, float]]:
    right = run_at(text, low)[1]
    ways = lattice(text[low:right])
    for end in range(low + 1, min(right, low + _LONGEST) + 1):
        if text[end - 1] not in _SOUNDS:
            return
        titled = 2 <= around().titles.before(text, end) < end - low
        if text[end : end + 1] not in tuple(_PART_DOTS) and not titled:
            yield end, ways.gain(0, end - low, _part_weight(text[low:end]))


def _middle_gain(text: str, low: int, high: int) -> float | None:
    if high - low > _LONGEST or any(letter not in _SOUNDS for letter in text[low:high]):
        return None
    return lattice(text[low:high]).gain(0, high - low, _part_weight(text[low:high]))


def _part_weight(piece: str) -> float:
    """Return the weight of a part: a typical word counts once, every other character by itself."""
    weight, position = _PART, 0
    while position < len(piece):
        length = _TELLING_WORDS.after(piece, position)
        weight += _TELLING if length > 1 else _SOUND
        position += max(length, 1)
    return weight - 2.5 * (len(piece) == 1)


name_parts = RuleRecogniser(_RULES, "name_parts", _parts)
