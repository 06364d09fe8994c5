"""Matches of a synonym dictionary in a text, and the text with one word replaced by another."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from curate.ask.edits.synonyms import Entry, groups


@dataclass(frozen=True)
class Match:
    """A word of the dictionary in a text, in code points."""

    start: int
    end: int
    word: str


@dataclass(frozen=True)
class Lexer:
    """Finds the words of a dictionary in a text: leftmost longest match, Latin words only as whole words."""

    entries: Sequence[Entry]
    others: Collection[str] = ()
    """Further words that hide shorter ones inside them."""

    def find(self, text: str) -> list[Match]:
        """Return the words in a text, in order, without overlap; none inside a word of `not_in` or `others`."""
        low = text.lower()
        low = low if len(low) == len(text) else text  # some capitals grow when lowered, and offsets would move
        matches, start = [], 0
        while start < len(low):
            word = next(
                (candidate for candidate in self._words.get(low[start], ()) if _stands(candidate, low, start)), ""
            )
            if word in self.partners:
                matches.append(Match(start, start + len(word), word))
            start += len(word) or 1
        return matches

    def holds(self, text: str, word: str) -> bool:
        """Return whether a text contains a word of the dictionary."""
        return any(match.word == word for match in self.find(text))

    def apart(self, text: str, word: str) -> list[str]:
        """Return the pieces of a text between the matches of a word of the dictionary: one more than matches."""
        matches = [match for match in self.find(text) if match.word == word]
        ends = [0, *(match.end for match in matches)]
        return [
            text[end:start] for end, start in zip(ends, [*(match.start for match in matches), len(text)], strict=True)
        ]

    def replace(self, text: str, word: str, by: str) -> str:
        """Return a text with all matches of a word replaced by another word, as the dictionary spells that."""
        return self.spelled[by].join(self.apart(text, word))

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """Return word -> its spelling in the first row that holds it."""
        spellings: dict[str, str] = {}
        for entry in self.entries:
            for word, written in zip(entry.words, entry.spelled, strict=True):
                spellings.setdefault(word, written)
        return spellings

    @cached_property
    def partners(self) -> Mapping[str, Sequence[tuple[str, Entry]]]:
        """Return word -> its synonyms, each with its row."""
        synonyms: defaultdict[str, list[tuple[str, Entry]]] = defaultdict(list)
        for entry in self.entries:
            synonyms[entry.term].append((entry.synonym, entry))
            synonyms[entry.synonym].append((entry.term, entry))
        return dict(synonyms)

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Return word -> the first word of its synonym group."""
        return groups(self.entries)

    @cached_property
    def _words(self) -> Mapping[str, Sequence[str]]:
        """Return first letter -> words that begin with it, longest first."""
        by_letter: defaultdict[str, list[str]] = defaultdict(list)
        every = {word for entry in self.entries for word in (*entry.words, *entry.not_in)} | set(self.others)
        for word in sorted(every, key=lambda word: (-len(word), word)):
            by_letter[word[0]].append(word)
        return dict(by_letter)


def _stands(word: str, text: str, start: int) -> bool:
    """Return whether a word starts at `start`; a Latin letter or digit at its edge must not touch another."""
    end = start + len(word)
    if not text.startswith(word, start):
        return False
    latin_before = start > 0 and _latin(text[start - 1]) and _latin(word[0])
    latin_after = end < len(text) and _latin(text[end]) and _latin(word[-1])
    return not latin_before and not latin_after


def _latin(char: str) -> bool:
    return char.isascii() and char.isalnum()
