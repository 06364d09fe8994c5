"""Tokens that cannot be true: what they are charged as, and the canary that tells whether whole prompts are read."""

from dataclasses import replace

import pytest

from curate.core.errors import BudgetError
from curate.ledger import Ledger
from curate.llm.client import Unreadable
from curate.llm.client.canary import CANARY
from tests import vendor as fake
from tests.support.asking import PRICED, bound, judged, rows, said, script, work
from tests.vendor import Answer, Call, Fault, vendor

FEW: dict[str, Fault] = {
    "none": fake.used(prompt=0, output=0),
    "one": fake.used(prompt=1, output=1),
    "a part": fake.used(prompt=120, output=12),
    "all out of a cache": fake.used(prompt=100, cached=100, output=12),
}


def forgetful(answer: Answer) -> Answer:
    """Answer as a model does that saw the end of a prompt alone."""
    return replace(answer, text='{"first": "I see no code", "last": "there"}', usage={"prompt": 120, "output": 12})


@pytest.mark.parametrize("usage", FEW)
def test_it_is_charged_at_its_bound_and_the_grades_stay(usage: str, ledger: Ledger) -> None:
    with vendor(script, lambda _call: FEW[usage]) as server:
        bill = judged(server, ledger, work("S" * 12), PRICED, batch=1)
        assert said(server, ledger, work("S" * 12)) == ["S"] * 12
        assert len(server.calls) == 13, "one canary"
        most = bound(server)
    assert bill.spent == pytest.approx(13 * most, rel=0.35)  # the canary has more room for its answer
    assert rows(ledger, "DISTINCT prompt_tokens, output_tokens") == [(None, None)]
    assert rows(ledger, "purpose, form").count((CANARY, "read")) == 1


def test_the_cap_holds(ledger: Ledger) -> None:
    with vendor(script, lambda _call: FEW["one"]) as server:
        cap = 5.5 * bound(server)
        with pytest.raises(BudgetError, match="cap"):
            judged(server, ledger, work("S" * 30), PRICED, batch=1, max_cost=cap)
        assert 3 <= len(server.calls) <= 5


def test_a_server_that_cuts_prompts_ends_its_judge(ledger: Ledger) -> None:
    def faults(call: Call) -> Fault:
        return forgetful if call.codes else FEW["a part"]

    with vendor(script, faults) as server:
        with pytest.raises(Unreadable, match="does not get whole prompts"):
            judged(server, ledger, work("S" * 60), PRICED, batch=1)
        assert len(server.calls) < 15
    assert rows(ledger, "purpose, form").count((CANARY, "cut")) == 1


def test_a_judge_that_passed_is_not_sent_another(ledger: Ledger) -> None:
    with vendor(script, lambda _call: FEW["none"]) as server:
        judged(server, ledger, work("S" * 3), PRICED, batch=1)
        judged(server, ledger, work("A" * 3, name="别的"), PRICED, batch=1)
        assert [len(call.codes) for call in server.calls].count(2) == 1


def test_a_canary_is_as_long_as_the_prompt_and_in_its_script(ledger: Ledger) -> None:
    with vendor(script, lambda _call: FEW["none"]) as server:
        judged(server, ledger, work("S" * 3), PRICED, batch=3)
        sizes = [call.prompt_tokens for call in server.calls]
        [sent] = [call for call in server.calls if call.codes]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.25)
    assert "这里没有" in str(sent.body["messages"])


@pytest.mark.parametrize("share", [0.75, 1.0, 3.0])
def test_an_honest_count_of_any_tokenizer_is_believed(share: float, ledger: Ledger) -> None:
    def counted(answer: Answer) -> Answer:
        usage = answer.usage or {}
        return replace(answer, usage={**usage, "prompt": int(share * usage["prompt"])})

    with vendor(script, lambda _call: counted) as server:
        judged(server, ledger, work("S" * 4), PRICED, batch=1)
        assert not any(call.codes for call in server.calls)
