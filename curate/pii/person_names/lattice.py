"""Segmentation of a run of Chinese characters into words of jieba's dictionary, with log probabilities.

A surname counts only if words explain its characters less well. 高 in 高血压, 时 in 时间 and 陈 in 陈皮 belong to
words; in 今天陈护士 the preceding word ends directly before the surname. Personal names in the dictionary are excluded.
"""

from functools import cache, lru_cache
from math import log
from pathlib import Path

from curate.pii.person_names.evidence import ordinary, scarce
from curate.pii.person_names.lexicon import known
from curate.pii.words import fold

_TOTAL = 6e7
"""Size of the corpus from which the dictionary's counts come, in words."""
_LONGEST = 5
_NEVER = float("-inf")
_OWN = log(600 / _TOTAL)
"""Minimum weight of words from curate's own lists."""
_SLACK = 1.5
"""Maximum difference in weight between a good segmentation and the best one."""
_UNKNOWN = log(12 / _TOTAL)
"""Weight of a character that is rarely a word by itself."""


@cache
def _words() -> dict[str, float]:
    """Return word -> log relative frequency, with single characters but without personal names."""
    import jieba

    weights: dict[str, float] = {}
    with Path(jieba.__file__).with_name("dict.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, count, tag = line.split(" ")
            if len(word) <= _LONGEST and not (
                len(word) > 1 and (tag.startswith("nr") or (word[0] in "小老阿" and word[1:] in known().usual))
            ):
                weights[word] = log(max(int(count), 1) / _TOTAL)
    for word in ordinary():
        weights[word] = max(weights.get(word, _OWN), _OWN)
    return weights


@cache
def _openings() -> frozenset[str]:
    """Return the first two characters of all words of two or more characters."""
    return frozenset(word[:2] for word in _words() if len(word) > 1)


@lru_cache(maxsize=8192)
def single(character: str) -> float:
    """Return the weight (log relative frequency) of a character as a word."""
    return _UNKNOWN if character in scarce() else max(_words().get(character, _UNKNOWN), _UNKNOWN)


@cache
def _verbs() -> frozenset[str]:
    """Return the dictionary's verbs of two or more characters."""
    import jieba

    with Path(jieba.__file__).with_name("dict.txt").open(encoding="utf-8") as lines:
        entries = (line.rstrip().split(" ") for line in lines)
        return frozenset(
            word for word, _, tag in entries if 1 < len(word) <= _LONGEST and tag in ("v", "vi", "vn", "l")
        )


def is_word(piece: str) -> bool:
    """Return whether `piece` is a word in the dictionary or our own lists."""
    return fold(piece) in _words()


def is_verb(piece: str) -> bool:
    """Return whether `piece` is a verb of two or more characters in the dictionary."""
    return fold(piece) in _verbs()


class Lattice:
    """Weights of the best segmentations of a run of characters, up to and from every position."""

    def __init__(self, run: str) -> None:
        self.run, size = run, len(run)
        words, openings = _words(), _openings()
        self.up_to = up_to = [0.0] + [_NEVER] * size
        edges: list[list[tuple[int, float]]] = []
        for start in range(size):
            ways = [(start + 1, single(run[start]))]
            if run[start : start + 2] in openings:
                ends = range(start + 2, min(size, start + _LONGEST) + 1)
                ways += [(end, words[run[start:end]]) for end in ends if run[start:end] in words]
            for end, weight in ways:
                up_to[end] = max(up_to[end], up_to[start] + weight)
            edges.append(ways)
        self.from_on = from_on = [_NEVER] * size + [0.0]
        for start in range(size - 1, -1, -1):
            from_on[start] = max([weight + from_on[end] for end, weight in edges[start]])

    def gain(self, start: int, end: int, weight: float) -> float:
        """Return how much the best segmentation gains if a piece of this weight is inserted from `start` to `end`."""
        return self.up_to[start] + weight + self.from_on[end] - self.from_on[0]

    def ends(self, start: int, end: int, slack: float = _SLACK) -> bool:
        """Return whether a word from `start` to `end` is in a good segmentation of the text before `end`."""
        return self.up_to[start] + self._weight(start, end) >= self.up_to[end] - slack

    def begins(self, start: int, end: int) -> bool:
        """Return whether a word from `start` to `end` is in a good segmentation of the text from `start`."""
        return self._weight(start, end) + self.from_on[end] >= self.from_on[start] - _SLACK

    def verb_follows(self, start: int) -> bool:
        """Return whether a good segmentation from `start` begins with a verb of two or more characters."""
        ends = range(start + 2, min(len(self.run), start + _LONGEST) + 1)
        return any(self.run[start:end] in _verbs() and self.begins(start, end) for end in ends)

    def behind_word(self, position: int) -> bool:
        """Return whether the best segmentation before a position ends in a word of two or more characters."""
        starts = range(max(0, position - _LONGEST), position - 1)
        return any(self.run[start:position] in _words() and self.ends(start, position, slack=0.01) for start in starts)

    def _weight(self, start: int, end: int) -> float:
        word = self.run[start:end]
        return single(word) if len(word) == 1 else _words().get(word, _OWN)


@lru_cache(maxsize=64)
def lattice(run: str) -> Lattice:
    """Return the lattice of a run in simplified characters; cached, as neighbouring candidates have the same run."""
    return Lattice(fold(run))


@lru_cache(maxsize=16384)
def words_alone(piece: str) -> float:
    """Return the weight of a few characters segmented by themselves, a lower bound of their weight in context."""
    return Lattice(fold(piece)).from_on[0]
