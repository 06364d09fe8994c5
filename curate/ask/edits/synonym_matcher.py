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
    """Finds the words of a dictionary in a text: from the left, the longest that begins there, Latin ones whole."""

    entries: Sequence[Entry]
    others: Collection[str] = ()
    """Further words, inside which a shorter one is not meant either."""

    def find(self, text: str) -> list[Match]:
        """Return the words in a text, in order, without overlap; words inside those of `not_in` are not found."""
        low = text.lower()
        low = low if len(low) == len(text) else text
        found, at = [], 0
        while at < len(low):
            word = next((each for each in self._words.get(low[at], ()) if _stands(each, low, at)), "")
            if word in self.partners:
                found.append(Match(at, at + len(word), word))
            at += len(word) or 1
        return found

    def holds(self, text: str, word: str) -> bool:
        """Say whether a word of the dictionary stands in a text."""
        return any(each.word == word for each in self.find(text))

    def apart(self, text: str, word: str) -> list[str]:
        """Return the pieces of a text around the places where a word of the dictionary stands: one more than places."""
        places = [each for each in self.find(text) if each.word == word]
        ends = [0, *(each.end for each in places)]
        return [text[end:start] for end, start in zip(ends, [*(each.start for each in places), len(text)], strict=True)]

    def replace(self, text: str, word: str, by: str) -> str:
        """Return a text with another word of the dictionary wherever one stands, as it is spelled there."""
        return self.spelled[by].join(self.apart(text, word))

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """Return word -> how it is written, as the first row with it has it."""
        found: dict[str, str] = {}
        for entry in self.entries:
            for word, written in zip(entry.words, entry.spelled, strict=True):
                found.setdefault(word, written)
        return found

    @cached_property
    def partners(self) -> Mapping[str, Sequence[tuple[str, Entry]]]:
        """Return word -> its synonyms, each with the row that says so."""
        found: defaultdict[str, list[tuple[str, Entry]]] = defaultdict(list)
        for entry in self.entries:
            found[entry.term].append((entry.synonym, entry))
            found[entry.synonym].append((entry.term, entry))
        return dict(found)

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Return word -> the first word of all that rows join it to."""
        return groups(self.entries)

    @cached_property
    def _words(self) -> Mapping[str, Sequence[str]]:
        """Return first letter -> words that begin with it, longest first."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        every = {word for entry in self.entries for word in (*entry.words, *entry.not_in)} | set(self.others)
        for word in sorted(every, key=lambda each: (-len(each), each)):
            found[word[0]].append(word)
        return dict(found)


def _stands(word: str, text: str, at: int) -> bool:
    """Say whether a word stands at a place; beside a Latin letter or digit of the word there is no other one."""
    end = at + len(word)
    if not text.startswith(word, at):
        return False
    before = at > 0 and _latin(text[at - 1]) and _latin(word[0])
    behind = end < len(text) and _latin(text[end]) and _latin(word[-1])
    return not before and not behind


def _latin(char: str) -> bool:
    return char.isascii() and char.isalnum()
