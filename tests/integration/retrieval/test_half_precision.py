"""A model in half precision is compared with float32 before any of its vectors is kept: once per model and role."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue

from curate.core.errors import ConfigError, RunFailed
from curate.core.protocols import Encoder, Vectors
from curate.core.records import Role
from curate.retrieval.encoders import asymmetric
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.retrieval.stored_model import StoredModel
from curate.retrieval.vectors import CachedEncoder
from curate.system.files import read_json
from tests.support.small_models import small_model

pytest.importorskip("sentence_transformers")
WORDS = ["fever", "cough", "heart", "liver", "pain", "rash", "bone", "blood", "skin", "eye"]
TEXTS = [f"{one} {other}" for one in WORDS for other in WORDS]


@pytest.fixture
def half(tmp_path: Path) -> DenseEncoder:
    return DenseEncoder("x", Config(model=str(small_model(tmp_path / "made", WORDS)), dtype="bfloat16", device="cpu"))


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Role]]:
    """Return how many texts of which role were encoded in float32."""
    found: list[tuple[int, Role]] = []
    real = DenseEncoder._float32_rows

    def counted(self: DenseEncoder, texts: Sequence[str], role: Role) -> Vectors:
        found.append((len(texts), role))
        return real(self, texts, role)

    monkeypatch.setattr(DenseEncoder, "_float32_rows", counted)
    return found


def kept(encoder: Encoder, folder: Path) -> CachedEncoder:
    return CachedEncoder(encoder, folder / "vectors")


def test_it_is_compared_once_per_model_and_role(
    half: DenseEncoder, copies: list[tuple[int, Role]], tmp_path: Path
) -> None:
    kept(half, tmp_path).encode(TEXTS[:3], "document")
    kept(half, tmp_path).encode(TEXTS[:5], "document")
    kept(half, tmp_path).encode(TEXTS, "document")
    kept(half, tmp_path).encode([*TEXTS, "fever"], "document")
    assert copies == [(3, "document"), (64, "document")], "again where twice as many texts are at hand, then no more"
    found = read_json(next(tmp_path.rglob("document-float32.json")))
    assert found["texts"] == 64
    assert 0.999 <= found["lowest"] < 1 - 1e-7
    kept(half, tmp_path).encode(TEXTS[:1], "query")
    assert copies[2:] == [(1, "query")]
    plain = DenseEncoder("y", half.config.model_copy(update={"dtype": "float32"}))
    kept(plain, tmp_path).encode(TEXTS, "document")
    assert len(copies) == 3, "float32 has nothing to be compared with"


def test_each_side_of_two_is_compared(half: DenseEncoder, copies: list[tuple[int, Role]], tmp_path: Path) -> None:
    side: dict[str, JsonValue] = {"kind": "dense", "model": half.config.model, "device": "cpu"}
    two = asymmetric.Asymmetric("two", asymmetric.Config(query=side, document={**side, "dtype": "float16"}))
    for role in asymmetric.SIDES:
        kept(two, tmp_path).encode(TEXTS[:8], role)
    assert copies == [(8, "document")]


def test_what_is_not_near_float32_is_never_kept(
    half: DenseEncoder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def other(_self: DenseEncoder, texts: Sequence[str], _role: Role) -> Vectors:
        rows = np.eye(32, dtype=np.float32)
        return rows[np.arange(len(texts)) % 32]

    monkeypatch.setattr(DenseEncoder, "_float32_rows", other)
    cached = kept(half, tmp_path)
    with pytest.raises(RunFailed, match=r"encoders\.x: in half precision .* lowest cosine .*set encoders\.x\.dtype"):
        cached.encode(TEXTS, "document")
    assert not list((tmp_path / "vectors").rglob("*.rows"))
    assert not list((tmp_path / "vectors").rglob("*float32.json"))


@pytest.mark.parametrize("raised", ["OutOfMemoryError", "OSError"])
def test_a_copy_that_the_gpu_has_no_room_for_is_loaded_on_the_processor(
    half: DenseEncoder, raised: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU that is named alone: its memory is said to end while the copy is loaded there."""
    import builtins

    import sentence_transformers
    import torch

    real, error = sentence_transformers.SentenceTransformer, getattr(torch, raised, None) or getattr(builtins, raised)

    def full(*paths: Any, device: str, **named: Any) -> Any:
        if device == "cuda":
            raise error("no room")
        return real(*paths, device=device, **named)

    expected = half._in_float32("cpu").encode(TEXTS, "document")
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", full)
    monkeypatch.setattr(StoredModel, "_check_device", lambda _stored: None)
    cramped = DenseEncoder("x", half.config.model_copy(update={"device": "cuda"}))
    make = cramped.float32_rows("document")
    assert make is not None
    if raised == "OSError":
        with pytest.raises(ConfigError, match="no room"):
            make(TEXTS)
    else:
        np.testing.assert_array_equal(make(TEXTS), expected)
