"""Rules that rewrite one detail of a text: pattern and replacement, amounts within bounds, drugs of one use.

Rules are in `rules.yaml`, by language. They ignore meaning, so a panel confirms the edits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from curate.core.config import Section, check, parse_yaml
from curate.system import resources

RULES = "ask/edits/rules.yaml"
Rewrite = tuple[str, str] | tuple[str, str, str]
"""A pattern, its replacement, and a pattern of texts that it is not applied to."""
Places = Sequence[tuple[int, int]]
"""Start and end of spans of a text, in code points."""
DIGITS = "一二三四五六七八九十"
_NUMBER = rf"(?<![A-Za-z0-9.{DIGITS}两])(?P<number>\d{{1,4}}(?:\.\d{{1,2}})?|[{DIGITS}两])"
"""Not part of a longer number or a word, which may be a telephone number or an id."""


class Amount(Section):
    """Units of an amount, and the bounds within which a changed one is still plausible."""

    units: str
    """Pattern of the unit next to the number."""
    least: float
    most: float
    step: bool = False
    """A degree: it moves by one and is not doubled."""

    def other(self, number: str) -> str | None:
        """Return another amount within the bounds: double, else half; of a degree the next; None if none fits."""
        chinese = not number[0].isdigit()
        amount = float(DIGITS.index(number.replace("两", "二")) + 1) if chinese else float(number)
        if not self.least <= amount <= self.most:
            return None
        tries = (amount - 1, amount + 1) if self.step else (amount * 2, amount / 2)
        changed = next((candidate for candidate in tries if self.least <= candidate <= self.most), None)
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
    """The unit precedes the number."""
    not_before: str = ""
    """Characters before a number that is no amount, such as the 第 of 第3次."""
    drugs: tuple[tuple[str, ...], ...]
    """Groups of drugs of one use; names of one drug share a cell, separated by |, and the first is written."""

    def rewritten(self, kind: str, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text once per rule of a kind that applies to it: the first match outside of `keep` is rewritten."""
        for pattern, by, *unless in self.rewrites.get(kind, ()):
            if any(re.search(exception, text, re.IGNORECASE) for exception in unless):
                continue
            matches = re.finditer(pattern, text, re.IGNORECASE)
            match = next((match for match in matches if _free(match.span(), keep)), None)
            if match is not None:
                yield text[: match.start()] + _cased(match[0], match.expand(by)) + text[match.end() :]

    def other_amounts(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text once per amount in it, changed to another plausible one."""
        patterns = [(amount, rf"{_NUMBER}(?={amount.units})") for amount in self.amounts]
        patterns += [(prefix, rf"{prefix.units}(?P<number>\d{{1,2}})(?![\d.])") for prefix in self.prefixes]
        for amount, pattern in patterns:
            matches = list(re.finditer(pattern, text, re.IGNORECASE))
            for match in () if amount.step and len(matches) > 1 else matches:  # type 1 and type 2 in one text
                start, end = match.span("number")
                changed = amount.other(match["number"])
                if changed and _free((start, end), keep) and text[max(start - 1, 0) : start] not in self._barred:
                    yield text[:start] + changed + text[end:]

    def other_drugs(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text with all occurrences of one drug replaced by another of the same use, which it does not name.

        All drugs of the group are tried; none is replaced by another of its own names.
        """
        for group in self.drugs:
            for cell in group:
                pattern = "|".join(map(_name_pattern, cell.split("|")))
                spans = [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
                if not spans or not all(_free(span, keep) for span in spans):
                    continue
                for substitute in group:
                    if substitute != cell and not re.search(
                        "|".join(map(_name_pattern, substitute.split("|"))), text, re.IGNORECASE
                    ):
                        name = substitute.split("|")[0]
                        yield re.sub(pattern, partial(_substituted, name), text, flags=re.IGNORECASE)

    @property
    def _barred(self) -> frozenset[str]:
        return frozenset(self.not_before)


@cache
def edit_rules(language: str) -> EditRules | None:
    """Return the rules of a language such as zh or en-GB; None for one without rules."""
    rules_by_language: dict[str, object] = parse_yaml(resources.template(RULES))
    rules = rules_by_language.get(language.split("-", maxsplit=1)[0])
    return None if rules is None else check(EditRules, rules, f"{RULES}: {language}")


def _cased(old: str, new: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _substituted(name: str, match: re.Match[str]) -> str:
    return _cased(match[0], name)


def _name_pattern(name: str) -> str:
    """Return the pattern of a name, a Latin one as a whole word."""
    return rf"\b{re.escape(name)}\b" if name.isascii() else re.escape(name)


def _free(span: tuple[int, int], keep: Places) -> bool:
    return all(span[1] <= start or end <= span[0] for start, end in keep)
