"""`curate train`: a small model learns made triples; its test score, resumption, and what is refused."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.commands.train import loading
from curate.commands.train.command import PlannedTraining, TrainCommand, train
from curate.commands.train.fitting import COMPLETE
from curate.core.errors import ConfigError, DataError, RunFailed
from curate.core.protocols import Benchmark
from curate.system.files import frame
from curate.testing import ListCorpus
from tests.support import machine
from tests.support.evaluating import written
from tests.support.runs import curate
from tests.support.small import full_disk
from tests.support.small_models import small_model

TOPICS = [f"topic{at}" for at in range(40)]
FEW = {"steps": 12, "batch": 8, "rate": 3e-3, "negatives": 2, "eval_every": 6, "seeds": 1}


def held(folder: Path, topics: list[str]) -> Path:
    """Write an export whose queries ask for topics by another word."""
    texts = {f"d{at}": f"text {topic} about" for at, topic in enumerate(TOPICS)}
    labels = [{"query_id": f"q{at}", "doc_id": f"d{TOPICS.index(each)}", "score": 1} for at, each in enumerate(topics)]
    queries = [{"query_id": f"q{at}", "text": f"which {each} test", "source": ""} for at, each in enumerate(topics)]
    made = Benchmark(
        name="made",
        language="en",
        queries=frame("queries", queries),
        corpus=ListCorpus(texts),
        qrels=frame("qrels", labels),
        candidates=frame("qrels"),
        verdicts=frame("verdicts"),
        facts={},
    )
    return written(made, folder / "export" / "mteb").parent


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, triples and a test set."""
    folder = tmp_path_factory.mktemp("train")
    small_model(folder / "base", [*TOPICS, "text", "about", "what", "is", "which", "test"])
    rows = [
        {
            "anchor": f"what is {each}",
            "positive": f"text {each} about",
            "negative_1": f"text {TOPICS[at - 1]} about",
            "negative_2": f"text {TOPICS[at - 2]} about",
        }
        for at, each in enumerate(TOPICS)
    ]
    (folder / "triples.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    held(folder, TOPICS[:20])
    return folder


def command(place: Path, out: Path, settings: dict[str, Any] | None = None, **options: Any) -> TrainCommand:
    """Return the command on the triples of a folder, by default of one short seed."""
    defaults: dict[str, Any] = {
        "triples": place / "triples.jsonl",
        "base": str(place / "base/model"),
        "test": place / "export",
        "settings": {"train": FEW | (settings or {})},
        "out": out,
        "few_seeds": True,
    }
    return TrainCommand(**defaults | options)


def test_a_model_is_trained_scored_once_and_loads_in_any_tool(place: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    found = train(command(place, tmp_path / "out", {"seeds": 2}))
    (test,) = found.test
    assert test.trained > test.base
    assert len(test.seeds) == 2
    assert found.notes[-3].startswith("2 seeds, fewer than 3")
    assert found.seeds[0].dev_after >= found.seeds[0].dev_before
    model = SentenceTransformer(str(tmp_path / "out/model"), device="cpu")
    assert model.encode(["what is topic1"]).shape == (1, 32)
    card = (tmp_path / "out/README.md").read_text("utf-8")
    assert "2 seeds, fewer than 3" in card
    assert not list((tmp_path / "out/seeds").rglob("checkpoint-*"))
    before = (tmp_path / "out/train.json").read_bytes()
    train(command(place, tmp_path / "out", {"seeds": 2}))
    assert (tmp_path / "out/train.json").read_bytes() == before, "nothing is trained twice"
    with pytest.raises(ConfigError, match="other settings lies there"):
        train(command(place, tmp_path / "out", {"seeds": 2, "rate": 1e-4}))


@pytest.mark.parametrize(
    "settings",
    [
        {"part": "map", "freeze": "documents", "rate": 1e-2},
        {"freeze": "documents", "lora": {"rank": 4}, "merge": 0.5},
        {"recipe": "joint", "mrl": (16,)},
        {"lora": {"rank": 4}},
    ],
    ids=["map", "lora-frozen-merged", "joint-mrl", "lora"],
)
def test_every_recipe_writes_a_model(place: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    from sentence_transformers import SentenceTransformer

    train(command(place, tmp_path / "out", settings))
    base, model = (
        SentenceTransformer(str(each), device="cpu") for each in (place / "base/model", tmp_path / "out/model")
    )
    texts = ["text topic1 about", "text topic2 about"]
    same = np.allclose(base.encode_document(texts), model.encode_document(texts), atol=1e-6)
    assert same == ("freeze" in settings)
    assert (tmp_path / "out/model/query").is_dir() == ("freeze" in settings or settings.get("recipe") == "joint")


def test_align_learns_the_vectors_of_the_document_model(place: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    words = [*TOPICS, "text", "about", "what", "is", "which", "test"][::-1]
    student = small_model(tmp_path / "student", words)
    settings = {"recipe": "align", "documents": str(place / "base/model"), "temperature": 0.1, "steps": 40}
    found = train(command(place, tmp_path / "out", settings, base=str(student)))
    assert found.compared_with == str(place / "base/model")
    texts = [f"text {each} about" for each in TOPICS]
    teacher, before, after = (
        SentenceTransformer(str(each), device="cpu").encode(texts)
        for each in (place / "base/model", student, tmp_path / "out/model/query")
    )
    own = [((rows @ teacher.T).argmax(axis=1) == np.arange(len(texts))).mean() for rows in (before, after)]
    assert own[1] > own[0] + 0.2


def test_a_router_of_another_maker_is_aligned_and_then_trained(place: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router

    words = [*TOPICS, "text", "about", "what", "is", "which", "test"][::-1]
    query, document = (
        SentenceTransformer(str(each), device="cpu")
        for each in (small_model(tmp_path / "student", words), place / "base/model")
    )
    both = Router.for_query_document([*query], [*document], default_route="query")
    SentenceTransformer(modules=[both], device="cpu").save(str(tmp_path / "router"))
    settings = {"recipe": "align", "temperature": 0.1, "steps": 40}
    first = train(command(place, tmp_path / "aligned", settings, base=str(tmp_path / "router")))
    assert first.compared_with == str(tmp_path / "router")
    care = TrainCommand(
        triples=place / "triples.jsonl",
        base=str(tmp_path / "aligned/model"),
        test=place / "export",
        pipeline="care",
        settings={"train": {"steps": 12, "batch": 8, "mrl": [16], "rate": 0.003}},
        out=tmp_path / "joint",
        few_seeds=True,
    )
    assert (care.train_settings().recipe, care.train_settings().frozen) == ("joint", True)
    train(care)
    texts = [f"text {each} about" for each in TOPICS]
    models = [SentenceTransformer(str(tmp_path / each), device="cpu") for each in ("router", "joint/model")]
    assert np.array_equal(*(model.encode_document(texts) for model in models)), "an index stays valid"
    kept = document.encode(texts).T
    own = [((model.encode_query(texts) @ kept).argmax(axis=1) == np.arange(len(texts))).mean() for model in models]
    assert own[1] > own[0] + 0.2
    assert (tmp_path / "joint/model/query/modules.json").is_file()


def test_a_killed_training_goes_on_and_gives_the_same_weights(place: Path, tmp_path: Path) -> None:
    whole = train(command(place, tmp_path / "whole"))

    def killed(label: str, _total: int, done: int) -> None:
        if label == "training" and done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(command(place, tmp_path / "out", progress=killed))
    again = train(command(place, tmp_path / "out"))
    assert again.seeds[0].resumed_from == 6
    assert again.seeds[0].weights == whole.seeds[0].weights


TYPED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
from curate.cli.main import main
main()
"""


def test_ctrl_c_leaves_a_checkpoint_and_the_same_command_goes_on(place: Path, tmp_path: Path) -> None:
    long = {"steps": 120, "eval_every": 10}
    asked = command(place, tmp_path / "out", long)
    values = {**{name: FEW[name] for name in ("batch", "rate", "negatives")}, **long}
    settings = [word for name, value in values.items() for word in ("--set", f"train.{name}={value}")]
    words = ["train", str(asked.triples), "--base", asked.base, "--test", str(asked.test), "--out", str(asked.out)]
    typed = [sys.executable, "-c", TYPED, *words, "--set", "few_seeds=true", "--seeds", "1", *settings]
    process = subprocess.Popen(typed, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not any((tmp_path / "out").rglob(COMPLETE)):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130, said
    assert "stopped; what was finished is kept, and the same command goes on from there" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out/train.json").exists()
    assert (train(asked).seeds[0].resumed_from or 0) >= 10


def test_a_full_disk_is_a_sentence(place: Path, tmp_path: Path) -> None:
    with full_disk(30_000), pytest.raises(RunFailed, match="the disk is full"):
        train(command(place, tmp_path / "out"))
    assert train(command(place, tmp_path / "out")).test


def test_what_is_refused_before_anything_is_trained(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(kind: type[Exception], said: str, settings: dict[str, Any] | None = None, **options: Any) -> None:
        with pytest.raises(kind, match=said):
            train(command(place, tmp_path / "out", settings, **options))

    refused(ConfigError, "--seeds 1: found fewer than 3", few_seeds=False)
    refused(ConfigError, "no such folder", base=str(tmp_path / "none"))
    refused(ConfigError, "recipe align needs a model", {"recipe": "align"})
    shutil.copytree(place / "export", tmp_path / "bare")
    next((tmp_path / "bare").rglob("qrels-*")).unlink()
    refused(DataError, "qrels-.* is missing; export again", test=tmp_path / "bare")
    refused(DataError, "no such file", triples=tmp_path / "none")
    refused(DataError, "there is no such folder.*--legacy", test=Path("NFCorpus"))
    monkeypatch.setattr(loading, "unreachable", lambda _name, _revision: "the hub does not answer")
    refused(ConfigError, "--base org/none: the hub does not answer; give the folder", base="org/none")
    rows = (place / "triples.jsonl").read_text("utf-8").replace("what is topic1", "which topic1 test")
    (tmp_path / "leak.jsonl").write_text(rows, encoding="utf-8")
    refused(DataError, "also queries of the test set", triples=tmp_path / "leak.jsonl")
    assert not (tmp_path / "out").exists()


def test_the_command_plans_and_answers(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "work")
    words = ["train", "triples.jsonl", "--base", "base/model", "--test", "export", "--set", "train.steps=4"]
    data = machine.data(curate(tmp_path / "work", *words, "--plan", "--json").stdout)["plan"]
    assert (data["steps"], data["seeds"], data["queries"] + data["dev_queries"]) == (4, 3, 40)
    assert data["trained_weights"] == data["weights"]
    assert data["memory_bytes"] == 20 * data["weights"]
    estimate = command(place, tmp_path / "x", plan=True)()
    assert isinstance(estimate, PlannedTraining)
    assert estimate.plan.steps == 12
    wrong = curate(tmp_path / "work", *words, "--set", "train.rat=1")
    assert wrong.returncode == 2
    assert "did you mean 'rate'" in wrong.stderr
    ran = curate(tmp_path / "work", "run", "train")
    assert ran.returncode == 2
    assert "curate train" in ran.stderr
