"""What a linear map behind MiniLM's queries gains by `curate train`: direct triples, and those of `curate train-set`.

    python -m benchmarks.train FOLDER MODEL     FOLDER holds medquad_legacy_en, MODEL is all-MiniLM-L6-v2's folder

Documents are title and text, cut at 64 tokens. 802 test queries search all documents; 1,997 queries train. Queries that
share a page or a title, directly or through others, stand on one side. Direct triples are a query's own answers against
ranks 4 to 30 of BM25 among training documents. `curate train-set` grades the same candidates by a judge that replays
the truth: S for an own answer, D for any other. Each is trained with three seeds, then twice more with other dev
queries: how far the dev queries move the result stands beside how far the seeds do. The commands are printed.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from transformers import AutoTokenizer

from benchmarks.asymmetric import Medquad
from benchmarks.harness import Place
from curate.core.protocols import Benchmark
from curate.system.files import frame
from curate.tables.exporters import EXPORTERS
from curate.testing import ListCorpus

DEPTH, FIRST, NEGATIVES = 30, 3, 4
DRAWS = (113, 213)
"""First seeds of the further trainings; they draw other dev queries."""
PIPELINE = """version: 1
name: grades
language: en
stages: [ingest, mask, diversify, pool, judge, train_set]
ingest: {source: data, duplicates: keep}
mask: {enabled: false}
diversify: {enabled: false}
pool: {retrievers: [bm25], depth: %(depth)d, size: %(depth)d}
judges: {truth: {kind: replay, path: truth.tsv}}
judge: {models: [truth]}
train_set:   # questions are templates: another disease's is alike by words, so that identical texts alone are leaks
  negatives: {number: %(negatives)d}
  leaks: {queries: 0.999, documents: 0.999, overlap: 0.99, related: 0.999}
"""
TEST = "test/mteb/retrieval"
MAP = "recipe=contrastive part=map freeze=documents rate=0.001 steps=300 batch=64 max_length=64 negatives=4"


@dataclass(frozen=True)
class Split:
    """Queries that train, and those that test."""

    data: Medquad

    @property
    def test(self) -> list[int]:
        """Return the test queries."""
        return self.data.parts["test"]

    @property
    def train(self) -> list[int]:
        """Return all others of the benchmark of asymmetric models: `curate train` draws dev queries itself."""
        return sorted([*self.data.parts["train"], *self.data.parts["dev"]])

    def answers(self, queries: Sequence[int]) -> list[int]:
        """Return the documents that answer some of the queries."""
        return sorted({doc for query in queries for doc in self.data.relevant[query]})

    def check(self) -> None:
        """Stop if a page, a title, or the text of a query or an answer stands on both sides."""
        sides = [{*self._marks(queries)} for queries in (self.train, self.test)]
        if shared := sides[0] & sides[1]:
            raise SystemExit(f"{len(shared)} pages, titles or texts stand on both sides, as {min(shared)!r}")

    def _marks(self, queries: Sequence[int]) -> Iterator[str]:
        yield from (self.data.queries[query].strip().lower() for query in queries)
        for doc in self.answers(queries):
            yield from self.data.keys[doc]


def write_test(split: Split, folder: Path) -> None:
    """Write the test queries, all documents and the labels as an export in MTEB layout."""
    data = split.data
    labels = [
        {"query_id": f"q{query:05d}", "doc_id": f"d{doc:05d}", "score": 1}
        for query in split.test
        for doc in sorted(data.relevant[query])
    ]
    asked = [{"query_id": f"q{query:05d}", "text": data.queries[query], "source": ""} for query in split.test]
    made = Benchmark(
        name="medquad",
        language="en",
        queries=frame("queries", asked),
        corpus=ListCorpus({f"d{doc:05d}": text for doc, text in enumerate(data.documents)}),
        qrels=frame("qrels", labels),
        candidates=frame("qrels"),
        verdicts=frame("verdicts"),
        facts={},
    )
    folder.mkdir(parents=True)
    EXPORTERS.load("mteb")(made, folder)


def write_train(split: Split, place: Place) -> None:
    """Write training queries and their answers, and what grades them, without its grades."""
    data = split.data
    place.write("data/queries.jsonl", [{"_id": f"q{query:05d}", "text": data.queries[query]} for query in split.train])
    docs = split.answers(split.train)
    place.write("data/corpus.jsonl", [{"_id": f"d{doc:05d}", "text": data.documents[doc]} for doc in docs])
    (place.folder / "grades.yaml").write_text(PIPELINE % {"depth": DEPTH, "negatives": NEGATIVES}, encoding="utf-8")
    (place.folder / "truth.tsv").write_text("query_id\tdoc_id\tgrade\n", encoding="utf-8")


def write_labels(split: Split, place: Place) -> None:
    """Write the truth of every candidate for the judge, and triples made of it directly."""
    data, docs = split.data, split.data.documents
    pool = pl.read_parquet(place.folder / "runs/grades/pool/pool.parquet").sort("query_id", "position")
    truth, triples = ["query_id\tdoc_id\tgrade"], []
    for (name,), rows in pool.group_by("query_id", maintain_order=True):
        query = int(str(name)[1:])
        candidates = [int(doc[1:]) for doc in rows["doc_id"]]
        own = data.relevant[query]
        truth += [f"{name}\td{doc:05d}\t{'S' if doc in own else 'D'}" for doc in candidates]
        wrong = [doc for doc in candidates[FIRST:] if doc not in own][:NEGATIVES]
        triples.append({"query": data.queries[query], "pos": [docs[i] for i in own], "neg": [docs[i] for i in wrong]})
    (place.folder / "truth.tsv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    place.write("direct.jsonl", triples)


def trained(place: Place, triples: str, model: Path, name: str, *more: str) -> dict[str, Any]:
    """Train, and return the figures."""
    settings = [word for each in MAP.split() for word in ("--set", f"train.{each}")]
    words = ("train", triples, "--base", model, "--test", TEST, "--out", f"trained/{name}")
    place.curate(*words, *settings, *more)
    return place.read(f"trained/{name}/train.json")


def report(place: Place, triples: str, model: Path, name: str) -> None:
    """Train with three seeds, and with other dev queries; print the gain and what moves it."""
    found = trained(place, triples, model, name)
    (test,), made = found["test"], found["triples"]
    gain = test["difference"]
    print(f"{name}: {made['queries']:,} queries, {made['positives']:,} positives, {found['dev_queries']} dev queries")
    print(
        f"  nDCG@10 of {test['rows']} test queries: {test['base']:.4f} -> {test['trained']:.4f}, {gain['value']:+.4f} "
        f"({gain['low']:+.4f} to {gain['high']:+.4f}), p {test['p']:.4f}"
    )
    draws = [found]
    for first in DRAWS:
        more = ("--set", "few_seeds=true", "--seeds", "1", "--set", f"train.seed={first}")
        draws.append(trained(place, triples, model, f"{name}-{first}", *more))
    for one in draws:
        for seed, score in zip(one["seeds"], one["test"][0]["seeds"], strict=True):
            curve = [value for _, value in seed["dev"]]
            print(
                f"  seed {seed['seed']}: dev {curve[0]:.4f} -> {max(curve):.4f} (last step {curve[-1]:.4f}), best step "
                f"{seed['best_step']}, test {score:.4f}"
            )
    scores = [one["test"][0]["seeds"][0] for one in draws]
    print(
        f"  sd of the test score over seeds with one dev set {np.std(test['seeds'], ddof=1):.4f}, over three dev sets "
        f"{np.std(scores, ddof=1):.4f}; best dev scores {min(_best(draws)):.4f} to {max(_best(draws)):.4f}"
    )


def _best(draws: Sequence[Mapping[str, Any]]) -> list[float]:
    return [one["seeds"][0]["dev_after"] for one in draws]


def main() -> None:
    """Make both sets of triples, train on each, and print what was gained and the CPU seconds."""
    folder, model = Path(sys.argv[1]) / "medquad_legacy_en", Path(sys.argv[2]).resolve()
    split = Split(Medquad.read(folder, AutoTokenizer.from_pretrained(model)))
    split.check()
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        write_test(split, place.folder / "test" / "mteb")
        write_train(split, place)
        run = ("--pipeline", "grades.yaml", "--run", "runs/grades")
        for stage in ("ingest", "mask", "diversify", "pool"):
            place.curate(stage, *run)
        write_labels(split, place)
        place.curate("train-set", *run, "--test", TEST, "--yes")
        kept = place.read("runs/grades/train_set/train_set.json")
        print("train set:", json.dumps(kept["queries"]), "leaks:", json.dumps(kept["leaks"])[:300])
        report(place, "direct.jsonl", model, "direct")
        report(place, "runs/grades/train_set/triples", model, "train-set")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"CPU seconds: {sum(each.ru_utime + each.ru_stime for each in used):.0f}")


if __name__ == "__main__":
    main()
