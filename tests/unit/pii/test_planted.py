"""Values that disguises hide or that only their family announces: found at exactly their place, and nothing else."""

import re
from collections import Counter

import pytest

from benchmarks.pii_planted import FOLDER, found, rows
from curate.pii.spans import rewrite

LEAST = {
    "first": "kin_zh 12, kin_en 12, handle 12, staff 12, ip 11, base64 12, broken 11, entity 12",
    "second": "kin_zh 10, kin_en 12, handle 12, staff 10, ip 10, base64 10, broken 10, entity 10",
    "third": "kin_zh 23, kin_en 23, handle 24, staff 23, ip 24, base64 21, broken 24, entity 41",
    "fourth": "kin_west 22, kin_link 7, kin_home 8, handle2 10, staff2 10, broken2 8, entity2 8",
}
"""Found in each class when the sets were last measured."""


@pytest.mark.parametrize("name", LEAST)
def test_what_was_planted_is_found(name: str) -> None:
    read = list(rows(FOLDER / f"{name}.tsv"))
    masked = found(read)
    hits = Counter(row.name for row, places in zip(read, masked, strict=True) for _ in row.places & places)
    least = {word: int(count) for word, count in map(str.split, LEAST[name].split(", "))}
    assert {word: count for word, count in least.items() if hits[word] < count} == {}
    assert sum(bool(places) for row, places in zip(read, masked, strict=True) if not row.places) <= 2


def test_bare_names_are_a_limit_that_the_rate_tells() -> None:
    read = list(rows(FOLDER / "bare.tsv"))
    hits = sum(place in places for row, places in zip(read, found(read), strict=True) for place in row.places)
    assert (hits, len(read)) == (8, 150), "docs/evidence.md states the rate"


def test_a_rewritten_text_knows_the_way_back() -> None:
    done = rewrite("a&#49;b&#50;c", re.compile("&#(..);"), lambda match: chr(int(match[1])))
    assert done.text == "a1b2c"
    assert [done.original(n, n + 1) for n in range(5)] == [(0, 1), (1, 6), (6, 7), (7, 12), (12, 13)]
    assert (done.original(0, 5), done.touches(0, 1), done.touches(6, 8)) == ((0, 13), False, True)
