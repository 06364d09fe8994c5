"""What may carry texts away is what says nothing of itself: an address of loopback may be a gateway that forwards."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curate.ask import build, privacy_guard
from curate.ask.consent import need_masked
from curate.ask.judges import JUDGES
from curate.ask.panel_state import HeuristicState
from curate.core.config import Settings, check
from curate.core.errors import ConfigError, UserError
from curate.llm.providers import PROVIDERS, beyond
from curate.llm.providers.presets import LanguageModel, complete, presets
from curate.llm.providers.settings import ProviderConfig
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.retrievers import RETRIEVERS
from curate.system import egress
from curate.system.files import frame, write_table
from curate.testing import check_encoder
from tests.support.runs import curate, tiny
from tests.support.small import Letters, context
from tests.vendor import vendor

HERE = "http://127.0.0.1:4000/v1"
SERVERS = ("llama-cpp", "ollama", "vllm")
ADDRESSED = {"api", "asymmetric", "qdrant", "reranker"}
"""Kinds of which settings decide whether texts leave."""


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Return a run in which one text still holds what looks like personal data."""
    (tmp_path / "mask").mkdir()
    write_table(tmp_path / "mask", "residual", frame("residual", [{"table": "corpus", "id": "d9", "reason": "digits"}]))
    return tmp_path


def model(**more: Any) -> LanguageModel:
    return check(LanguageModel, {"kind": "openai", "model": "m", **more}, "judges.m")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("address", [HERE, "http://localhost:4000", "http://[::1]:4000", "http://10.0.0.7:8000/v1"])
def test_an_address_is_local_only_if_the_user_says_so(kind: str, address: str, left: Path) -> None:
    away, here = (model(kind=kind, base_url=address, local=local) for local in (False, True))
    with pytest.raises(UserError, match=r"judges\.m: 1 texts .*may pass texts on; .* judges\.m\.local: true\)"):
        privacy_guard.may_ask("judges.m", away, context(left))
    privacy_guard.may_ask("judges.m", here, context(left))


@pytest.mark.parametrize("name", SERVERS)
def test_presets_of_servers_say_nothing_of_themselves(name: str) -> None:
    known = presets()
    assert beyond(f"judges.{name}", check(LanguageModel, known[name], name)) is not None
    said = check(LanguageModel, complete(name, {"local": True}, known, name), name)
    assert beyond(f"judges.{name}", said) is None


def test_the_word_holds_for_one_address_and_one_model() -> None:
    """A server may run one model itself and pass on what another is asked."""
    mine: dict[str, Settings] = {"mine": {"kind": "openai", "base_url": HERE, "model": "m", "local": True}}
    changes: list[Settings] = [{"base_url": "https://gate.example"}, {"model": "m-cloud"}, {"kind": "anthropic"}]
    for change in changes:
        assert "local" not in complete("x", {"preset": "mine", **change}, mine, "judges.x")
    assert complete("x", {"preset": "mine", "concurrency": 2}, mine, "judges.x")["local"] is True


def test_a_proxy_takes_the_word_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://u:secret@127.0.0.1:7890")
    why = beyond("judges.m", model(base_url=HERE, local=True)) or ""
    assert "through a proxy; add 127.0.0.1 to the variable no_proxy" in why
    assert "secret" not in why


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kind": "anthropic"},
        {"base_url": "https://api.openai.com/v1"},
        {"base_url": "https://API.DeepSeek.com"},
        {"base_url": "https://api.anthropic.com", "kind": "anthropic"},
    ],
)
def test_no_vendor_is_local(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="local: true says that texts stay"):
        model(local=True, **settings)


def test_the_word_changes_no_answer_and_no_vector() -> None:
    """Or a user who adds the line would pay again."""
    one, other = (model(base_url=HERE, local=local) for local in (False, True))
    assert PROVIDERS.load("openai").identify(one) == PROVIDERS.load("openai").identify(other)
    api: Settings = {"kind": "api", "base_url": HERE, "model": "m", "dim": 3}
    given = context(Path(), encoders={"a": api, "b": {**api, "local": True}})
    assert build.encoder(given, "a").revision == build.encoder(given, "b").revision


def test_built_in_kinds_say_what_they_do() -> None:
    for registry in (ENCODERS, RETRIEVERS, JUDGES):
        for name in registry.builtin:
            made = registry.load(name)
            assert "egress" in vars(made), name
            assert (vars(made)["egress"] == "local") is (name not in ADDRESSED), name
    assert {getattr(PROVIDERS.load(name), "egress", None) for name in PROVIDERS.builtin} == {"remote"}


class Frank(Letters):
    egress = "local"


class Misspelt(Letters):
    egress = "Local"


def test_the_contract_of_plugins_knows_two_words() -> None:
    check_encoder(Frank)
    with pytest.raises(AssertionError, match="egress"):
        check_encoder(Misspelt)


def test_an_encoder_of_a_package_is_remote_unless_it_says_otherwise(left: Path) -> None:
    silent, frank = (
        privacy_guard.guarded(Letters("mine"), context(left)),
        privacy_guard.guarded(Frank("mine"), context(left)),
    )
    with pytest.raises(UserError, match=r'encoders\.mine: 1 texts .* egress = "local"'):
        silent.encode(["a"], "query")
    with pytest.raises(UserError, match=r"encoders\.mine: 1 texts"):
        pickle.dumps(silent)  # on its way to another process, where nobody looks
    assert frank.encode(["a"], "query").shape == (1, frank.dim)
    free = privacy_guard.guarded(Letters("mine"), context(left / "other"))
    assert isinstance(pickle.loads(pickle.dumps(free)), Letters)


class Found:
    """A retriever of a package."""

    name, identity = "mine", "1"
    facts, notes = {"hits": 1}, ("a word",)

    def search(self, *_given: object) -> Sequence[Any]:
        return [[]]


def test_a_retriever_of_a_package_is_remote_unless_it_says_otherwise(left: Path) -> None:
    found: Any = Found()
    silent: Any = privacy_guard.guarded_retriever(found, context(left))
    with pytest.raises(UserError, match=r"retrievers\.mine: 1 texts"):
        silent.search(None, [], 1, None)
    free: Any = privacy_guard.guarded_retriever(found, context(left / "other"))
    assert free.search(None, [], 1, None) == [[]]
    assert (free.facts, free.notes) == ({"hits": 1}, ("a word",))


def test_a_judge_of_a_package_is_remote_unless_it_says_otherwise(left: Path) -> None:
    class Asking:
        name = "mine"

    class Thinking(Asking):
        egress = "local"

    def seat(judge: Any, work: Any) -> HeuristicState:
        key: Any = None
        return HeuristicState("mine", judge, {}, key, work)

    with pytest.raises(UserError, match=r"judges\.mine: 1 texts"):
        need_masked([seat(Asking(), [1])], context(left))
    need_masked([seat(Thinking(), [1]), seat(Asking(), [])], context(left))


def test_a_provider_of_a_package_may_say_that_it_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Inside:
        egress = "local"

    monkeypatch.setattr("curate.core.registry.Registry.load", lambda _self, _kind: Inside)
    assert beyond("judges.m", ProviderConfig(kind="inside", model="m")) is None


def test_what_a_plugin_sends_is_stopped_unless_the_user_says_that_it_stays(left: Path) -> None:
    may_send = build.kit(context(left)).may_send
    with pytest.raises(UserError, match=r"retrievers\.mine: 1 texts .* retrievers\.mine\.local: true"):
        may_send("retrievers.mine", HERE)
    may_send("retrievers.mine", HERE, True)


@pytest.mark.parametrize(
    ("allow", "address", "passes"),
    [
        (None, "https://anywhere.example", True),
        ((), "http://127.0.0.1:8000/v1", False),
        (("api.openai.com",), "https://api.openai.com/v1", True),
        (("API.OpenAI.com",), "https://api.openai.com:8443/v1", True),
        (("api.openai.com:443",), "https://api.openai.com/v1", True),
        (("api.openai.com:443",), "http://api.openai.com/v1", False),
        (("openai.com",), "https://api.openai.com/v1", False),
        (("*.openai.com",), "https://api.openai.com/v1", True),
        (("*.openai.com",), "https://api.notopenai.com/v1", False),
        (("api.openai.com",), "https://api.openai.com.example/v1", False),
        (("api.openai.com",), "https://api.openai.com@example.org/v1", False),
        (("[::1]:8000",), "http://[::1]:8000/v1", True),
        (("127.0.0.1:8000",), "http://127.0.0.1:8001/v1", False),
    ],
)
def test_a_list_of_hosts(allow: tuple[str, ...] | None, address: str, passes: bool) -> None:
    hosts = egress.AllowedHosts(allow=allow)
    if passes:
        hosts.refuse("judges.m", (address,))
        return
    with pytest.raises(ConfigError, match=r"judges\.m: found the host .*egress\.allow"):
        hosts.refuse("judges.m", (address,))


@pytest.mark.parametrize("entry", ["https://api.openai.com", "api.openai.com/v1", "", "me@host", "host:port"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a host such as"):
        check(egress.AllowedHosts, {"allow": [entry]}, "egress")


def test_what_does_not_tell_its_address_is_not_reached_where_there_is_a_list() -> None:
    hosts = egress.AllowedHosts(allow=("api.openai.com",))
    with pytest.raises(ConfigError, match="does not say where it sends texts"):
        hosts.refuse("encoders.mine", egress.addresses(object()))
    hosts.refuse("encoders.use", egress.addresses(ENCODERS.load("use")("use", None)))


def test_no_judge_of_a_panel_is_asked_while_one_may_not_be_reached(tmp_path: Path) -> None:
    name = tiny(tmp_path)
    with vendor(lambda _query, _text: "S") as server:
        host = server.url.split("/")[2]
        price = "price: {currency: USD, input: 1.0, output: 1.0, date: '2026-11-01'}"
        listed = tmp_path / name
        listed.write_text(f"{listed.read_text('utf-8')}egress: {{allow: ['{host}']}}\n", "utf-8")
        judges = [
            f"judges.near={{kind: openai, model: m, base_url: '{server.url}', local: true, {price}}}",
            f"judges.far={{kind: openai, model: m, base_url: 'https://far.example.org/v1', {price}}}",
        ]
        words = [word for each in (*judges, "judge.models=[near, far]") for word in ("--set", each)]
        done = curate(tmp_path, "run", name, "--yes", *words)
        assert done.returncode == 2
        assert "judges.far: found the host far.example.org, which is none of egress.allow" in done.stderr
        assert not server.calls
