"""Vectors of evaluated models: kept, cut, in a precision that is checked, in batches that fit, through a side."""

import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from curate.commands.evaluate import loading as precision
from curate.commands.evaluate import scoring, tasks
from curate.commands.evaluate.command import EvaluateCommand, evaluate
from curate.commands.evaluate.loading import BatchSizes, largest
from curate.commands.evaluate.mteb_models import named
from curate.commands.evaluate.scoring import ScoredRound, scored
from curate.commands.evaluate.vector_models import CutModel, StockModel, cut
from curate.core.errors import ConfigError, RunFailed
from curate.pipeline.stage import home
from curate.retrieval.encoders.dense import Config, DenseEncoder
from tests.support.evaluating import benchmark, renamed, sentences, written
from tests.support.written_models import routed, saved

Ran = list[list[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a written export of two tasks over one corpus, retrieval and reranking."""
    return written(benchmark(), tmp_path_factory.mktemp("exports") / "small")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small model that has prompts and reads eight tokens."""
    return saved(tmp_path_factory.mktemp("models") / "tiny", {"query": "q: ", "document": "d: "}, length=8)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep vectors and scores of a test apart."""
    monkeypatch.setenv("CURATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CURATE_VECTORS", raising=False)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Return the texts of every batch that went through a sentence-transformers model."""
    from sentence_transformers import SentenceTransformer

    found: Ran = []
    real = SentenceTransformer._inference

    def counted(self: Any, inputs: list[str], **named: Any) -> Any:
        found.append(list(inputs))
        return real(self, inputs, **named)

    monkeypatch.setattr(SentenceTransformer, "_inference", counted)
    return found


def asked(folder: Path, model: Path | str, **changes: Any) -> EvaluateCommand:
    given: dict[str, Any] = {"models": [str(model)], "baselines": False, "floors": False, "device": "cpu"}
    return EvaluateCommand(folder=folder, **{**given, "out": home() / "evaluation", **changes})


@cache
def stock(folder: Path, model: Path, width: int | None = None) -> dict[str, float]:
    """Return what stock mteb says of a model on a task, of the first coordinates made unit vectors with a width."""
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper

    from curate import load_task

    class Short(SentenceTransformerEncoderWrapper):  # type: ignore[misc]
        def encode(self, *given: Any, **named: Any) -> Any:
            rows = np.asarray(super().encode(*given, **named), np.float32)[:, :width]
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    plain = SentenceTransformerEncoderWrapper if width is None else Short
    made = plain(str(model), device="cpu", model_kwargs={"dtype": "float32"})
    done = mteb.evaluate(made, [load_task(folder)], cache=None, show_progress_bar=False)
    found: dict[str, float] = done.task_results[0].scores["test"][0]
    return found


def scores(
    folder: Path,
    *models: Path | str,
    dims: Sequence[int] = (),
    tell: Callable[[str], None] = lambda _line: None,
    **changes: Any,
) -> ScoredRound:
    """Return what models do on a folder's tasks, without what is made of the scores afterwards."""
    made = named([*map(str, models)], **{"device": "cpu", "tell": tell, **changes})
    return scoring.score_all(made, tasks.in_folder(folder), dims, home() / "evaluations", tell, lambda *_: None)


def mains(found: ScoredRound) -> list[dict[str, float]]:
    return [{each.model: each.main for each in some} for some in found.by_task]


def test_scores_are_those_of_stock_mteb_at_every_width(folder: Path, tiny: Path) -> None:
    found = scores(folder, tiny, dims=(32, 16, 5))
    for task, measure, mine in zip(("retrieval", "reranking"), ("ndcg_at_10", "map_at_10"), mains(found), strict=True):
        assert set(mine) == {"tiny", "tiny@16", "tiny@5"}
        assert mine["tiny"] == pytest.approx(stock(folder / task, tiny)[measure], abs=1e-6)
        width = {"retrieval": 5, "reranking": 16}[task]
        assert mine[f"tiny@{width}"] == pytest.approx(stock(folder / task, tiny, width)[measure], abs=1e-6)
    assert "tiny: has vectors of 32 coordinates and is not scored at 32" in found.notes
    assert [each.name for each in found.models] == ["tiny", "tiny@16", "tiny@5"]


def test_cut_vectors_have_length_1_and_are_those_of_cutting_anew(folder: Path, tiny: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model, task = named([str(tiny)], device="cpu")[0], tasks.in_folder(folder / "retrieval")[0]
    rows: dict[str, Any] = {}

    class Spy(CutModel):
        def encode(self, inputs: Any, **named: Any) -> Any:
            made = super().encode(inputs, **named)
            rows[str(named["prompt_type"].value)] = list(inputs.dataset["text"]), made
            return made

    for width in (31, 8, 1):
        from mteb import evaluate as stock_evaluate

        stock_evaluate(Spy(model.loaded, width), task.made, cache=None, show_progress_bar=False)
        plain = SentenceTransformer(str(tiny), device="cpu")
        for role, call in (("query", plain.encode_query), ("document", plain.encode_document)):
            texts, made = rows[role]
            assert made.shape == (len(texts), width)
            assert np.linalg.norm(made, axis=1) == pytest.approx(1, abs=1e-6)
            assert np.abs(made - cut(call(texts), width)).max() < 1e-6


def test_a_second_task_widths_and_a_rerun_encode_no_document_again(
    folder: Path, tiny: Path, tmp_path: Path, ran: Ran
) -> None:
    scores(folder / "retrieval", tiny)
    documents = {row["text"] for row in tasks.in_folder(folder / "retrieval")[0].data["corpus"]}
    assert documents <= {text for part in ran for text in part}
    ran.clear()
    scores(folder, tiny)  # reranking holds some of the same documents
    assert ran, "queries are encoded each time: their speed is a measurement"
    assert not documents & {text for part in ran for text in part}
    ran.clear()
    scores(folder, tiny, dims=(16, 8))
    assert not documents & {text for part in ran for text in part}
    assert len(ran) == 1, "queries were not remembered; once they are kept, both tasks and widths have them"
    ran.clear()
    scores(folder, tiny, dims=(16, 8, 4))
    assert ran == []
    other = written(renamed(benchmark(), "other"), tmp_path / "other")
    scores(other, tiny, dims=(16,))
    assert not documents & {text for part in ran for text in part}, "another benchmark over the same corpus"
    assert len(ran) == 2, "the queries of its two tasks, for the model; its widths remember them"


def test_vectors_of_other_precision_or_prompt_are_not_mixed_up(folder: Path, tiny: Path, tmp_path: Path) -> None:
    other = saved(tmp_path / "a" / "tiny", {"query": "q: ", "document": "passage: "}, length=8)
    made = []
    for model, dtype in ((tiny, "float32"), (tiny, "bfloat16"), (other, "float32")):
        found = scores(folder / "retrieval", model, dtype=dtype).by_task[0][0]
        assert (found.precision, found.weights) == (dtype, [dtype])
        made.append(found.main)
    assert made[0] != made[2]
    assert made[2] == pytest.approx(stock(folder / "retrieval", other)["ndcg_at_10"], abs=1e-6)


def test_prompt_length_and_cut_texts_stand_in_the_figures_and_on_the_page(folder: Path, tiny: Path) -> None:
    from transformers import AutoTokenizer

    score: Any = evaluate(asked(folder / "retrieval", tiny)).tasks[0].scores[0]
    seen = {each.role: each for each in score.inputs}
    assert set(seen) == {"queries", "documents"}
    assert [seen[role].prompt for role in ("queries", "documents")] == ["q: ", "d: "]
    texts = tasks.in_folder(folder / "retrieval")[0].data["queries"]["text"]
    pieces = AutoTokenizer.from_pretrained(str(tiny))([f"q: {text}" for text in texts])["input_ids"]
    assert seen["queries"].cut == pytest.approx(np.mean([len(each) > 8 for each in pieces]), abs=1e-6)
    assert seen["queries"].cut > 0
    assert (seen["queries"].max_length, seen["queries"].looked, seen["queries"].texts) == (8, 10, 10)
    page = (home() / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert "| tiny | 10 queries | `q: ` | 8 |" in page


def test_a_killed_evaluation_goes_on_behind_the_last_model_and_task(
    folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def killed(model: Any, task: Any, *given: Any) -> Any:
        if (model.name, task.name) == ("tiny", "small-reranking-small"):
            raise KeyboardInterrupt
        return scored(model, task, *given)

    with monkeypatch.context() as patch:
        patch.setattr(scoring, "scored", killed)
        with pytest.raises(KeyboardInterrupt):
            scores(folder, "use", tiny, "bm25", tell=told.append)
    assert [line.split(": ")[1].split()[0] for line in told] == ["use", "use", "tiny"]
    told.clear()
    scores(folder, "use", tiny, "bm25", tell=told.append)
    again = [line for line in told if "scored before" not in line]
    assert len(told) == 6
    assert [line.split()[:2] for line in again] == [
        ["small-reranking-small:", "tiny"],
        ["small-retrieval-small:", "bm25"],
        ["small-reranking-small:", "bm25"],
    ]


def test_a_broken_model_is_named_and_the_work_of_the_one_before_is_kept(
    folder: Path, tiny: Path, tmp_path: Path
) -> None:
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{broken")
    for dtype in ("float32", "bfloat16"):
        with pytest.raises(
            ConfigError, match=r"--models .*broken: cannot be loaded \(.*what was scored before it is kept"
        ):
            scores(folder / "retrieval", tiny, broken, dtype=dtype)
    with pytest.raises(ConfigError, match=r"encoders\.b\.model: .*broken' cannot be used"):
        DenseEncoder("b", Config(model=str(broken), device="cpu")).load()
    told: list[str] = []
    scores(folder / "retrieval", tiny, tell=told.append)
    assert [line.endswith("(scored before)") for line in told] == [True]


def test_one_model_is_in_memory_at_a_time(folder: Path, tiny: Path, tmp_path: Path) -> None:
    models = named([str(tiny), str(saved(tmp_path / "second", length=8))], device="cpu")
    held: list[list[str]] = []
    scoring.score_all(
        models,
        tasks.in_folder(folder / "retrieval"),
        (),
        tmp_path / "kept",
        lambda _line: held.append([each.name for each in models if "loaded" in vars(each)]),
        lambda *_: None,
    )
    assert held == [["tiny"], ["second"]]


@pytest.mark.parametrize("role", ["query", "document"])
def test_a_batch_that_does_not_fit_is_halved_and_told(
    folder: Path, tiny: Path, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real model on this processor, whose memory is said to end at so many texts; a GPU is not needed for that."""
    import torch
    from sentence_transformers import SentenceTransformer

    real, room, told = SentenceTransformer._inference, 3, list[str]()

    def small(self: Any, inputs: list[str], **named: Any) -> Any:
        if named["task"] == role and min(named["batch_size"], len(inputs)) > room:
            raise torch.OutOfMemoryError("so many texts do not fit")
        return real(self, inputs, **named)

    expected = stock(folder / "retrieval", tiny)["ndcg_at_10"]
    monkeypatch.setattr(SentenceTransformer, "_inference", small)
    found = scores(folder / "retrieval", tiny, tell=told.append).by_task[0][0]
    assert found.main == pytest.approx(expected, abs=1e-6)
    halved = [line for line in told if "out of memory" in line]
    assert halved[0] == "tiny: out of memory with batches of 32 texts; on with batches of 16"
    assert halved[-1] == "tiny: out of memory with batches of 4 texts; on with batches of 2"
    room = 0
    with pytest.raises(torch.OutOfMemoryError):
        scores(folder / "retrieval", tiny, dtype="bfloat16")


def test_an_encoder_of_ours_is_given_fewer_texts_when_memory_runs_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curate.retrieval.encoders.use import Use

    real, told = Use.encode, list[str]()

    def small(self: Use, texts: Any, role: Any) -> Any:
        if len(texts) > 6:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        return real(self, texts, role)

    expected = mains(scores(folder / "retrieval", "use"))
    monkeypatch.setenv("CURATE_HOME", str(folder.parent / "fresh"))
    monkeypatch.setattr(Use, "encode", small)
    assert mains(scores(folder / "retrieval", "use", tell=told.append)) == expected
    assert "use: out of memory with batches of 256 texts; on with batches of 128" in told, "documents"
    assert "use: out of memory with batches of 32 texts; on with batches of 16" in told, "queries"


@pytest.mark.parametrize(("room", "expected"), [(10_000, 512), (100, 64), (32, 32), (20, 16), (1, 1)])
def test_the_largest_batch_that_fits_is_found_by_doubling(room: int, expected: int) -> None:
    import torch

    tried = []

    def run(size: int) -> None:
        tried.append(size)
        if size > room:
            raise torch.OutOfMemoryError

    assert largest(run, texts=600) == expected
    assert max(tried) <= 600
    sizes = BatchSizes("m", lambda _line: None, grows=True)
    sizes.prepare("document", 600, run)
    assert sizes.size == expected
    assert sizes.lost["document"] > 0


def test_batches_grow_on_a_gpu(folder: Path, tiny: Path) -> None:
    """Growing needs no GPU, only to be asked for."""
    model, task = named([str(tiny)], device="cpu")[0], tasks.in_folder(folder / "retrieval")[0]
    model.loaded.sizes.grows = True
    found, _ = scored(model, task, folder.parent / "kept")
    assert found.main == pytest.approx(stock(folder / "retrieval", tiny)["ndcg_at_10"], abs=1e-6)
    assert found.batch is not None
    assert model.loaded.aside >= model.loaded.sizes.lost["query"] > 0


def test_several_devices_give_the_scores_of_one(folder: Path, tiny: Path) -> None:
    model = named([str(tiny)], device="cpu, cpu")[0]
    assert isinstance(model.loaded, StockModel)
    assert (model.loaded.lanes, model.device) == (2, "cpu, cpu")
    found = mains(scores(folder / "retrieval", tiny, device="cpu,cpu"))
    assert found[0]["tiny"] == pytest.approx(stock(folder / "retrieval", tiny)["ndcg_at_10"], abs=1e-6)


def test_a_precision_is_chosen_by_what_every_gpu_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    at: list[str] = []
    new = {"cuda:0", "cuda:1"}

    class Here:
        def __init__(self, place: str) -> None:
            at.append(place)

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(torch.cuda, "device", Here)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_named: at[-1] in new)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert precision.devices(None) == ["cuda:0", "cuda:1"]
    assert precision.dtype_for("auto", ["cuda:0", "cuda:1"]) == "bfloat16"
    assert precision.dtype_for("auto", ["cuda:0", "cuda:2"]) == "float32", "float16 is never chosen"
    assert precision.dtype_for("auto", ["cpu"]) == "float32"
    assert precision.dtype_for("float16", ["cuda:2"]) == "float16"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert precision.devices(None) == [None]


def test_a_precision_is_compared_with_float32_before_anything_is_scored(
    folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: Any = evaluate(asked(folder / "retrieval", tiny, dtype="bfloat16")).tasks[0].scores[0].precision_check
    assert checked.texts == 42
    assert 0.999 <= checked.lowest <= checked.mean < 1
    page = (home() / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert "| tiny | bfloat16 | 42 | 0.99" in page
    monkeypatch.setattr("curate.retrieval.vectors.cache.LEAST", 1.1)
    with pytest.raises(RunFailed, match=r"small-retrieval-small, tiny: in float16 the vectors .* lowest cosine"):
        scores(folder / "retrieval", tiny, dtype="float16")


def test_a_nan_stops_before_and_while_scoring(folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    real = SentenceTransformer._inference

    def overflow(self: Any, inputs: list[str], **named: Any) -> Any:
        rows = real(self, inputs, **named)
        half = next(self.parameters()).dtype == torch.float16
        if half or named["task"] in broken:
            rows[0, 0] = float("nan")
        return rows

    broken: list[str] = []
    monkeypatch.setattr(SentenceTransformer, "_inference", overflow)
    with pytest.raises(RunFailed, match=r"in float16 \d+ of \d+ vectors hold NaN.*--set dtype=float32"):
        scores(folder / "retrieval", tiny, dtype="float16")
    for role in ("query", "document"):
        broken[:] = [role]
        with pytest.raises(RunFailed, match="NaN or infinity"):
            scores(folder / "retrieval", tiny)


def test_a_router_is_scored_as_stock_does_and_says_where_sentences_go(folder: Path, tmp_path: Path) -> None:
    model = routed(tmp_path / "router")
    found = scores(folder / "retrieval", model)
    assert mains(found)[0]["router"] == pytest.approx(stock(folder / "retrieval", model)["ndcg_at_10"], abs=1e-6)
    seen = {each.role: each for each in found.by_task[0][0].inputs}
    assert {role: each.route for role, each in seen.items()} == {"queries": "query", "documents": "document"}
    assert (seen["queries"].max_length, seen["queries"].cut) == (None, 0.0), "a table reads whole texts"
    assert seen["documents"].max_length == 64
    place = sentences(tmp_path / "sts")
    pairs = scores(place, model)
    assert mains(pairs)[0]["router"] == pytest.approx(stock(place, model)["cosine_pearson"], abs=1e-6)
    assert any("encodes both sentences by its query side" in note for note in pairs.notes)


def test_a_length_limits_only_the_sides_that_have_one(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    folder = routed(tmp_path / "router")
    text = "one two three four five six seven eight nine ten eleven twelve"
    whole, short = (DenseEncoder("r", Config(model=str(folder), max_length=length)) for length in (None, 6))
    assert np.allclose(whole.encode([text], "query"), short.encode([text], "query"))
    assert not np.allclose(whole.encode([text], "document"), short.encode([text], "document"), atol=1e-3)
    table: Callable[[], Any] = lambda: SentenceTransformer(str(folder), device="cpu")[0].sub_modules["query"][0]  # noqa: E731
    assert isinstance(table(), StaticEmbedding)
    SentenceTransformer(modules=[table()], device="cpu").save(str(tmp_path / "table"))
    with pytest.raises(ConfigError, match=r"max_length: 6 cannot be set.*leave it out"):
        DenseEncoder("t", Config(model=str(tmp_path / "table"), max_length=6)).load()


def test_a_model_without_vectors_is_scored_once_at_all_widths(folder: Path) -> None:
    found = scores(folder / "retrieval", "bm25", "use", dims=(256, 512))
    assert [each.model for each in found.by_task[0]] == ["bm25", "use", "use@256"]
    assert (found.by_task[0][0].width, found.by_task[0][0].inputs) == (None, [])
    assert [each.queries_a_second is None for each in found.by_task[0]] == [False, False, True]


@pytest.mark.parametrize("text", ["", "0", "12,x", "-3", "1.5", "²"])
def test_widths_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected numbers of coordinates"):
        scoring.widths_of(text)


def test_models_that_mteb_loads_keep_its_arguments_and_get_a_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    from mteb.models import SentenceTransformerEncoderWrapper

    from curate.commands.evaluate import loading

    given: list[dict[str, Any]] = []
    meta = SimpleNamespace(
        loader=SentenceTransformerEncoderWrapper,
        loader_kwargs={"model_kwargs": {"torch_dtype": "float16", "attn_implementation": "eager"}},
        load_model=lambda **named: given.append(named),
    )
    mteb = SimpleNamespace(get_model_meta=lambda _name, **_named: meta)
    monkeypatch.setattr(loading, "imported", lambda: mteb)
    loading.by_name("some/model")("cuda:1", "bfloat16")
    meta.loader = lambda **_named: None
    loading.by_name("some/model")("cpu", "bfloat16")
    assert given == [
        {"device": "cuda:1", "model_kwargs": {"attn_implementation": "eager", "dtype": "bfloat16"}},
        {"device": "cpu"},
    ]
