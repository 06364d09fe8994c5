"""Encoders: a server over real HTTP with its faults, and the real models that come inside packages."""

import datetime as dt
import pickle
import shutil
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.ask import build
from curate.core import config as settings
from curate.core.config import Settings
from curate.core.errors import AccessError, ConfigError, CurateError, ProviderError
from curate.core.protocols import Encoder
from curate.retrieval.encoders import ENCODERS
from curate.retrieval.encoders.api import Api, Config
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.vectors import GROUP
from curate.testing import check_encoder
from tests.support.runs import curate, tiny
from tests.support.small import EmbeddingServer, Reply, context, embedding_server, embeddings, letters, minilm

KEY = "sk-very-secret-0123456789"
TEXT = "高血压"
NOW = {"retry-after": "0"}
BUSY: Reply = (429, NOW, {"error": {"message": f"slow down, {KEY}"}})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def api(server: EmbeddingServer | str, **more: Any) -> Api:
    url = server if isinstance(server, str) else server.url
    found = {"base_url": url, "model": "m", "dim": 64, "key_env": "TEST_KEY", "attempts": 3, **more}
    return Api("gte", settings.check(Config, found, "encoders.gte"))


def failure(encoder: Api, kind: type[CurateError]) -> str:
    """Return the error's sentence, after a look for the key in everything that a user could be shown."""
    with pytest.raises(kind) as caught:
        encoder.encode([TEXT], "query")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None, "what httpx says is not shown"
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    assert KEY not in shown
    assert TEXT not in shown
    return str(caught.value)


def test_the_contract_of_a_server() -> None:
    with embedding_server() as server:
        check_encoder(lambda: api(server, query_prompt="问："))


def test_the_key_the_prompts_and_the_batches_that_a_server_sees() -> None:
    texts = ["高血压", "fever", "痛风"]
    with embedding_server() as server:
        encoder = api(server, query_prompt="问：", document_prompt="答：", batch_size=2)
        assert encoder.encode(texts, "query") == pytest.approx(letters([f"问：{text}" for text in texts]))
        assert encoder.encode(texts[:1], "document") == pytest.approx(letters(["答：高血压"]))
    assert [body["input"] for body in server.bodies] == [["问：高血压", "问：fever"], ["问：痛风"], ["答：高血压"]]
    assert {body["model"] for body in server.bodies} == {"m"}
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(("variable", "sent"), [(None, None), ("TEST_KEY", f"Bearer {KEY}")])
def test_a_key_is_sent_without_its_line_break_or_not_at_all_and_a_slash_does_not_matter(
    variable: str | None, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", f"{KEY}\n")
    with embedding_server() as server:
        api(f"{server.url}/", key_env=variable).encode(["a"], "query")
    assert server.headers[0].get("authorization") == sent


def test_rows_are_normalised_and_no_text_gives_none() -> None:
    with embedding_server((200, {}, embeddings([[3.0, 4.0], [0.0, 2.0]]))) as server:
        encoder = api(server, dim=2)
        assert encoder.encode([], "query").shape == (0, 2)
        assert encoder.encode(["a", "b"], "query") == pytest.approx(np.array([[0.6, 0.8], [0, 1]]))
    assert len(server.bodies) == 1


PASSING: list[Reply] = [BUSY, (503, NOW, "<html>"), (500, NOW, {}), (529, NOW, {})]
UNTIMED: Reply = (429, {"retry-after": "soon"}, {})
"""It names no pause, so the pause is ours."""


@pytest.mark.parametrize("faults", [*([fault] * 2 for fault in PASSING), [UNTIMED]])
def test_what_may_pass_is_asked_again(faults: Sequence[Reply]) -> None:
    with embedding_server(*faults) as server:
        assert (api(server).encode(["a"], "query") == letters(["a"])).all()
    assert len(server.bodies) == len(faults) + 1


def test_the_tries_end() -> None:
    with embedding_server(*[(500, NOW, {"error": KEY})] * 9) as server:
        assert failure(api(server), ProviderError) == f"encoders.gte: {server.url}/embeddings answered HTTP 500"
    assert len(server.bodies) == 3


def test_a_date_that_the_server_names_is_kept_to() -> None:
    date = format_datetime(dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(seconds=4), usegmt=True)
    with embedding_server((429, {"retry-after": date}, {})) as server:
        start = time.monotonic()
        api(server).encode(["a"], "query")
    assert time.monotonic() - start > 2, "our own first pause is 0.5 to 1.5 seconds"


def test_a_pause_of_hours_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", slept.append)
    with embedding_server((429, {"retry-after": "7200"}, {}), BUSY) as server:
        assert api(server).encode(["a"], "query").shape == (1, 64)
    assert slept == [300.0, 0.0]


@pytest.mark.parametrize("status", [400, 404, 302])
def test_what_will_not_pass_is_asked_once(status: int) -> None:
    with embedding_server((status, NOW, {"error": {"message": f"{KEY} {TEXT}"}})) as server:
        assert f"answered HTTP {status}; check base_url, model and key" in failure(api(server), ProviderError)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "not JSON",
        [],
        {"data": None},
        {"data": [{"index": 0}]},
        embeddings([]),
        embeddings([[1.0] * 64, [1.0] * 64]),
        {"data": [{"index": 1, "embedding": [1.0] * 64}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        embeddings([[None] * 64]),
    ],
)
def test_a_reply_without_the_right_number_of_embeddings(reply: Any) -> None:
    with embedding_server((200, {}, reply)) as server:
        assert "does not hold 1 embeddings; check base_url" in failure(api(server), ProviderError)
    assert len(server.bodies) == 1


def test_vectors_of_another_length_name_the_setting() -> None:
    with embedding_server() as server:
        found = failure(api(server, dim=768), ConfigError)
    assert found == "encoders.gte.dim: found vectors of length 64, expected 768"


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("variable", "remedy"), [("TEST_KEY", "check the key in $TEST_KEY"), (None, "with key_env")])
def test_a_key_that_is_not_accepted_is_named_by_its_variable(status: int, variable: str | None, remedy: str) -> None:
    with embedding_server((status, NOW, {"error": {"message": f"{KEY} {TEXT}"}})) as server:
        found = failure(api(server, key_env=variable), AccessError)
    assert f"answered HTTP {status}; " in found
    assert found.endswith(remedy)
    assert len(server.bodies) == 1


def test_a_wrong_key_ends_the_command_as_wrong_input_does(tmp_path: Path) -> None:
    assign = (
        "--set=pool.retrievers=[x]",
        "--set=encoders.x={kind: api, base_url: URL, model: m, dim: 64, key_env: MY_KEY}",
    )
    with embedding_server((401, NOW, {"error": {"message": KEY}})) as server:
        words = [each.replace("URL", server.url) for each in assign]
        done = curate(tmp_path, "run", tiny(tmp_path), *words, MY_KEY=KEY)
    assert (done.returncode, len(server.bodies)) == (2, 1)
    assert "answered HTTP 401; check the key in $MY_KEY" in done.stderr
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("length", [0.0, 1e-30, 1e30])
def test_embeddings_of_length_0_are_refused(length: float) -> None:
    data = [{"index": at, "embedding": [length if at else 1.0] * 64} for at in range(2)]
    with embedding_server((200, NOW, {"data": data})) as server:
        encoder = api(server)
        with pytest.raises(ProviderError, match=r"1 of 2 embeddings of .* have the length 0"):
            encoder.encode([TEXT, "another"], "query")
    assert len(server.bodies) == 1, "it is not asked again"


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    found = failure(api(url, attempts=1), ProviderError)
    assert found == f"encoders.gte: no answer from {url}/embeddings (ConnectError)"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"key_env": "NO_SUCH_KEY"},
            r"encoders\.gte\.key_env: no key in \$NO_SUCH_KEY; set it with: export",
        ),
        ({"key_env": "ODD_KEY"}, r"encoders\.gte\.key_env: \$ODD_KEY holds characters that no key has"),
        ({"base_url": "api.example.com"}, r"encoders\.gte\.base_url"),
        ({"base_url": "https://user:secret@example.com/v1"}, r"encoders\.gte\.base_url"),
        ({"dim": 0}, r"encoders\.gte\.dim"),
        ({"batch_size": 0}, r"encoders\.gte\.batch_size"),
    ],
)
def test_wrong_settings_of_a_server(more: Settings, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", "sk-密钥")
    with pytest.raises(ConfigError, match=message) as caught:
        api("http://127.0.0.1:1/v1", **more)
    assert "密钥" not in str(caught.value)


def test_the_revision_holds_what_changes_a_vector_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    base = api("http://h/v1").revision
    for same in ({"key_env": None}, {"batch_size": 1}, {"timeout_s": 1.0}, {"attempts": 1}):
        assert api("http://h/v1", **same).revision == base
    for other in ({"model": "n"}, {"dim": 3}, {"query_prompt": "q"}, {"document_prompt": "d"}):
        assert api("http://h/v1", **other).revision != base
    assert api("http://other/v1").revision != base


# The real models.

MODELS: dict[str, Settings] = {"e5": {}, "use": {}, "minilm": {"kind": "dense", "device": "cpu"}}
PAIRS = [("高血压能喝咖啡吗", "hypertension and coffee"), ("the patient has a fever", "he has a high temperature")]


def made(folder: Path, name: str, **more: Any) -> Encoder:
    """Return a real encoder, built as a stage builds it."""
    found = {"model": minilm(), **MODELS[name], **more} if name == "minilm" else MODELS[name]
    return build.encoder(context(folder, encoders={name: found} if found else {}), name)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Encoder]:
    """Return a function that builds a real encoder once for all tests of this file, which share its rows too."""
    folder = tmp_path_factory.mktemp("real")
    return cache(lambda name, **more: made(folder, name, **more))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_contract_of_real_encoders(
    name: str, tmp_path: Path, real: Callable[..., Encoder], capfd: pytest.CaptureFixture[str]
) -> None:
    folders = count()
    check_encoder(lambda: made(tmp_path / str(next(folders)), name))  # each with a cache of its own
    encoder = made(tmp_path, name)
    texts = [text for pair in PAIRS for text in pair]
    rows = encoder.encode(texts, "document")
    assert rows[2] @ rows[3] > rows[2] @ rows[0], "the English pair is alike"
    assert (made(tmp_path, name).encode(texts, "document") == rows).all()
    assert real(name).encode(texts, "document") == pytest.approx(rows, abs=1e-6)
    assert capfd.readouterr() == ("", "")


def test_e5_tells_roles_apart_and_use_does_not(real: Callable[..., Encoder]) -> None:
    for name, alike in (("e5", False), ("use", True)):
        encoder = real(name)
        assert (encoder.encode(["发热"], "query") == encoder.encode(["发热"], "document")).all() == alike


def test_settings_of_a_dense_model_are_honoured(real: Callable[..., Encoder]) -> None:
    plain = real("minilm")
    asked = real("minilm", query_prompt="query: ", document_prompt="")
    expected = plain.encode(["query: fever", "fever"], "document")
    assert asked.encode(["fever"], "query") == pytest.approx(expected[:1], abs=1e-6)
    assert asked.encode(["fever"], "document") == pytest.approx(expected[1:], abs=1e-6)
    short = real("minilm", max_length=5)  # [CLS] and [SEP] are two of them
    same = short.encode(["one two three four five", "one two three"], "query")
    assert same[0] == pytest.approx(same[1], abs=1e-6)
    whole = plain.encode(["one two three four five", "one two three"], "query")
    assert float(whole[0] @ whole[1]) < 0.99
    half = real("minilm", dtype="bfloat16").encode(["fever"], "query")
    assert np.linalg.norm(half) == pytest.approx(1, abs=1e-6)
    assert 1e-5 < 1 - float(half[0] @ plain.encode(["fever"], "query")[0]) < 1e-2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near_float32(dtype: str, real: Callable[..., Encoder]) -> None:
    texts = [*(text for pair in PAIRS for text in pair), "word " * 300, "a"]
    plain, half = (encoder.encode(texts, "document") for encoder in (real("minilm"), real("minilm", dtype=dtype)))
    cosines = np.einsum("ij,ij->i", plain, half)
    assert cosines.min() >= 0.999
    assert cosines.min() < 1 - 1e-6, "it was another precision"


def dense(folder: Path, model: Path | str, **more: Any) -> str:
    """Return the revision of a dense model, without loading it."""
    encoders: dict[str, Settings] = {"x": {"kind": "dense", "model": str(model), **more}}
    return build.encoder(context(folder, encoders=encoders), "x").revision


@pytest.mark.parametrize(
    ("device", "flags", "dtype"),
    [
        ("cpu", "flags : fpu avx512_bf16 amx_bf16 amx_tile", "bfloat16"),
        ("cpu", "flags : fpu avx512_bf16", "float32"),
        ("cpu", None, "float32"),
        ("mps", "flags : amx_bf16", "float32"),
        ("cuda:1", "flags : amx_bf16", "float16"),
        (None, "flags : amx_bf16", "bfloat16"),
    ],
)
def test_auto_is_a_precision_that_the_machine_is_fast_at_and_so_is_its_cache_key(
    device: str | None, flags: str | None, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curate.retrieval.encoders.dense.CPU", tmp_path / "cpuinfo")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    (tmp_path / "model").mkdir()
    named = {each: dense(tmp_path, tmp_path / "model", dtype=each) for each in ("float32", "float16", "bfloat16")}
    assert dense(tmp_path, tmp_path / "model", dtype="auto", device=device) == named[dtype]


def test_several_devices_give_the_rows_of_one(
    tmp_path: Path, real: Callable[..., Encoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"text {number} " + "word " * (number % 5) for number in range(GROUP + 40)]  # two groups
    alone = real("minilm").encode(texts, "document")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    used: list[str | None] = []
    load = DenseEncoder._load

    def on_cpu(self: DenseEncoder, device: str | None) -> Any:
        used.append(device)
        return load(self, "cpu")

    monkeypatch.setattr(DenseEncoder, "_load", on_cpu)
    both = made(tmp_path, "minilm", device=None)
    assert both.encode(texts, "document") == pytest.approx(alone, abs=1e-6)
    assert used == ["cuda:0", "cuda:1"]
    pickle.loads(pickle.dumps(both)).encode(texts, "document")
    assert used == ["cuda:0", "cuda:1"], "a copy in another process takes no model along, and needs none"


def test_a_copy_in_another_process_reads_its_key_there(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(api("http://127.0.0.1:1/v1"))
    assert KEY.encode() not in data
    monkeypatch.setenv("TEST_KEY", "other")
    assert pickle.loads(data)._headers == {"Authorization": "Bearer other"}


def test_the_cache_key_of_a_dense_model_is_as_documented(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1234")

    def revision(**more: Any) -> str:
        return dense(tmp_path, folder, **more)

    base = revision()
    for same in ({"device": "cuda"}, {"batch_size": 1}, {"trust_remote_code": True}, {}):
        assert revision(**same) == base
    for other in (
        {"query_prompt": ""},
        {"document_prompt": "d"},
        {"max_length": 5},
        {"dtype": "float16"},
        {"revision": "r"},
    ):
        assert revision(**other) != base
    (folder / "weights").write_bytes(b"12345")
    assert revision() != base, "other weights under the same path"


def test_a_copied_folder_is_the_same_model_and_a_trained_one_is_not(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "config.json").write_text("{}")
    (first / "weights").write_bytes(bytes(5_000_000))
    shutil.copytree(first, second, copy_function=shutil.copyfile)  # with other times
    (second / ".DS_Store").write_text("x")
    base = dense(tmp_path, first)
    assert dense(tmp_path, second) == base
    (second / "weights").write_bytes(bytes(4_999_999) + b"1")
    assert dense(tmp_path, second) != base, "the last byte, at the same size"
    (second / "weights").write_bytes(bytes(2_000_000) + b"1" * 1_000_000 + bytes(2_000_000))
    assert dense(tmp_path, second) != base, "a stretch in the middle"


COMMITS = ("1" * 40, "2" * 40)


def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a cache of the hub that holds two commits of org/model, the first one as `main`; return its refs."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    refs = folder / "models--org--model" / "refs"
    refs.mkdir(parents=True)
    for commit in COMMITS:
        snapshot = refs.parent / "snapshots" / commit
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.symlink_to(minilm())
    (refs / "main").write_text(COMMITS[0])
    return refs


def test_another_commit_of_a_model_on_the_hub_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = hub(tmp_path / "hub", monkeypatch)
    base = dense(tmp_path, "org/model")
    assert dense(tmp_path, "org/model") == base
    (refs / "main").write_text(COMMITS[1])
    assert dense(tmp_path, "org/model") != base


def test_the_commit_in_the_key_is_the_one_that_is_loaded(
    tmp_path: Path, real: Callable[..., Encoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = hub(tmp_path / "hub", monkeypatch)
    encoder = made(tmp_path, "minilm", model="org/model")
    (refs.parent / "snapshots" / COMMITS[1]).unlink()
    (refs / "main").write_text(COMMITS[1])  # somebody moves on in between
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else it asks, for minutes, what is not here
    assert encoder.encode(["fever"], "query") == pytest.approx(real("minilm").encode(["fever"], "query"), abs=1e-6)


@pytest.mark.parametrize("path", ["/nowhere/gte", "./nowhere", "~/nowhere"])
def test_a_folder_that_is_not_there_is_found_at_once(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"encoders\.minilm\.model: '.*nowhere.*' cannot be used"):
        build.encoder(context(tmp_path, encoders={"minilm": {"kind": "dense", "model": path}}), "minilm")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"model": "org/nothere"},
            r"encoders\.minilm\.model: 'org/nothere' cannot be used \(.*\); give the name",
        ),
        ({"model": "empty"}, r"encoders\.minilm\.model: 'empty' cannot be used"),
        ({"device": "cudaa"}, r"encoders\.minilm\.device: 'cudaa' cannot be used \(.*\); give cpu, cuda or cuda:N"),
    ],
)
def test_a_model_that_cannot_be_loaded_names_the_setting(
    more: Settings, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else it asks for a while
    with pytest.raises(ConfigError, match=message):
        made(tmp_path, "minilm", **more).encode(["a"], "query")


def test_an_encoder_that_nobody_knows(tmp_path: Path) -> None:
    assert ENCODERS.names() == ["api", "asymmetric", "dense", "e5", "use"]
    with pytest.raises(ConfigError, match="unknown encoder 'dens': did you mean 'dense'"):
        build.encoder(context(tmp_path), "dens")
    with pytest.raises(ConfigError, match=r"encoders\.gte\.kind: found 'dens'; did you mean 'dense'"):
        build.encoder(context(tmp_path, encoders={"gte": {"kind": "dens"}}), "gte")
    with pytest.raises(ConfigError, match=r"encoders\.e5\.threads: unknown key"):
        build.encoder(context(tmp_path, encoders={"e5": {"threads": 2}}), "e5")
    with pytest.raises(ConfigError, match=r"encoders\.dense\.model: is missing"):
        build.encoder(context(tmp_path), "dense")
