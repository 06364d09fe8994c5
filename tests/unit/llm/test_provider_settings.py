"""Settings of providers: keys, identities, and what is refused before anything is sent."""

import datetime as dt
from contextlib import ExitStack
from typing import Any

import pytest

from curate.core.config import canonical
from curate.core.errors import ConfigError
from curate.llm.cost import Price
from curate.llm.providers import identity, provider
from curate.llm.providers.settings import ProviderConfig
from tests.unit.llm.test_providers import KEY, ask, both, config, script
from tests.vendor import vendor


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


@both
def test_a_missing_key_is_named_with_what_to_type(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "  ")
    with vendor(script) as server, pytest.raises(ConfigError, match="export TEST_KEY="):
        provider(config(kind, server))
    usual = f"{kind.upper()}_API_KEY"
    monkeypatch.delenv(usual, raising=False)
    with pytest.raises(ConfigError, match=f"export {usual}="):
        provider(ProviderConfig(kind=kind, model="m"))


@both
def test_the_identity_needs_no_key(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with vendor(script) as server:
        opened = provider(config(kind, server)).identity
        monkeypatch.delenv("TEST_KEY")
        assert identity(config(kind, server)) == opened


@pytest.mark.slow
@both
def test_the_usual_key_is_not_sent_to_another_address(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", KEY)
    with vendor(script) as server:
        ask(config(kind, server, key_env=None))
    assert KEY not in canonical(server.calls[0].headers)


def test_the_identity_holds_what_changes_an_answer_and_no_more() -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(vendor(script)) for _ in range(2))
        base = provider(config("openai", one)).identity
        limits = {"requests_per_minute": 60, "tokens_per_minute": 9000, "context_tokens": 4096, "batch": True}
        for same in ({"timeout_s": 3.0}, {"concurrency": 2}, {"key_env": None}, {"price": price()}, limits):
            assert provider(config("openai", one, **same)).identity == base
        for different in ({"model": "m-2"}, {"temperature": 1.0}, {"json_mode": "none"}, {"extra_body": {"seed": 1}}):
            assert provider(config("openai", one, **different)).identity != base
        assert provider(config("openai", other)).identity != base
        named = [provider(config("openai", server, vendor="house")).identity for server in (one, other)]
        assert named[0] == named[1]


def price() -> Price:
    return Price(input=1, output=2, written=1.25, date=dt.date(2026, 11, 1))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"extra_body": {"metadata": KEY}}, "hold the key itself"),
        ({"extra_body": {"stream": True}}, "stream cannot be set here"),
        ({"base_url": f"https://{KEY}@api.example.com"}, "holds no user, key or query"),
        ({"base_url": "api.example.com/v1"}, "expected an address such as"),
        ({"kind": "anthropic", "json_mode": "object"}, "anthropic has no json_mode `object`"),
        ({"kind": "anthropic", "price": {"input": 1, "output": 2, "date": "2026-11-01"}}, "give price.written"),
        ({"temprature": 0}, "did you mean 'temperature'?"),
        ({"kind": "opnai"}, "did you mean 'openai'?"),
        ({"model": ""}, "judges.m.model"),
        ({"tokens_per_minute": 0}, "judges.m.tokens_per_minute"),
        ({"context_tokens": -1}, "judges.m.context_tokens"),
        ({"price": {"input": 1, "output": 2, "currency": "yuan", "date": "2026-11-01"}}, "judges.m.price.currency"),
        ({"price": {"input": 1, "output": 2, "batch": 0, "date": "2026-11-01"}}, "judges.m.price.batch"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_sent(more: dict[str, Any], expected: str) -> None:
    with vendor(script) as server:
        with pytest.raises(ConfigError) as caught:
            provider(config(**{"kind": "openai", "server": server, **more}))
        assert server.calls == []
    assert expected in str(caught.value)
