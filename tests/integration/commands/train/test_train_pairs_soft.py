"""Recipes `pairs` and `soft`: batches of one source, the loss of soft targets, short trainings, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sentence_transformers")
pytest.importorskip("accelerate")

import torch

from curate.commands.train import TrainSettings, triples
from curate.commands.train.command import TrainCommand, train
from curate.commands.train.losses import NONE, InBatchContrastive, SoftTargets
from curate.core.errors import DataError
from tests.integration.commands.train.test_train import TOPICS, held
from tests.support.small_models import small_model

FEW = {"steps": 24, "batch": 8, "rate": 3e-3, "eval_every": 6, "seeds": 1, "negatives": 2}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    small_model(folder / "base", [*TOPICS, "text", "about", "what", "is", "which", "test"])
    held(folder, TOPICS[:20])
    return folder


def rows() -> Rows:
    """Return queries of two sources, each with three documents of different scores."""
    return [
        {
            "query": f"what is {each}",
            "pos": [f"text {each} about"],
            "neg": [f"text {TOPICS[at - 1]} about", f"text {TOPICS[at - 2]} about"],
            "pos_scores": [3],
            "neg_scores": [1, 0],
            "source": f"source {at % 2}",
        }
        for at, each in enumerate(TOPICS)
    ]


def command(place: Path, folder: Path, given: Rows, **settings: Any) -> TrainCommand:
    path = folder / "triples.jsonl"
    path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    return TrainCommand(
        triples=path,
        base=str(place / "base/model"),
        test=place / "export",
        settings={"train": FEW | settings},
        out=folder / "out",
        few_seeds=True,
    )


class ByColumn(torch.nn.Module):  # type: ignore[misc]
    def forward(self, features: Any) -> Any:
        return {"sentence_embedding": features["rows"]}


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 10_000))
def test_the_soft_loss_is_the_plain_sum(batch: int, width: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    texts = draw.normal(size=(9, 6)).astype(np.float32)
    numbers = np.array([draw.choice(9, size=width, replace=False) for _ in range(batch)])
    grades = {(q, int(d)): float(draw.integers(0, 4)) for q in range(batch) for d in numbers[q]}
    grades |= {(q, int(numbers[q, 0])): 3.0 for q in range(batch)}
    label = np.column_stack([np.arange(batch), numbers, np.full(batch, NONE)])
    asked = draw.normal(size=(batch, 6)).astype(np.float32)
    columns = [asked, *(texts[numbers[:, at]] for at in range(width)), texts[numbers[:, 0]]]
    loss = SoftTargets(ByColumn(), grades, temperature=0.1)
    found = loss([{"rows": torch.tensor(each)} for each in columns], torch.tensor(label))
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (asked, texts)]
    expected, candidates = [], sorted({*numbers.ravel().tolist()})
    for query in range(batch):
        scores = (unit[0][query] @ unit[1][candidates].T / 0.1).astype(np.float64)
        target = np.array([grades.get((query, each), 0.0) for each in candidates])
        expected.append(-(target / target.sum() * (scores - np.log(np.exp(scores).sum()))).sum())
    assert float(found) == pytest.approx(np.mean(expected), abs=1e-4)


def test_the_gradient_is_that_of_small_steps_and_one_graded_document_is_info_nce() -> None:
    torch.manual_seed(1)
    columns = [torch.randn(3, 4, requires_grad=True) for _ in range(3)]
    label = torch.tensor([[0, 0, 3], [1, 1, 4], [2, 2, 5]])
    hard = {(0, 0): 2.0, (1, 1): 1.0, (2, 2): 3.0}

    def of(kind: Any, *, numbers: Any) -> Any:
        return kind([{"rows": each} for each in columns], numbers)

    soft = SoftTargets(ByColumn(), hard | {(0, 3): 1.0, (0, 4): 0.5}, temperature=0.5)
    of(soft, numbers=label).backward()
    slope, step = float(columns[0].grad[0, 0]), 1e-2
    sides = []
    for sign in (1, -1):
        with torch.no_grad():
            columns[0][0, 0] += sign * step
            sides.append(float(of(soft, numbers=label)))
            columns[0][0, 0] -= sign * step
    assert slope == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-3)
    one, other = SoftTargets(ByColumn(), hard, temperature=0.5), InBatchContrastive(ByColumn(), temperature=0.5)
    with torch.no_grad():
        assert float(of(one, numbers=label)) == pytest.approx(float(of(other, numbers=label[:, 1:])), abs=1e-5)


@pytest.mark.parametrize(
    "changed", [{"recipe": "pairs"}, {"recipe": "pairs", "freeze": "documents", "prompt": "what "}, {"recipe": "soft"}]
)
def test_a_short_training_lowers_the_loss(place: Path, tmp_path: Path, changed: dict[str, Any]) -> None:
    asked = command(place, tmp_path, rows(), **changed)
    (seed,) = train(asked).seeds
    curve = [value for _, value in seed.loss]
    assert np.mean(curve[-4:]) < 0.8 * np.mean(curve[:4])
    assert seed.dev_after >= seed.dev_before


def test_a_batch_of_pairs_is_of_one_source_without_a_text_twice(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = rows()
    for at in (3, 5, 7):  # one positive for several queries of a source
        given[at]["pos"] = given[1]["pos"]
    seen: list[list[int]] = []
    forward = InBatchContrastive.forward

    def watched(self: Any, features: Any, labels: Any) -> Any:
        features = list(features)
        assert len(features) == 2, "negatives of the file are left out"
        seen.append(labels.reshape(-1).tolist())
        return forward(self, features, labels)

    monkeypatch.setattr(InBatchContrastive, "forward", watched)
    asked = command(place, tmp_path, given, recipe="pairs")
    train(asked)
    read = triples.read(asked.triples)
    of = {document: source for (_, document), source in read.sources.items()}
    assert all(len({of[each] for each in batch}) == 1 and len({*batch}) == len(batch) for batch in seen)
    assert {of[batch[0]] for batch in seen} == {"source 0", "source 1"}


@pytest.mark.parametrize("recipe", ["pairs", "soft"])
def test_a_killed_training_gives_the_same_weights(place: Path, tmp_path: Path, recipe: str) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = train(command(place, tmp_path / "whole", rows(), recipe=recipe, steps=12))

    def killed(label: str, _total: int, done: int) -> None:
        if label == "training" and done == 9:
            raise KeyboardInterrupt

    asked = command(place, tmp_path / "killed", rows(), recipe=recipe, steps=12)
    with pytest.raises(KeyboardInterrupt):
        train(asked.model_copy(update={"progress": killed}))
    again = train(asked)
    assert again.seeds[0].resumed_from == 6
    assert again.seeds[0].weights == whole.seeds[0].weights


def changed(**columns: Any) -> Rows:
    return [each | columns for each in rows()]


def lacking(name: str) -> Rows:
    return [{key: value for key, value in each.items() if key != name} for each in rows()]


@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        ("pairs", lacking("source"), "pairs have no source"),
        ("pairs", changed(source="one"), "all pairs are of source 'one'"),
        ("pairs", [*rows(), rows()[0] | {"query": "is", "pos": "is", "source": "x"}], "source 'x' has a single pair"),
        ("soft", lacking("neg_scores"), ":1: found None in neg_scores"),
        ("soft", changed(neg_scores=[1]), r":1: found \[1\] in neg_scores, expected .* \(2\)"),
        ("soft", changed(neg_scores=[1, -1]), r":1: found \[1, -1\]"),
        ("soft", changed(neg_scores=[1, float("nan")]), r":1: found \[1, nan\]"),
        ("soft", changed(neg_scores=["high", 1]), "found .*'high'"),
        ("soft", changed(neg_scores=[3, 3]), "1 different values"),
        ("soft", changed(neg_scores=[0, 0]), "2 different values"),
        (
            "soft",
            [*rows(), rows()[0] | {"query": "is", "pos_scores": [0], "neg_scores": [0, 0]}],
            "1 of 41 queries have no document with a score above 0",
        ),
    ],
)
def test_what_is_refused(place: Path, tmp_path: Path, recipe: str, given: Rows, said: str) -> None:
    dev = {"share": 0.01}
    with pytest.raises(DataError, match=said):
        command(place, tmp_path, given, recipe=recipe, dev=dev).model_copy(update={"plan": True})()


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="recipe soft trains documents too"):
        TrainSettings(recipe="soft", freeze="documents")
    with pytest.raises(ValueError, match="recipe pairs has one model"):
        TrainSettings(recipe="pairs", documents="m")
