"""Models with vectors and mteb's interface: document vectors are cached, and inputs are recorded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from queue import Queue
from time import monotonic

import numpy as np

from curate.commands.evaluate.loading import BatchSizes
from curate.commands.evaluate.tasks import Foreign
from curate.commands.evaluate.text_inputs import ROLES, ModelInput, SeenTexts, probe, seen_texts
from curate.core.config import digest
from curate.core.errors import RunFailed
from curate.core.progress import StepLabel
from curate.core.protocols import Progress, Vectors
from curate.core.records import Role
from curate.pipeline.stage import home
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.vectors import CachedEncoder, default_folder, keys_of

PART = 1024
"""Number of texts between two updates of the progress."""


@dataclass(frozen=True)
class TextBatch:
    """Texts of one role of one task, to be encoded."""

    inputs: Foreign
    task_metadata: Foreign
    prompt_type: Foreign

    @cached_property
    def role(self) -> str:
        """Return query, document, or an empty string for sentences without a role."""
        return str(getattr(self.prompt_type, "value", self.prompt_type) or "")

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts in order."""
        return list(self.inputs.dataset["text"])

    @cached_property
    def places(self) -> dict[str, int]:
        """Return text -> its last index."""
        return {text: index for index, text in enumerate(self.texts)}


class VectorModel(ABC):
    """A model with vectors and mteb's interface.

    Document vectors come from the cache of embeddings. Other texts are always encoded, so that the speed of encoding
    queries is measured. `seen` holds the records of inputs since it was cleared; `aside` is the time spent on queries
    except for encoding.
    """

    def __init__(self, name: str, meta: Foreign, progress: Progress, sizes: BatchSizes) -> None:
        self.name, self.mteb_model_meta, self.progress, self.sizes = name, meta, progress, sizes
        self.seen: dict[str, SeenTexts] = {}
        self.dim: int | None = None
        self.remembers = False
        """Whether query vectors are stored, for truncation to other widths."""
        self._aside = 0.0
        self._remembered: dict[str, Vectors] = {}

    @property
    def aside(self) -> float:
        """Return the seconds spent on queries for other purposes than encoding."""
        return self._aside + sum(lost for role, lost in self.sizes.lost.items() if role != "document")

    @property
    def size(self) -> int | None:
        """Return the largest batch size in use."""
        return self.sizes.size

    def encode(
        self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None, **_named: Foreign
    ) -> Vectors:
        """Return one vector per text, neither truncated nor normalised."""
        batch = TextBatch(inputs, task_metadata, prompt_type)
        model_input = self._input_of(batch)
        rows = self.kept_rows(batch, model_input) if batch.role == "document" else self._encode_new(batch, model_input)
        self.dim = int(rows.shape[1])
        return rows

    def kept(self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None) -> Vectors:
        """Return the rows of `encode` from memory or the cache; missing ones are encoded and cached."""
        batch = TextBatch(inputs, task_metadata, prompt_type)
        model_input = self._input_of(batch)
        remembered = self._remembered.get(_batch_digest(batch, model_input))
        return self.kept_rows(batch, model_input) if remembered is None else remembered

    @abstractmethod
    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarities of all rows of `one` with all rows of `other`."""

    @abstractmethod
    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of each row of `one` with the corresponding row of `other`."""

    @abstractmethod
    def given(self, batch: TextBatch) -> ModelInput:
        """Return the input settings of the model for these texts."""

    @abstractmethod
    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:
        """Return rows from the cache of embeddings; missing ones are encoded first."""

    @abstractmethod
    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return the rows of the texts, encoded without the cache."""

    def look(self, given: ModelInput, batch: TextBatch) -> SeenTexts:
        """Return the record of the inputs."""
        return seen_texts(self, given, batch.role, batch.texts)

    def _input_of(self, batch: TextBatch) -> ModelInput:
        start = monotonic()
        model_input = self.given(batch)
        record, earlier = self.look(model_input, batch), self.seen.get(batch.role)
        self.seen[batch.role] = record if earlier is None else earlier.with_more(record)
        if batch.role != "document":
            self._aside += monotonic() - start
        return model_input

    def _encode_new(self, batch: TextBatch, model_input: ModelInput) -> Vectors:
        rows = self.fresh_rows(batch)
        if n_not_finite := int((~np.isfinite(rows)).any(axis=1).sum()):
            raise RunFailed(
                f"{batch.task_metadata.name}, {self.name}: {n_not_finite} of {len(rows)} vectors of "
                f"{ROLES[batch.role]} hold NaN or infinity; give --set dtype=float32, or bfloat16 for float16"
            )
        if self.remembers:
            self._remembered[_batch_digest(batch, model_input)] = rows
        return rows


class StockModel(VectorModel):
    """A model that mteb loads, with one copy per GPU; the copies encode in parallel."""

    def __init__(
        self, name: str, revision: str, copies: Sequence[Foreign], progress: Progress, sizes: BatchSizes
    ) -> None:
        """Store the copies. `revision` identifies everything that affects vectors, including the precision."""
        super().__init__(name, copies[0].mteb_model_meta, progress, sizes)
        self.revision, self.plain, self.lanes = revision, copies[0], len(copies)
        self.model = getattr(copies[0], "model", None)
        self._free: Queue[Foreign] = Queue()
        for copy in copies:
            self._free.put(copy)
        self._cached: dict[str, tuple[_KeptTexts, CachedEncoder]] = {}

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarities of all rows of `one` with all rows of `other`."""
        return self.plain.similarity(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of each row of `one` with the corresponding row of `other`."""
        return self.plain.similarity_pairwise(one, other)

    def given(self, batch: TextBatch) -> ModelInput:
        """Return the input settings of the model for these texts, observed by a probe."""
        return probe(self.plain, batch.task_metadata, batch.prompt_type)

    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:
        """Return rows from the cache.

        The cache key includes the task if the inputs are unknown, as the prompt may depend on it.
        """
        input_identity = given.identity if given.known else [str(batch.task_metadata.name), batch.role]
        key = digest([self.revision, input_identity])
        if key not in self._cached:
            kept_texts = _KeptTexts(self, key)
            self._cached[key] = kept_texts, CachedEncoder(kept_texts, default_folder(home()), self.progress)
        texts, cached = self._cached[key]
        texts.batch = batch
        role: Role = "document" if batch.role == "document" else "query"
        if self.sizes.grows and cached.missing(keys_of(batch.texts, role), role):
            self._prepare(batch)
        return cached.encode(batch.texts, role)

    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return the rows of the texts, encoded by all copies without the cache."""
        self._prepare(batch)
        label, total = StepLabel(f"encoding {ROLES[batch.role]}, {self.name}", "texts"), len(batch.texts)
        index_ranges = [range(start, min(start + PART, total)) for start in range(0, total, PART)]
        rows, n_encoded = [], 0
        self.progress(label, total, 0)
        with ThreadPoolExecutor(self.lanes) as pool:
            for vectors in pool.map(lambda indices: self.encoded(batch, indices), index_ranges):
                rows.append(vectors)
                n_encoded += len(vectors)
                self.progress(label, total, n_encoded)
        return np.concatenate(rows)

    def encoded(self, batch: TextBatch, places: Sequence[int]) -> Vectors:
        """Return the rows of the texts at some indices, encoded in batches that fit into memory."""
        return self.sizes.fitting(batch.role, lambda size: self._run(batch, places, size))

    def _prepare(self, batch: TextBatch) -> None:
        longest = np.argsort([len(text) for text in batch.texts], kind="stable")[::-1].tolist()
        self.sizes.prepare(batch.role, len(longest), lambda size: self._run(batch, longest[:size], size))

    def _run(self, batch: TextBatch, indices: Sequence[int], size: int) -> Vectors:
        from torch.utils.data import DataLoader

        rows = batch.inputs.dataset.select(list(indices))
        copy = self._free.get()
        try:
            vectors = copy.encode(
                DataLoader(rows, batch_size=size, collate_fn=batch.inputs.collate_fn),
                task_metadata=batch.task_metadata,
                hf_split="test",
                hf_subset="default",
                prompt_type=batch.prompt_type,
                batch_size=size,
                show_progress_bar=False,
            )
        finally:
            self._free.put(copy)
        return np.asarray(vectors.cpu() if hasattr(vectors, "cpu") else vectors, dtype=np.float32)


class _KeptTexts:
    """A model with one prompt as an encoder, for the cache of embeddings."""

    def __init__(self, model: StockModel, revision: str) -> None:
        self.name, self.revision, self.lanes, self._model = model.name, revision, model.lanes, model
        self.batch: TextBatch | None = None

    @property
    def dim(self) -> int:
        """Return the number of dimensions of a vector; 0 before the first one."""
        return self._model.dim or 0

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - the batch knows it
        """Return one row per text of the batch."""
        assert self.batch is not None
        return self._model.encoded(self.batch, [self.batch.places[text] for text in texts])


class CutModel:
    """A model with the truncated and renormalised vectors of another one, as for Matryoshka models.

    `truncate_dim` of sentence-transformers truncates after the normalisation, so vectors are shorter than 1, which is
    wrong for inner products.
    """

    def __init__(self, whole: VectorModel, width: int) -> None:
        self.whole, self.width, self.mteb_model_meta = whole, width, whole.mteb_model_meta
        self.dim = width

    @property
    def seen(self) -> dict[str, SeenTexts]:
        """Return the recorded inputs of the full model."""
        return self.whole.seen

    @property
    def size(self) -> int | None:
        """Return the largest batch size of the full model."""
        return self.whole.size

    def encode(
        self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None, **_named: Foreign
    ) -> Vectors:
        """Return a unit vector of this width per text."""
        return cut(self.whole.kept(inputs, task_metadata=task_metadata, prompt_type=prompt_type), self.width)

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarities of all rows of `one` with all rows of `other`."""
        return self.whole.similarity(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of each row of `one` with the corresponding row of `other`."""
        return self.whole.similarity_pairwise(one, other)


def cut(rows: Vectors, width: int) -> Vectors:
    """Return vectors truncated to their first `width` coordinates and normalised."""
    return unit(rows[:, :width])


def _batch_digest(batch: TextBatch, model_input: ModelInput) -> str:
    texts_digest = sha256("\0".join(batch.texts).encode()).hexdigest()
    return digest([model_input.identity, model_input.known or batch.task_metadata.name, batch.role, texts_digest])
