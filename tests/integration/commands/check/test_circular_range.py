"""A panel without an outside judge: `check circular` gives a range, and neither one figure nor a warning."""

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import Done, ran
from tests.support.sized import sized

QUERIES = 55
EXPECTED = {"one": (0.0, 0.0), "two": (0.043352, 0.084045), "three": (0.046414, 0.087147)}
"""Raw change of nDCG@10 of the ranking by a judge's grades, and that less the mean change of the two others'."""
JUDGES = ("one", "two", "three", "fourth", "other")


def grades() -> dict[str, dict[tuple[int, int], str]]:
    """Return grades of judges who all find the first document relevant, and differ by chance on the others."""
    said: dict[str, dict[tuple[int, int], str]] = {judge: {} for judge in JUDGES}
    for place, judge in enumerate(JUDGES):
        for n in range(QUERIES):
            said[judge][n, 4 * n] = "SA"[zlib.crc32(f"{judge}{n}".encode()) % 2]
            for at in range(1, 4):
                likes = "SSAB", "SABC", "ABCD", "SBCD", "SACD"
                said[judge][n, 4 * n + at] = likes[place][zlib.crc32(f"{judge} {n} {at}".encode()) % 4]
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run of a panel of three; two more judges have grades for the pool."""
    folder = tmp_path_factory.mktemp("circular")
    ran(folder, "run", sized(folder, QUERIES, JUDGES, grades(), JUDGES[:3]))
    return folder


@pytest.fixture(scope="module")
def told(folder: Path) -> Done:
    return ran(folder, "check", "circular", "--json")


@pytest.fixture(scope="module")
def found(told: Done) -> Any:
    return json.loads(told.stdout)["data"]


def ranges(value: object) -> Iterator[tuple[float, float]]:
    """Return the pairs of a low and a high end anywhere in a value."""
    if isinstance(value, dict):
        low, high = value.get("low"), value.get("high")
        if isinstance(low, int | float) and isinstance(high, int | float):
            yield float(low), float(high)
        for name, each in value.items():
            if name == "range" and isinstance(each, list) and len(each) == 2:
                yield float(each[0]), float(each[1])
            yield from ranges(each)
    elif isinstance(value, list):
        for each in value:
            yield from ranges(each)


def single(row: dict[str, Any]) -> object:
    """Return the one figure of a judge, if there is one."""
    effect = row.get("effect")
    return effect.get("value") if isinstance(effect, dict) else effect


def test_there_is_no_single_effect(found: Any) -> None:
    """Where all judges that are left are of the panel, no judge has one figure of how much it favours itself."""
    assert sorted(each["judge"] for each in found["judges"]) == ["one", "three", "two"]
    assert [single(each) for each in found["judges"]] == [None] * 3


@pytest.mark.parametrize("judge", ["one", "two", "three"])
def test_the_range_goes_from_the_raw_change_to_that_less_the_remaining_members(judge: str, found: Any) -> None:
    """One end is what the judge's own ranking gains, the other that less the mean gain of the remaining members."""
    each = next(row for row in found["judges"] if row["judge"] == judge)
    assert single(each) is None
    ends = EXPECTED[judge]
    assert ends[0] == pytest.approx(each["within"] - each["without"], abs=1e-5)
    assert any(pair == pytest.approx(ends, abs=2e-3) for pair in ranges(each))


def test_nobody_is_warned_of(found: Any) -> None:
    """A range is no ground for a warning of a judge."""
    assert all(single(each) is None for each in found["judges"])
    assert not any(each.get("warned") for each in found["judges"])
    assert not any(re.search(r"\bgains\b", warning) for warning in found["warnings"])


def test_a_reader_sees_both_ends(folder: Path) -> None:
    """What is printed holds both ends of a range, and calls it one ("between .05 and .09")."""
    shown = ran(folder, "check", "circular").stdout
    for low, high in (EXPECTED["two"], EXPECTED["three"]):
        both = rf"0?{low:.2f}\d* *(and|to|[-–]) *0?{high:.2f}\d*".replace("0.", r"\.")
        assert re.search(both, shown), both


def test_a_judge_in_its_place_gives_one_effect(folder: Path) -> None:
    """With a judge from outside in the judge's place there is one figure with its interval (today too)."""
    data = json.loads(ran(folder, "check", "circular", "--fourth", "fourth", "--other", "other", "--json").stdout)[
        "data"
    ]
    assert all(isinstance(single(each), float) for each in data["judges"])


def test_the_card_shows_a_range_too(folder: Path) -> None:
    """The card of an export that follows shows no single effect either."""
    ran(folder, "check", "circular")
    ran(folder, "export", "--force")
    manifest = json.loads((folder / "runs/bench/export/mteb/MANIFEST.json").read_text(encoding="utf-8"))
    favours = [each.get("favour") or {} for name, each in manifest["judges"].items() if name in JUDGES[:3]]
    assert [single(each) for each in favours] == [None] * 3
    assert not any(each.get("warned") for each in favours)
    card = (folder / "runs/bench/export/mteb/README.md").read_text(encoding="utf-8")
    assert "Not checked (`curate check circular`)" not in card
