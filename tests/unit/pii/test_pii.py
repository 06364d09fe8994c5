"""Recognisers and masking: what is found, what stays, and that masking twice changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.errors import ConfigError
from curate.core.records import Span
from curate.pii import RECOGNISERS
from curate.pii.masking import resolve
from curate.pii.recognisers.numbers import mobile
from curate.pii.rules import RuleRecogniser
from curate.pii.settings import Masking, examples, masker
from curate.pii.sieve import mask_all
from curate.system import resources
from curate.testing import check_recogniser
from tests import ROOT

MASKER = masker(Masking(), "zh", b"key")
LABELS = {
    "PHONE": "phone",
    "EMAIL": "email",
    "ID_CARD": "id_card",
    "PLATE": "plate",
    "WECHAT": "wechat",
    "QQ": "qq",
    "NAME": "name",
    "ADDRESS": "address",
    "HOSPITAL": "hospital",
}


def masked(text: str) -> str:
    return MASKER.mask(text).text


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def values(recogniser: Callable[[str], list[Span]], text: str) -> list[str]:
    return [text[span.start : span.end] for span in recogniser(text)]


@pytest.mark.parametrize("name", RECOGNISERS.builtin)
def test_the_contract(name: str) -> None:
    recognise = RECOGNISERS.load(name)
    check_recogniser(recognise, {text: values(recognise, text) for text in examples()})


@pytest.mark.parametrize("name", RECOGNISERS.builtin)
def test_the_examples_beside_a_rule(name: str) -> None:
    recognise = RECOGNISERS.load(name)
    if isinstance(recognise, RuleRecogniser):
        assert {span.kind for span in recognise(recognise.like)} == {recognise.kind}, recognise.like
        assert recognise(recognise.unlike) == [], recognise.unlike


def test_what_shows_only_once_something_else_is_gone_is_found_too() -> None:
    text = "请发a@b.com010@qq.com"
    assert [text[span.start : span.end] for span in MASKER.mask(text).spans] == ["a@b.com", "010@qq.com"]


def test_overlaps_are_one_stretch_with_the_kind_of_the_longest() -> None:
    spans = [Span(4, 9, "b", "r2"), Span(0, 5, "a", "r1"), Span(8, 10, "c", "r3"), Span(12, 13, "d", "r4")]
    assert resolve(spans) == [Span(0, 10, "a", "r1"), Span(12, 13, "d", "r4")]
    assert resolve(spans[::-1]) == resolve(spans)


def test_touching_spans_stay_apart() -> None:
    assert resolve([Span(2, 4, "b", "r"), Span(0, 2, "a", "r")]) == [Span(0, 2, "a", "r"), Span(2, 4, "b", "r")]


def test_offsets_count_code_points() -> None:
    assert mobile("𠮷🙂13912345678") == [Span(2, 13, "phone", "mobile")]


@pytest.mark.slow
@given(st.text(alphabet="0138619@.-+() ax中１（）＠X[]", max_size=60))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


PIECES = [
    "13912345678",
    "+86",
    "(+86)",
    "@",
    "@qq.com",
    " ",
    "-",
    "a@b.com",
    "010",
    "61234870",
    "(0755)",
    "110101198703262044",
    "号",
    ".",
    "x",
    "86",
]


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_masking_twice_is_masking_once_on_pieces_of_numbers(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


def test_unknown_recogniser() -> None:
    with pytest.raises(ConfigError, match=r"unknown recogniser 'mobil': did you mean 'mobile'\?"):
        RECOGNISERS.load("mobil")


@pytest.mark.slow
def test_everything_planted_in_the_demo_is_found_and_nothing_else() -> None:
    planted = json.loads((ROOT / "tests/data").joinpath("demo_planted.json").read_text("utf-8"))
    rows = [row for name in ("queries", "corpus") for row in lines(resources.demo() / f"{name}.jsonl")]
    fields = [(row["_id"], str(row.get(field) or "")) for row in rows for field in ("title", "text")]
    found = {(name, text[span.start : span.end]) for name, text in fields for span in MASKER.mask(text).spans}
    assert found == {(entry["id"], entry["value"]) for key in ("pii", "names_of_people") for entry in planted[key]}


def planted(folder: Path, *kinds: str) -> dict[str, list[tuple[int, int, str]]]:
    """Return every real text with what was planted in it, of some kinds."""
    rows = lines(folder / "pii" / "positives.jsonl")
    return {
        str(row["text"]): [(s["start"], s["end"], kind) for s in row["spans"] if (kind := LABELS[s["label"]]) in kinds]  # type: ignore[attr-defined]
        for row in rows
    }


NAMES = [name for name in RECOGNISERS.names() if name.startswith("name_")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recognisers", "kinds", "count"),
    [
        (None, (*LABELS.values(),), 480),
        (["address"], ("address",), 60),
        (["hospital"], ("hospital",), 30),
        (NAMES, ("name",), 90),
    ],
)
def test_what_is_planted_in_real_texts_is_found_at_its_place_and_nothing_more(
    recognisers: list[str] | None, kinds: tuple[str, ...], count: int, shared_data: Path
) -> None:
    expected = planted(shared_data, *kinds)
    masked = mask_all(masker(Masking(recognisers=recognisers), "zh", b"key"), list(expected))
    assert [[(span.start, span.end, span.kind) for span in each.spans] for each in masked] == [*expected.values()]
    assert sum(map(len, expected.values())) == count


@pytest.mark.slow
def test_medical_terms_hold_no_place_and_no_institution(shared_data: Path) -> None:
    terms = (shared_data / "synonyms" / "thuocl_medical_lexicon.tsv").read_text("utf-8").split()
    for name, said, named in (
        ("address", "{}", []),
        ("hospital", "患有{}，", ["协和医院", "西京医院"]),
        ("school", "患有{}，", []),
    ):
        masked = mask_all(masker(Masking(recognisers=[name]), "zh", b"key"), [said.format(term) for term in terms])
        assert [term for term, each in zip(terms, masked, strict=True) if each.spans] == named
    queries = [str(row["text"]) for row in lines(shared_data / "zh_legacy" / "queries.jsonl")]
    assert not any(each.spans for each in mask_all(masker(Masking(recognisers=["address"]), "zh", b"key"), queries))


@pytest.mark.slow
def test_real_texts_without_personal_data_stay(shared_data: Path) -> None:
    rows = lines(shared_data / "pii" / "hard_negatives.jsonl")
    assert len(rows) == 315
    assert [row["id"] for row in rows if masked(str(row["text"])) != row["text"]] == []
