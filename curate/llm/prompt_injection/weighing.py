"""Say whether a text orders a grader about: who, what and which grade, close together, in eleven languages.

No word is an order. Each says something (orders.yaml, `weights`), and what stands in one or two sentences is added up;
words of medicine count against it, for surgery, tumours and evidence are graded too.
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
"""Letters of a word that is hardly another one in another language."""
_ORDER = frozenset({"order", "direct", "reveal"})
_CLOSE = 8
"""Code points between an order and a grade right behind it."""
_FAR, _FAR_DENSE = 260, 90
"""Code points that may lie between the words of an order; the second where a word has two of them."""


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
    """What orders are made of, and how texts are read."""

    file: _File
    languages: Mapping[str, Words]
    raw: Mapping[str, Mapping[str, Sequence[str]]]
    scripts: Mapping[str, re.Pattern[str]]
    verdicts: Mapping[str, re.Pattern[str]]
    """Grades as letters."""
    plainer: Mapping[int, str | None]
    """Letters without accents, Arabic without vowels, simplified characters."""

    def found(self, text: str, runs: Sequence[tuple[int, int]] = (), more: Iterable[str] = ()) -> bool:
        """Say whether a text holds an order; it is in NFKC, with its capitals.

        `runs` are places of letters that stood apart, `more` is known besides.
        """
        text = self.plain(text)
        small = text.lower()
        if len(small) != len(text):  # places must stay where they are
            small = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        others = [name for name, script in self.scripts.items() if script.search(small)]
        common = [hit for name in others for hit in self._hits(name, small, runs)]
        for concept, pattern in self.verdicts.items():
            common += [WordHit(match.start(), match.end(), (concept,)) for match in pattern.finditer(text)]
        latin = [self._hits(name, small, runs) for name in self.file.latin]
        # Words that calm do so in any language: an English text has words of orders in French, too.
        common += {hit for hits in latin for hit in hits if "cool" in hit.concepts and hit.end - hit.start >= _SURE}
        windows, said = list(_windows(text)), frozenset(more)
        return any(self._ordered([*common, *hits], windows, said) for hits in latin)

    def plain(self, text: str) -> str:
        """Return a text as words are read."""
        return text if text.isascii() else text.translate(self.plainer)

    def parted(self, name: str) -> bool:
        """Say whether words of a language stand between signs or blanks, whole."""
        return name not in self.file.edges

    def _hits(self, name: str, text: str, runs: Sequence[tuple[int, int]]) -> list[WordHit]:
        known = self.languages[name]
        return known.apart.hits(text) + [hit for start, end in runs for hit in known.joined.hits(text, start, end)]

    def _ordered(self, hits: Sequence[WordHit], windows: Sequence[tuple[int, int]], more: frozenset[str]) -> bool:
        said = more.union(*(hit.concepts for hit in hits))
        if not any(all(not said.isdisjoint(need) for need in form.needs) for form in self.file.forms.values()):
            return False
        hits = sorted(hits)
        places = [hit.start for hit in hits]
        near = (hits[bisect_left(places, start) : bisect_left(places, end)] for start, end in windows)
        return any(self.weighed(words, more) for words in near if words or more)

    def weighed(self, hits: Sequence[WordHit], more: frozenset[str] = frozenset()) -> str | None:
        """Return the form of order that words close together make; None if they make none."""
        said = more.union(*(hit.concepts for hit in hits))
        covered = {less for concept in said for less in self.file.covers.get(concept, ())}
        few, many, calm = self.file.calm
        said |= _near(hits)
        words = len({hit.start for hit in hits if "cool" in hit.concepts})
        against = 0 if not words else few if words < many else calm
        for name, form in self.file.forms.items():
            total = sum(form.weights.get(concept, 0) for concept in said - covered) + against
            if total >= self.file.least and all(not said.isdisjoint(need) for need in form.needs):
                return name
        return None


def _near(hits: Sequence[WordHit]) -> set[str]:
    """Return `near` if a grade follows right behind an order."""
    ends = {hit.end for hit in hits if not _ORDER.isdisjoint(hit.concepts)}
    grades = [hit.start for hit in hits if "grade" in hit.concepts]
    return {"near"} if any(0 <= start - end + 1 <= _CLOSE for start in grades for end in ends) else set()


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
    """Return what is read from orders.yaml and words/."""
    path = data_file("llm/prompt_injection/orders.yaml")
    file = check(_File, read_yaml(path), str(path))
    plainer = _plainer(file.simpler.split(), file.letters)
    raw = {
        name: {said: [word.translate(plainer).lower() for word in each] for said, each in words.read(name).items()}
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
