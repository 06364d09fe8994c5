"""Detection of the delimiter of a CSV file by its first rows: the one by which most rows are as long as the header.

Delimiters inside quotes do not count. Where two fit alike, as in `1;one, two`, it is the one that is followed by a
space less often: prose has a space behind its commas.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from curate.tables.readers.encoding import Encoding, lines
from curate.tables.readers.packed import opened

CANDIDATES = (",", ";", "\t", "|")
LOOKED = 200
"""First lines that are looked at, as far as they are in the first characters."""
_CHARACTERS = 1 << 18
_DECLARED = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_WORDS = {"tab": "\t", "\\t": "\t"}


def named(text: str) -> str:
    """Return the delimiter that a user names, one character or the word `tab`; ValueError for anything else."""
    sign = _WORDS.get(text.lower(), text)
    if len(sign) != 1 or sign in '"\r\n' or sign.isalnum():
        raise ValueError("expected one character such as ';', or tab")
    return sign


def declared(line: str) -> str | None:
    """Return the delimiter that a first line `sep=;` declares, as spreadsheets write it; None for other lines."""
    found = _DECLARED.fullmatch(line)
    return found[1] if found else None


def find(path: Path, encoding: Encoding, usual: str, *, header: bool) -> str:
    """Return the delimiter of a file; the `usual` one where no candidate divides it into columns."""
    sample = _sample(path, encoding)
    said = declared(sample[0]) if sample else None
    if said:
        return said
    scores = {sign: score for sign in CANDIDATES if (score := _score(sample, sign, header=header))}
    return max(scores, key=lambda sign: (*scores[sign], sign == usual), default=usual)


def _sample(path: Path, encoding: Encoding) -> list[str]:
    """Return the first lines that can be decoded."""
    found: list[str] = []
    size = 0
    with opened(path) as stream:
        for line in islice(lines(stream, encoding), LOOKED):
            found.append(line.text or "")
            size += len(found[-1])
            if size > _CHARACTERS:
                break
    return found


def _score(sample: Sequence[str], sign: str, *, header: bool) -> tuple[float, float] | None:
    """Return the share of rows of one length, and that of delimiters without a space behind; None for one column."""
    widths = [*_widths(sample, sign)]
    if not widths:
        return None
    width = widths[0] if header else Counter(widths).most_common(1)[0][0]
    if width < 2:
        return None
    text = "".join(sample)
    return widths.count(width) / len(widths), 1 - text.count(f"{sign} ") / text.count(sign)


def _widths(sample: Sequence[str], sign: str) -> Iterator[int]:
    """Yield the number of cells of every row that is not blank, up to the first that is no CSV."""
    csv.field_size_limit(sys.maxsize)
    try:
        for row in csv.reader(sample, delimiter=sign):
            if any(cell.strip() for cell in row):
                yield len(row)
    except csv.Error:
        return
