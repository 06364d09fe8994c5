"""A pool of the paper's size from vectors and a BM25 index that are there: how long, and in how much memory.

734 queries x 229,457 documents x three dense retrievers and BM25, depth 500, pools of 500. The vectors are drawn (768
dimensions, two in five near another) and lie in files that are mapped into memory; the corpus is put together from
sentences of the packaged demo, or of `--corpus FILE`, JSONL with `text`. One process makes the index of BM25, another
one, whose steps and greatest memory are shown, pools: the retrievers search, then both tables are written. That is
done three times; the steps are those of the run in the middle.

Run: python -m benchmarks.pool [--documents 229457] [--queries 734] [--corpus FILE] [--folder KEEP] [--write]
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import harness, paper
from benchmarks.harness import Watch, share
from curate.commands.pool import stage
from curate.core.config import Json
from curate.core.protocols import Corpus, Encoder, Hits, Kit, Progress, Retriever, quiet
from curate.core.records import Query
from curate.pipeline.configs import PoolConfig
from curate.retrieval.id_mapping import IdMapping
from curate.retrieval.retrievers.bm25 import Bm25, Config
from curate.retrieval.retrievers.dense import in_columns
from curate.retrieval.similarity.exact_search import top_k
from curate.system.corpus import TableCorpus

DENSE = ("one", "two", "three")


class Mapped:
    """Dense retrieval over vectors in a file; the queries' are made of some of them."""

    identity: Json = None

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._path = name, folder / f"{name}.npy"

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[Hits]:
        """Yield each query's `depth` nearest documents, as the kind `dense` does."""
        ids = [doc.doc_id for batch in corpus.batches() for doc in batch]
        progress(f"ids, {self.name}", len(ids), len(ids))
        documents, draw = np.load(self._path, mmap_mode="r"), np.random.default_rng(len(queries))
        asked = np.array(documents[draw.integers(0, len(ids), len(queries))])
        asked += draw.standard_normal(asked.shape, dtype=np.float32) / 50
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
        done = partial(progress, f"searching, {self.name}", len(queries))
        yield from in_columns(top_k(asked, documents, ids, depth, looked=done), ids, done)


def bm25(folder: Path) -> Bm25:
    """Return BM25 with its cache in the folder."""

    def nobody(name: str) -> Encoder:
        raise AssertionError(name)

    return Bm25("bm25", Config(), Kit(nobody, folder / "cache"))


def make(folder: Path, documents: int, queries: int, source: Path | None) -> None:
    """Write all data into a folder, unless it is there."""
    if not (folder / "queries.parquet").exists():
        for number, name in enumerate(DENSE):
            paper.vectors(folder / f"{name}.npy", documents, number)
        paper.corpus(folder, documents, queries, source)


def index(folder: Path) -> dict[str, dict[str, float]]:
    """Make the index of BM25, and return its one step: processes that cut are counted when they are gone."""
    clock = paper.Clock()
    for _ in bm25(folder).search(TableCorpus(folder), [], 1, quiet):
        raise AssertionError
    clock.book("cut and index, bm25")
    return clock.steps


def pooled(folder: Path) -> dict[str, dict[str, float]]:
    """Pool, and return the steps."""
    clock = paper.Clock()
    corpus, queries = TableCorpus(folder), [Query(*row) for row in paper.read_queries(folder)]
    known = IdMapping(corpus.ids().to_frame("id").with_columns(now="id"))
    clock.book("ids")
    retrievers: list[Retriever] = [bm25(folder), *(Mapped(name, folder) for name in DENSE)]
    names = tuple(each.name for each in retrievers)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        stage.write(PoolConfig(retrievers=names), retrievers, corpus, queries, known, Path(out), clock)
        clock.book("fuse, choose, write")
        table = pl.read_parquet(Path(out) / "pool.parquet")
    assert table["query_id"].n_unique() == len(queries)
    return clock.steps


def measured(what: str, folder: Path) -> dict[str, dict[str, float]]:
    """Return the steps of `index` or `pooled` in a process of its own."""
    found: dict[str, dict[str, float]] = harness.child("pool", "--child", what, "--folder", folder)["steps"]
    return found


def table(steps: dict[str, dict[str, float]]) -> str:
    """Return the steps and their sum as rows of Markdown."""
    whole = {"s": sum(step["s"] for step in steps.values()), "cpu": sum(step["cpu"] for step in steps.values())}
    whole["mb"] = max(step["mb"] for step in steps.values())
    rows = [*steps.items(), ("together", whole)]
    lines = [[name, f"{step['s']:.1f}", f"{step['cpu']:.1f}", f"{step['mb']:,.0f}"] for name, step in rows]
    return harness.table(["step", "s", "CPU s", "peak MB so far"], lines)


def middle(what: str, folder: Path, repeats: int) -> tuple[dict[str, dict[str, float]], float]:
    """Return the steps of the run whose time is the median, and its foreign CPU."""
    runs = []
    for _ in range(repeats):
        with Watch() as watch:
            steps = measured(what, folder)
        runs.append((sum(step["s"] for step in steps.values()), watch.figures["foreign"], steps))
    _, foreign, steps = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
    return steps, foreign


def main(folder: Path, given: argparse.Namespace) -> None:
    """Make what is missing, measure, and publish two tables."""
    make(folder, given.documents, given.queries, given.corpus)
    parts = [f"{given.documents:,} documents, {given.queries:,} queries."]
    for what, title, repeats in (("index", "Once for a corpus", 1), ("pooled", "Pool, the middle one of three", 3)):
        steps, foreign = middle(what, folder, repeats)
        parts += [f"{title}; foreign CPU {share(foreign)}:", table(steps)]
    harness.publish("pool", "\n\n".join(parts), given.write)


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--documents", type=int, default=229_457)
    parser.add_argument("--queries", type=int, default=734)
    parser.add_argument("--corpus", type=Path, help="JSONL with `text`")
    parser.add_argument("--folder", type=Path, help="where the data is, or is made and left")
    parser.add_argument("--child", choices=("index", "pooled"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    typed = arguments()
    if typed.child:
        print(json.dumps({"steps": {"index": index, "pooled": pooled}[typed.child](typed.folder)}))
    else:
        with tempfile.TemporaryDirectory() as made:
            place = typed.folder or Path(made)
            place.mkdir(parents=True, exist_ok=True)
            main(place, typed)
