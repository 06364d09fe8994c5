"""Labelled texts, pairs and levels: our items make stock mteb's score, and floors stand beside the models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from curate import load_task
from curate.commands.evaluate import tasks
from curate.commands.evaluate.command import EvaluateCommand, evaluate
from curate.commands.evaluate.floors import floors, random_vectors
from curate.commands.evaluate.mteb_models import EvaluatedModel
from curate.commands.evaluate.scoring import scored
from curate.core.errors import UserError
from curate.tables import kinds as registry
from tests.support import labelled_tasks as written
from tests.support.labelled_tasks import texts


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the kinds of these folders, as entry points would."""
    for name, path in written.KINDS.items():
        monkeypatch.setitem(registry.KINDS.builtin, name, path)
    registry.kind.cache_clear()
    yield
    registry.kind.cache_clear()


def letters(name: str = "letters", dim: int = 40) -> EvaluatedModel:
    """Return a model whose vectors are counts of letters: fast, and better than nothing."""
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta

    class Letters(AbsEncoder):  # type: ignore[misc]
        mteb_model_meta = ModelMeta.create_empty({"name": f"test/{name}", "revision": "1"})

        def __init__(self) -> None:
            pass

        def encode(self, inputs: Any, **_named: Any) -> Any:
            rows = [text for batch in inputs for text in batch["text"]]
            alphabet = dict.fromkeys("".join(rows))
            vectors = dict(zip(alphabet, random_vectors([name + each for each in alphabet], dim), strict=True))
            return np.array([sum(vectors[letter] for letter in row) for row in rows])

    return EvaluatedModel(name, "1", Letters)


def stock(folder: Path, model: EvaluatedModel) -> dict[str, Any]:
    """Return what stock mteb says of a task that nobody used before."""
    import mteb

    done = mteb.evaluate(model.loaded, [load_task(folder)], cache=None, show_progress_bar=False)
    found: dict[str, Any] = done.task_results[0].scores["test"][0]
    return found


def paired(folder: Path) -> Path:
    """Write pairs of 24 sources: one that means the same, and one that means something else."""
    base, rows = [text for text, _ in texts(24, 5)], list[dict[str, Any]]()
    for place, text in enumerate(base):
        other = base[(place + 5) % 24][: 3 + place % 4] + text[5:]
        rows += [
            {"sentence1": text, "sentence2": f"{text[2:]}吗", "labels": 1, "pair-id": f"p{place}"},
            {"sentence1": text, "sentence2": f"{other}不", "labels": 0, "pair-id": f"p{place}"},
        ]
    return written.pairs(folder, rows)


def levelled(folder: Path, lowest: int = 0) -> Path:
    """Write mixtures of 20 sources with another, in five steps; at the lowest the other side is that of another one."""
    base = [text for text, _ in texts(20, 6)]
    rows = [
        {
            "sentence1": text[: len(text) * step // 4] + base[(place + 3) % 20][len(text) * step // 4 :],
            "sentence2": text if step else base[(place + lowest) % 20],
            "score": step,
            "pair-id": f"p{place}",
        }
        for place, text in enumerate(base)
        for step in range(5)
    ]
    return written.levels(folder, rows)


def labelled(folder: Path) -> Path:
    return written.classification(folder, texts(60, 2), texts(40, 1, "x"))


def clustered(folder: Path) -> Path:
    return written.clustering(folder, texts(60, 1), n_clusters=4)


MAKERS = {"labelled": labelled, "clustered": clustered, "paired": paired, "levelled": levelled}


@pytest.mark.parametrize("name", MAKERS)
def test_items_make_stock_mteb_s_score_whichever_model_comes_first(name: str, tmp_path: Path) -> None:
    folder = MAKERS[name](tmp_path / name)
    [task] = tasks.in_folder(folder)
    for model in (letters("one"), letters("other", 8)):
        found, _ = scored(model, task, tmp_path / "kept")
        assert found.main == stock(folder, model)[task.measure], "the second model gets the draws of the first"
        assert scored(model, task, tmp_path / "kept") == (found, True)
        assert found.queries_a_second


def test_mteb_s_default_of_four_in_a_hundred_is_scored_as_mteb_does(tmp_path: Path) -> None:
    folder = written.clustering(tmp_path / "clustered", texts(200, 1), max_fraction_of_documents_to_embed=0.3)
    text = (folder / "README.md").read_text(encoding="utf-8").replace("max_document_to_embed: 2048", "seed: 42")
    (folder / "README.md").write_text(text, encoding="utf-8")
    found, _ = scored(letters(), tasks.in_folder(folder)[0], tmp_path / "kept")
    assert len(found.queries) == 60
    assert found.main == stock(folder, letters())["v_measure"]


def test_labels_of_several_levels_are_refused(tmp_path: Path) -> None:
    rows = [(text, [label, 0]) for text, label in texts(30, 1)]
    [task] = tasks.in_folder(written.clustering(tmp_path / "clustered", rows, n_clusters=2))
    with pytest.raises(UserError, match="one label per text"):
        scored(letters(), task, tmp_path / "kept")


def test_the_majority_class_and_equal_scores_are_what_they_must_be(tmp_path: Path) -> None:
    test = texts(40, 1, "x")
    [task] = tasks.in_folder(labelled(tmp_path / "labelled"))
    found = {each.model: each for each in floors(task, tmp_path / "kept")}
    assert found["majority class"].main == pytest.approx(
        f1_score([label for _, label in test], [0] * 40, average="macro", zero_division=0), abs=1e-6
    )
    assert {"keyword", "length", "random encoder", "tf-idf"} < found.keys()
    assert found["keyword"].main > found["majority class"].main
    [pairs] = tasks.in_folder(paired(tmp_path / "paired"))
    of_pairs = {each.model: each for each in floors(pairs, tmp_path / "kept")}
    assert of_pairs["all-equal"].main == 0.5
    assert of_pairs["sentence2 alone, keyword"].main > 0.8, "a negation gives the other meaning away"
    assert "sentence1 alone, keyword" not in of_pairs, "both pairs of a source share it"
    assert (of_pairs["all-equal"].floor, of_pairs["overlap"].floor) == ("floor", "shortcut")
    [clusters] = tasks.in_folder(clustered(tmp_path / "clustered"))
    assert {each.model: each.main for each in floors(clusters, tmp_path / "kept")}["all-equal"] == 0


def test_floors_are_kept_and_nothing_of_them_is_undefined(tmp_path: Path) -> None:
    [task] = tasks.in_folder(levelled(tmp_path / "levelled"))
    first = floors(task, tmp_path / "kept")
    assert floors(task, tmp_path / "kept") == first
    assert "all-equal" not in [each.model for each in first], "equal scores have no correlation"
    assert all(np.isfinite(each.main) for each in first)


def test_levels_against_what_belongs_to_another_are_a_control_near_nothing(tmp_path: Path) -> None:
    [task] = tasks.in_folder(levelled(tmp_path / "levelled", lowest=7))
    found = {each.model: each.main for each in floors(task, tmp_path / "kept")}
    assert abs(found["foreign destination"]) < 0.2 < found["overlap"]
    [own] = tasks.in_folder(levelled(tmp_path / "own"))
    assert "foreign destination" not in [each.model for each in floors(own, tmp_path / "kept")]


def test_models_not_above_the_best_shortcut_are_named(tmp_path: Path) -> None:
    for name, make in MAKERS.items():
        make(tmp_path / "export" / name)
    found: Any = evaluate(
        EvaluateCommand(folder=tmp_path / "export", models=["use"], baselines=False, out=tmp_path / "out")
    )
    by_kind = {task.kind: task for task in found.tasks}
    pairs = by_kind["PairClassification"]
    assert (pairs.queries, pairs.rows, pairs.unit) == (24, 48, "sources")
    assert pairs.scores[0].beside["paired accuracy"].value <= 1
    assert not pairs.exchanged
    assert by_kind["Classification"].exchanged
    assert pairs.against_floors.models[0].above is False
    assert any(f"use not above the shortcut `{pairs.against_floors.best}`" in note for note in found.notes)
    levels = by_kind["STS"]
    assert {"rho within source", "strict order"} < levels.scores[0].beside.keys()
    clusters = by_kind["Clustering"].scores[0]
    assert clusters.stock.low <= clusters.stock.value <= clusters.stock.high
    assert clusters.beside["AMI"].value == pytest.approx(clusters.metrics["ami"], abs=1e-5)
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| overlap (shortcut) |" in page
    assert "| random encoder (floor) |" in page
    assert "### Against floors and shortcuts" in page
    json.loads((tmp_path / "out" / "evaluation.json").read_text(encoding="utf-8"))
