"""Encoders of this package and of pipelines, as mteb asks them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import numpy as np

from curate.commands.evaluate import loading
from curate.commands.evaluate.loading import BatchSizes, devices, dtype_for
from curate.commands.evaluate.tasks import Foreign, imported
from curate.commands.evaluate.text_inputs import ROLES, ModelInput, SeenTexts, probe, seen_texts
from curate.commands.evaluate.vector_models import CutModel, StockModel, TextBatch, VectorModel
from curate.core.config import Settings, check, digest
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Kit, Progress, Vectors, quiet
from curate.core.records import Document, Query, Role
from curate.pipeline.stage import home
from curate.retrieval.encoders import ENCODERS, UNDEFINED
from curate.retrieval.encoders.asymmetric import Asymmetric, with_named_sides
from curate.retrieval.encoders.dense import Config as DenseConfig
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.retrievers.bm25 import Bm25, Config
from curate.retrieval.vectors import GROUP, CachedEncoder, default_folder

BATCH = 32
"""Queries that an encoder of ours is given at once."""


class OurModel(VectorModel):
    """An encoder of ours; sentences of STS are encoded as queries, which e5's authors advise.

    Its documents are those of the cache that runs fill too, so a corpus that was pooled is not encoded again.
    """

    def __init__(self, encoder: Encoder, meta: Foreign, progress: Progress, sizes: BatchSizes) -> None:
        """Take over the encoder and load its weights, which is no part of its speed."""
        super().__init__(encoder.name, meta, progress, sizes)
        self.encoder = encoder
        self._cached = CachedEncoder(_HalvingEncoder(encoder, sizes), default_folder(home()), progress)
        with waiting(progress, StepLabel(f"loading {encoder.name}")):
            encoder.encode(["."], "query")

    @property
    def of_queries(self) -> Encoder:
        """Return what encodes queries: the encoder, or the query side of one that has two."""
        sides: Mapping[str, Encoder] = getattr(self.encoder, "sides", {})
        return sides.get("query", self.encoder)

    @property
    def model(self) -> Foreign:
        """Return the loaded weights that encode queries; None for an encoder that does not lend them."""
        if not isinstance(self.of_queries, DenseEncoder):
            return None
        with self.of_queries.borrowed() as weights:
            return weights

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the cosines of all rows of one side with all of the other."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the cosine of every row of one side with that of the other."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(one, other)

    def given(self, batch: TextBatch) -> ModelInput:
        """Return how the encoder reads these texts, as far as it says."""
        encoder, side = self._reader(batch.role)
        if isinstance(encoder, DenseEncoder):
            with encoder.borrowed() as weights:
                found = probe(_AsStock(encoder, weights), batch.task_metadata, batch.prompt_type)
        else:
            prompts = getattr(encoder, "prompts", None)
            found = ModelInput(prompts is not None, (prompts or {}).get(_role(batch.role)) or None)
        return replace(found, encoder_side=side)

    def look(self, given: ModelInput, batch: TextBatch) -> SeenTexts:
        """Return what is put in, to be written down."""
        encoder, _ = self._reader(batch.role)
        if not isinstance(encoder, DenseEncoder):
            return seen_texts(None, given, batch.role, batch.texts)
        with encoder.borrowed() as weights:
            return seen_texts(_AsStock(encoder, weights), given, batch.role, batch.texts)

    def _reader(self, role: str) -> tuple[Encoder, str | None]:
        """Return the encoder that reads texts of a role, and which side it is where there are two."""
        if not isinstance(self.encoder, Asymmetric):
            return self.encoder, None
        side = _role(role) if role else self.encoder.sts_route
        return self.encoder.side(side), side

    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:  # noqa: ARG002 - the encoder has one prompt
        """Return rows from the cache that runs fill too."""
        return self._cached.encode(batch.texts, _role(batch.role))

    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return rows that are encoded now, 32 at a time."""
        label, texts, rows = StepLabel(f"encoding {ROLES[batch.role]}, {self.name}", "texts"), batch.texts, []
        for start in range(0, len(texts), BATCH):
            self.progress(label, len(texts), start)
            rows.append(self._cached.encoder.encode(texts[start : start + BATCH], "query"))
        self.progress(label, len(texts), len(texts))
        return np.concatenate(rows)


class _HalvingEncoder:
    """An encoder that is given fewer texts at once when memory runs out; else it is asked as if it stood alone."""

    def __init__(self, encoder: Encoder, sizes: BatchSizes) -> None:
        self._encoder, self._sizes = encoder, sizes

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text."""

        def run(size: int) -> Vectors:
            parts = [texts[start : start + size] for start in range(0, len(texts), size)]
            return np.concatenate([self._encoder.encode(part, role) for part in parts])

        return self._sizes.fitting(role, run, BATCH if role == "query" else GROUP)


class _AsStock:
    """A dense encoder's model with a call like that of mteb's models, so that it can be looked into like them."""

    def __init__(self, encoder: DenseEncoder, weights: Foreign) -> None:
        self.encoder, self.model = encoder, weights

    def encode(self, inputs: Foreign, *, prompt_type: Foreign = None, **_named: Foreign) -> Foreign:
        """Call the model as the encoder does."""
        query, config = getattr(prompt_type, "value", None) != "document", self.encoder.config
        texts = [text for part in inputs for text in part["text"]]
        call = self.model.encode_query if query else self.model.encode_document
        return call(texts, prompt=config.query_prompt if query else config.document_prompt)


def _role(role: str) -> Role:
    return "document" if role == "document" else "query"


# BM25 of this package, as mteb's search protocol has it.


class Searcher:
    """BM25 as mteb's search protocol has it: it indexes a corpus, then answers queries or reranks candidates."""

    def __init__(self, bm25: Bm25, meta: Foreign, progress: Progress) -> None:
        self.mteb_model_meta, self._progress = meta, progress
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
        for document in self._documents:
            found.update(digest([document.doc_id, document.title, document.text]).encode())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self._documents), 2_000):
            yield self._documents[start : start + 2_000]


# Models by name behind mteb's interfaces: encoders and BM25 of this package, and models that mteb can load.

BM25 = "bm25"
BASELINES = (BM25, "use", "e5")
"""Models that need no network."""
OWN = "own"
"""Precision of a model that mteb loads by code of the model's makers."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class EvaluatedModel:
    """One model; its weights are loaded when they are first needed."""

    name: str
    revision: str
    """Identity of everything that changes its scores."""
    load: Callable[[], Foreign]
    has_vectors: bool = True
    """Whether it can say how similar two sentences are: BM25 cannot."""
    precision: str = "float32"
    """Of the weights as they are loaded; our own encoders keep theirs."""
    device: str | None = None
    """Where it computes; None for what the libraries choose."""
    exact: Callable[[str | None], Foreign] | None = None
    """Loads a copy in float32 on a device; None where the model is in float32 itself."""
    width: int | None = None
    """Coordinates that are left of its vectors; None for all."""

    @cached_property
    def loaded(self) -> Foreign:
        """Return the model as `mteb.evaluate` takes it."""
        return self.load()

    def at(self, width: int) -> str:
        """Return the name of the model with vectors of a width."""
        return f"{self.name}@{width}"

    def cut(self, width: int) -> "EvaluatedModel":
        """Return the model with the first coordinates of its vectors alone; both share the weights."""
        return replace(self, name=self.at(width), load=lambda: CutModel(self.loaded, width), exact=None, width=width)

    def remember(self) -> None:
        """Load the model, and let it hold the vectors of queries for the widths that will be cut out of them."""
        if isinstance(self.loaded, VectorModel):
            self.loaded.remembers = True

    def release(self) -> None:
        """Give the weights' memory back; asked again, the model is loaded again."""
        if vars(self).pop("loaded", None) is not None:
            loading.collected()


@dataclass(frozen=True)
class _Place:
    """Where and how models compute, and who is told of it."""

    devices: Sequence[str | None]
    dtype: str
    progress: Progress
    tell: Tell

    @property
    def shown(self) -> str | None:
        return ", ".join(device for device in self.devices if device) or None

    def sizes(self, name: str) -> BatchSizes:
        gpu = (self.devices[0] or "").startswith("cuda")
        return BatchSizes(name, self.tell, grows=gpu)


def named(
    names: Sequence[str],
    definitions: Mapping[str, Settings] | None = None,
    device: str | None = None,
    progress: Progress = quiet,
    dtype: str = "auto",
    tell: Tell = lambda _line: None,
) -> list[EvaluatedModel]:
    """Return the models of these names, each once: bm25, an encoder, a folder of sentence-transformers, or mteb's name.

    `definitions` are the encoders that a pipeline defines. ConfigError names the nearest known one.
    """
    places = devices(device)
    place = _Place(places, dtype_for(dtype, places), progress, tell)
    found = [_model(name, definitions or {}, place) for name in dict.fromkeys(names)]
    shown = [each.name for each in found]
    if twice := sorted({name for name in shown if shown.count(name) > 1}):
        raise ConfigError(f"--models: found several models named {', '.join(twice)}; rename their folders")
    return found


def _model(name: str, definitions: Mapping[str, Settings], place: _Place) -> EvaluatedModel:
    if name == BM25:
        bm25 = Bm25(BM25, Config(), Kit(_no_encoder, home() / "cache"))
        made = lambda: Searcher(bm25, loading.local_meta(BM25), place.progress)  # noqa: E731
        return EvaluatedModel(BM25, digest(bm25.identity)[:16], made, has_vectors=False)
    if name in definitions or name in {*ENCODERS.names()} - UNDEFINED:
        return _ours(name, definitions, place)
    if Path(name).expanduser().is_dir():
        revision = DenseEncoder(name, DenseConfig(model=name)).revision
        return _stock(Path(name).expanduser().name, revision, loading.from_folder(name), place)
    return _of_mteb(name, place)


def _ours(name: str, definitions: Mapping[str, Settings], place: _Place) -> EvaluatedModel:
    settings = dict(with_named_sides(definitions.get(name, {}), definitions))
    make = ENCODERS.load(str(settings.pop("kind", name)))
    checked = check(import_module(make.__module__).Config, settings, f"encoders.{name}")
    load = lambda: OurModel(make(name, checked), loading.local_meta(name), place.progress, place.sizes(name))  # noqa: E731
    encoder = make(name, checked)
    return EvaluatedModel(name, encoder.revision, load, precision=getattr(encoder, "dtype", "float32"))


def _of_mteb(name: str, place: _Place) -> EvaluatedModel:
    """Return a model that mteb knows, or one of the hub; mteb gives it the prompts of its own makers."""
    try:
        meta = imported().get_model_meta(name)
    except KeyError as error:
        if "/" not in name or name.startswith((".", "/", "~")):
            raise ConfigError(
                f"--models {name}: neither bm25, nor an encoder ({', '.join(ENCODERS.names())}), nor a folder, nor a "
                f"model of mteb ({error.args[0]}); a model on the hub is named ORGANISATION/NAME"
            ) from None
        return _stock(name, DenseEncoder(name, DenseConfig(model=name)).revision, loading.by_name(name), place)
    place = place if loading.takes_dtype(meta) else replace(place, dtype=OWN)
    return _stock(name, str(meta.revision), loading.by_name(name), place)


def _stock(name: str, revision: str, load: loading.Load, place: _Place) -> EvaluatedModel:
    """Return a model that mteb loads: a copy on every device."""
    load = loading.explained(name, load)

    def loaded() -> Foreign:
        with waiting(place.progress, StepLabel(f"loading {name}")):
            first = load(place.devices[0], place.dtype)
            if not loading.makes_vectors(first):
                return first
            copies = [first, *(load(device, place.dtype) for device in place.devices[1:])]
        identity = digest([name, revision, place.dtype])
        return StockModel(name, identity, copies, place.progress, place.sizes(name))

    compares = place.dtype not in ("float32", OWN)
    exact = (lambda device: load(device, "float32")) if compares else None
    return EvaluatedModel(name, revision, loaded, precision=place.dtype, device=place.shown, exact=exact)


def _no_encoder(name: str) -> Encoder:
    raise ConfigError(f"bm25 asked for the encoder {name!r}, and needs none")
