"""Encoder by any sentence-transformers model, given by name or folder: identification of the model, and encoding."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from curate.core.config import Json, Section, digest
from curate.core.errors import ConfigError
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.similarity.exact_search import unit
from curate.system import hub
from curate.system.egress import Egress
from curate.system.extras import require
from curate.system.hub import first_line

CONFIGS = ("config.json", "modules.json")
"""Files of which a model has at least one; a static table of token vectors has no config.json."""


def commit(model: str, revision: str | None) -> str | None:
    """Return the commit of a model on the hub: the one in the local cache, else the newest.

    If the model is not cached, a file of a few hundred bytes is downloaded. None if the hub is unreachable or has no
    such model.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    name = _name(model)
    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        path = cached if isinstance(cached, str) else hf_hub_download(name, "config.json", revision=revision)
    except (OSError, ValueError):  # no network, no such model: loading it says which
        return None
    return Path(path).parent.name


def unreachable(model: str, revision: str | None) -> str | None:
    """Return why a model of the hub cannot be loaded: it is not cached, and the hub does not answer; None if it can."""
    from huggingface_hub import try_to_load_from_cache

    cached = (try_to_load_from_cache(_name(model), name, revision=revision) for name in CONFIGS)
    return hub.unreachable(cached=any(isinstance(path, str) for path in cached))


def _name(model: str) -> str:
    return model if "/" in model else f"sentence-transformers/{model}"  # as the library does


# Any sentence-transformers model, by name or folder.

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


CPU = Path("/proc/cpuinfo")
"""File with the processor's features on Linux."""
PIECES, PIECE = 64, 1 << 14
"""Number, and size in bytes, of the pieces of a file that `_digest` reads: all of a file of up to a megabyte."""


class Config(Section):
    """Settings of a sentence-transformers model."""

    model: str = Field(min_length=1)
    """Name on the hub, or a folder."""
    revision: str | None = None
    """Commit, tag or branch on the hub; without it the commit that the hub's cache on this machine holds, else the
    newest. In each case the commit is part of the cache key; only a model without a config.json has none."""
    query_prompt: str | None = None
    """Prefix of every query, for example `query: `; None takes the model's own, an empty text none."""
    document_prompt: str | None = None
    """Prefix of every document, likewise."""
    dtype: Literal["float32", "float16", "bfloat16", "auto"] = "float32"
    """Precision. `auto` is float16 on a GPU, bfloat16 on a processor with matrix units for it (amx_bf16), else float32;
    what it stands for is part of the cache key, so name a precision where machines of different kinds share a cache."""
    max_length: int | None = Field(default=None, ge=1)
    """Longest input in tokens; None takes the model's own."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; None takes all GPUs if there are any, each with a copy of the model."""
    batch_size: int = Field(default=32, ge=1)
    trust_remote_code: bool = False


class DenseEncoder:
    """Encoder by a sentence-transformers model; queries and documents may have different prompts.

    The revision, part of the cache key, depends on prompts, maximum length, precision, and the model: name and commit
    on the hub, or the content of a local folder, whatever its path. It does not depend on device and batch size, which
    only change the last bits of a vector.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config) -> None:
        require("sentence_transformers", f"encoders.{name}")
        self.name, self.config = name, config
        if config.model.startswith(("/", ".", "~")) and not _folder(config.model).is_dir():
            raise self._wrong("model", "there is no such folder")
        folder = _folder(config.model)
        self._commit = None if folder.is_dir() else commit(config.model, config.revision)
        left_out = {"device", "batch_size", "trust_remote_code"} | ({"model"} if folder.is_dir() else set())
        self.dtype = _precision(config)
        settings = {**config.model_dump(exclude=left_out), "dtype": self.dtype}
        self.revision = digest([settings, _files(folder) if folder.is_dir() else self._commit])[:16]

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
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        config, path = self.config, _folder(self.config.model)
        self._check_device()
        if not path.is_dir() and (why := unreachable(config.model, self._commit or config.revision)):
            raise self._wrong("model", why)
        try:
            model = SentenceTransformer(
                str(path) if path.is_dir() else config.model,
                revision=self._commit or config.revision,
                device=device,
                trust_remote_code=config.trust_remote_code,
                model_kwargs={"dtype": self.dtype},
            )
        except Exception as error:  # broken weights end in an error of the library that reads them
            raise self._wrong("model", first_line(error)) from error
        if config.max_length is not None and not limit_length(model, config.max_length):
            raise ConfigError(
                f"encoders.{self.name}.max_length: {config.max_length} cannot be set, as no side of {config.model} has "
                "a longest input (a table of token vectors reads whole texts); leave it out"
            )
        return model

    def _check_device(self) -> None:
        import torch

        try:
            torch.zeros(1, device=self.config.device)
        except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
            raise self._wrong("device", first_line(error)) from error

    def _wrong(self, setting: str, why: str) -> ConfigError:
        remedy = {
            "model": "give the name of a model on the hub, or the path of its folder: "
            f"--set encoders.{self.name}.model=FOLDER",
            "device": "give cpu, cuda or cuda:N, or leave it out",
        }
        configured = getattr(self.config, setting)
        return ConfigError(f"encoders.{self.name}.{setting}: {configured!r} cannot be used ({why}); {remedy[setting]}")


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


def _folder(model: str) -> Path:
    return Path(model).expanduser()


def _files(folder: Path) -> Json:
    """Return (relative path, digest) of every file in a model's folder, sorted, without hidden ones."""
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    plain = [path for path in paths if not any(name.startswith(".") for name in path.parts)]
    return [[path.as_posix(), _digest(folder / path)] for path in plain]


def _digest(path: Path) -> str:
    """Return a digest of a file's size and content; of a large file (weights) only of `PIECES` evenly spaced pieces.

    Pieces suffice, since training changes weights everywhere; reading several gigabytes would take a minute per run.
    """
    size = path.stat().st_size
    hasher = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        for piece in range(PIECES):
            stream.seek(max(piece * PIECE, piece * (size - PIECE) // (PIECES - 1)))  # the last one ends with the file
            hasher.update(stream.read(PIECE))
    return hasher.hexdigest()
