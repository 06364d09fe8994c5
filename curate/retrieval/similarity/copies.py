"""Detection of copies by comparing sentences, without an encoder.

Copies may have an added line, a truncated end or a missing sentence. Embeddings do not separate copies from edits that
change the meaning (5 ml for 15 ml, left for right): such edits are *more* similar than a changed comma.
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
"""Maximum length of a text as a multiple of its copy's; a longer text has further content."""
COMMON = 50
"""Maximum number of texts with a sentence for it to yield candidate pairs; more frequent ones are boilerplate."""
_SUPERSCRIPT = re.compile("[\u00b2\u00b3\u00b9\u2070-\u207e]")
_SENTENCE_END = re.compile(r"[。！？!?；;…\n\r\u2028]+|\.(?=\s|$)")
_SIGNS = "%‰/°^"
"""Characters of Unicode's punctuation and symbol classes that change the meaning, besides mathematical signs."""
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\ufe63"
_BETWEEN_NUMBERS = ".,:~ "
"""Characters that matter between two digits: decimal points, ranges, a space that separates two numbers."""
Hashes = npt.NDArray[np.uint64]
"""The distinct 64-bit hashes of a text's sentences, sorted."""


def sentences(text: str) -> list[str]:
    """Return the normalised sentences of a text, without case, white space and punctuation; empty ones are left out.

    Characters that can change the meaning are retained: signs (+ < > = ± ° % /), minus, ranges, decimal points,
    exponents, and the space between two numbers.
    """
    plain = unicodedata.normalize("NFKC", _SUPERSCRIPT.sub(lambda sign: "^" + sign[0], text)).lower()
    plain = plain.replace("\u2212", "-")
    stripped = (_meaningless().sub("", " ".join(sentence.split())) for sentence in _SENTENCE_END.split(plain))
    return [sentence for sentence in stripped if sentence]


@cache
def _meaningless() -> re.Pattern[str]:
    """Return the pattern of characters that do not change the meaning of a sentence, which are removed.

    A dash is retained in ranges, as the sign of a number and after a finding (Rh-, (-)), but not in or between words.
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
    """Return whether all sentences of one text are in another one that is at most `LONGEST` times as long.

    Each must occur at least as often as in the short text, in any order. The last one may be only the beginning of a
    sentence, as in a truncated text, but must not end within a number.
    """
    if sum(map(len, long)) > LONGEST * sum(map(len, short)):
        return False
    lacking = Counter(short) - Counter(long)
    if not lacking:
        return True
    last = short[-1]
    if len(short) < 2 or lacking != Counter([last]):
        return False
    remaining = Counter(long) - Counter(short[:-1])
    starts = [sentence for sentence in remaining if sentence.startswith(last)]
    return any(not (last[-1:].isdigit() and sentence[len(last) :][:1].isdigit()) for sentence in starts)


def copies(size: int, texts: Callable[[], Iterable[str]], protected: Kept) -> Diversity:
    """Return decisions that drop every copy of a retained text that is longer, or of equal length and earlier.

    `texts` is called twice and yields the same `size` texts in order, so that only texts that share a sentence with
    another one are in memory. Protected texts are always retained. `similarity` is the length of the copy divided by
    that of the retained text.
    """
    digests = (
        [int.from_bytes(blake2b(sentence.encode(), digest_size=8).digest(), "big") for sentence in sentences(text)]
        for text in texts()
    )
    candidates = _candidates([np.unique(np.array(of_text, dtype=np.uint64)) for of_text in digests])
    involved = {index for pair in candidates for index in pair}
    sentences_by_index = {index: sentences(text) for index, text in enumerate(texts()) if index in involved}
    lengths = {index: sum(map(len, own_sentences)) for index, own_sentences in sentences_by_index.items()}
    others: dict[int, list[int]] = {}
    for left, right in candidates:
        others.setdefault(left, []).append(right)
        others.setdefault(right, []).append(left)
    is_kept, nearest, similarity = np.ones(size, bool), np.full(size, -1), np.full(size, np.nan)

    def rank(index: int) -> tuple[int, bool, int]:
        return -lengths[index], not protected[index], index

    spared = 0
    for index in sorted(others, key=rank):  # the longest first: what a text is a copy of is decided before it
        longer = (longer_index for longer_index in sorted(others[index], key=rank) if rank(longer_index) < rank(index))
        originals = (longer_index if is_kept[longer_index] else int(nearest[longer_index]) for longer_index in longer)
        original = next(
            (original for original in originals if contained(sentences_by_index[index], sentences_by_index[original])),
            None,
        )
        if original is not None and protected[index]:
            spared += 1
        elif original is not None:
            is_kept[index], nearest[index] = False, original
            similarity[index] = round(lengths[index] / lengths[original], 5)
    return Diversity(is_kept, nearest, similarity, None, spared=spared)


def _candidates(hashes: Sequence[Hashes]) -> set[tuple[int, int]]:
    """Return the pairs of texts that share a sentence found in at most `COMMON` texts.

    Texts that only have more frequent sentences are paired if they have the same sentences.
    """
    if not hashes:
        return set()
    owners = np.repeat(np.arange(len(hashes)), [len(of_text) for of_text in hashes])
    values = np.concatenate(hashes)
    order = np.argsort(values, kind="stable")
    pairs: set[tuple[int, int]] = set()
    for group in _groups(values[order], owners[order]):
        if len(group) <= COMMON:
            pairs.update((int(left), int(right)) for index, left in enumerate(group) for right in group[index + 1 :])
    first_with: dict[bytes, int] = {}
    for index, of_text in enumerate(hashes):
        first = first_with.setdefault(of_text.tobytes(), index)
        if first != index and len(of_text):
            pairs.add((first, index))
    return pairs


def _groups(values: Hashes, owners: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield, for every sentence that two or more texts have, the indexes of these texts."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.empty(0, np.int64)
    ends = np.r_[starts[1:], len(values)]
    for start, end in zip(starts, ends, strict=True):
        if end - start > 1:
            yield owners[start:end]
