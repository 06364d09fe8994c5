"""Detection of orders to a grader: addressee, action and grade close together, in eleven languages.

No single word is an order. Every word has concepts with weights (orders.yaml, `weights`), which are added up over one
or two sentences; medical words count against an order, since surgery, tumours and evidence are graded too.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from curate.core.config import Section, check, read_yaml
from curate.llm.prompt_injection import words
from curate.llm.prompt_injection.words import WordHit, Words
from curate.system.resources import data_file

_ENDS = re.compile(r"[。!?؟\n()（）]+|\.(?=\s|$)")
_DENSE = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]")
_SURE = 5
"""Minimum letters of a word that is unlikely to be another word in another language."""
_ORDER = frozenset({"order", "direct", "reveal"})
_CLOSE = 8
"""Maximum code points between an order and a grade after it."""
_FAR, _FAR_DENSE = 260, 90
"""Maximum code points of an order; the second for scripts whose words have about two."""


class _Form(Section):
    needs: tuple[tuple[str, ...], ...]
    weights: Mapping[str, int]


class _File(Section):
    least: int
    forms: Mapping[str, _Form]
    covers: Mapping[str, tuple[str, ...]]
    calm: tuple[int, int, int]
    verdicts: Mapping[str, tuple[str, ...]]
    edges: Mapping[str, tuple[str, str]]
    scripts: Mapping[str, str]
    latin: tuple[str, ...]
    simpler: str
    letters: Mapping[str, str]


@dataclass(frozen=True)
class Orders:
    """Patterns and weights of orders, and the normalisation of texts."""

    file: _File
    languages: Mapping[str, Words]
    raw: Mapping[str, Mapping[str, Sequence[str]]]
    scripts: Mapping[str, re.Pattern[str]]
    verdicts: Mapping[str, re.Pattern[str]]
    """Grades as letters."""
    plainer: Mapping[int, str | None]
    """Letters without accents, Arabic without vowels, simplified characters."""

    def found(self, text: str, runs: Sequence[tuple[int, int]] = (), more: Iterable[str] = ()) -> bool:
        """Return whether a text holds an order; it must be in NFKC, with its capitals.

        `runs` are the spans of letters that were spaced, `more` further concepts of the text.
        """
        text = self.plain(text)
        small = text.lower()
        if len(small) != len(text):  # offsets must not move
            small = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        others = [name for name, script in self.scripts.items() if script.search(small)]
        common = [hit for name in others for hit in self._hits(name, small, runs)]
        for concept, pattern in self.verdicts.items():
            common += [WordHit(match.start(), match.end(), (concept,)) for match in pattern.finditer(text)]
        latin = [self._hits(name, small, runs) for name in self.file.latin]
        # Words that calm do so in any language: an English text has words of orders in French, too.
        common += {hit for hits in latin for hit in hits if "cool" in hit.concepts and hit.end - hit.start >= _SURE}
        windows, concepts = list(_windows(text)), frozenset(more)
        return any(self._ordered([*common, *hits], windows, concepts) for hits in latin)

    def plain(self, text: str) -> str:
        """Return a text in the form in which words are searched."""
        return text if text.isascii() else text.translate(self.plainer)

    def parted(self, name: str) -> bool:
        """Return whether words of a language are separated by spaces or punctuation."""
        return name not in self.file.edges

    def _hits(self, name: str, text: str, runs: Sequence[tuple[int, int]]) -> list[WordHit]:
        words = self.languages[name]
        return words.apart.hits(text) + [hit for start, end in runs for hit in words.joined.hits(text, start, end)]

    def _ordered(
        self, hits: Sequence[WordHit], windows: Sequence[tuple[int, int]], text_concepts: frozenset[str]
    ) -> bool:
        concepts = text_concepts.union(*(hit.concepts for hit in hits))
        if not any(all(not concepts.isdisjoint(need) for need in form.needs) for form in self.file.forms.values()):
            return False
        hits = sorted(hits)
        starts = [hit.start for hit in hits]
        near = (hits[bisect_left(starts, start) : bisect_left(starts, end)] for start, end in windows)
        return any(self.weighed(words, text_concepts) for words in near if words or text_concepts)

    def weighed(self, hits: Sequence[WordHit], more: frozenset[str] = frozenset()) -> str | None:
        """Return the first form of order whose weight and needs the words of a window reach; None without one."""
        concepts = more.union(*(hit.concepts for hit in hits))
        covered = {less for concept in concepts for less in self.file.covers.get(concept, ())}
        below_many, many, calm = self.file.calm
        order_ends = {hit.end for hit in hits if not _ORDER.isdisjoint(hit.concepts)}
        grade_starts = [hit.start for hit in hits if "grade" in hit.concepts]
        if any(0 <= start - end + 1 <= _CLOSE for start in grade_starts for end in order_ends):
            concepts |= {"near"}
        words = len({hit.start for hit in hits if "cool" in hit.concepts})
        against = 0 if not words else below_many if words < many else calm
        for name, form in self.file.forms.items():
            total = sum(form.weights.get(concept, 0) for concept in concepts - covered) + against
            if total >= self.file.least and all(not concepts.isdisjoint(need) for need in form.needs):
                return name
        return None


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text, each alone and with the next; long ones in overlapping pieces."""
    cuts = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    for first, last in [*pairwise(cuts), *zip(cuts, cuts[2:], strict=False)]:
        piece = text[first:last]
        far = _FAR_DENSE if len(_DENSE.findall(piece)) * 2 > len(piece) else _FAR
        for start in range(first, max(last - far // 2, first + 1), far // 2):
            yield start, min(start + far, last)


@cache
def orders() -> Orders:
    """Return the content of orders.yaml and words/."""
    path = data_file("llm/prompt_injection/orders.yaml")
    file = check(_File, read_yaml(path), str(path))
    plainer = _plainer(file.simpler.split(), file.letters)
    raw = {
        name: {
            concept: [word.translate(plainer).lower() for word in entries]
            for concept, entries in words.read(name).items()
        }
        for name in (*file.scripts, *file.latin)
    }
    edges = {name: file.edges.get(name, file.edges["default"]) for name in raw}
    return Orders(
        file=file,
        languages={name: words.compiled(entries, edges[name]) for name, entries in raw.items()},
        raw=raw,
        scripts={name: re.compile(script) for name, script in file.scripts.items()},
        verdicts={name: re.compile("|".join(verdict), re.MULTILINE) for name, verdict in file.verdicts.items()},
        plainer=plainer,
    )


def _plainer(simpler: Sequence[str], letters: Mapping[str, str]) -> dict[int, str | None]:
    table: dict[int, str | None] = dict.fromkeys([*range(0x300, 0x370), *range(0x64B, 0x660), 0x670, 0x640])
    for code in (*range(0xC0, 0x250), *range(0x370, 0x3D0), *range(0x1E00, 0x2000)):
        table[code] = unicodedata.normalize("NFKD", chr(code))[0]
    table |= {ord(pair[0]): pair[1] for pair in simpler}
    return table | {ord(letter): plain for letter, plain in letters.items()}
