"""Names, hospitals and addresses in free text: what was found in sets that others wrote is found still."""

import pytest

from benchmarks.pii_free_text import FOLDER, SETS, by_rules, rows
from curate.pii import RECOGNISERS

FOUND = {
    "open": {"name": 1.0, "hospital": 1.0, "address": 1.0},
    "first": {"name": 0.985, "hospital": 1.0, "address": 1.0},
    "second": {"name": 0.941, "hospital": 0.934, "address": 0.925},
}
"""The shares in docs/evidence.md."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_what_was_found_is_found(name: str) -> None:
    read = list(rows(FOLDER / f"{name}.tsv"))
    both = list(zip(read, by_rules(read), strict=True))
    for kind, share in FOUND[name].items():
        hits = [place in found for row, found in both for place in row.places if place[2] == kind]
        assert sum(hits) / len(hits) >= share - 0.01, kind
    clean = [found for row, found in both if not row.places]
    assert sum(map(bool, clean)) <= 0.02 * len(clean)


@pytest.mark.parametrize(
    ("recogniser", "value"),
    [("name_nick", "老高"), ("name_scarce", "马頔"), ("name_spaced", "张 小明"), ("hospital_short", "温州附二医")],
)
def test_a_row_of_names_is_found_at_once(recogniser: str, value: str) -> None:
    """Found one by one, each when the one before is masked, a line of names would take the square of its length."""
    assert len(RECOGNISERS.load(recogniser)(value * 50)) == 50
