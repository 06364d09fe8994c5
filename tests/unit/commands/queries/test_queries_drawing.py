"""Lengths of synthetic queries follow those of real ones; copies are measured."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.queries import Config
from curate.commands.queries.stage import fate, matched
from curate.commands.queries.task import DrawnTexts, LengthClasses, longest_run, targets
from tests import ROOT

LEGACY = ROOT.parent / "shared" / "data"


@pytest.mark.slow
@given(st.lists(st.integers(1, 200), min_size=1, max_size=60), st.integers(1, 5), st.integers(0, 9))
def test_each_ten_documents_have_a_length_of_each_tenth(real: list[int], tens: int, seed: int) -> None:
    real = sorted(real)
    found = targets(real, (1, 1), 10 * tens, seed)
    assert found == targets(real, (1, 1), 10 * tens, seed)
    for at, length in enumerate(found):
        tenth = at % 10
        assert real[len(real) * tenth // 10] <= length <= real[min(len(real) - 1, len(real) * (tenth + 1) // 10)]


def test_without_real_queries_lengths_are_spread() -> None:
    found = targets([], (10, 20), 1000, 7)
    assert min(found) == 10
    assert max(found) == 20
    assert 14.5 < sum(found) / len(found) < 15.5


@pytest.mark.slow
@given(st.lists(st.integers(1, 50), min_size=1, max_size=80), st.integers(1, 12))
def test_classes_hold_equal_shares_but_for_ties(real: list[int], count: int) -> None:
    classes = LengthClasses(real, count)
    shares = classes.shares(real)
    assert abs(sum(shares) - 1) < 1e-9
    assert all(share > 0 for share in shares)
    assert len(shares) <= count
    if len(set(real)) == len(real) >= count:
        assert max(shares) - min(shares) <= 1 / len(real) + 1e-9


def test_the_set_takes_the_shares_of_the_real_lengths() -> None:
    real = {f"r{n}": "x" * (5 if n < 50 else 30) for n in range(100)}
    drawn = DrawnTexts([], real, 0, 0)
    lengths = {f"q{n}": 30 if n % 5 else 5 for n in range(100)}
    chosen = matched(lengths, drawn, Config(wanted=40))
    assert Counter(lengths[name] for name in chosen) == {5: 20, 30: 20}
    assert len(matched(lengths, drawn, Config(wanted=80))) == 80, "what one class lacks, others fill"
    assert matched(lengths, DrawnTexts([], {}, 0, 0), Config(wanted=3)) == {"q0", "q1", "q2"}


def test_what_the_filters_say() -> None:
    assert fate({"a": "good", "b": "good"}) == "kept"
    assert fate({"a": "good", "b": "unnatural"}) == "a filter says: unnatural"
    assert fate({"a": "good", "b": "refused"}) == fate({}) == "a filter gave no answer"


@given(st.text("ab痛风1", min_size=1, max_size=30), st.text("ab痛风 1", max_size=60))
def test_the_longest_run_is_a_share(query: str, document: str) -> None:
    assert 0 <= longest_run(query, document) <= 1
    assert longest_run(query, document + query) == 1


def test_the_longest_run_ignores_case_width_and_punctuation() -> None:
    assert longest_run("ＡＢＣ，痛风", "abc痛风能吃什么") == 1
    assert longest_run("痛风能喝酒吗", "痛风患者不能喝酒。") == 3 / 6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "copies"), [("zh_legacy", 1), ("medquad_legacy_en", 15)])
def test_real_queries_are_hardly_ever_copies(name: str, copies: int) -> None:
    """The default of `copied` leaves real queries alone: measured on real pairs."""
    folder = LEGACY / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    texts = {table: _texts(folder / f"{table}.jsonl") for table in ("queries", "corpus")}
    lines = (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:1501]
    pairs = [(texts["queries"][one], texts["corpus"][two]) for one, two, *_ in (line.split("\t") for line in lines)]
    assert len(pairs) == 1500
    assert sum(longest_run(*pair) > Config().copied for pair in pairs) == copies


def _texts(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["_id"]: f"{row.get('title') or ''}\n{row['text']}" for row in rows}
