"""Encoders that are named without a definition, what a pipeline changes of them, and names that nobody knows."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from curate.ask import build
from curate.core.config import Settings, check
from curate.core.errors import ConfigError
from curate.pipeline.pipeline import Pipeline, find
from curate.pipeline.stage import Context
from curate.retrieval.encoders.dense import Config
from curate.retrieval.encoders.presets import encoder_presets, with_presets
from curate.retrieval.stored_model import unreachable
from curate.runs.completing import retrievers
from curate.runs.runner import Run
from curate.tables.exporters.labels import parts

PAPER = ("gte-multilingual-base", "bge-m3", "Conan-embedding-v1")


def context(folder: Path, encoders: Mapping[str, Settings] | None = None) -> Context:
    return Context(run=folder, out=folder, home=folder, definitions={"encoders": encoders or {}})


def test_every_preset_is_a_model_at_one_commit() -> None:
    assert set(PAPER) <= set(encoder_presets())
    for name, settings in encoder_presets().items():
        config = check(Config, {key: value for key, value in settings.items() if key != "kind"}, name)
        assert re.fullmatch(r"[0-9a-f]{40}", str(config.revision))
        assert config.max_length


def test_presets_agree_with_mteb() -> None:
    mteb = pytest.importorskip("mteb")
    for settings in encoder_presets().values():
        meta = mteb.get_model_meta(settings["model"])
        assert (meta.revision, meta.max_tokens) == (settings["revision"], settings["max_length"])


def test_the_papers_retrievers_are_built_as_typed_without_loading_a_model(tmp_path: Path) -> None:
    made = [build.retriever(context(tmp_path), name) for name in PAPER]
    assert [each.name for each in made] == list(PAPER)
    assert len({str(each.identity) for each in made}) == len(PAPER)


def test_a_pipeline_changes_a_preset_or_names_it_anew() -> None:
    own = with_presets({"bge-m3": {"dtype": "float16"}, "m3": {"preset": "bge-m3"}, "use": {"threads": 2}})
    assert own["bge-m3"] == {**encoder_presets()["bge-m3"], "dtype": "float16"}
    assert own["m3"] == encoder_presets()["bge-m3"]
    assert own["use"] == {"threads": 2}


def test_another_model_is_not_trusted_as_the_presets() -> None:
    own = with_presets({"gte-multilingual-base": {"model": "other/model"}})["gte-multilingual-base"]
    assert own == {"kind": "dense", "model": "other/model", "max_length": 8192}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("BAAI/bge-m3", "write bge-m3; for another model write `encoders: {bge-m3: {kind: dense, model: BAAI"),
        ("conan-embedding-v1", "write Conan-embedding-v1;"),
        ("bge-m4", "did you mean 'bge-m3'?"),
        ("Qwen/Qwen3-Embedding-0.6B", "--set 'encoders.Qwen3-Embedding-0-6B={kind: dense, model: Qwen/"),
        ("gte", "model: ORGANISATION/NAME"),
    ],
)
def test_an_unknown_name_says_what_to_write(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        build.retriever(context(tmp_path), name)


def test_what_the_error_says_to_add_is_read_by_a_pipeline() -> None:
    line = "encoders.Qwen3-Embedding-0-6B={kind: dense, model: Qwen/Qwen3-Embedding-0.6B}"
    head = Pipeline.load(find("demo"), [line]).head
    assert head.encoders["Qwen3-Embedding-0-6B"]["model"] == "Qwen/Qwen3-Embedding-0.6B"


def test_an_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"encoders\.m\.preset: unknown preset 'bge'; .*bge-m3"):
        with_presets({"m": {"preset": "bge"}})


def test_who_retrieved_is_known_by_the_name_on_the_hub_too(tmp_path: Path) -> None:
    made = Run(tmp_path, Pipeline.load(find("cmedteb"))).look("ingest", lambda _config, made: made)
    found = parts(PAPER, {}, made.definitions)["retriever"]
    assert {"BAAI/bge-m3", "Alibaba-NLP/gte-multilingual-base", "TencentBAC/Conan-embedding-v1"} <= set(found)


def test_a_shell_completes_the_papers_names() -> None:
    assert set(PAPER) <= set(retrievers(""))


def test_a_hub_that_does_not_answer_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens at `discard`
    why = unreachable("org/model", None)
    assert why
    assert "cannot be downloaded here, for http://127.0.0.1:9 cannot be reached" in why
    for name in ("modules.json", "config.json"):
        cached = tmp_path / f"models--org--{name.removesuffix('.json')}"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs/main").write_text("c0", encoding="utf-8")
        (cached / "snapshots/c0").mkdir(parents=True)
        (cached / "snapshots/c0" / name).write_text("{}", encoding="utf-8")
        assert unreachable(f"org/{name.removesuffix('.json')}", None) is None, "what is cached needs no hub"


def test_the_papers_pipeline_pools_by_the_papers_names(tmp_path: Path) -> None:
    pipeline = Pipeline.load(find("cmedteb"))
    assert tuple(getattr(pipeline.sections["pool"], "retrievers")) == PAPER  # noqa: B009 - a section of any stage
    known = build.encoder_names(context(tmp_path, {name: dict(each) for name, each in pipeline.head.encoders.items()}))
    assert set(PAPER) <= known
