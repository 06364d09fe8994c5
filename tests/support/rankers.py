"""Small rerankers and sparse encoders: random ones in folders, and a server of `/rerank` with faults of a test."""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.core.config import Settings
from curate.core.records import Hit
from curate.testing import ListCorpus, listed
from tests.support.http_server import serving
from tests.support.small import context

WORDS = ("fever", "cough", "aspirin", "heart", "lung", "child", "drug", "dose", "pain", "coffee", "blood", "tea", "for")
TEXTS = {
    "d1": "fever and cough of a child",
    "d2": "aspirin for fever and pain",
    "d3": "coffee for the heart",
    "d4": "blood sugar and fever",
    "d5": "fever drug dose for a child",
    "d6": "pain of the lung",
    "d7": "tea for cough",
    "d8": "child fever child fever",
}
QUESTIONS = {"q1": "fever child", "q2": "pain aspirin", "q3": "cough"}


def chance(query: str, text: str) -> float:
    """Return a score of a query and a text between -4 and 4 that has nothing to do with their words."""
    return zlib.crc32(f"{query}|{text}".encode()) % 8000 / 1000 - 4


def cross_encoder(folder: Path, words: Sequence[str] = WORDS, seed: int = 3) -> Path:
    """Write a random cross-encoder with one output."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertForSequenceClassification

    torch.manual_seed(seed)
    raw = _raw(folder, BertForSequenceClassification, words)
    CrossEncoder(str(raw), device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


def sparse_encoder(folder: Path, words: Sequence[str] = WORDS, seed: int = 3) -> Path:
    """Write a random sparse encoder as SPLADE is built."""
    import torch
    from sentence_transformers import SparseEncoder
    from transformers import BertForMaskedLM

    torch.manual_seed(seed)
    raw = _raw(folder, BertForMaskedLM, words)
    SparseEncoder(str(raw), device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


def _raw(folder: Path, kind: Any, words: Sequence[str]) -> Path:
    from transformers import BertConfig, BertTokenizer

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)]
    settings: dict[str, Any] = {"num_labels": 1}
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.5,
        **settings,
    )
    raw = folder / "raw"
    raw.mkdir(parents=True)
    kind(config).save_pretrained(raw)
    BertTokenizer(vocab={name: at for at, name in enumerate(names)}).save_pretrained(raw)
    return raw


Fault = Callable[[list[dict[str, Any]], str], Any]
"""Right results, and the name of the field of a score -> what is sent as results in their place."""


def dropped(rows: list[dict[str, Any]], _score: str) -> Any:
    return rows[:-1]


def no_index(rows: list[dict[str, Any]], _score: str) -> Any:
    return [{key: value for key, value in rows[0].items() if key != "index"}, *rows[1:]]


def twice(rows: list[dict[str, Any]], _score: str) -> Any:
    return [{**rows[0], "index": rows[1]["index"]}, *rows[1:]]


def null(rows: list[dict[str, Any]], score: str) -> Any:
    return [{**rows[0], score: None}, *rows[1:]]


def nan(rows: list[dict[str, Any]], score: str) -> Any:
    return [{**rows[0], score: float("nan")}, *rows[1:]]


FAULTS: dict[str, Fault] = {
    "one result lacks": dropped,
    "one result has no index": no_index,
    "an index stands twice": twice,
    "a score is null": null,
    "a score is NaN": nan,
}


@dataclass
class RerankServer:
    """A running server, and what it was sent."""

    url: str = ""
    faults: list[Fault | int | None] = field(default_factory=list)
    """Used up one a request: a fault, an HTTP status, or None for a right answer."""
    always: Fault | None = None
    score: Callable[[str, str], float] = chance
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the queries and texts that were scored."""
        return [(body["query"], text) for body in self.bodies for text in texts_of(body)]

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], sent: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        if method != "POST" or not path.endswith("/rerank"):
            return 404, {}, b"{}"
        body = json.loads(sent)
        self.bodies.append(body)
        self.headers.append(dict(headers))
        self.paths.append(path)
        fault = self.faults.pop(0) if self.faults else self.always
        if isinstance(fault, int):
            return fault, {"retry-after": "0"}, b"{}"
        tei = "texts" in body
        name = "score" if tei else "relevance_score"
        scores = [self.score(body["query"], text) for text in texts_of(body)]
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], -at))
        rows: Any = [{"index": at, name: scores[at]} for at in order]
        rows = fault(rows, name) if fault else rows
        whole = rows if tei else {"id": "x", "results": rows, "meta": {"tokens": 3}}
        return 200, {"content-type": "application/json"}, json.dumps(whole).encode()


def texts_of(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of a request, which some vendors want as objects."""
    found = body["texts"] if "texts" in body else body["documents"]
    return [each["text"] if isinstance(each, dict) else each for each in found]


@contextmanager
def rerank_server(*faults: Fault | int | None, **more: Any) -> Iterator[RerankServer]:
    """Run the server on a free port of loopback."""
    state = RerankServer(faults=list(faults), **more)
    with serving(state.answer) as address:
        state.url = f"{address}/rerank"
        yield state


def search(
    folder: Path,
    definitions: Mapping[str, Settings],
    name: str,
    depth: int = 100,
    texts: Mapping[str, str] = TEXTS,
    queries: Mapping[str, str] = QUESTIONS,
) -> dict[str, list[Hit]]:
    """Return what a retriever that is defined so finds for each query."""
    from curate.ask import build

    retriever = build.retriever(context(folder, retrievers=dict(definitions)), name)
    return dict(zip(queries, listed(retriever, ListCorpus(texts), queries, depth), strict=True))


def ids(hits: Mapping[str, Sequence[Hit]]) -> dict[str, list[str]]:
    """Return the documents alone."""
    return {query: [hit.doc_id for hit in some] for query, some in hits.items()}


def by_score(
    first: Mapping[str, Sequence[str]], score: Callable[[str, str], float], texts: Mapping[str, str], queries: Any
) -> dict[str, list[str]]:
    """Return lists of documents in order of a score, ties by id."""
    return {
        query: sorted(some, key=lambda doc: (-score(queries[query], texts[doc]), doc)) for query, some in first.items()
    }
