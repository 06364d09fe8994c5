"""Models of sentence-transformers, by name on the hub or by folder: identification, loading, and errors."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from pydantic import Field

from curate.core.config import Json, Section, digest
from curate.core.errors import ConfigError
from curate.system import hub
from curate.system.extras import require
from curate.system.hub import first_line

CONFIGS = ("config.json", "modules.json")
"""Files of which a model has at least one; a static table of token vectors has no config.json."""


def hide_progress_bars() -> None:
    """Let transformers load weights without bars of its own on the terminal."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


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


PIECES, PIECE = 64, 1 << 14
"""Number, and size in bytes, of the pieces of a file that `_digest` reads: all of a file of up to a megabyte."""
_ELSEWHERE = {"device", "batch_size", "trust_remote_code"}
"""Settings that only change the last bits of a result."""


class ModelConfig(Section):
    """Settings of a model of sentence-transformers."""

    model: str = Field(min_length=1)
    """Name on the hub, or a folder."""
    revision: str | None = None
    """Commit, tag or branch on the hub; without it the commit that the hub's cache on this machine holds, else the
    newest. In each case the commit is part of the cache key; only a model without a config.json has none."""
    max_length: int | None = Field(default=None, ge=1)
    """Longest input in tokens; None takes the model's own."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; None takes a GPU if there is one."""
    batch_size: int = Field(default=32, ge=1)
    trust_remote_code: bool = False


class StoredModel:
    """A model by name and commit on the hub, or by the content of a local folder, wherever it lies.

    `place` is its path in the settings, for messages.
    """

    def __init__(self, place: str, config: ModelConfig) -> None:
        require("sentence_transformers", place)
        self.place, self.config = place, config
        if config.model.startswith(("/", ".", "~")) and not self.folder.is_dir():
            raise self.wrong("model", "there is no such folder")
        self.commit = None if self.folder.is_dir() else commit(config.model, config.revision)

    @property
    def folder(self) -> Path:
        """Return the folder that the name of the model would be."""
        return Path(self.config.model).expanduser()

    def revision(self, **resolved: Json) -> str:
        """Return a digest of model and settings; `resolved` replaces settings by what they stand for here."""
        local = self.folder.is_dir()
        settings = self.config.model_dump(exclude=_ELSEWHERE | ({"model"} if local else set()))
        return digest([settings | resolved, _files(self.folder) if local else self.commit])[:16]

    def load(self, class_name: str, device: str | None, **more: Any) -> Any:  # noqa: ANN401 - of a library
        """Return the model as a class of sentence-transformers; ConfigError if it cannot be loaded."""
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import sentence_transformers

        hide_progress_bars()
        config, local = self.config, self.folder.is_dir()
        self._check_device()
        if not local and (why := unreachable(config.model, self.commit or config.revision)):
            raise self.wrong("model", why)
        try:
            return getattr(sentence_transformers, class_name)(
                str(self.folder) if local else config.model,
                revision=self.commit or config.revision,
                device=device,
                trust_remote_code=config.trust_remote_code,
                **more,
            )
        except Exception as error:  # broken weights end in an error of the library that reads them
            raise self.wrong("model", first_line(error)) from error

    def _check_device(self) -> None:
        import torch

        try:
            torch.zeros(1, device=self.config.device)
        except (RuntimeError, AssertionError) as error:  # torch raises both for a device that is not there
            raise self.wrong("device", first_line(error)) from error

    def wrong(self, setting: str, why: str) -> ConfigError:
        """Return the error for a setting that cannot be used."""
        remedy = {
            "model": f"give the name of a model on the hub, or the path of its folder: --set {self.place}.model=FOLDER",
            "device": "give cpu, cuda or cuda:N, or leave it out",
        }
        configured = getattr(self.config, setting)
        return ConfigError(f"{self.place}.{setting}: {configured!r} cannot be used ({why}); {remedy[setting]}")


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
