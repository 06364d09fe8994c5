"""Models by name behind mteb's interfaces: encoders and BM25 of this package, and models that mteb can load."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import numpy as np

from curate.core.config import Settings, check, digest
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Kit, Progress, quiet
from curate.core.records import Document, Query
from curate.evaluation.models.batches import Growing
from curate.evaluation.models.tasks import Foreign, imported
from curate.retrieval.encoders import ENCODERS, UNDEFINED
from curate.retrieval.encoders.dense import Config as DenseConfig
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.retrievers.bm25 import Bm25, Config
from curate.retrieval.vectors import CachedEncoder, default_folder
from curate.stages.context import home

BATCH = 32
"""Queries that an encoder of ours is given at once."""
BM25 = "bm25"
BASELINES = (BM25, "use", "e5")
"""Models that need no network."""


@dataclass(frozen=True)
class EvaluatedModel:
    """One model; its weights are loaded when they are first needed."""

    name: str
    revision: str
    """Identity of everything that changes its scores."""
    load: Callable[[], Foreign]
    has_vectors: bool = True
    """Whether it can say how similar two sentences are: BM25 cannot."""
    device: str | None = None

    @property
    def precision(self) -> str:
        """Return float16 on a GPU, else float32; our own encoders keep theirs."""
        return "float16" if (self.device or "").startswith("cuda") else "float32"

    @cached_property
    def loaded(self) -> Foreign:
        """Return the model as `mteb.evaluate` takes it."""
        return self.load()


def named(
    names: Sequence[str],
    definitions: Mapping[str, Settings] | None = None,
    device: str | None = None,
    progress: Progress = quiet,
) -> list[EvaluatedModel]:
    """Return the models of these names, each once: bm25, an encoder, a folder of sentence-transformers, or mteb's name.

    `definitions` are the encoders that a pipeline defines. ConfigError names the nearest known one.
    """
    _need(device)
    found = [_model(name, definitions or {}, device, progress) for name in dict.fromkeys(names)]
    shown = [each.name for each in found]
    if twice := sorted({name for name in shown if shown.count(name) > 1}):
        raise ConfigError(f"--models: found several models named {', '.join(twice)}; rename their folders")
    return found


def _model(name: str, definitions: Mapping[str, Settings], device: str | None, progress: Progress) -> EvaluatedModel:
    if name == BM25:
        bm25 = Bm25(BM25, Config(), Kit(_no_encoder, home() / "cache"))
        return EvaluatedModel(BM25, digest(bm25.identity)[:16], lambda: Searcher(bm25, progress), has_vectors=False)
    if name in definitions or name in {*ENCODERS.names()} - UNDEFINED:
        settings = dict(definitions.get(name, {}))
        make = ENCODERS.load(str(settings.pop("kind", name)))
        encoder = make(name, check(import_module(make.__module__).Config, settings, f"encoders.{name}"))
        return EvaluatedModel(name, encoder.revision, lambda: _encoder(encoder, progress))
    if Path(name).expanduser().is_dir():
        revision = DenseEncoder(name, DenseConfig(model=name)).revision
        return EvaluatedModel(Path(name).expanduser().name, revision, lambda: _from_folder(name, device), device=device)
    return _of_mteb(name, device)


def _of_mteb(name: str, device: str | None) -> EvaluatedModel:
    """Return a model that mteb knows, or one of the hub; mteb gives it the prompts of its own makers."""
    mteb = imported()
    try:
        revision = str(mteb.get_model_meta(name).revision)
    except KeyError as error:
        if "/" not in name or name.startswith((".", "/", "~")):
            raise ConfigError(
                f"--models {name}: neither bm25, nor an encoder ({', '.join(ENCODERS.names())}), nor a folder, nor a "
                f"model of mteb ({error.args[0]}); a model on the hub is named ORGANISATION/NAME"
            ) from None
        revision = DenseEncoder(name, DenseConfig(model=name)).revision
    return EvaluatedModel(name, revision, lambda: _fitted(mteb.get_model(name, device=device), device), device=device)


def _from_folder(folder: str, device: str | None) -> Foreign:
    from mteb.models import SentenceTransformerEncoderWrapper
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    path = Path(folder).expanduser()
    model = SentenceTransformerEncoderWrapper(str(path), device=device)
    model.mteb_model_meta = _meta(path.name)
    return _fitted(model, device)


def _fitted(model: Foreign, device: str | None) -> Foreign:
    """Return a model in half precision and with batches that grow, on a GPU; else as it is."""
    if not (device or "").startswith("cuda") or not hasattr(model, "encode"):
        return model
    weights: Foreign = getattr(model, "model", None)
    if hasattr(weights, "half"):
        weights.half()
    return Growing(model)


def _encoder(encoder: Encoder, progress: Progress) -> Foreign:
    """Return an encoder of ours for mteb; sentences of STS are encoded as queries, which e5's authors advise.

    Documents come from the cache of embeddings where they are in it. Queries never do, so that their speed is measured.
    """
    from mteb.models.abs_encoder import AbsEncoder

    cached = CachedEncoder(encoder, default_folder(home()), progress)
    label = StepLabel(f"encoding queries, {encoder.name}", "texts")

    def encode(_self: object, inputs: Foreign, *, prompt_type: Foreign = None, **_named: Foreign) -> Foreign:
        texts = [text for batch in inputs for text in batch["text"]]
        if getattr(prompt_type, "value", None) == "document":
            return cached.encode(texts, "document")
        parts = []
        for start in range(0, len(texts), BATCH):
            progress(label, len(texts), start)
            parts.append(encoder.encode(texts[start : start + BATCH], "query"))
        progress(label, len(texts), len(texts))
        return np.concatenate(parts)

    with waiting(progress, StepLabel(f"loading {encoder.name}")):
        encoder.encode(["."], "query")  # loads the weights, which is no part of its speed
    made = type("Ours", (AbsEncoder,), {"encode": encode, "__init__": lambda _self: None})()
    made.mteb_model_meta = _meta(encoder.name)
    return made


def _meta(name: str) -> Foreign:
    from mteb.models.model_meta import ModelMeta

    return ModelMeta.create_empty({"name": f"curate/{name}", "revision": "local"})


class Searcher:
    """BM25 as mteb's search protocol has it: it indexes a corpus, then answers queries or reranks candidates."""

    def __init__(self, bm25: Bm25, progress: Progress) -> None:
        self.mteb_model_meta, self._progress = _meta(BM25), progress
        self._bm25, self._corpus = bm25, _Listed([])

    def index(self, corpus: Foreign, **_named: Foreign) -> None:
        """Take the corpus over, and build the index or find it in the cache."""
        titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        rows = zip(corpus["id"], titles, corpus["text"], strict=True)
        self._corpus = _Listed([Document(key, title or "", text) for key, title, text in rows])
        list(self._bm25.search(self._corpus, [Query("", "a")], 1, self._progress))  # also reads the dictionary of words

    def search(
        self, queries: Foreign, *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **_named: Foreign
    ) -> dict[str, dict[str, float]]:
        """Return query -> document -> score; candidates that share no word with their query score 0."""
        asked = [Query(key, text) for key, text in zip(queries["id"], queries["text"], strict=True)]
        depth = len(self._corpus) if top_ranked else min(top_k, len(self._corpus))
        found: dict[str, dict[str, float]] = {}
        for hits in self._bm25.search(self._corpus, asked, depth, self._progress):
            ends = np.cumsum(hits.counts)
            for end, count in zip(ends, hits.counts, strict=True):
                rows = slice(end - count, end)
                scored = {hits.ids[row]: float(s) for row, s in zip(hits.rows[rows], hits.scores[rows], strict=True)}
                found[asked[len(found)].query_id] = scored
        if top_ranked is None:
            return found
        return {key: {doc: found[key].get(doc, 0.0) for doc in docs} for key, docs in top_ranked.items()}


class _Listed:
    """A corpus in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    @cached_property
    def digest(self) -> str:
        """Return what identifies ids and texts."""
        found = sha256()
        for each in self._documents:
            found.update(digest([each.doc_id, each.title, each.text]).encode())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self._documents), 2_000):
            yield self._documents[start : start + 2_000]


def _no_encoder(name: str) -> Encoder:
    raise ConfigError(f"bm25 asked for the encoder {name!r}, and needs none")


def _need(device: str | None) -> None:
    """Raise ConfigError for a device that is not there."""
    if device in (None, "cpu"):
        return
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"--device {device}: cannot be used ({why}); give cpu, cuda or cuda:N, or leave it out"
        ) from None
