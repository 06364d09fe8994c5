"""Loading of models for training, as a whole or one side of a Router, and cached vectors of untrained models."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate.commands.train import TrainSettings
from curate.core.errors import ConfigError
from curate.core.protocols import Progress, quiet
from curate.pipeline.stage import home
from curate.retrieval.encoders.dense import Config, DenseEncoder
from curate.retrieval.stored_model import hide_progress_bars, unreachable
from curate.retrieval.vectors import CachedEncoder, default_folder
from curate.system.extras import needed, require

Foreign = Any
"""Models of sentence-transformers, which are untyped here."""


@dataclass(frozen=True)
class TrainModels:
    """The query and document models at the start of a training."""

    base: str
    settings: TrainSettings
    device: str | None = None
    progress: Progress = quiet

    @property
    def query(self) -> str:
        """Return the name or folder of the query model."""
        return self._side(self.base, "query")

    @property
    def document(self) -> str:
        """Return the name or folder of the document model."""
        return self._side(self.settings.documents or self.base, "document")

    @property
    def shared(self) -> bool:
        """Return whether queries and documents start from the same model."""
        return self.query == self.document

    def load(self, name: str) -> Foreign:
        """Return an untrained model in float32 with `settings.max_length`; ConfigError if it cannot be loaded."""
        require("sentence_transformers", "curate train")
        require("accelerate", "curate train")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        with needed("curate train"):
            from sentence_transformers import SentenceTransformer

            hide_progress_bars()
        path = Path(name).expanduser()
        if not path.is_dir() and name.startswith(("/", ".", "~")):
            raise ConfigError(
                f"--base {name}: there is no such folder; give the folder of a model, or a name on the hub"
            )
        if not path.is_dir() and (why := unreachable(name, None)):
            raise ConfigError(f"--base {name}: {why}; give the folder of a sentence-transformers model")
        try:
            model = SentenceTransformer(
                str(path) if path.is_dir() else name,
                device=self.device,
                trust_remote_code=self.settings.trust_remote_code,
                model_kwargs={"dtype": "float32"},
            )
        except (OSError, ValueError, AttributeError, TypeError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConfigError(
                f"--base {name}: cannot be loaded ({why}); give the folder of a sentence-transformers model, or its "
                "name on the hub"
            ) from error
        if self.settings.max_length is not None and hasattr(model[0], "auto_model"):
            model.max_seq_length = self.settings.max_length
        return model

    def vectors(self, name: str) -> CachedEncoder:
        """Return an untrained model as an encoder with vectors cached on disk."""
        path = Path(name).expanduser()
        config = Config(
            model=str(path) if path.is_dir() else name,
            max_length=self.settings.max_length,
            device=self.device,
            trust_remote_code=self.settings.trust_remote_code,
        )
        return CachedEncoder(DenseEncoder(path.name, config), default_folder(home()), self.progress)

    def check(self) -> None:
        """Raise ConfigError if the query or document model cannot be loaded or does not fit the settings."""
        query = self.load(self.query)
        from curate.commands.train import sides

        if sides.is_router(query):
            raise ConfigError(
                f"--base {self.base}: found a Router on the hub, expected one in a folder; download it "
                f"(hf download {self.base} --local-dir FOLDER) and give the folder"
            )
        if self.settings.recipe == "align" and not self.settings.documents and self.shared:
            raise ConfigError(
                f"recipe align needs a model whose vectors are learnt, and --base {self.base} has one side; name one "
                "with --set train.documents=NAME, or give a Router as --base"
            )
        if not self.settings.two_sided and not self.shared:
            raise ConfigError(
                f"--base {self.base}: found a model of two sides, and recipe {self.settings.recipe} trains one for "
                "both; take recipe joint, or recipe contrastive with --set train.freeze=documents"
            )
        if self.settings.lora.rank:
            require("peft", "curate train with lora")
            self._adaptable(query)
        width = query.get_embedding_dimension()
        if wide := [dimension for dimension in self.settings.mrl if dimension > width]:
            raise ConfigError(f"train.mrl: found {wide[0]}, expected at most {width}, the width of {self.base}")

    def _side(self, name: str, role: str) -> str:
        """Return the folder of one side of a Router, written once to the home folder, or the name of a plain model."""
        with needed("curate train"):
            from curate.commands.train import sides
        path = Path(name).expanduser()
        if (path / role / sides.MODULES).is_file():  # trained here
            return str(path / role)
        if not sides.in_folder(path):
            return name
        cached = home() / "sides" / DenseEncoder("router", Config(model=str(path))).revision
        if not cached.is_dir():
            sides.write_apart(self.load(name), name, cached)
        return str(cached / role)

    def _adaptable(self, query: Foreign) -> None:
        if self.settings.recipe == "joint" and not self.settings.frozen:
            raise ConfigError(
                "train.lora: adapters on both sides of a Router are not supported; freeze the documents "
                "(--set train.freeze=documents), or train all weights (--set train.lora.rank=0)"
            )
        if not hasattr(query[0], "auto_model"):
            raise ConfigError(f"train.lora: {self.base} has no transformer to adapt; leave train.lora.rank at 0")


def prompts(model: Foreign, role: str, query_prompt: str | None) -> str:
    """Return the prompt of a role; for queries, `query_prompt` replaces the model's unless it is None."""
    return query_prompt if query_prompt is not None and role == "query" else str(model.prompts.get(role) or "")
