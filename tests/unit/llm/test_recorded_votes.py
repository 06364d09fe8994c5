"""A panel's answers read again from the ledger: by texts, question and judge, and by nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate.core.config import read_yaml
from curate.core.errors import ConfigError
from curate.ledger import Ledger
from curate.llm import questions
from curate.llm.recorded_votes import votes, written
from tests import ROOT
from tests.support.rows import CALL

QUESTION = questions.question(read_yaml(ROOT / "prompts" / "sts-sentences-en.yaml"), "sts-sentences-en")
TEXTS = {"1": ("a cold", "a chill"), "2": ("a cold", "no cold")}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def asked(**judges: int) -> dict[str, Any]:
    """Return what a manifest says of the question, as it comes back from a file: judge -> tokens to think with."""
    panel = {name: {"judge": name, "provider": "openai", "thinking_tokens": more} for name, more in judges.items()}
    found: dict[str, Any] = json.loads(json.dumps({"question": written(QUESTION), "panel": panel}, sort_keys=True))
    return found


def reply(label: str) -> str:
    said = json.dumps({"label": label, "reason": "So it is."})
    return json.dumps({"model": "m", "choices": [{"message": {"content": said}, "finish_reason": "stop"}]})


def say(
    ledger: Ledger, judge: str, name: str, raw: str, finish: str = "stop", thinking: int = 0, form: str = ""
) -> None:
    """Write down what a judge replied about the texts of that name."""
    request = questions.build(QUESTION, *TEXTS[name], thinking_tokens=thinking)
    known: dict[str, Any] = {"judge_digest": judge, "rubric_digest": QUESTION.digest, "request_digest": request.digest}
    ledger.append([], replace(CALL, **known, raw=raw, finish=finish, form=form))


def test_answers_are_those_of_the_texts_and_none_of_others(ledger: Ledger) -> None:
    say(ledger, "a", "1", reply("yes"))
    say(ledger, "b", "1", reply("no"))
    say(ledger, "b", "2", reply("no"))
    made = asked(a=0, b=0)
    assert votes(made, TEXTS, ledger) == {"1": {"a": "yes", "b": "no"}, "2": {"b": "no"}}
    swapped = {name: (passage, query) for name, (query, passage) in TEXTS.items()}
    assert votes(made, swapped, ledger) == {"1": {}, "2": {}}


def test_the_first_answer_counts_and_without_one_what_came_last(ledger: Ledger) -> None:
    for name, raws in {"1": ["{}", reply("yes"), reply("no")], "2": [reply("maybe"), "{}"]}.items():
        for raw in raws:
            say(ledger, "a", name, raw, finish="error" if raw == "{}" else "stop")
    assert votes(asked(a=0), TEXTS, ledger) == {"1": {"a": "yes"}, "2": {"a": "failed"}}


def test_room_to_think_and_the_words_of_the_question_make_another_request(ledger: Ledger) -> None:
    say(ledger, "a", "1", reply("yes"), thinking=500)
    made = asked(a=500)
    assert votes(made, TEXTS, ledger)["1"] == {"a": "yes"}
    assert votes(asked(a=0), TEXTS, ledger)["1"] == {}
    made["question"]["rules"] = ["Say yes."]
    assert votes(made, TEXTS, ledger)["1"] == {}


def test_a_reply_of_a_content_filter_is_a_refusal(ledger: Ledger) -> None:
    say(ledger, "a", "1", "blocked", finish="refusal")
    say(ledger, "a", "2", "nonsense")
    assert votes(asked(a=0), TEXTS, ledger) == {"1": {"a": "refused"}, "2": {"a": "unparsed"}}


def test_a_manifest_in_another_form_is_refused_in_a_sentence(ledger: Ledger) -> None:
    made = asked(a=0)
    with pytest.raises(ConfigError, match="provider"):
        votes({**made, "panel": {"a": {**made["panel"]["a"], "provider": "nobody"}}}, TEXTS, ledger)
    with pytest.raises(ConfigError, match=r"question\.rules: is missing"):
        votes(
            {**made, "question": {key: made["question"][key] for key in made["question"] if key != "rules"}}, {}, ledger
        )


def test_what_an_older_version_could_not_read_is_no_answer_today(ledger: Ledger) -> None:
    """Labels were made without it; asked again it may become one."""
    say(ledger, "a", "1", reply("yes"), form="unparsed")
    assert votes(asked(a=0), TEXTS, ledger)["1"] == {"a": "unparsed"}
    say(ledger, "a", "1", reply("no"), form="labelled")
    assert votes(asked(a=0), TEXTS, ledger)["1"] == {"a": "no"}
