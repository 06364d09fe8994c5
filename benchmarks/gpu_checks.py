"""The checks of `benchmarks.gpu`: each yields rows (of what, processor, device, result) or raises what is wrong."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl

from benchmarks import gpu_models, vectors
from benchmarks.gpu_models import Shape
from benchmarks.harness import Place, Watch
from curate.commands.evaluate.loading import FIRST, LARGEST, BatchSizes, collected
from curate.core.protocols import Encoder, Hits, Kit, Retriever, Vectors, quiet
from curate.core.records import Hit, Query
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.retrieval.retrievers.bm25 import Bm25
from curate.retrieval.retrievers.bm25 import Config as Bm25Config
from curate.retrieval.retrievers.reranker import Config as RerankerConfig
from curate.retrieval.retrievers.reranker import Reranker
from curate.retrieval.retrievers.sparse import Config as SparseConfig
from curate.retrieval.retrievers.sparse import SparseRetriever
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import diversify
from curate.retrieval.similarity.exact_search import nearest_by_faiss, top_k
from curate.retrieval.similarity.torch_products import TorchFloat32
from curate.retrieval.vectors.cache import nearness
from curate.testing import ListCorpus

Result = TypeVar("Result")
Products = TypeVar("Products")
Cells = Sequence[str]
Dtype = Literal["float32", "bfloat16", "float16"]
DEPTH, T, N = 500, 0.78, 1
ROOM = 4 << 30
"""Beside the weights: enough for batches of 32 long texts of MiniLM, and too little for 1,024."""
MADE_UP = 128
"""Texts beyond which memory ends on a processor, where a limit cannot be set."""
PIPELINE = """version: 1
name: gpu
language: en
stages: [ingest, mask, diversify, pool, judge, consensus, resolve, export]
ingest: {source: demo-en}
mask: {enabled: false}
diversify: {enabled: false}
encoders: {minilm: {kind: dense, model: %(model)s, device: %(device)s}}
retrievers: {near: {kind: dense, encoder: minilm}}
pool: {retrievers: [bm25, near], depth: 20, size: 20}
judges:
  strict: {kind: lexical, thresholds: {S: 0.9, A: 0.7, B: 0.4, C: 0.2}}
judge: {models: [lexical, strict], allow_weak_judges: true}
export: {small: true, license: apache-2.0}
"""


@dataclass(frozen=True)
class Sizes:
    """How much is computed."""

    documents: int
    queries: int
    items: int
    texts: int
    words: int
    """Of a text that is encoded."""
    long: int
    """Words of a text that memory ends on: beyond 512 tokens it is cut."""
    batch: int
    """Of such texts: larger than memory holds."""
    steps: int
    timed: int
    """Queries of the speed pass."""
    shapes: tuple[Shape, ...]


FULL = Sizes(229_457, 734, 40_000, 256, 64, 600, LARGEST, 200, 1_000, (gpu_models.MINILM, gpu_models.BGE_M3))
SMALL = Sizes(3_000, 20, 600, 8, 16, 20, 2 * MADE_UP, 8, 10, tuple(each.narrow() for each in FULL.shapes))


@dataclass
class Bench:
    """Where and how much is computed, and the models, made once."""

    device: str
    sizes: Sizes
    folder: Path
    _models: dict[str, Path] = field(default_factory=dict)

    def model(self, shape: Shape) -> Path:
        """Return the folder of a model of a shape."""
        if shape.kind not in self._models:
            self._models[shape.kind] = gpu_models.saved(shape, self.folder / shape.kind)
        return self._models[shape.kind]

    @property
    def minilm(self) -> Path:
        """Return the folder of the smaller model."""
        return self.model(self.sizes.shapes[0])

    def encoder(self, model: Path, dtype: Dtype = "float32", device: str | None = None) -> DenseEncoder:
        """Return a dense encoder of this package."""
        return DenseEncoder(model.parent.name, Config(model=str(model), dtype=dtype, device=device or self.device))

    @contextmanager
    def limited(self, room: int) -> Iterator[None]:
        """Leave so many bytes of the device free for this process; on a processor nothing is limited."""
        if self.device == "cpu":
            yield
            return
        import torch

        collected()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + room) / torch.cuda.mem_get_info()[1])
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)


def hold(condition: bool, otherwise: str) -> None:
    """Raise what was found, where a condition does not hold."""
    if not condition:
        raise RuntimeError(otherwise)


def raced(
    bench: Bench, processor: Products, device: Callable[[TorchFloat32], Products], work: Callable[[Products], Result]
) -> tuple[list[Result], list[str]]:
    """Return what the processor and the device come to, and seconds of each; the work is done once before on a device.

    In place of a GPU torch multiplies on the processor.
    """
    import torch

    other = device(TorchFloat32(torch.device(bench.device)))
    work(other)  # a device takes its time to begin
    results, seconds = [], []
    for products in (processor, other):
        with Watch() as watch:
            results.append(work(products))
        seconds.append(f"{watch.wall:.2f} s")
    return results, seconds


def search(bench: Bench) -> Iterator[Cells]:
    """Search exactly, to the depth of a pool: rows and products of both are the same."""
    for kind, make in vectors.SEARCHED.items():
        documents = make(bench.sizes.documents)
        asked, ids = vectors.asked(documents, bench.sizes.queries), [f"d{row:07}" for row in range(len(documents))]
        work = lambda nearest: list(top_k(asked, documents, ids, DEPTH, nearest))  # noqa: E731, B023 - used in this turn
        hits, seconds = raced(bench, nearest_by_faiss, lambda device: device.nearest, work)
        other = sum(not all(map(np.array_equal, one, two)) for one, two in zip(*hits, strict=True))
        hold(other == 0, f"{other} of {len(asked)} queries have other hits on {bench.device}, {kind}")
        yield [f"{len(documents):,} {kind} vectors, {len(asked)} queries, the best {DEPTH}", *seconds, "equal"]


def thinning(bench: Bench) -> Iterator[Cells]:
    """Apply the diversity rule: both drop the same items for the same reasons."""
    items = vectors.near_duplicates(bench.sizes.items)
    work = lambda screen: diversify(items, T, N, screen=screen)  # noqa: E731
    (one, two), seconds = raced(bench, screen_for_pairs("cpu", len(items)), lambda device: device, work)
    other = np.count_nonzero(one.nearest != two.nearest)
    same = np.array_equal(one.similarity, two.similarity, equal_nan=True)
    hold(other == 0 and same, f"{other} of {len(items)} items are decided otherwise on {bench.device}")
    yield [f"{len(items):,} vectors, {np.count_nonzero(~one.kept):,} dropped", *seconds, "equal"]


def precision(bench: Bench) -> Iterator[Cells]:
    """Compare vectors of every precision with those of float32, by cosines."""
    texts = gpu_models.drawn(bench.sizes.texts, bench.sizes.words)
    for shape in bench.sizes.shapes:
        model = bench.model(shape)
        before, rate = _encoded(bench.encoder(model, device="cpu"), texts)
        apart = float(np.median((before @ before.T)[np.triu_indices(len(texts), 1)]))
        for dtype in ("float32", "bfloat16", "float16"):
            rows, faster = _encoded(bench.encoder(model, dtype), texts)
            cosines = np.sum(rows.astype(np.float64) * before.astype(np.float64), axis=1)
            against = "the processor's float32" if dtype == "float32" else "float32"
            nearness(f"{shape.kind}: in {dtype}", "see the rows above", [rows], [before])
            words = f"cosine with {against}: min {cosines.min():.6f}, median {np.median(cosines):.6f}"
            what = f"{shape.layers} layers of {shape.width}, {dtype} (cosine of different texts {apart:.3f})"
            yield [what, f"{rate:.0f} texts/s, float32", f"{faster:.0f} texts/s", words]
            before = rows if dtype == "float32" else before


def _encoded(encoder: DenseEncoder, texts: Sequence[str]) -> tuple[Vectors, float]:
    """Return vectors, and how many texts a second were encoded after a first call."""
    encoder.encode(texts[:2], "document")
    with Watch() as watch:
        rows = encoder.encode(texts, "document")
    return rows, len(texts) / watch.wall


def memory(bench: Bench) -> Iterator[Cells]:
    """Let memory end: batches grow up to there, are halved there, and a float32 copy moves to the processor."""
    texts, told = gpu_models.drawn(bench.sizes.batch, bench.sizes.long), list[str]()
    encoder = bench.encoder(bench.minilm)
    exact = encoder.encode(texts, "document")
    with encoder.borrowed() as model:

        def run(count: int, size: int) -> Vectors:
            if bench.device == "cpu" and size > MADE_UP:
                raise MemoryError("out of memory, made up")
            rows: Vectors = model.encode(texts[:count], batch_size=size, show_progress_bar=False)
            return rows

        with bench.limited(ROOM):
            sizes = BatchSizes("minilm", told.append, grows=True)
            sizes.prepare("document", len(texts), lambda size: run(size, size))
            grown = sizes.sizes["document"]
            rows = sizes.fitting("query", lambda size: run(len(texts), size), len(texts))
    ends = "memory ends" if bench.device == "cuda" else f"memory beyond {MADE_UP} texts is made to end"
    hold(FIRST < grown < len(texts), f"batches grew to {grown} of {len(texts)} texts, though {ends}")
    hold(bool(told), f"batches of {len(texts)} texts were not halved, though {ends}")
    lowest = nearness("minilm: in halved batches", "see the batch sizes", [rows], [exact]).lowest
    yield ["batches grow", "", f"{FIRST} to {grown} texts", f"until {ends}"]
    halved = f"{len(texts)} to {sizes.sizes['query']} texts"
    yield ["batches are halved", "", halved, f"lines told: {len(told)}; cosine with batches of {FIRST}: min {lowest}"]
    yield from copied(bench, texts[:FIRST])


def copied(bench: Bench, texts: Sequence[str]) -> Iterator[Cells]:
    """Make vectors of a float32 copy for which the device has no room."""
    import torch

    exact = bench.encoder(bench.minilm, device="cpu").encode(texts, "document")
    half = bench.encoder(bench.minilm, "bfloat16")
    half.encode(texts, "document")
    make = half.float32_rows("document")
    assert make is not None
    before = torch.cuda.memory_stats().get("num_ooms", 0)
    with bench.limited(8 << 20):
        rows = make(texts)
    moved = torch.cuda.memory_stats().get("num_ooms", 0) - before
    hold(bench.device == "cpu" or moved > 0, "memory did not end, though 8 MiB were left for a copy in float32")
    check = nearness("minilm: the float32 copy", "see encoders", [rows], [exact])
    where = "made on the processor" if moved else "fitted"
    yield ["float32 copy beside bfloat16", "", where, f"cosine with the processor's: min {check.lowest}"]


def evaluation(bench: Bench) -> Iterator[Cells]:
    """Make a pool, which is the same on both devices; score and time models on an export made of it."""
    folder, on = Place(bench.folder, threads=None), bench.device
    text = PIPELINE % {"model": bench.minilm, "device": on}
    (folder.folder / "gpu.yaml").write_text(text, encoding="utf-8")
    pools, scores = {}, {}
    for device in dict.fromkeys(("cpu", on)):
        folder.curate("run", "gpu.yaml", "--run", f"runs/{device}", "--set", f"engine.device={device}")
        pools[device] = pl.read_parquet(folder.folder / f"runs/{device}/pool/pool.parquet")
    hold(pools["cpu"].equals(pools[on]), f"the pool of {on} is not that of the processor")
    yield [f"pool of `curate run`, `engine.device`, {len(pools[on])} pairs", "", "", "equal"]
    for device in pools:
        words = ("--models", f"bm25,{bench.minilm}", "--no-baselines", "--device", device, "--out", f"scores/{device}")
        folder.curate("evaluate", "runs/cpu", *words, "--speed", "--set", f"speed_queries={bench.sizes.timed}")
        scores[device] = folder.read(f"scores/{device}/evaluation.json")
    yield from _timed(scores["cpu"], scores[on], on)


def _timed(processor: Mapping[str, Any], device: Mapping[str, Any], name: str) -> Iterator[Cells]:
    """Compare precision, batch, score and speed of the model, whose folder is named so, in two evaluations."""
    tasks = [each["tasks"][0] for each in (processor, device)]
    rows = [_of_model(each["scores"]) for each in tasks]
    speed = [_of_model(each["speed"]["models"]) for each in tasks]
    hold(speed[1]["device"].startswith(name), f"queries were timed on {speed[1]['device']}, not on {name}")
    check = rows[1]["precision_check"]
    near = f"cosine with float32: min {check['lowest']}" if check else "float32 itself"
    yield ["nDCG@10 and precision", *(f"{each['main']:.4f}, {each['precision']}" for each in rows), near]
    yield ["texts in a batch", *(str(each["batch"]) for each in rows), "grown on a GPU alone"]
    timed = [f"{each['encoding']['qps']:.0f} queries/s, p50 {each['encoding']['p50_ms']:.1f} ms" for each in speed]
    yield [f"speed pass, {speed[1]['encoding']['queries']} queries", *timed, f"on {speed[1]['device']}"]


def _of_model(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next(row for row in rows if row["model"] == "model")


def ranking(bench: Bench) -> Iterator[Cells]:
    """Rank by a cross-encoder and by sparse vectors: both devices find the same documents, but for near ties."""
    texts = gpu_models.documents()[: bench.sizes.texts]
    corpus = ListCorpus({f"d{number:04}": text for number, text in enumerate(texts)})
    queries = [
        Query(f"q{number}", " ".join(text.split()[:8])) for number, text in enumerate(texts[: bench.sizes.queries])
    ]
    for kind, class_name in (("reranker", "CrossEncoder"), ("sparse", "SparseEncoder")):
        folder = gpu_models.ranker(bench.sizes.shapes[0], bench.folder / kind, class_name)
        found, seconds = list[list[list[str]]](), list[str]()
        for device in ("cpu", bench.device):
            retriever = _retriever(kind, folder, device, bench.folder / f"cache-{kind}-{len(found)}")
            with Watch() as watch:
                lists = retriever.search(corpus, queries, 10, quiet)
                found.append([ids for hits in lists for ids in _ids(hits)])
            seconds.append(f"{watch.wall:.1f} s")
        shared = [len({*one} & {*other}) / max(len(one), 1) for one, other in zip(*found, strict=True)]
        same = f"same of a query's best ten: min {min(shared):.0%}"
        hold(min(shared) >= 0.9, f"{kind} on {bench.device}: {same}")
        yield [
            f"{kind}, {len(queries)} queries, {len(texts)} texts",
            *seconds,
            same,
        ]


def _retriever(kind: str, folder: Path, device: str, cache: Path) -> Retriever:
    """Return a reranker over BM25, or a sparse retriever, on a device."""

    def bm25(_name: str = "bm25") -> Retriever:
        return Bm25("bm25", Bm25Config(tokens="english"), Kit(_no_encoder, cache))

    kit = Kit(_no_encoder, cache, retriever=bm25)
    settings = {"model": str(folder), "device": device}
    if kind == "reranker":
        return Reranker(kind, RerankerConfig.model_validate({**settings, "over": "bm25", "depth": 50}), kit)
    return SparseRetriever(kind, SparseConfig.model_validate(settings), kit)


def _no_encoder(name: str) -> Encoder:
    raise RuntimeError(f"no encoder is asked for, but {name!r} was")


def _ids(hits: Hits | Sequence[Hit]) -> list[list[str]]:
    """Return the ids of the documents of each query."""
    if not isinstance(hits, Hits):
        return [[hit.doc_id for hit in hits]]
    ends = np.cumsum(hits.counts)
    return [
        [hits.ids[row] for row in hits.rows[end - count : end]] for end, count in zip(ends, hits.counts, strict=True)
    ]


def training(bench: Bench) -> Iterator[Cells]:
    """Train adapters: the loss falls."""
    folder, steps = Place(bench.folder, threads=None), bench.sizes.steps
    texts = gpu_models.documents()
    rows = [
        {"query": " ".join(text.split()[:8]), "positive": " ".join(text.split()[8:]), "negative": texts[number - 1]}
        for number, text in enumerate(texts)
    ]
    folder.write("triples.jsonl", rows)
    words = ("train", "triples.jsonl", "--base", bench.minilm, "--test", "runs/cpu", "--device", bench.device)
    settings = f"steps={steps} lora.rank=16 lora.alpha=32 rate=0.001 batch=32 negatives=1 eval_every={steps}"
    changes = [word for each in settings.split() for word in ("--set", f"train.{each}")]
    folder.curate(*words, "--seeds", 1, "--set", "few_seeds=true", "--out", "trained", *changes)
    trained = folder.read("trained/train.json")
    [seed] = trained["seeds"]
    losses = [value for _, value in seed["loss"]]
    hold(bool(np.isfinite(losses).all()) and losses[-1] < losses[0], f"the loss did not fall: {losses}")
    speed = f"{seed['seconds']:.1f} s, {steps / seed['seconds']:.1f} steps/s"
    yield [f"{steps} steps of 32, LoRA of rank 16", "", speed, f"loss {losses[0]:.3f} to {losses[-1]:.3f}"]


CHECKS: dict[str, Callable[[Bench], Iterator[Cells]]] = {
    "search": search,
    "thinning": thinning,
    "precision": precision,
    "memory": memory,
    "rerankers, sparse vectors": ranking,
    "`curate evaluate`": evaluation,
    "`curate train`": training,
}
