"""Presets: each is a whole judge; what changes them, and what a change leaves behind."""

from pathlib import Path
from typing import Any

import pytest

from curate.ask import build
from curate.core.config import Settings, canonical, check, digest
from curate.core.errors import ConfigError
from curate.llm.providers import identity, key_variable, provider
from curate.llm.providers.presets import LanguageModel, presets, published_vendor, rates
from curate.llm.providers.settings import ProviderConfig
from curate.pipeline.stage import Context
from tests import ROOT
from tests.support.asking import RUBRIC

NAMES = sorted(presets())
EXPECTED = {
    *("deepseek-v3", "deepseek-r1", "doubao-1.5-pro", "gpt-4o", "gpt-4o-mini", "gpt-6.1-terra", "kimi", "qwen-max"),
    *("qwen-plus", "glm", "claude-sonnet", "claude-opus", "gemini", "vllm", "ollama", "llama-cpp"),
}
LOCAL = {"vllm", "ollama", "llama-cpp"}
KEY = "sk-very-secret-0123456789"
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without any vendor's key."""
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        if variable := key_variable(preset(name)):
            monkeypatch.delenv(variable, raising=False)
    return tmp_path


def preset(name: str) -> LanguageModel:
    return check(LanguageModel, presets()[name], name)


def named(name: str, **judges: dict[str, Any]) -> LanguageModel:
    """Return what a judge's name means in a pipeline that defines these."""
    found = build.language_model(Context(Path(), Path(), Path(), definitions={"judges": judges}), name)
    assert found is not None
    return found


def complaint(name: str, **judges: dict[str, Any]) -> str:
    context = Context(Path(), Path(), Path(), definitions={"judges": judges})
    with pytest.raises(ConfigError) as caught:
        build.judge(context, name, RUBRIC)
    return str(caught.value)


# The table


def test_the_names_that_people_look_for_are_there() -> None:
    assert set(NAMES) >= EXPECTED


@each
def test_a_preset_is_a_whole_judge(name: str) -> None:
    judge, config = build.judge(Context(Path(), Path(), Path()), name, RUBRIC)
    assert config == preset(name)
    assert isinstance(config, ProviderConfig)
    assert judge.identity["model"] == identity(config)
    assert config.note


@each
def test_a_preset_wants_a_key_from_the_environment_and_keeps_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = preset(name)
    variable = key_variable(config)
    if name in LOCAL:
        assert variable is None
        provider(config)
        return
    assert variable is not None
    with pytest.raises(ConfigError, match=f"export {variable}="):
        provider(config)
    monkeypatch.setenv(variable, KEY)
    assert KEY not in canonical(provider(config).identity)


@pytest.mark.parametrize("name", [name for name in NAMES if "price" in presets()[name]])
def test_a_price_is_whole_and_dated(name: str) -> None:
    price = preset(name).price
    assert price is not None
    assert price.date.year >= 2025
    assert (price.cached or 0) <= price.input <= price.output
    if preset(name).kind == "anthropic":
        assert price.written is not None


@each
def test_a_model_that_thinks_takes_no_temperature_and_has_room_to_think(name: str) -> None:
    config = preset(name)
    assert config.thinking_tokens == 0 or config.temperature is None
    assert config.context_tokens is None or config.thinking_tokens < config.context_tokens
    if config.token_field == "max_completion_tokens":
        assert config.thinking_tokens > 0


def test_no_two_presets_are_the_same_judge() -> None:
    assert len({digest(identity(preset(name))) for name in NAMES}) == len(NAMES)


# Changes


def test_a_pipeline_changes_a_preset() -> None:
    changed = named("gpt-4o", **{"gpt-4o": {"concurrency": 64}})
    assert changed == preset("gpt-4o").model_copy(update={"concurrency": 64})
    assert identity(changed) == identity(preset("gpt-4o"))


def test_a_pipeline_names_a_preset_anew() -> None:
    changed = named("wide", wide={"preset": "claude-opus", "thinking_tokens": 99})
    assert changed == preset("claude-opus").model_copy(update={"thinking_tokens": 99})


def test_a_definition_with_a_kind_is_its_own() -> None:
    own: Settings = {"kind": "openai", "model": "m-1", "base_url": "http://localhost:1"}
    assert named("gpt-4o", **{"gpt-4o": own}) == check(LanguageModel, own, "own")


def test_a_preset_may_bear_the_name_of_another_kind_of_judge() -> None:
    assert named("lexical", lexical={"preset": "vllm"}) == preset("vllm")
    context = Context(Path(), Path(), Path(), definitions={"judges": {"gpt-4o": {"kind": "lexical"}}})
    assert build.language_model(context, "gpt-4o") is None


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"base_url": "http://localhost:9/v1"}, {"key_env", "price"}),
        ({"preset": "doubao-1.5-pro", "kind": "anthropic", "json_mode": "none"}, {"key_env", "price"}),
        ({"model": "ep-20260101"}, {"price"}),
        ({"model": "doubao-1-5-pro-32k-250115"}, set()),
        ({"temperature": 1}, set()),
    ],
)
def test_key_and_price_stay_with_their_address_and_model(change: Settings, lost: set[str]) -> None:
    found = named("doubao-1.5-pro", **{"doubao-1.5-pro": change})
    assert {field for field in ("key_env", "price") if getattr(found, field) is None} == lost
    kept: dict[str, Any] = {"key_env": "MINE", "price": {"input": 1, "output": 1, "written": 1, "date": "2026-11-01"}}
    found = named("doubao-1.5-pro", **{"doubao-1.5-pro": {**change, **kept}})
    assert found.key_env == "MINE"
    assert found.price is not None


def test_a_file_in_the_working_directory_changes_and_adds(here: Path) -> None:
    Path("models.yaml").write_text(
        "gpt-4o: {concurrency: 3}\n"
        "house: {kind: openai, base_url: 'http://localhost:1/v1', model: ours}\n"
        "calm: {preset: gpt-4o, temperature: 0.5}\n",
        encoding="utf-8",
    )
    assert named("gpt-4o") == preset("gpt-4o")
    assert (preset("gpt-4o").concurrency, preset("gpt-4o").model) == (3, "gpt-4o-2024-11-20")
    assert named("house").model == "ours"
    assert named("calm").temperature == 0.5
    assert named("gpt-4o", **{"gpt-4o": {"batch": False}}).concurrency == 3
    assert set(presets()) == {*NAMES, "house", "calm"}


def test_the_block_of_the_docs_works_in_the_working_directory_too(here: Path) -> None:
    """docs/costs.md has it for a pipeline file or models.yaml: names below `judges`, and `rates` beside them."""
    text = (ROOT / "docs/costs.md").read_text("utf-8")
    block = next(each.split("```")[0] for each in text.split("```yaml\n")[1:] if "rates:" in each)
    Path("models.yaml").write_text(f"{block}wide: {{preset: gpt-4o, concurrency: 3}}\n", encoding="utf-8")
    price, rate = preset("doubao-1.5-pro").price, rates().find("CNY", "USD")
    assert price is not None
    assert rate is not None
    assert (price.input, price.currency, rate.value) == (0.8, "CNY", 0.14)
    assert set(presets()) == {*NAMES, "wide"}


# Mistakes


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("judges: {gpt4o: {concurrency: 3}}", "models.yaml: judges.gpt4o: a new one needs a kind, and no preset has"),
        ("judges: {gpt-4o: 7}", "models.yaml: judges.gpt-4o: expected a mapping of settings, found a number"),
        ("{judges: {kimi: {batch: true}}, kimi: {batch: false}}", "models.yaml: kimi: found on top and below judges"),
        (
            "gpt4o: {concurrency: 3}",
            "models.yaml: gpt4o: a new one needs a kind, and no preset has that name; did you ",
        ),
        ("gpt-4o: {concurency: 3}", "models.yaml: gpt-4o.concurency: unknown key; did you mean 'concurrency'?"),
        ("wide: {preset: gpt-40}", "models.yaml: wide.preset: unknown preset 'gpt-40'; did you mean 'gpt-4o'?"),
        ("house: {kind: opnai, model: m}", "models.yaml: house.kind: unknown provider 'opnai'; did you mean 'openai'?"),
        ("gpt-4o: 7", "models.yaml: gpt-4o: expected a mapping of settings, found a number"),
        ("gpt-4o: [", "models.yaml:2: not valid YAML"),
    ],
)
def test_mistakes_in_the_file_are_named(here: Path, line: str, expected: str) -> None:
    Path("models.yaml").write_text(f"{line}\n", encoding="utf-8")
    assert expected in complaint("gpt-4o")


@pytest.mark.parametrize(
    ("name", "judges", "expected"),
    [
        ("gpt4o", {}, "unknown judge 'gpt4o': did you mean 'gpt-4o' or"),
        (
            "gpt4o",
            {"gpt4o": {"batch": True}},
            "judges.gpt4o: give a kind, or the name of a preset: did you mean 'gpt-4o'?",
        ),
        (
            "m",
            {"m": {"preset": "claude-opos"}},
            "judges.m.preset: unknown preset 'claude-opos'; did you mean 'claude-opus'?",
        ),
        ("m", {"m": {"preset": 7}}, "judges.m.preset: unknown preset 7; known: "),
        ("m", {"m": {"preset": ["gpt-4o"]}}, "judges.m.preset: unknown preset ['gpt-4o']"),
        (
            "glm",
            {"glm": {"thinking_token": 5}},
            "judges.glm.thinking_token: unknown key; did you mean 'thinking_tokens'?",
        ),
        ("claude-opus", {"claude-opus": {"json_mode": "object"}}, "anthropic has no json_mode `object`"),
    ],
)
def test_mistakes_in_a_pipeline_are_named(name: str, judges: dict[str, dict[str, Any]], expected: str) -> None:
    assert expected in complaint(name, **judges)


@pytest.mark.parametrize(
    ("vendor", "published"),
    {
        "https://api.deepseek.com": "api.deepseek.com",
        "https://api.anthropic.com": "api.anthropic.com",
        "http://127.0.0.1:8000/v1": "own server",
        "https://llm.ward7.hospital.example/v1": "own server",
        "Hospital Computing Centre": "Hospital Computing Centre",
    }.items(),
)
def test_an_address_of_the_users_network_is_not_published(vendor: str, published: str) -> None:
    assert published_vendor(vendor) == published
