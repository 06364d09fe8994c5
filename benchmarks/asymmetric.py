"""CARE in miniature: a table of token vectors is aligned with a frozen model, and then trained on labels.

    python -m benchmarks.asymmetric FOLDER MODEL     FOLDER holds medquad_legacy_en, MODEL is all-MiniLM-L6-v2's folder

Documents are title and text, cut at 64 tokens and encoded once. Queries of 802 / 201 / 1,796 for test, dev and training
share no page and no title. Stage I aligns the table with the vectors of all documents and of the training queries;
stage II contrasts training queries with their answers, four mined negatives from training pages, and the others of the
batch. Rates and batch are those of the tried ones with the best nDCG@10 on the dev queries, after both stages, with the
first seed; test queries are scored after that. Three seeds; rows that are no comparison of the acceptance have one.
"""

import ctypes
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from sentence_transformers import SentenceTransformer

from curate.commands.train import sides
from curate.commands.train.fitting import FitOptions, fit
from curate.commands.train.losses import Alignment, FrozenContrastive
from curate.core.protocols import Vectors
from curate.retrieval.ranking import ndcg
from curate.stats.significance import compare, mean, means

SIZES = {"test": 802, "dev": 201, "train": 1796}
SEEDS = (13, 14, 15)
TOKENS, NEGATIVES, WIDTH = 64, 4, 384
RATES, BATCHES, MAP_RATES = ((0.01, 0.003), (0.003, 0.001)), (64, 128, 256), (0.001, 0.003)
"""What is tried: rates of stages I and II, batches with the better rates, rates of the linear map."""
PUBLISHED = {
    "MiniLM both sides, untuned": ".8145",
    "MiniLM + linear map on queries": ".9027",
    "static, untrained": ".190",
    "stage I": ".7555",
    "stage I without squares": ".7449",
    "stage I without contrast": ".7504",
    "stage II without stage I": ".519",
    "random start, stage I": ".723",
    "random start, I then II": ".782",
    "stage I, then II": ".8146",
}


@dataclass(frozen=True)
class Medquad:
    """Questions, documents, and which answer which."""

    queries: Sequence[str]
    documents: Sequence[str]
    keys: Sequence[frozenset[str]]
    """Page and title of each document."""
    relevant: Mapping[int, Sequence[int]]

    @classmethod
    def read(cls, folder: Path, tokenizer: Any) -> "Medquad":  # noqa: ANN401
        """Return the set with its documents cut at `TOKENS` tokens."""
        asked, held = (lines(folder / name) for name in ("queries.jsonl", "corpus.jsonl"))
        query, document = ({row["_id"]: place for place, row in enumerate(rows)} for rows in (asked, held))
        relevant = defaultdict(list)
        for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            one, other, _ = line.split("\t")
            relevant[query[one]].append(document[other])
        texts = [cut(f"{row['title']} {row['text']}", tokenizer) for row in held]
        keys = [frozenset({f"page {row['_id'].rpartition('_Sec')[0]}", row["title"].strip().lower()}) for row in held]
        return cls([row["text"] for row in asked], texts, keys, relevant)

    @cached_property
    def parts(self) -> dict[str, list[int]]:
        """Return the queries of test, dev and training: groups that share a page or a title stay together."""
        groups: list[tuple[set[str], list[int]]] = []
        for query in range(len(self.queries)):
            keys, members = set().union(*(self.keys[doc] for doc in self.relevant[query])), [query]
            for group in [each for each in groups if each[0] & keys]:
                groups.remove(group)
                keys, members = keys | group[0], group[1] + members
            groups.append((keys, members))
        order = sorted(sorted(members) for _, members in groups)
        random.Random(13).shuffle(order)
        found: dict[str, list[int]] = {name: [] for name in SIZES}
        for members in order:
            found[next(name for name in SIZES if len(found[name]) + len(members) <= SIZES[name])] += members
        return found

    @cached_property
    def training_documents(self) -> list[int]:
        """Return the answers of training queries."""
        return sorted({doc for query in self.parts["train"] for doc in self.relevant[query]})

    def scores(self, queries: Vectors, documents: Vectors, part: str = "test") -> Vectors:
        """Return nDCG@10 of a part's queries, given the vectors of those and of all documents."""
        first = np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :10].tolist()
        pairs = zip(first, self.parts[part], strict=True)
        return np.array([ndcg(ranking, set(self.relevant[query])) for ranking, query in pairs])


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cut(text: str, tokenizer: Any) -> str:  # noqa: ANN401
    """Return as much of a text as the model reads."""
    spans = tokenizer(text, truncation=True, max_length=TOKENS, return_offsets_mapping=True)["offset_mapping"]
    return text[: spans[-2][1]]


class Trial:
    """One teacher, its vectors, and the trainings on them."""

    def __init__(self, data: Medquad, model: Any) -> None:  # noqa: ANN401
        self.data, self.model = data, model
        model.max_seq_length = TOKENS
        self.queries, self.documents = (model.encode(list(texts)) for texts in (data.queries, data.documents))
        self.start = sides.token_rows(model)
        self.rows = self._rows()
        self.rates, self.batch, self.map_rate = RATES[0], BATCHES[0], MAP_RATES[0]
        self.begun: dict[int, Any] = {}
        """Seed -> model after stage I, and that after both, of the setting that was chosen."""
        self.ended: dict[int, Any] = {}

    def choose(self) -> None:
        """Set rates and batch by the dev queries, and keep what the chosen setting gave with the first seed."""
        tried = [self._tried(rates, BATCHES[0]) for rates in RATES]
        tried += [self._tried(max(tried, key=itemgetter(0))[1], batch) for batch in BATCHES[1:]]
        _, self.rates, self.batch, self.begun[SEEDS[0]], self.ended[SEEDS[0]] = max(tried, key=itemgetter(0))
        self.map_rate = max(MAP_RATES, key=self._map_tried)
        print(f"chosen on dev: rates {self.rates[0]} and {self.rates[1]}, batch {self.batch}, map {self.map_rate}\n")

    def _tried(self, rates: tuple[float, float], batch: int) -> tuple[float, tuple[float, float], int, Any, Any]:
        self.rates, self.batch = rates, batch
        first = self.aligned(self.untrained(), SEEDS[0])
        both = self.contrasted(deepcopy(first), SEEDS[0])
        dev = float(self.scores(both, "dev").mean())
        print(f"tried: rates {rates[0]} and {rates[1]}, batch {batch}: dev {dev:.4f}", flush=True)
        return dev, rates, batch, first, both

    def _map_tried(self, rate: float) -> float:
        self.map_rate = rate
        dev = float(self.scores(self.mapped(SEEDS[0]), "dev").mean())
        print(f"tried: rate {rate} of the linear map: dev {dev:.4f}", flush=True)
        return dev

    def untrained(self, *, at_random: bool = False, seed: int = 13) -> Any:  # noqa: ANN401
        """Return a table that starts from the teacher's own input vectors, or from chance."""
        rows = None if at_random else self.start
        return sides.static_side(self.model.tokenizer, rows, width=WIDTH, seed=seed)

    def aligned(self, model: Any, seed: int, *, unseen: bool = True, asks: bool = True, **terms: bool) -> Any:  # noqa: ANN401
        """Return the model after stage I; without `unseen` no text of a test page is used, without `asks` no query."""
        held = range(len(self.data.documents)) if unseen else self.data.training_documents
        asked = self.data.parts["train"] if asks else []
        texts = [*(self.data.documents[i] for i in held), *(self.data.queries[i] for i in asked)]
        kept = np.concatenate([self.documents[list(held)], self.queries[asked]])
        data = {"anchor": texts, "label": list(range(len(texts)))}
        return trained(
            model, data, Alignment(model, kept, temperature=0.05, **terms), 300, self.rates[0], seed, self.batch
        )

    def contrasted(self, model: Any, seed: int, rate: float | None = None) -> Any:  # noqa: ANN401
        """Return the model after stage II."""
        spared = defaultdict(set)
        for query in self.data.parts["train"]:
            for doc in self.data.relevant[query]:
                spared[doc] |= set(self.data.relevant[query])
        others = {doc: sorted(docs) for doc, docs in spared.items()}
        loss = FrozenContrastive(model, self.documents, temperature=0.02, spared=others)
        data = {"anchor": [text for text, _ in self.rows], "label": [rows for _, rows in self.rows]}
        return trained(model, data, loss, 200, self.rates[1] if rate is None else rate, seed, self.batch)

    def mapped(self, seed: int) -> Any:  # noqa: ANN401
        """Return the teacher with a linear map on its queries, trained on the same labels."""
        return self.contrasted(sides.map_over_kept(self.data.queries, self.queries), seed, rate=self.map_rate)

    def scores(self, model: Any, part: str = "test") -> Vectors:  # noqa: ANN401
        """Return nDCG@10 of a part's queries by a query model."""
        texts = [self.data.queries[i] for i in self.data.parts[part]]
        return self.data.scores(model.encode(texts, batch_size=256), self.documents, part)

    def _rows(self) -> list[tuple[str, list[int]]]:
        """Return training queries with the row of an answer and of the best documents that are none."""
        held, found = np.array(self.data.training_documents), []
        asked = self.data.parts["train"]
        for query, order in zip(asked, np.argsort(-(self.queries[asked] @ self.documents[held].T)), strict=True):
            own = self.data.relevant[query]
            others = [doc for doc in held[order[: NEGATIVES + len(own)]].tolist() if doc not in own][:NEGATIVES]
            found += [(self.data.queries[query], [doc, *others]) for doc in own]
        return found


def trained(
    model: Any,  # noqa: ANN401
    data: Mapping[str, Any],
    loss: Any,  # noqa: ANN401
    steps: int,
    rate: float,
    seed: int,
    batch: int,
) -> Any:  # noqa: ANN401
    """Return the model after so many steps; nothing is kept on the disk."""
    folder = Path(tempfile.mkdtemp())
    options = FitOptions(steps, batch, rate, seed, eval_every=steps, more={"save_strategy": "no"})
    fit(model, Dataset.from_dict(dict(data)), loss, options, folder)
    shutil.rmtree(folder)
    return model


def speed(model: Any, texts: Sequence[str], batch: int) -> float:  # noqa: ANN401
    """Return queries per CPU second, tokenising included, after a warm-up."""
    model.encode(list(texts[:batch]), batch_size=batch)
    began = time.process_time()
    for start in range(0, len(texts), batch):
        model.encode(list(texts[start : start + batch]), batch_size=batch)
    return len(texts) / (time.process_time() - began)


def apart(found: Mapping[str, Vectors], better: str, worse: str) -> str:
    """Return the difference of two rows, its 95 % interval under resampled queries, and p of the paired test."""
    difference = found[better] - found[worse]
    drawn = np.random.default_rng(7).integers(len(difference), size=(2000, len(difference)))
    low, high = np.percentile(difference[drawn].mean(axis=1), [2.5, 97.5])
    pair = compare([better, worse], [means(found[name]) for name in (better, worse)], mean, 7)[0]
    return f"{difference.mean():+.4f} ({low:+.4f} to {high:+.4f}), p {pair.p:.4f}"


def table(trial: Trial) -> dict[str, Vectors]:
    """Print every row with the published figure, and return each one's queries, averaged over seeds."""
    found: dict[str, Vectors] = {}
    print(f"{'nDCG@10, 802 held queries':44} {'published':>9} {'here':>7}  seeds")

    def row(name: str, make: Callable[[int], Any], seeds: Sequence[int] = SEEDS[:1]) -> None:
        runs = [trial.scores(make(seed)) for seed in seeds]
        found[name] = np.mean(runs, axis=0)
        shown = " ".join(f"{run.mean():.4f}" for run in runs) if len(runs) > 1 else ""
        print(f"{name:44} {PUBLISHED.get(name, ''):>9} {found[name].mean():7.4f}  {shown}", flush=True)

    begun = trial.begun

    def stage_one(seed: int) -> Any:  # noqa: ANN401
        if seed not in begun:
            begun[seed] = trial.aligned(trial.untrained(), seed)
        return begun[seed]

    def both_stages(seed: int) -> Any:  # noqa: ANN401
        return trial.ended[seed] if seed in trial.ended else trial.contrasted(begun.pop(seed), seed)

    def random_start(seed: int) -> Any:  # noqa: ANN401
        begun[-1] = trial.aligned(trial.untrained(at_random=True, seed=seed), seed)
        return begun[-1]

    row("MiniLM both sides, untuned", lambda _seed: sides.map_over_kept(trial.data.queries, trial.queries))
    row("MiniLM + linear map on queries", trial.mapped, SEEDS)
    row("static, untrained", lambda _seed: trial.untrained())
    row("stage I", stage_one, SEEDS)
    row("stage I, then II", both_stages, SEEDS)
    row("stage II without stage I", lambda seed: trial.contrasted(trial.untrained(), seed), SEEDS)
    row("stage I without squares", lambda seed: trial.aligned(trial.untrained(), seed, squares=False))
    row("stage I without contrast", lambda seed: trial.aligned(trial.untrained(), seed, contrast=False))
    row("random start, stage I", random_start)
    row("random start, I then II", lambda seed: trial.contrasted(begun.pop(-1), seed))
    row("stage I, documents without queries", lambda seed: trial.aligned(trial.untrained(), seed, asks=False))
    row("stage I on training pages alone", lambda seed: stage_one_unseen(trial, begun, seed))
    row("stage I on training pages alone, then II", lambda seed: trial.contrasted(begun.pop(-2), seed))
    return found


def stage_one_unseen(trial: Trial, begun: dict[int, Any], seed: int) -> Any:  # noqa: ANN401
    """Return a table that has read no text of a test page."""
    begun[-2] = trial.aligned(trial.untrained(), seed, unseen=False)
    return begun[-2]


def keep_memory() -> None:
    """Keep freed memory in the process: glibc gives the gradient of a step, 47 MB, back and has it made anew."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD


def main() -> None:
    """Print the table, the comparisons, and the speed of both sides."""
    began = time.process_time()
    keep_memory()
    model = SentenceTransformer(sys.argv[2], device="cpu")
    trial = Trial(Medquad.read(Path(sys.argv[1]) / "medquad_legacy_en", model.tokenizer), model)
    trial.choose()
    found = table(trial)
    full, first, none = "stage I, then II", "stage I", "stage II without stage I"
    for better, worse in ((full, first), (first, none), (full, none)):
        print(f"{better} - {worse}: {apart(found, better, worse)}")
    for teacher in list(PUBLISHED)[:2]:
        share = found[full].mean() / found[teacher].mean()
        print(f"{full} - {teacher}: {apart(found, full, teacher)}; keeps {share:.3f} of it")
    texts = [trial.data.queries[i] for i in trial.data.parts["test"]]
    for batch, published in ((1, "8,007 and 56"), (32, "20,148 and 140")):
        rates = [speed(each, texts[:160], batch) for each in (trial.untrained(), model)]
        shown = f"static {rates[0]:,.0f}, MiniLM {rates[1]:,.0f}, {rates[0] / rates[1]:.0f} times"
        print(f"queries a CPU second, batch {batch}: {shown} (published {published})", flush=True)
    print(f"CPU seconds: {time.process_time() - began:.0f}")


if __name__ == "__main__":
    main()
