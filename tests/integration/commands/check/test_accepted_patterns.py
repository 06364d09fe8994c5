"""`curate check mask --residual`: places are accepted by number, or by a pattern shown, never all of a reason."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import curate, ran, tiny

ONLY = ("--set", "mask.recognisers=[email]")
CHECK = ("check", "mask", "--residual")
TEXTS = {
    "d00": "试管贴 58213746 已入库，请核对。",
    "d01": "试管贴 61947205 已入库，请核对。",
    "d02": "请打 61238457 找我，谢谢。",
    "d03": "请打 87154321 找我，谢谢。",
    "d04": "手机 13876542310 随时能接。",
    "d05": "PMID 138765423 第一次报道。",
    "d06": "加QQ 223456 聊，谢谢。",
    "d07": "姓名：王五。",
}
"""What masking leaves here, for no recogniser of numbers or names is on: numbers of tubes, and numbers of persons."""
TUBES, PHONES = ("d00", "d01"), ("d02", "d03", "d04", "d06")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that stopped before its export."""
    folder = tmp_path_factory.mktemp("patterns")
    name, corpus = tiny(folder), folder / "data" / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    for row in rows:
        row["text"] += f"\n{TEXTS[row['_id']]}" if row["_id"] in TEXTS else ""
    corpus.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    done = curate(folder, "run", name, *ONLY)
    assert done.returncode == 2, done.stderr
    return folder


@pytest.fixture
def work(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped, tmp_path / "w")
    return tmp_path / "w"


def places(work: Path) -> list[dict[str, Any]]:
    """Return the places of the list, in its order."""
    found: list[dict[str, Any]] = json.loads(ran(work, *CHECK, "--json").stdout)["data"]["places"]
    return found


def patterns(work: Path) -> dict[str, set[str]]:
    """Return the patterns of each document's places."""
    found: dict[str, set[str]] = {}
    for place in places(work):
        found.setdefault(place["id"], set()).add(place["pattern"])
    return found


def states(work: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for place in places(work):
        found.setdefault(place["id"], set()).add(place["state"])
    return found


def test_every_open_place_has_a_pattern_without_its_digits(work: Path) -> None:
    """A user can rely on a pattern per place, in text and JSON, which shows the form and never the number."""
    found = places(work)
    assert {place["id"] for place in found} >= {*TUBES, *PHONES}
    for place in found:
        assert place["pattern"]
        assert not set(re.findall(r"\d", place["pattern"])) - {"9"}
    text = "".join(curate(work, *CHECK).stdout.split())
    assert all("".join(place["pattern"].split()) in text for place in found)


def test_equal_forms_behind_equal_words_share_a_pattern(work: Path) -> None:
    """A user can rely on it that what is a hundred times the same form behind the same word is one decision."""
    found = patterns(work)
    assert found["d00"] == found["d01"]


def test_no_telephone_number_shares_a_pattern_with_a_code_behind_its_word(work: Path) -> None:
    """A user can rely on it that to accept a code's pattern accepts no telephone number of as many digits."""
    found = patterns(work)
    codes = found["d00"] | found["d01"] | found.get("d05", set())
    numbers = {each for name in PHONES for each in found[name]}
    assert not codes & numbers


def test_a_pattern_accepts_its_places_and_no_other(work: Path) -> None:
    """A user can rely on it that `--accept-pattern` decides on the places that show the pattern, and on these alone."""
    [pattern] = patterns(work)["d00"]
    done = curate(work, *CHECK, "--accept-pattern", pattern)
    assert done.returncode == 0, done.stderr
    after = states(work)
    assert {after[name] == {"accepted"} for name in TUBES} == {True}
    assert {each for name in PHONES for each in after[name]} == {"open"}
    assert curate(work, "run", "tiny.yaml", *ONLY).returncode == 2


def test_a_pattern_that_nothing_shows_accepts_nothing(work: Path) -> None:
    """A user can rely on it that a mistyped pattern, or one made of digits alone, lets nothing through."""
    known = {each for found in patterns(work).values() for each in found}
    for pattern in ("99999999", "9", "*", ".*", "digits"):
        if pattern not in known:
            done = curate(work, *CHECK, "--accept-pattern", pattern)
            assert "No such option" not in done.stderr
    assert {each for found in states(work).values() for each in found} == {"open"}


def test_places_are_accepted_by_number(work: Path) -> None:
    """A user can rely on numbers and ranges of the list (today too)."""
    rows = places(work)
    assert len(rows) >= 6
    done = curate(work, *CHECK, "--accept", "1,4-6")
    assert done.returncode == 0, done.stderr
    assert [at for at, place in enumerate(places(work), start=1) if place["state"] == "accepted"] == [1, 4, 5, 6]


def test_all_of_a_reason_can_no_more_be_accepted(work: Path) -> None:
    """A hospital can rely on it that nobody waves every number through; the message names what there is instead."""
    for reason in ("digits", "name", "digits,name"):
        done = curate(work, *CHECK, "--accept-all", reason)
        assert done.returncode == 2
        assert "--accept-pattern" in done.stderr
    assert "accepted" not in {each for found in states(work).values() for each in found}


def test_all_of_a_reason_can_be_masked(work: Path) -> None:
    """A user can rely on it that `--mask-all` stays, and a run then goes on (today too)."""
    reasons = sorted({place["reason"] for place in places(work)})
    done = curate(work, *CHECK, "--mask-all", ",".join(reasons))
    assert done.returncode == 0, done.stderr
    assert curate(work, "run", "tiny.yaml", *ONLY).returncode == 0
    corpus = "".join(
        path.read_text("utf-8") for path in (work / "runs" / "tiny" / "export" / "beir").glob("corpus.jsonl")
    )
    assert not [text for text in ("61238457", "13876542310", "58213746", "223456") if text in corpus]


def test_help_names_patterns_and_no_acceptance_of_all(work: Path) -> None:
    """A user can rely on the help: it offers what there is."""
    told = curate(work, "check", "mask", "--help").stdout
    assert "--accept-pattern" in told
    assert "--accept-all" not in told
    assert "--mask-all" in told
