"""Models by name behind mteb's interfaces: encoders and BM25 of this package, and models that mteb can load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path

from curate.commands.evaluate import loading
from curate.commands.evaluate.batches import BatchSizes
from curate.commands.evaluate.our_encoders import OurModel
from curate.commands.evaluate.precision import devices, dtype_for
from curate.commands.evaluate.searcher import Searcher
from curate.commands.evaluate.tasks import Foreign, imported
from curate.commands.evaluate.vector_models import CutModel, StockModel, VectorModel
from curate.core.config import Settings, check, digest
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Kit, Progress, quiet
from curate.pipeline.stage import home
from curate.retrieval.encoders import ENCODERS, UNDEFINED
from curate.retrieval.encoders.asymmetric import with_named_sides
from curate.retrieval.encoders.dense import Config as DenseConfig
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.retrievers.bm25 import Bm25, Config

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
        return ", ".join(each for each in self.devices if each) or None

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
