"""Rules that rewrite one detail of a text: pattern and replacement, amounts within bounds, drugs of one use.

Rules are data, `rules.yaml`, by language. They know nothing of meaning: a panel confirms what they write.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from curate.core.config import Section, check, parse_yaml
from curate.system import resources

RULES = "ask/edits/rules.yaml"
Rewrite = tuple[str, str] | tuple[str, str, str]
"""A pattern, what takes its place, and a pattern of texts that it is not applied to."""
Places = Sequence[tuple[int, int]]
"""Start and end of stretches of a text, in code points."""
DIGITS = "一二三四五六七八九十"
_NUMBER = rf"(?<![A-Za-z0-9.{DIGITS}两])(?P<number>\d{{1,4}}(?:\.\d{{1,2}})?|[{DIGITS}两])"
"""No longer number and none within a word, which may be anything: a telephone number, an id."""


class Amount(Section):
    """Units of an amount, and the bounds within which a changed one is still plausible."""

    units: str
    """Pattern of what stands at the number."""
    least: float
    most: float
    step: bool = False
    """A degree: it moves by one and is not doubled."""

    def other(self, number: str) -> str | None:
        """Return another amount within the bounds: double, else half; of a degree the next; None if none fits."""
        chinese = not number[0].isdigit()
        value = float(DIGITS.index(number.replace("两", "二")) + 1) if chinese else float(number)
        if not self.least <= value <= self.most:
            return None
        tries = (value - 1, value + 1) if self.step else (value * 2, value / 2)
        changed = next((each for each in tries if self.least <= each <= self.most), None)
        if changed is None or (chinese and (changed > len(DIGITS) or changed % 1)):
            return None
        if not chinese:
            return f"{changed:g}"
        return "两" if changed == 2 and not self.step else DIGITS[int(changed) - 1]


class EditRules(Section):
    """The rules of one language."""

    rewrites: Mapping[str, tuple[Rewrite, ...]]
    """Kind of edit -> rules, tried in order."""
    amounts: tuple[Amount, ...]
    """The unit follows the number."""
    prefixes: tuple[Amount, ...] = ()
    """The unit stands before the number."""
    not_before: str = ""
    """Characters before a number that make it no amount, such as the 第 of 第3次."""
    drugs: tuple[tuple[str, ...], ...]
    """Groups of drugs of one use; names of one drug share a cell, separated by |, and the first is written."""

    def rewritten(self, kind: str, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text once per rule of a kind that applies to it: the first place outside of `keep` is rewritten."""
        for pattern, by, *unless in self.rewrites.get(kind, ()):
            if any(re.search(each, text, re.IGNORECASE) for each in unless):
                continue
            places = re.finditer(pattern, text, re.IGNORECASE)
            match = next((each for each in places if _free(each.span(), keep)), None)
            if match is not None:
                yield text[: match.start()] + _cased(match[0], match.expand(by)) + text[match.end() :]

    def other_amounts(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text once per amount in it, changed to another plausible one."""
        found = [(amount, rf"{_NUMBER}(?={amount.units})") for amount in self.amounts]
        found += [(prefix, rf"{prefix.units}(?P<number>\d{{1,2}})(?![\d.])") for prefix in self.prefixes]
        for amount, pattern in found:
            places = list(re.finditer(pattern, text, re.IGNORECASE))
            for match in () if amount.step and len(places) > 1 else places:  # type 1 and type 2 in one text
                start, end = match.span("number")
                changed = amount.other(match["number"])
                if changed and _free((start, end), keep) and text[max(start - 1, 0) : start] not in self._barred:
                    yield text[:start] + changed + text[end:]

    def other_drugs(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text with one drug replaced, wherever it stands, by another of the same use that it does not name.

        All drugs of the group are tried; none is replaced by another name of itself.
        """
        for group in self.drugs:
            for cell in group:
                pattern = "|".join(map(_whole, cell.split("|")))
                if not re.search(pattern, text, re.IGNORECASE) or not _all_free(pattern, text, keep):
                    continue
                for other in group:
                    if other != cell and not re.search("|".join(map(_whole, other.split("|"))), text, re.IGNORECASE):
                        name = other.split("|")[0]
                        yield re.sub(pattern, partial(_named, name), text, flags=re.IGNORECASE)

    @property
    def _barred(self) -> frozenset[str]:
        return frozenset(self.not_before)


@cache
def edit_rules(language: str) -> EditRules | None:
    """Return the rules of a language such as zh or en-GB; None for one without rules."""
    known: dict[str, object] = parse_yaml(resources.template(RULES))
    rules = known.get(language.split("-", maxsplit=1)[0])
    return None if rules is None else check(EditRules, rules, f"{RULES}: {language}")


def _cased(old: str, new: str) -> str:
    """Return what takes the place of a word, with a capital where the word has one."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _named(name: str, match: re.Match[str]) -> str:
    return _cased(match[0], name)


def _whole(name: str) -> str:
    """Return the pattern of a name, a Latin one as a whole word."""
    return rf"\b{re.escape(name)}\b" if name.isascii() else re.escape(name)


def _all_free(pattern: str, text: str, keep: Places) -> bool:
    return all(_free(each.span(), keep) for each in re.finditer(pattern, text, re.IGNORECASE))


def _free(place: tuple[int, int], keep: Places) -> bool:
    """Say whether a stretch lies outside of all those that are kept."""
    return all(place[1] <= start or end <= place[0] for start, end in keep)
