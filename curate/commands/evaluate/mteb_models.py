"""Models with mteb's interfaces: curate's encoders and BM25, and models that mteb loads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path

import numpy as np

from curate.commands.evaluate import loading, ranking_models
from curate.commands.evaluate.loading import BatchSizes, devices, dtype_for
from curate.commands.evaluate.ranking_models import BM25
from curate.commands.evaluate.tasks import Foreign, imported
from curate.commands.evaluate.text_inputs import ROLES, ModelInput, SeenTexts, probe, seen_texts
from curate.commands.evaluate.vector_models import CutModel, StockModel, TextBatch, VectorModel
from curate.core.config import Settings, check, digest
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Progress, Retriever, Vectors, quiet
from curate.core.records import Role
from curate.pipeline.stage import home
from curate.retrieval.encoders import ENCODERS, UNDEFINED
from curate.retrieval.encoders.asymmetric import Asymmetric, with_named_sides
from curate.retrieval.encoders.dense import Config as DenseConfig
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.vectors import GROUP, CachedEncoder, default_folder
from curate.system.egress import AllowedHosts, addresses

BATCH = 32
"""Number of queries per batch of curate's encoders."""


class OurModel(VectorModel):
    """An encoder of curate as an mteb model; STS sentences are encoded as queries, as the authors of e5 advise.

    Document vectors come from the cache of runs, so the corpus of a pooled run is not encoded again.
    """

    def __init__(self, encoder: Encoder, meta: Foreign, progress: Progress, sizes: BatchSizes) -> None:
        """Store the encoder and load its weights, so that loading is not part of its speed."""
        super().__init__(encoder.name, meta, progress, sizes)
        self.encoder = encoder
        self._cached = CachedEncoder(_HalvingEncoder(encoder, sizes), default_folder(home()), progress)
        with waiting(progress, StepLabel(f"loading {encoder.name}")):
            encoder.encode(["."], "query")

    @property
    def of_queries(self) -> Encoder:
        """Return the encoder of queries: the query encoder of an asymmetric pair, else the encoder itself."""
        sides: Mapping[str, Encoder] = getattr(self.encoder, "sides", {})
        return sides.get("query", self.encoder)

    @property
    def model(self) -> Foreign:
        """Return the loaded weights of the query encoder; None if it does not expose them."""
        if not isinstance(self.of_queries, DenseEncoder):
            return None
        with self.of_queries.borrowed() as weights:
            return weights

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the cosines of all rows of `one` with all rows of `other`."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the cosine of each row of `one` with the corresponding row of `other`."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(one, other)

    def given(self, batch: TextBatch) -> ModelInput:
        """Return the encoder's input settings (prompt, template) for these texts, as far as known."""
        encoder, side = self._reader(batch.role)
        if isinstance(encoder, DenseEncoder):
            with encoder.borrowed() as weights:
                model_input = probe(_AsStock(encoder, weights), batch.task_metadata, batch.prompt_type)
        else:
            prompts = getattr(encoder, "prompts", None)
            model_input = ModelInput(prompts is not None, (prompts or {}).get(_role(batch.role)) or None)
        return replace(model_input, encoder_side=side)

    def look(self, given: ModelInput, batch: TextBatch) -> SeenTexts:
        """Return the record of the actual inputs."""
        encoder, _ = self._reader(batch.role)
        if not isinstance(encoder, DenseEncoder):
            return seen_texts(None, given, batch.role, batch.texts)
        with encoder.borrowed() as weights:
            return seen_texts(_AsStock(encoder, weights), given, batch.role, batch.texts)

    def _reader(self, role: str) -> tuple[Encoder, str | None]:
        """Return the encoder for a role, and its side (query or document) in an asymmetric pair, else None."""
        if not isinstance(self.encoder, Asymmetric):
            return self.encoder, None
        side = _role(role) if role else self.encoder.sts_route
        return self.encoder.side(side), side

    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:  # noqa: ARG002 - the encoder has one prompt
        """Return the rows from the cache of runs; missing ones are encoded."""
        return self._cached.encode(batch.texts, _role(batch.role))

    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return the rows encoded without the cache, `BATCH` texts at a time."""
        label, texts, rows = StepLabel(f"encoding {ROLES[batch.role]}, {self.name}", "texts"), batch.texts, []
        for start in range(0, len(texts), BATCH):
            self.progress(label, len(texts), start)
            rows.append(self._cached.encoder.encode(texts[start : start + BATCH], "query"))
        self.progress(label, len(texts), len(texts))
        return np.concatenate(rows)


class _HalvingEncoder:
    """Wrapper of an encoder that halves its batches if memory runs out; other attributes are those of the encoder."""

    def __init__(self, encoder: Encoder, sizes: BatchSizes) -> None:
        self._encoder, self._sizes = encoder, sizes

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text."""

        def run(size: int) -> Vectors:
            batches = [texts[start : start + size] for start in range(0, len(texts), size)]
            return np.concatenate([self._encoder.encode(batch, role) for batch in batches])

        return self._sizes.fitting(role, run, BATCH if role == "query" else GROUP)


class _AsStock:
    """A dense encoder's model with mteb's interface, so that its inputs are inspected like those of mteb's models."""

    def __init__(self, encoder: DenseEncoder, weights: Foreign) -> None:
        self.encoder, self.model = encoder, weights

    def encode(self, inputs: Foreign, *, prompt_type: Foreign = None, **_named: Foreign) -> Foreign:
        """Return the vectors of mteb's inputs, encoded with the encoder's own prompts."""
        query, config = getattr(prompt_type, "value", None) != "document", self.encoder.config
        texts = [text for batch in inputs for text in batch["text"]]
        call = self.model.encode_query if query else self.model.encode_document
        return call(texts, prompt=config.query_prompt if query else config.document_prompt)


def _role(role: str) -> Role:
    return "document" if role == "document" else "query"


BASELINES = (BM25, "use", "e5")
"""Models that need no network access."""
OWN = "own"
"""Precision of a model that mteb loads with code of its authors; the code chooses it."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class EvaluatedModel:
    """A model to evaluate; its weights are loaded on first use."""

    name: str
    revision: str
    """Digest or revision of everything that affects the model's scores."""
    load: Callable[[], Foreign]
    has_vectors: bool = True
    """Whether the model has vectors; False for BM25."""
    precision: str = "float32"
    """Precision of the loaded weights."""
    device: str | None = None
    """Device; None if the libraries choose."""
    exact: Callable[[str | None], Foreign] | None = None
    """Function that loads a copy in float32; None if the model itself is in float32."""
    width: int | None = None
    """Number of coordinates of truncated vectors; None for full vectors."""

    @cached_property
    def loaded(self) -> Foreign:
        """Return the model for `mteb.evaluate`."""
        return self.load()

    def at(self, width: int) -> str:
        """Return the name of the model truncated to a width."""
        return f"{self.name}@{width}"

    def cut(self, width: int) -> "EvaluatedModel":
        """Return the model with vectors truncated to their first `width` coordinates; both share the weights."""
        return replace(self, name=self.at(width), load=lambda: CutModel(self.loaded, width), exact=None, width=width)

    def remember(self) -> None:
        """Load the model, and make it store query vectors, for truncation to other widths."""
        if isinstance(self.loaded, VectorModel):
            self.loaded.remembers = True

    def release(self) -> None:
        """Free the memory of the weights; they are loaded again on next use."""
        if vars(self).pop("loaded", None) is not None:
            loading.collected()


@dataclass(frozen=True)
class _Runtime:
    """Devices and precision of models, and callbacks for progress."""

    devices: Sequence[str | None]
    dtype: str
    progress: Progress
    tell: Tell
    hosts: AllowedHosts
    """Hosts that encoders may reach."""
    retrievers: Mapping[str, Callable[[], Retriever]]
    """Retrievers of the run's pipeline without vectors, by name."""

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
    hosts: AllowedHosts = AllowedHosts(),  # noqa: B008 - frozen
    retrievers: Mapping[str, Callable[[], Retriever]] | None = None,
) -> list[EvaluatedModel]:
    """Return the models of these names, each once.

    A name is bm25, a retriever of the run's pipeline, an encoder, a folder of sentence-transformers, or mteb's.
    """
    device_names = devices(device)
    runtime = _Runtime(device_names, dtype_for(dtype, device_names), progress, tell, hosts, retrievers or {})
    models = [_model(name, definitions or {}, runtime) for name in dict.fromkeys(names)]
    model_names = [model.name for model in models]
    if repeated := sorted({name for name in model_names if model_names.count(name) > 1}):
        raise ConfigError(f"--models: found several models named {', '.join(repeated)}; rename their folders")
    return models


def _model(name: str, definitions: Mapping[str, Settings], runtime: _Runtime) -> EvaluatedModel:
    if (search := ranking_models.named(name, runtime.retrievers, runtime.devices[0])) is not None:
        load = lambda: search.model(runtime.progress)  # noqa: E731
        return EvaluatedModel(search.name, search.revision, load, has_vectors=False)
    if name in definitions or name in {*ENCODERS.names()} - UNDEFINED:
        return _own_model(name, definitions, runtime)
    if Path(name).expanduser().is_dir():
        revision = DenseEncoder(name, DenseConfig(model=name)).revision
        return _stock_model(Path(name).expanduser().name, revision, loading.from_folder(name), runtime)
    return _mteb_model(name, runtime)


def _own_model(name: str, definitions: Mapping[str, Settings], runtime: _Runtime) -> EvaluatedModel:
    settings = dict(with_named_sides(definitions.get(name, {}), definitions))
    make = ENCODERS.load(str(settings.pop("kind", name)))
    checked = check(import_module(make.__module__).Config, settings, f"encoders.{name}")
    load = lambda: OurModel(make(name, checked), loading.local_meta(name), runtime.progress, runtime.sizes(name))  # noqa: E731
    encoder = make(name, checked)
    runtime.hosts.refuse(f"encoders.{name}", addresses(encoder))
    return EvaluatedModel(name, encoder.revision, load, precision=getattr(encoder, "dtype", "float32"))


def _mteb_model(name: str, runtime: _Runtime) -> EvaluatedModel:
    """Return a model of mteb's list or the hub, with its authors' prompts."""
    try:
        meta = imported().get_model_meta(name)
    except KeyError as error:
        if "/" not in name or name.startswith((".", "/", "~")):
            raise ConfigError(
                f"--models {name}: neither bm25, nor an encoder ({', '.join(ENCODERS.names())}), nor a folder, nor a "
                f"model of mteb ({error.args[0]}); a model on the hub is named ORGANISATION/NAME"
            ) from None
        return _stock_model(name, DenseEncoder(name, DenseConfig(model=name)).revision, loading.by_name(name), runtime)
    runtime = runtime if loading.takes_dtype(meta) else replace(runtime, dtype=OWN)
    return _stock_model(name, str(meta.revision), loading.by_name(name), runtime)


def _stock_model(name: str, revision: str, load: loading.Load, runtime: _Runtime) -> EvaluatedModel:
    """Return a model that mteb loads, with a copy on every device."""
    load = loading.explained(name, load)

    def loaded() -> Foreign:
        with waiting(runtime.progress, StepLabel(f"loading {name}")):
            first = load(runtime.devices[0], runtime.dtype)
            if not loading.makes_vectors(first):
                return first
            copies = [first, *(load(device, runtime.dtype) for device in runtime.devices[1:])]
        identity = digest([name, revision, runtime.dtype])
        return StockModel(name, identity, copies, runtime.progress, runtime.sizes(name))

    compares = runtime.dtype not in ("float32", OWN)
    exact = (lambda device: load(device, "float32")) if compares else None
    return EvaluatedModel(name, revision, loaded, precision=runtime.dtype, device=runtime.shown, exact=exact)
