"""Training on kept vectors: losses against plain sums, sides saved and loaded, curves, kills, disks, odd losses."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.core.errors import ConfigError, RunFailed
from tests.support.small import full_disk

pytest.importorskip("sentence_transformers")
pytest.importorskip("accelerate")

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from curate.commands.train import sides
from curate.commands.train.fitting import COMPLETE, FitOptions, fit, mixed
from curate.commands.train.losses import NONE, Alignment, FrozenContrastive

WORDS = ["fever", "cough", "heart", "liver", "pain", "rash", "bone", "blood"]
TEXTS = [f"{one} {other}" for one in WORDS for other in WORDS if one != other]
WIDTH = 12


def small(seed: int = 1, width: int = WIDTH) -> Any:
    words = Tokenizer(WordLevel({word: place for place, word in enumerate(["?", *WORDS])}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    tokenizer: Any = PreTrainedTokenizerFast
    return sides.static_side(tokenizer(tokenizer_object=words), width=width, seed=seed)


def kept(seed: int = 2) -> Any:
    return small(seed).encode(TEXTS)


def data() -> Any:
    return Dataset.from_dict({"anchor": TEXTS, "label": list(range(len(TEXTS)))})


def cosine_to(vectors: Any) -> Callable[[Any], float]:
    return lambda model: float((model.encode(TEXTS) * vectors).sum(axis=1).mean())


class Fixed(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = torch.tensor(rows)

    def forward(self, features: Any) -> Any:
        return {"sentence_embedding": self.rows}


def unit(count: int, width: int = 6, seed: int = 0) -> Any:
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_alignment_is_info_nce_and_the_summed_squares() -> None:
    mine, theirs = unit(4), unit(9, seed=1)
    rows = [5, 2, 8, 2]
    found = {}
    for contrast, squares in ((True, False), (False, True), (True, True)):
        loss = Alignment(Fixed(mine), theirs, temperature=0.1, contrast=contrast, squares=squares)
        found[contrast, squares] = float(loss([{}], torch.tensor(rows)))
    scores = np.exp(mine @ theirs[rows].T / 0.1)
    scores[1, 3] = scores[3, 1] = 0  # one text is no negative of itself
    expected = -np.log(np.diag(scores) / scores.sum(axis=1)).mean()
    squared = ((mine - theirs[rows]) ** 2).sum(axis=1).mean()
    assert found[True, False] == pytest.approx(expected, abs=1e-5)
    assert found[False, True] == pytest.approx(squared, abs=1e-6)
    assert found[True, True] == pytest.approx(expected + squared, abs=1e-5)
    with pytest.raises(ValueError, match="is no loss"):
        Alignment(Fixed(mine), theirs, contrast=False, squares=False)


def test_kept_vectors_are_cut_to_the_models_width_and_have_unit_length_unless_asked() -> None:
    mine, theirs = unit(3, 4), unit(3, 6, seed=1)
    losses = [
        float(Alignment(Fixed(mine), theirs, contrast=False, normalize=how)([{}], torch.arange(3)))
        for how in ("after", "before")
    ]
    cut = theirs[:, :4]
    for loss, target in zip(losses, (cut / np.linalg.norm(cut, axis=1, keepdims=True), cut), strict=True):
        assert loss == pytest.approx(((mine - target) ** 2).sum(axis=1).mean(), abs=1e-6)
    with pytest.raises(ValueError, match="kept vectors have 4 dimensions, the model 6"):
        Alignment(Fixed(theirs), mine)([{}], torch.arange(3))


def test_a_known_relevant_document_is_never_a_negative() -> None:
    mine, theirs = unit(2), unit(6, seed=1)
    labels = torch.tensor([[0, 3, NONE], [1, 4, 3]])
    free = FrozenContrastive(Fixed(mine), theirs, temperature=0.5)([{}], labels)
    spared = FrozenContrastive(Fixed(mine), theirs, temperature=0.5, spared={0: [0, 1]})([{}], labels)
    for loss, first in ((free, [0, 1, 3, 4]), (spared, [0, 3, 4])):
        expected = []
        for row, positive, candidates in ((0, 0, first), (1, 1, [0, 1, 3, 4])):
            scores = np.exp(mine[row] @ theirs[candidates].T / 0.5)
            expected.append(-math.log(scores[candidates.index(positive)] / scores.sum()))
        assert float(loss) == pytest.approx(np.mean(expected), abs=1e-5)


def test_both_sides_are_saved_as_a_router_and_as_plain_models(tmp_path: Path) -> None:
    query, document = small(1), small(2)
    sides.save_sides(query, document, tmp_path / "model")
    both = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    for role, side in ((sides.QUERY, query), (sides.DOCUMENT, document)):
        expected = side.encode(TEXTS)
        plain = SentenceTransformer(str(tmp_path / "model" / role), device="cpu")
        assert (getattr(both, f"encode_{role}")(TEXTS) == expected).all()
        assert (plain.encode(TEXTS) == expected).all()
    assert (both.encode(TEXTS) == query.encode(TEXTS)).all(), "texts without a role are queries"
    with pytest.raises(ConfigError, match="of 12 dimensions, the document side of 5"):
        sides.router(query, small(2, width=5))


def test_a_map_trained_over_kept_vectors_is_that_of_the_whole_model(tmp_path: Path) -> None:
    base = small(1)
    vectors = base.encode(TEXTS)
    model = sides.map_over_kept(TEXTS, vectors)
    assert model.encode(TEXTS) == pytest.approx(vectors, abs=1e-6)
    rows = Dataset.from_dict({"anchor": TEXTS, "label": [[i, (i + 1) % len(TEXTS)] for i in range(len(TEXTS))]})
    fit(model, rows, FrozenContrastive(model, kept()), FitOptions(20, 16, 0.01, eval_every=10), tmp_path / "fit")
    sides.with_map(base, model).save_pretrained(str(tmp_path / "query"), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path / "query"), device="cpu")
    assert loaded.encode(TEXTS) == pytest.approx(model.encode(TEXTS), abs=1e-5)
    assert abs(model.encode(TEXTS) - vectors).max() > 0.01, "it learned something"


def test_the_query_side_of_a_router_is_trained_and_the_documents_stay(tmp_path: Path) -> None:
    query, document = small(1), small(2)
    vectors = document.encode(TEXTS)
    both = sides.router(query, document)
    options = FitOptions(30, 16, 0.05, eval_every=30, routes={"anchor": "query"})
    before = cosine_to(vectors)(query)
    fit(both, data(), Alignment(both, vectors), options, tmp_path)
    assert (both.encode_document(TEXTS) == vectors).all()
    assert float((both.encode_query(TEXTS) * vectors).sum(axis=1).mean()) > before + 0.3


def test_the_best_step_by_dev_is_kept_and_curves_are_told(tmp_path: Path) -> None:
    scores = iter([0.1, 0.2, 0.9, 0.3, 0.4])
    steps: list[int] = []
    seen: list[Any] = []

    def dev(model: Any) -> float:
        seen.append(model.encode(TEXTS))
        return next(scores)

    model, vectors = small(1), kept()
    options = FitOptions(40, 16, 0.05, eval_every=10)
    found = fit(model, data(), Alignment(model, vectors), options, tmp_path, lambda *row: steps.append(row[2]), dev)
    assert found.best_step == 20
    assert list(found.dev) == [(0, 0.1), (10, 0.2), (20, 0.9), (30, 0.3), (40, 0.4)]
    assert (model.encode(TEXTS) == seen[2]).all(), "the model holds the weights of that step"
    assert found.loss[0][1] > found.loss[-1][1]
    assert (steps[0], steps[-1]) == (0, 40)


class Killed(BaseException):
    """Raised where a kill would end the process."""


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    vectors = kept()
    options = FitOptions(30, 16, 0.05, eval_every=10, no_duplicates=True)

    def run(folder: Path, progress: Any = lambda *_row: None, options: FitOptions = options) -> tuple[Any, Any]:
        model = small(1)
        found = fit(model, data(), Alignment(model, vectors), options, folder, progress, cosine_to(vectors))
        return found, model.encode(TEXTS)

    def kill(_label: str, _total: int, done: int) -> None:
        if done == 17:
            raise Killed

    whole, expected = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "killed", kill)
    half = tmp_path / "killed" / "checkpoint-20"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    found, rows = run(tmp_path / "killed")
    assert found.resumed_from == 10
    assert rows == pytest.approx(expected, abs=1e-6)
    assert dict(found.dev) == pytest.approx(dict(whole.dev))
    assert (tmp_path / "killed" / "checkpoint-20" / COMPLETE).is_file(), "what was half written was written again"
    with pytest.raises(ConfigError, match=r"begun with rate 0\.05, now found 0\.1; repeat the former options"):
        run(tmp_path / "killed", options=FitOptions(30, 16, 0.1, eval_every=10, no_duplicates=True))
    again, _ = run(tmp_path / "killed", options=FitOptions(30, 16, 0.1, eval_every=10, resume=False))
    assert again.resumed_from is None
    assert json.loads((tmp_path / "killed" / "fit.json").read_text())["rate"] == 0.1


def test_a_full_disk_and_a_loss_that_is_no_number_are_sentences(tmp_path: Path) -> None:
    model = small(1)
    with full_disk(500), pytest.raises(RunFailed, match=r"the disk is full .*free space and repeat the command"):
        fit(model, data(), Alignment(model, kept()), FitOptions(4, 8, eval_every=2), tmp_path / "full")
    bad = kept()
    bad[:] = np.nan
    with pytest.raises(RunFailed, match="the loss is nan at step 1, expected a number; lower the rate"):
        fit(model, data(), Alignment(model, bad), FitOptions(4, 8, eval_every=2), tmp_path / "nan")


def test_mixed_precision_is_asked_of_the_gpu() -> None:
    class Torch:
        def __init__(self, there: bool, able: bool) -> None:
            self.cuda = self
            self.is_available = lambda: there
            self.is_bf16_supported = lambda: able

    assert [mixed("auto", Torch(*each)) for each in ((False, True), (True, False), (True, True))] == [
        False,
        False,
        True,
    ]
    assert mixed(True, Torch(False, False))
