"""Encoder by any sentence-transformers model, given by name or folder."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.stored_model import ModelConfig, StoredModel
from curate.system.egress import Egress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


CPU = Path("/proc/cpuinfo")
"""File with the processor's features on Linux."""


class Config(ModelConfig):
    """Settings of a sentence-transformers model."""

    query_prompt: str | None = None
    """Prefix of every query, for example `query: `; None takes the model's own, an empty text none."""
    document_prompt: str | None = None
    """Prefix of every document, likewise."""
    dtype: Literal["float32", "float16", "bfloat16", "auto"] = "float32"
    """Precision. `auto` is float16 on a GPU, bfloat16 on a processor with matrix units for it (amx_bf16), else float32;
    what it stands for is part of the cache key, so name a precision where machines of different kinds share a cache."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; None takes all GPUs if there are any, each with a copy of the model."""


class DenseEncoder:
    """Encoder by a sentence-transformers model; queries and documents may have different prompts.

    The revision, part of the cache key, depends on prompts, maximum length, precision, and the model: name and commit
    on the hub, or the content of a local folder, whatever its path. It does not depend on device and batch size, which
    only change the last bits of a vector.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        self._stored = StoredModel(f"encoders.{name}", config)
        self.dtype = _precision(config)
        self.revision = self._stored.revision(dtype=self.dtype)

    def __getstate__(self) -> dict[str, object]:
        """Return the state to pickle, without the model, which a copy in another process loads itself."""
        return {name: attribute for name, attribute in vars(self).items() if name != "_models"}

    @property
    def lanes(self) -> int:
        """Return the number of threads that may call `encode` at the same time: one per device."""
        return self._models.maxsize

    @property
    def step(self) -> int | None:
        """Return the batch size on a CPU, where progress is reported after every batch; None on a GPU."""
        return self.config.batch_size if self._devices() in ([None], ["cpu"]) else None

    @cached_property
    def dim(self) -> int:
        """Return the length of a vector; loads the model."""
        with self.borrowed() as model:
            return int(model.get_embedding_dimension())

    def load(self) -> None:
        """Load the model, once per device."""
        _ = self._models

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised row per text, shape (len(texts), dim)."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        query = role == "query"
        with self.borrowed() as model:
            rows = (model.encode_query if query else model.encode_document)(
                list(texts),
                prompt=self.config.query_prompt if query else self.config.document_prompt,
                batch_size=self.config.batch_size,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return unit(rows)  # by us and in float32: half precision leaves lengths 0.5 % off

    def float32_rows(self, role: Role) -> Callable[[Sequence[str]], Vectors] | None:
        """Return a function that encodes texts of a role in float32, to check precision; None if this encoder does."""
        return None if self.dtype == "float32" else lambda texts: self._float32_rows(texts, role)

    def _float32_rows(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return vectors by a temporary float32 copy of the model; on the CPU if the GPU lacks memory for it."""
        import torch

        first = self._devices()[0]
        try:
            return self._in_float32(first).encode(texts, role)
        except (torch.OutOfMemoryError, ConfigError) as error:  # loading wraps it in a ConfigError
            if first in (None, "cpu") or not isinstance(error.__cause__ or error, torch.OutOfMemoryError):
                raise
        return self._in_float32("cpu").encode(texts, role)

    def _in_float32(self, device: str | None) -> "DenseEncoder":
        return DenseEncoder(self.name, self.config.model_copy(update={"dtype": "float32", "device": device}))

    @contextmanager
    def borrowed(self) -> "Iterator[SentenceTransformer]":
        """Yield one of the models, which no other thread uses within the block."""
        model = self._models.get()
        try:
            yield model
        finally:
            self._models.put(model)

    @cached_property
    def _models(self) -> "Queue[SentenceTransformer]":
        devices = self._devices()
        models: Queue[SentenceTransformer] = Queue(len(devices))
        for device in devices:
            models.put(self._load(device))
        return models

    def _devices(self) -> Sequence[str | None]:
        import torch

        gpus = torch.cuda.device_count() if self.config.device is None else 0
        return [f"cuda:{number}" for number in range(gpus)] or [self.config.device]

    def _load(self, device: str | None) -> "SentenceTransformer":
        config = self.config
        model: SentenceTransformer = self._stored.load(
            "SentenceTransformer", device, model_kwargs={"dtype": self.dtype}
        )
        if config.max_length is not None and not limit_length(model, config.max_length):
            raise ConfigError(
                f"encoders.{self.name}.max_length: {config.max_length} cannot be set, as no side of {config.model} has "
                "a longest input (a table of token vectors reads whole texts); leave it out"
            )
        return model


def limit_length(model: "SentenceTransformer", length: int) -> int:
    """Limit the input of a model to `length` tokens, and return how many of its modules could be limited.

    A Router has one module per kind of text (query, document), which are limited separately; any other model counts as
    one. A static table of token vectors has no length to set, and a Router with such a module fails if its own length
    is set.
    """
    first = model[0]
    routes = getattr(first, "sub_modules", None)
    limited = 0
    for side in [first] if routes is None else {id(route[0]): route[0] for route in routes.values()}.values():
        attribute = getattr(type(side), "max_seq_length", None)
        if isinstance(attribute, property) and attribute.fset is None:
            continue
        if attribute is not None or hasattr(side, "max_seq_length"):
            side.max_seq_length = length
            limited += 1
    return limited


def _precision(config: Config) -> str:
    """Return the configured precision, with `auto` resolved for this machine."""
    if config.dtype != "auto":
        return config.dtype
    if config.device is None:
        import torch

        gpu = torch.cuda.is_available()
    else:
        gpu = config.device.startswith("cuda")
    if gpu:
        return "float16"
    # Without matrix units bfloat16 is slower than float32: 0.65 x measured on a processor with avx512_bf16 alone.
    flags = CPU.read_text(encoding="utf-8") if CPU.is_file() else ""
    return "bfloat16" if config.device in (None, "cpu") and " amx_bf16" in flags else "float32"
