"""Copies of a text by its sentences: the same words, an added line, a cut end, a lost sentence; no encoder needed.

Embeddings cannot tell a copy from an edit that changes the meaning (5 ml for 15 ml, left for right): such edits keep
*more* similarity than a changed comma. Sentences can: an edited sentence is another sentence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from curate.retrieval.similarity.diversity import Diversity, Kept

LONGEST = 1.25
"""Characters of the longer text, as a multiple of its copy's, at most; beyond, the rest is content of its own."""
COMMON = 50
"""Texts that share a sentence, at most, for it to find candidates: what is in more of them is boilerplate."""
_SUPERSCRIPT = re.compile("[\u00b2\u00b3\u00b9\u2070-\u207e]")
_SENTENCE_END = re.compile(r"[。！？!?；;…\n\r\u2028]+|\.(?=\s|$)")
_SIGNS = "%‰/°^"
"""Marks that Unicode calls punctuation or symbols and that change what a text says, besides mathematical signs."""
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\ufe63"
_BETWEEN_NUMBERS = ".,:~ "
"""Marks that count between two digits: decimal points, ranges, a space that keeps two numbers apart."""
Hashes = npt.NDArray[np.uint64]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without case, white space and punctuation, empty ones left out.

    What can change the meaning stays: signs (+ < > = ± ° % /), minus, ranges, decimal points, exponents, and the space
    between two numbers.
    """
    plain = unicodedata.normalize("NFKC", _SUPERSCRIPT.sub(lambda sign: "^" + sign[0], text)).lower()
    plain = plain.replace("\u2212", "-")
    parts = (_meaningless().sub("", " ".join(part.split())) for part in _SENTENCE_END.split(plain))
    return [part for part in parts if part]


@cache
def _meaningless() -> re.Pattern[str]:
    """Return the pattern of what is no part of what a sentence says.

    A dash stays as a range, as the sign of a number and behind a finding (Rh-, (-)), not in a word or between words.
    """
    always = "".join(
        char
        for char in map(chr, range(0x10000))
        if (unicodedata.category(char)[0] == "P" or unicodedata.category(char) in {"So", "Sk", "Cf"})
        and char not in _SIGNS + _DASHES + _BETWEEN_NUMBERS
    )
    sometimes, dash = re.escape(_BETWEEN_NUMBERS), re.escape(_DASHES)
    return re.compile(
        rf"[{re.escape(always)}|]|(?<!\d)[{sometimes}]|[{sometimes}](?!\d)"
        rf"|(?<=[^\W\d])[{dash}](?=\w)|(?<=\d)[{dash}](?=[^\W\d])|(?:(?<=\s)|(?<![^\s]))[{dash}](?!\d)"
    )


def contained(short: Sequence[str], long: Sequence[str]) -> bool:
    """Say whether all sentences of one text are in another one that is at most `LONGEST` times as long.

    As often as they are in the first, in any order. The last may be the beginning of another sentence, for a text that
    was cut, but not end within a number.
    """
    if sum(map(len, long)) > LONGEST * sum(map(len, short)):
        return False
    lacking = Counter(short) - Counter(long)
    if not lacking:
        return True
    last = short[-1]
    if len(short) < 2 or lacking != Counter([last]):
        return False
    rest = Counter(long) - Counter(short[:-1])
    return any(_begins(sentence, last) for sentence in rest)


def _begins(sentence: str, cut: str) -> bool:
    return sentence.startswith(cut) and not (cut[-1:].isdigit() and sentence[len(cut) :][:1].isdigit())


def copies(size: int, texts: Callable[[], Iterable[str]], protected: Kept) -> Diversity:
    """Keep each text unless it is a copy of a longer one, or of an equal one before it, that is kept itself.

    `texts` yields `size` texts in order, each time that it is called (twice: most texts share no sentence with another
    one and are not held in memory). Protected ones are kept. `similarity` is the share of the kept text's characters
    that the copy has, 1.0 where they are equal.
    """
    candidates = _candidates([_hashes(text) for text in texts()])
    involved = {item for pair in candidates for item in pair}
    parts = {item: sentences(text) for item, text in enumerate(texts()) if item in involved}
    lengths = {item: sum(map(len, part)) for item, part in parts.items()}
    others: dict[int, list[int]] = {}
    for left, right in candidates:
        others.setdefault(left, []).append(right)
        others.setdefault(right, []).append(left)
    kept, nearest, similarity = np.ones(size, bool), np.full(size, -1), np.full(size, np.nan)

    def rank(item: int) -> tuple[int, bool, int]:
        return -lengths[item], not protected[item], item

    for item in sorted(others, key=rank):  # the longest first: what a text is a copy of is decided before it
        if protected[item]:
            continue
        longer = (other for other in sorted(others[item], key=rank) if rank(other) < rank(item))
        originals = (other if kept[other] else int(nearest[other]) for other in longer)
        original = next((original for original in originals if contained(parts[item], parts[original])), None)
        if original is not None:
            kept[item], nearest[item] = False, original
            similarity[item] = round(lengths[item] / lengths[original], 5)
    return Diversity(kept, nearest, similarity, None)


def _hashes(text: str) -> Hashes:
    """Return one number a sentence, each once."""
    digests = [
        int.from_bytes(blake2b(sentence.encode(), digest_size=8).digest(), "big") for sentence in sentences(text)
    ]
    return np.unique(np.array(digests, dtype=np.uint64))


def _candidates(hashes: Sequence[Hashes]) -> set[tuple[int, int]]:
    """Return the pairs of texts that share a sentence which is in `COMMON` texts at most.

    Of texts that are made of more common sentences alone, those with the same sentences.
    """
    if not hashes:
        return set()
    owners = np.repeat(np.arange(len(hashes)), [len(each) for each in hashes])
    values = np.concatenate(hashes)
    order = np.argsort(values, kind="stable")
    pairs: set[tuple[int, int]] = set()
    for group in _groups(values[order], owners[order]):
        if len(group) <= COMMON:
            pairs.update((int(left), int(right)) for at, left in enumerate(group) for right in group[at + 1 :])
    wholes: dict[bytes, int] = {}
    for item, each in enumerate(hashes):
        first = wholes.setdefault(each.tobytes(), item)
        if first != item and len(each):
            pairs.add((first, item))
    return pairs


def _groups(values: Hashes, owners: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the texts, two or more, that have the same sentence."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.empty(0, np.int64)
    ends = np.r_[starts[1:], len(values)]
    for start, end in zip(starts, ends, strict=True):
        if end - start > 1:
            yield owners[start:end]
