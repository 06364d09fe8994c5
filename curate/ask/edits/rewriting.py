"""Edits that change what a question asks while nearly every character stays: rules by language, and their use.

Rules are in `rules.yaml`, by language. They ignore meaning, so a panel confirms the edits.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from curate.ask.edits.synonym_matcher import Lexer
from curate.core.config import Section, check, parse_yaml
from curate.core.sampling import shuffled
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
        """Return another amount within the bounds: double, else half; for degrees the next; None if none fits."""
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
                yield text[: match.start()] + _cased(match, match.expand(by)) + text[match.end() :]

    def other_amounts(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text once per amount in it, changed to another plausible one."""
        patterns = [(amount, rf"{_NUMBER}(?={amount.units})") for amount in self.amounts]
        patterns += [(prefix, rf"{prefix.units}(?P<number>\d{{1,2}})(?![\d.])") for prefix in self.prefixes]
        for amount, pattern in patterns:
            matches = list(re.finditer(pattern, text, re.IGNORECASE))
            for match in () if amount.step and len(matches) > 1 else matches:  # type 1 and type 2 in one text
                start, end = match.span("number")
                changed = amount.other(match["number"])
                if changed and _free((start, end), keep) and text[max(start - 1, 0) : start] not in {*self.not_before}:
                    yield text[:start] + changed + text[end:]

    def other_drugs(self, text: str, keep: Places = ()) -> Iterator[str]:
        """Yield the text with all occurrences of one drug replaced by another of the same use, which it does not name.

        All drugs of the group are tried; a drug is never replaced by its own synonym.
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
                        yield re.sub(pattern, partial(_cased, new=name), text, flags=re.IGNORECASE)


@cache
def edit_rules(language: str) -> EditRules | None:
    """Return the rules of a language such as zh or en-GB; None for one without rules."""
    rules_by_language: dict[str, object] = parse_yaml(resources.template(RULES))
    rules = rules_by_language.get(language.split("-", maxsplit=1)[0])
    return None if rules is None else check(EditRules, rules, f"{RULES}: {language}")


def _cased(match: re.Match[str], new: str) -> str:
    return new[:1].upper() + new[1:] if match[0][:1].isupper() else new


def _name_pattern(name: str) -> str:
    """Return a pattern for a name; names in Latin letters match whole words only."""
    return rf"\b{re.escape(name)}\b" if name.isascii() else re.escape(name)


def _free(span: tuple[int, int], keep: Places) -> bool:
    return all(span[1] <= start or end <= span[0] for start, end in keep)


# Edits of a question that change what is asked while nearly every character stays.

KINDS = ("negation", "laterality", "dose", "drug", "population", "time", "swap")
"""Kinds of meaning-changing edits: `negation` has opposites too (high and low, prevention and treatment), `dose` has
degrees (2型, stage 3, mild and severe), `swap` puts a word of another group of the dictionary in place of one."""
BROADER = "hypernym"
"""A broader word: changes the meaning less clearly than the others, so it is made only where a caller names it."""
_SWAPPED = ("exact", "lay-professional")
"""Kinds of rows of the dictionary whose terms are full names, no abbreviations or brands."""


@dataclass(frozen=True)
class Edit:
    """A text with one detail changed, and the kind of the change."""

    kind: str
    text: str


def has_rules(language: str) -> bool:
    """Return whether a language has rewriting rules."""
    return edit_rules(language) is not None


def edits(
    text: str,
    language: str,
    seed: int,
    *,
    kinds: Collection[str] = KINDS,
    keep: Places = (),
    lexer: Lexer | None = None,
) -> Iterator[Edit]:
    """Yield a text's edits of the given kinds, each once, in seeded order; nothing within `keep` is changed.

    `swap` needs the dictionary, `lexer`. A language without rules has only that kind.
    """
    rules = edit_rules(language)
    candidates = [
        Edit(kind, changed)
        for kind in sorted(kinds, key=(*KINDS, BROADER).index)
        for changed in (_swapped(text, lexer, seed, keep) if kind == "swap" else _ruled(rules, kind, text, keep))
        if changed != text
    ]
    seen: set[str] = {text}
    for edit in shuffled(candidates, seed, "edit", text):
        if edit.text not in seen:
            seen.add(edit.text)
            yield edit


def _ruled(rules: EditRules | None, kind: str, text: str, keep: Places) -> Iterator[str]:
    if rules is None:
        return
    yield from rules.rewritten(kind, text, keep)
    if kind == "dose":
        yield from rules.other_amounts(text, keep)
    if kind == "drug":
        yield from rules.other_drugs(text, keep)


def _swapped(text: str, lexer: Lexer | None, seed: int, keep: Places) -> Iterator[str]:
    """Yield the text once per word of the dictionary in it, the word replaced by a seeded one of another group.

    Lengths differ by one at most, so that length does not reveal an edit.
    """
    if lexer is None:
        return
    matches = lexer.find(text)
    for word in dict.fromkeys(match.word for match in matches):
        if any(
            match.start < end and start < match.end for match in matches if match.word == word for start, end in keep
        ):
            continue
        others = swaps(lexer, word, {match.word for match in matches})
        if others:
            yield lexer.replace(text, word, shuffled(others, seed, "swap", text, word)[0])


def swaps(lexer: Lexer, word: str, present: Collection[str] = ()) -> list[str]:
    """Return terms of other groups that a word may be swapped for, sorted: of its length or one more or less."""
    groups = lexer.groups
    barred = {groups[term] for term in (word, *present)}
    heads = {entry.term for entry in lexer.entries if entry.kind in _SWAPPED}
    return sorted(head for head in heads if groups[head] not in barred and abs(len(head) - len(word)) <= 1)
