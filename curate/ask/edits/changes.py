"""Edits of a question that change what is asked while nearly every character stays."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from curate.ask.edits.rewriting import EditRules, Places, edit_rules
from curate.ask.edits.synonym_matcher import Lexer
from curate.core.sampling import shuffled

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
    """Return whether there are rules for a language."""
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
