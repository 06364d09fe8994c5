"""Words of a language by concept, and a pattern that finds them.

A file of words/ is concept -> words with `;` between them: (a|b) is either, * at the end any ending.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from curate.core.config import read_yaml
from curate.system.resources import data_file

_GROUP = re.compile(r"\(([^()]*)\)")
"""The innermost group of an item."""
_LETTERS = {"*": r"\w*", " ": r"\s{1,3}"}

_Node = dict[str, "_Node"]


class WordHit(NamedTuple):
    """A match of a word, or of a grade, in a text."""

    start: int
    end: int
    concepts: tuple[str, ...]


@dataclass(frozen=True)
class Finder:
    """Finds the longest word at every position of a text."""

    concepts: Mapping[str, tuple[str, ...]]
    """Word -> its concepts."""
    edges: Sequence[str] = ("", "")
    """Patterns before and after a word."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The words as one pattern, compiled on first use: that takes a tenth of a second, and most runs need few."""
        return re.compile(f"(?={self.edges[0]}({_tree(self.concepts)}){self.edges[1]})")

    def hits(self, text: str, start: int = 0, end: int | None = None) -> list[WordHit]:
        """Return the words of a text, or of a piece of it, none of them inside another."""
        hits, reached = [], -1
        for match in self.pattern.finditer(text, start, len(text) if end is None else end):
            if match.end(1) > reached:
                reached = match.end(1)
                hits.append(WordHit(match.start(1), reached, self._concepts(" ".join(match[1].split()))))
        return hits

    def _concepts(self, word: str) -> tuple[str, ...]:
        if word in self.concepts:
            return self.concepts[word]
        stems = (f"{word[:end]}*" for end in range(len(word), 0, -1))
        return next(self.concepts[stem] for stem in stems if stem in self.concepts)


@dataclass(frozen=True)
class Words:
    """Finders of the words of one language."""

    apart: Finder
    """Words with the word boundaries of the language."""
    joined: Finder
    """The same words in spaced letters, whose word boundaries are unknown."""


def spelled(entry: str) -> Iterator[str]:
    """Yield every word of an entry of a file, alternatives expanded."""
    group = _GROUP.search(entry)
    if group is None:
        yield " ".join(entry.split())
        return
    for alternative in group[1].split("|"):
        yield from spelled(f"{entry[: group.start()]}{alternative}{entry[group.end() :]}")


def read(language: str) -> dict[str, list[str]]:
    """Return the words of a language's file by concept."""
    entries = read_yaml(data_file(f"llm/prompt_injection/words/{language}.yaml"))
    assert isinstance(entries, dict)
    return {
        name: [word for entry in str(items).split(";") for word in spelled(entry)] for name, items in entries.items()
    }


def compiled(entries: Mapping[str, Sequence[str]], edges: Sequence[str]) -> Words:
    """Return the finders of a language's words, given the patterns before and after a word."""
    concepts: dict[str, tuple[str, ...]] = {}
    for name, words in entries.items():
        for word in words:
            if name not in concepts.get(word, ()):
                concepts[word] = (*concepts.get(word, ()), name)
    joined = {word.replace(" ", ""): concept for word, concept in concepts.items() if len(word.rstrip("*")) > 1}
    return Words(Finder(concepts, edges), Finder(joined))


def _tree(words: Iterable[str]) -> str:
    """Return a pattern of words as a trie: common prefixes are shared; it finds the longest word."""
    root: _Node = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branch(root)


def _branch(node: _Node) -> str:
    ends = "" in node
    ways = [_LETTERS.get(letter, re.escape(letter)) + _branch(below) for letter, below in node.items() if letter]
    if not ways:
        return ""
    inner = ways[0] if len(ways) == 1 and not ends else f"(?:{'|'.join(ways)})"
    return f"{inner}?" if ends else inner
