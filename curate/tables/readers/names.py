"""Comparison of column names as people write them."""

import re
import unicodedata

_BETWEEN = re.compile(r"[-_.\s\ufeff\u200b]")


def plain(name: str) -> str:
    """Return a name without case, width, white space, byte order mark and `-`, `_`, `.` between its words."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()
