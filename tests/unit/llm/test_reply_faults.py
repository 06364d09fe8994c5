"""What is wrong with a reply is told by the reply, and a sample of it shows nothing of what was asked."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.messages import Message, Reply, Request
from curate.llm.reply_faults import LONGEST, fault, sample

PROMPT = "Mr. Zebediah Quartermain, 王建国, room 88123456, has a Cough."


def request(text: str = PROMPT, *, private: bool = False) -> Request:
    return Request((Message("system", "Grade."), Message("user", text)), 10, private=private)


def reply(
    text: str | None, finish: Literal["stop", "length", "refusal", "other"] = "stop", *, thoughts: bool = False
) -> Reply:
    return Reply(text, finish, "m", None, thoughts)


@pytest.mark.parametrize(
    ("said", "form", "what", "remedy"),
    [
        (reply(None, "refusal"), "refused", "refusals", "another model"),
        (reply("{" + "\n\t" * 400, "length"), "cut", "white space", "json_mode"),
        (reply(None, "length", thoughts=True), "cut", "thoughts up to the bound", "thinking_tokens"),
        (reply("<think>Let me see", "length"), "cut", "thoughts up to the bound", "thinking_tokens"),
        (reply("Let me see", "length"), "cut", "stop at their bound", "thinking_tokens"),
        (reply(None, thoughts=True), "thoughts", "thoughts and no answer", "extra_body"),
        (reply("<think>{}</think>"), "unreadable", "thoughts and no answer", "extra_body"),
        (reply(" "), "empty", "empty", "json_mode"),
        (reply('{"d1": "A"}'), "foreign", "without a grade", "json_mode"),
        (reply("A"), "unreadable", "not in the agreed form", "json_mode"),
    ],
)
def test_the_form_and_what_helps(said: Reply, form: str, what: str, remedy: str) -> None:
    found = fault(said, form)
    assert what in found.said
    assert remedy in found.remedy
    assert form != "refused" or "json_mode" not in found.remedy


def test_a_sample_repeats_nothing_of_the_prompt() -> None:
    said = "The patient ZEBEDIAH  quartermain (王建国, \\u738b\\u5efa\\u56fd) in ８８１２３４５６ seems unwell."
    shown = sample(reply(said), request())
    assert shown == "The patient …) in … seems unwell."
    assert sample(reply(said), request(private=True)) == ""
    assert sample(reply(None), request()) == ""


@given(text=st.text(max_size=400), start=st.integers(0, 20))
def test_a_sample_is_short_and_has_no_long_run_of_the_prompt(text: str, start: int) -> None:
    shown = sample(reply(text[:start] + PROMPT + text[start:]), request())
    assert len(shown) <= LONGEST
    assert not any(PROMPT[at : at + 12] in shown for at in range(len(PROMPT) - 12))
