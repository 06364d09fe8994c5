"""A reply is read strictly: what it does not say in the agreed form is not known."""

import json
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from curate.ask.judges.llm import LlmJudge
from curate.core.messages import Reply
from curate.core.records import Outcome
from curate.core.scale import FIVE, Scale
from curate.llm.parse import parse
from curate.llm.prompts import Rubric, labels, schema
from tests.support.scales import scales

TWO = ("P1", "P2")
GRADED = st.dictionaries(st.sampled_from(labels(8)), st.sampled_from(FIVE.labels), min_size=1)


@pytest.mark.parametrize(
    "text",
    [
        '{"P1": "S", "P2": "D"}',
        ' \n{"P2":"D","P1":"S"}\n',
        '```json\n{"P1": "S", "P2": "D"}\n```',
        '```\r\n{"P1": "S", "P2": "D"}\r\n```\n',
        '{"P1": "s", "p2": " d "}',
        '{"Ｐ１": "Ｓ", "Ｐ２": "ｄ"}',
        '{"P1": "\\u0053", "\\u00502": "D"}',
        'The grades are {"P1": "S", "P2": "D"}',
        '{"P1": "S", "P2": "D"} I hope this helps.',
        'Of {P1, P2} these:\n```json\n{"P1": "S", "P2": "D"}\n```\nLet me know if "you" need more.',
        '\ufeff{"P1": "S", "P2": "D"}',
        '{"P1": "S", "P2": "D",\n}',
        '```json\n{"P1": "S", "P2": "D",}\n```',
        'So: {"P1": "S", "P2": "D"}. Once more: {"P1": "S", "P2": "D"}',
        '<think>{"P1": "S"}</think>\n{"P1": "S", "P2": "D"}',
        '<think>\n\n</think>\n\n```json\n{"P1": "S", "P2": "D"}\n```',
        'It may be {"P1": "D"}.\n</think>\n{"P1": "S", "P2": "D"}',
        '{"grades": {"P1": "S", "P2": "D"}}',
        '{"P1": {"grade": "S", "reason": "P2, }"}, "P2": {"Grade": "d"}}',
        '[{"label": "P1", "grade": "S"}, {"grade": "D", "id": "P2", "reason": "none"}]',
        '{"grades": [{"label": "P1", "grade": "S"}, {"label": "P2", "grade": "D"}]}',
    ],
)
def test_these_say_s_and_d(text: str) -> None:
    said = parse(text, TWO, FIVE)
    assert said.grades == {"P1": "S", "P2": "D"}
    assert (said.foreign, said.duplicates, said.wrong, said.missing) == (0, 0, 0, ())


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "S",
        '"S"',
        "null",
        '["S", "D"]',
        '[["P1", "S"]]',
        '[{"P1": "S", "P2": "D"}]',
        '{"P1": "S", "P2": "D"} or {"P1": "D", "P2": "D"}',
        'The grades are {"P1": "S", "P2": "D"',
        'The grades are {"grades": {"P1": "S", "P2": "D"}',
        '{"P1": "S", "P2": "D",,}',
        '[{"label": "P1", "grade": "S"}, "P2"]',
        '[{"grade": "S"}, {"grade": "D"}]',
        '{"P1": "S", "P2": "D"',
        '{"P1": "S"}{"P2": "D"}',
        "{'P1': 'S', 'P2': 'D'}",
        '｛"P1"："S"，"P2"："D"｝',
        '<think>{"P1": "S", "P2": "D"}</think>',
        '<think>{"P1": "S", "P2": "D"}',
        '{"P1": "S", "P2": "D"}</think>I am done',
        'I think {"P1": "S", "P2": "D"}\n</think>',
        '<thought>{"P1": "S", "P2": "D"}</thought>',
        '<think></think>{"P1": "S", "P2": "D"}<think>{"P1": "D"}</think>',
        '```json\n{"P1": "S", "P2": "D"}\n```\n```json\n{"P1": "D"}\n```',
        "P1: S\nP2: D",
        "[" * 100_000,
        '{"P1": ' * 100_000,
        "9" * 10_000,
    ],
    ids=lambda text: repr(text)[:40],
)
def test_these_say_nothing(text: str | None) -> None:
    said = parse(text, TWO, FIVE)
    assert said.grades == {"P1": None, "P2": None}
    assert not said.readable
    assert said.missing == TWO


@pytest.mark.parametrize("value", ["E", "AB", "A级", "A+", "", "S or A", 1, None, True, ["S"], {"score": "S"}, "Ａ．"])
def test_a_value_that_is_no_grade_is_wrong_and_spoils_only_itself(value: object) -> None:
    said = parse(json.dumps({"P1": value, "P2": "B"}), TWO, FIVE)
    assert said.grades == {"P1": None, "P2": "B"}
    assert said.wrong == 1


def test_foreign_labels_are_ignored_and_counted() -> None:
    said = parse('{"P1": "A", "P3": "S", "d17": "S", "": "S", "P1 ": "A"}', TWO, FIVE)
    assert said.grades == {"P1": "A", "P2": None}
    assert (said.foreign, said.duplicates, said.missing) == (3, 1, ("P2",))


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ('{"P1": "A", "P1": "A"}', "A"),
        ('{"P1": "A", "p1": "Ａ"}', "A"),
        ('{"P1": "A", "P1": "B"}', None),
        ('{"P1": "A", "P1": "E"}', None),
        ('{"P1": "A", "P1": null}', None),
    ],
)
def test_a_repeated_label_counts_only_if_it_says_the_same(text: str, grade: str | None) -> None:
    said = parse(text, ["P1"], FIVE)
    assert said.grades == {"P1": grade}
    assert said.duplicates == 1


@pytest.mark.parametrize(
    ("text", "grades"),
    [
        ('{"P1": "A", "P2": "', {"P1": "A", "P2": None}),
        ('{"P1": "A", "P2": "B', {"P1": "A", "P2": None}),
        ('{"P1": "A", "P2": "B"', {"P1": "A", "P2": "B"}),
        ('{"P1": "A", "P2"', {"P1": "A", "P2": None}),
        ('{"P1": "A", ', {"P1": "A", "P2": None}),
        ('{"P1": "A"', {"P1": "A", "P2": None}),
        ('```json\n{\n  "P1": "A",\n  "P', {"P1": "A", "P2": None}),
        ('{"P1": "A", nonsense, "P2": "B"', {"P1": None, "P2": None}),
        ('{"P1": "A"} and then', {"P1": None, "P2": None}),
        ('The answer: {"P1": "A", "P2": "B"', {"P1": None, "P2": None}),
        ("{", {"P1": None, "P2": None}),
        ("", {"P1": None, "P2": None}),
    ],
)
def test_of_a_cut_reply_the_complete_items_count(text: str, grades: dict[str, str | None]) -> None:
    assert parse(text, TWO, FIVE, cut=True).grades == grades
    assert parse(text, TWO, FIVE).grades == {"P1": "A" if "} and" in text else None, "P2": None}


@given(text=st.text(alphabet='{}[]":,` \n\\PpSABCDsjson12Ｐ１Ａ', max_size=60), cut=st.booleans())
def test_garbage_never_grades_a_label_that_it_does_not_carry(text: str, cut: bool) -> None:
    said = parse(text, ["P1", "P2", "X9"], FIVE, cut=cut)
    assert said.grades["X9"] is None
    for number, wide in (("1", "１"), ("2", "２")):
        if said.grades[f"P{number}"] is not None:
            assert number in text or wide in text


@given(text=st.text(max_size=200), cut=st.booleans())
def test_any_text_is_read_without_an_error(text: str, cut: bool) -> None:
    said = parse(text, TWO, FIVE, cut=cut)
    assert list(said.grades) == list(TWO)


@pytest.mark.slow
@given(grades=GRADED, stop=st.integers(0, 200))
def test_a_cut_never_changes_a_grade(grades: dict[str, str], stop: int) -> None:
    text = json.dumps(grades)
    said = parse(text[:stop], labels(8), FIVE, cut=True).grades
    assert {label: grade for label, grade in said.items() if grade is not None}.items() <= grades.items()
    assert parse(text, labels(8), FIVE).grades == dict.fromkeys(labels(8)) | grades


@pytest.mark.slow
@given(scale=scales(), data=st.data())
def test_a_grade_of_any_scale_is_read_and_nothing_else(scale: Scale, data: st.DataObject) -> None:
    said = data.draw(st.dictionaries(st.sampled_from(labels(8)), st.sampled_from(scale.labels), min_size=1))
    whole: dict[str, str | None] = dict.fromkeys(labels(8))
    assert parse(json.dumps(said, ensure_ascii=False), labels(8), scale).grades == whole | said
    bare = {label: int(grade) if grade.isdecimal() else f" {grade.lower()}\u3000" for label, grade in said.items()}
    assert parse(json.dumps(bare), labels(8), scale).grades == whole | said
    other = {label: f"{grade}x" for label, grade in said.items()}
    assume(not {scale.read(each) for each in other.values()} - {None})
    assert parse(json.dumps(other), labels(8), scale).wrong == len(said)


@pytest.mark.slow
@given(grades=GRADED, around=st.text(alphabet=string.printable, max_size=30))
def test_text_around_the_object_changes_no_grade(grades: dict[str, str], around: str) -> None:
    for text in (json.dumps(grades) + around, around + json.dumps(grades)):
        said = parse(text, labels(8), FIVE)
        assert not said.readable or said.grades == dict.fromkeys(labels(8)) | grades


@pytest.mark.slow
@given(grades=GRADED, other=GRADED)
def test_two_objects_are_the_answer_only_if_they_are_the_same(grades: dict[str, str], other: dict[str, str]) -> None:
    said = parse(f"First {json.dumps(grades)}, then {json.dumps(other)}.", labels(8), FIVE)
    assert said.readable == (list(grades.items()) == list(other.items()))


RUBRIC = Rubric(
    version=1,
    name="tiny",
    language="en",
    grades={grade: f"means {grade}" for grade in FIVE.labels},
    rules=(),
    reply="JSON",
    system="{grades}{rules}{reply}",
    user="{query}{passages}",
)
JUDGE = LlmJudge("tiny", RUBRIC, {"model": "m"})


def test_a_judge_gives_an_outcome_a_passage_in_order() -> None:
    reply = Reply('{"P2": "B", "P1": "S", "P3": "E"}', "stop", "m", None)
    assert JUDGE.parse(reply, 3) == [Outcome("S"), Outcome("B"), Outcome(None, "unparsed")]
    assert JUDGE.read(reply, 3).wrong == 1


def test_a_length_stop_keeps_what_is_complete() -> None:
    reply = Reply('{"P1": "S", "P2": "', "length", "m", None)
    assert JUDGE.parse(reply, 2) == [Outcome("S"), Outcome(None, "unparsed")]


def test_a_refusal_refuses_all_whatever_it_says() -> None:
    assert JUDGE.parse(Reply('{"P1": "S"}', "refusal", "m", None), 2) == [Outcome(None, "refused")] * 2


def test_no_text_is_no_grade() -> None:
    assert JUDGE.parse(Reply(None, "stop", "m", None), 1) == [Outcome(None, "unparsed")]


def test_a_request_has_a_schema_and_room_for_every_grade() -> None:
    request = JUDGE.build("q", ["a", "b"])
    assert request.schema == schema(TWO, FIVE)
    longer = JUDGE.build("q", ["a"] * 12)
    assert longer.max_tokens - request.max_tokens == 160
    thinking = LlmJudge("tiny", RUBRIC, {"model": "m"}, thinking_tokens=500)
    assert thinking.build("q", ["a", "b"]).max_tokens == request.max_tokens + 500
    assert thinking.identity != JUDGE.identity
