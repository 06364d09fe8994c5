"""Encoders of this package and of pipelines, as mteb asks them."""

from collections.abc import Sequence

import numpy as np

from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Progress, Vectors
from curate.core.records import Role
from curate.evaluation.models.batches import BatchSizes
from curate.evaluation.models.tasks import Foreign
from curate.evaluation.models.text_inputs import ROLES, ModelInput, SeenTexts, probe, seen_texts
from curate.evaluation.models.vector_models import TextBatch, VectorModel
from curate.retrieval.encoders.dense import DenseEncoder
from curate.retrieval.vectors import GROUP, CachedEncoder, default_folder
from curate.stages.context import home

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
        if isinstance(self.encoder, DenseEncoder):
            with self.encoder.borrowed() as weights:
                return probe(_AsStock(self.encoder, weights), batch.task_metadata, batch.prompt_type)
        prompts = getattr(self.encoder, "prompts", None)
        route = None if batch.role else getattr(self.encoder, "sts_route", None)
        return ModelInput(prompts is not None, (prompts or {}).get(_role(batch.role)) or None, route)

    def look(self, given: ModelInput, batch: TextBatch) -> SeenTexts:
        """Return what is put in, to be written down."""
        if not isinstance(self.encoder, DenseEncoder):
            return seen_texts(None, given, batch.role, batch.texts)
        with self.encoder.borrowed() as weights:
            return seen_texts(_AsStock(self.encoder, weights), given, batch.role, batch.texts)

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
