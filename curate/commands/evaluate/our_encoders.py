"""Encoders of this package and of pipelines, as mteb asks them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from curate.commands.evaluate.batches import BatchSizes
from curate.commands.evaluate.tasks import Foreign
from curate.commands.evaluate.text_inputs import ROLES, ModelInput, SeenTexts, probe, seen_texts
from curate.commands.evaluate.vector_models import TextBatch, VectorModel
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Progress, Vectors
from curate.core.records import Role
from curate.pipeline.stage import home
from curate.retrieval.encoders.asymmetric import Asymmetric
from curate.retrieval.encoders.dense import DenseEncoder
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
