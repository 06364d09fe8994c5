"""Models that make vectors, behind mteb's interface: document vectors are kept, and what is put in is written down."""

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
"""Texts without kept vectors that are encoded between two looks at the clock."""


@dataclass(frozen=True)
class TextBatch:
    """What mteb wants encoded: texts of one role of one task."""

    inputs: Foreign
    task_metadata: Foreign
    prompt_type: Foreign

    @cached_property
    def role(self) -> str:
        """Return query, document, or nothing for sentences that have no role."""
        return str(getattr(self.prompt_type, "value", self.prompt_type) or "")

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts in order."""
        return list(self.inputs.dataset["text"])

    @cached_property
    def places(self) -> dict[str, int]:
        """Return text -> where it stands."""
        return {text: place for place, text in enumerate(self.texts)}


class VectorModel(ABC):
    """A model as mteb asks it. Documents come from the cache of embeddings; other texts are encoded each time.

    So the speed of answering queries is always a measurement. `seen` says what was put in since it was emptied, and
    `aside` counts seconds of queries that are no part of the model's work.
    """

    def __init__(self, name: str, meta: Foreign, progress: Progress, sizes: BatchSizes) -> None:
        self.name, self.mteb_model_meta, self.progress, self.sizes = name, meta, progress, sizes
        self.seen: dict[str, SeenTexts] = {}
        self.dim: int | None = None
        self.remembers = False
        """Whether vectors of queries are held for widths that are cut out of them."""
        self._aside = 0.0
        self._remembered: dict[str, Vectors] = {}

    @property
    def aside(self) -> float:
        """Return seconds spent on queries for other things than encoding them."""
        return self._aside + sum(lost for role, lost in self.sizes.lost.items() if role != "document")

    @property
    def size(self) -> int | None:
        """Return the largest batch in use."""
        return self.sizes.size

    def encode(
        self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None, **_named: Foreign
    ) -> Vectors:
        """Return a row per text, as the model makes it."""
        batch = TextBatch(inputs, task_metadata, prompt_type)
        given = self._noted(batch)
        rows = self.kept_rows(batch, given) if batch.role == "document" else self._new(batch, given)
        self.dim = int(rows.shape[1])
        return rows

    def kept(self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None) -> Vectors:
        """Return the same rows out of what is kept or remembered; what is missing is encoded, and kept."""
        batch = TextBatch(inputs, task_metadata, prompt_type)
        given = self._noted(batch)
        known = self._remembered.get(_mark(batch, given))
        return self.kept_rows(batch, given) if known is None else known

    @abstractmethod
    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of all rows of one side with all of the other."""

    @abstractmethod
    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of every row of one side with that of the other."""

    @abstractmethod
    def given(self, batch: TextBatch) -> ModelInput:
        """Return how the model reads these texts."""

    @abstractmethod
    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:
        """Return rows from the cache of embeddings, after all that is missing was encoded."""

    @abstractmethod
    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return rows that are encoded now."""

    def look(self, given: ModelInput, batch: TextBatch) -> SeenTexts:
        """Return what is put in, to be written down."""
        return seen_texts(self, given, batch.role, batch.texts)

    def _noted(self, batch: TextBatch) -> ModelInput:
        start = monotonic()
        given = self.given(batch)
        found, before = self.look(given, batch), self.seen.get(batch.role)
        self.seen[batch.role] = found if before is None else before.with_more(found)
        if batch.role != "document":
            self._aside += monotonic() - start
        return given

    def _new(self, batch: TextBatch, given: ModelInput) -> Vectors:
        rows = self.fresh_rows(batch)
        if bad := int((~np.isfinite(rows)).any(axis=1).sum()):
            raise RunFailed(
                f"{batch.task_metadata.name}, {self.name}: {bad} of {len(rows)} vectors of {ROLES[batch.role]} hold "
                "NaN or infinity; give --dtype float32, or bfloat16 where float16 overflows"
            )
        if self.remembers:
            self._remembered[_mark(batch, given)] = rows
        return rows


class StockModel(VectorModel):
    """A model that mteb loaded, once or once per GPU; documents are encoded by all copies at once."""

    def __init__(
        self, name: str, revision: str, copies: Sequence[Foreign], progress: Progress, sizes: BatchSizes
    ) -> None:
        """Take over the copies. `revision` is everything of the model that changes a vector, precision included."""
        super().__init__(name, copies[0].mteb_model_meta, progress, sizes)
        self.revision, self.plain, self.lanes = revision, copies[0], len(copies)
        self.model = getattr(copies[0], "model", None)
        self._free: Queue[Foreign] = Queue()
        for copy in copies:
            self._free.put(copy)
        self._cached: dict[str, tuple[_KeptTexts, CachedEncoder]] = {}

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of all rows of one side with all of the other."""
        return self.plain.similarity(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of every row of one side with that of the other."""
        return self.plain.similarity_pairwise(one, other)

    def given(self, batch: TextBatch) -> ModelInput:
        """Return how the model reads these texts, by asking it."""
        return probe(self.plain, batch.task_metadata, batch.prompt_type)

    def kept_rows(self, batch: TextBatch, given: ModelInput) -> Vectors:
        """Return rows from the cache; a model that cannot be looked into has them by task, as its prompt may be."""
        where = given.identity if given.known else [str(batch.task_metadata.name), batch.role]
        key = digest([self.revision, where])
        if key not in self._cached:
            made = _KeptTexts(self, key)
            self._cached[key] = made, CachedEncoder(made, default_folder(home()), self.progress)
        texts, cached = self._cached[key]
        texts.batch = batch
        role: Role = "document" if batch.role == "document" else "query"
        if self.sizes.grows and cached.missing(keys_of(batch.texts, role), role):
            self._prepare(batch)
        return cached.encode(batch.texts, role)

    def fresh_rows(self, batch: TextBatch) -> Vectors:
        """Return rows that are encoded now, by all copies."""
        self._prepare(batch)
        label, total = StepLabel(f"encoding {ROLES[batch.role]}, {self.name}", "texts"), len(batch.texts)
        parts = [range(start, min(start + PART, total)) for start in range(0, total, PART)]
        rows, done = [], 0
        self.progress(label, total, 0)
        with ThreadPoolExecutor(self.lanes) as pool:
            for part in pool.map(lambda places: self.encoded(batch, places), parts):
                rows.append(part)
                done += len(part)
                self.progress(label, total, done)
        return np.concatenate(rows)

    def encoded(self, batch: TextBatch, places: Sequence[int]) -> Vectors:
        """Return rows of some of the texts, in batches that fit."""
        return self.sizes.fitting(batch.role, lambda size: self._run(batch, places, size))

    def _prepare(self, batch: TextBatch) -> None:
        longest = np.argsort([len(text) for text in batch.texts], kind="stable")[::-1].tolist()
        self.sizes.prepare(batch.role, len(longest), lambda size: self._run(batch, longest[:size], size))

    def _run(self, batch: TextBatch, places: Sequence[int], size: int) -> Vectors:
        from torch.utils.data import DataLoader

        rows = batch.inputs.dataset.select(list(places))
        copy = self._free.get()
        try:
            found = copy.encode(
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
        return np.asarray(found.cpu() if hasattr(found, "cpu") else found, dtype=np.float32)


class _KeptTexts:
    """A stock model with one prompt, as the cache of embeddings asks it: by text, and in threads."""

    def __init__(self, model: StockModel, revision: str) -> None:
        self.name, self.revision, self.lanes, self._model = model.name, revision, model.lanes, model
        self.batch: TextBatch | None = None

    @property
    def dim(self) -> int:
        """Return the length of a vector, known once there is one."""
        return self._model.dim or 0

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - the batch knows it
        """Return one row per text of the batch."""
        assert self.batch is not None
        return self._model.encoded(self.batch, [self.batch.places[text] for text in texts])


class CutModel:
    """The first coordinates of another model's vectors, made unit vectors: as Matryoshka models are used.

    Stock `truncate_dim` cuts behind the model's own normalisation and leaves shorter vectors, which is wrong for inner
    products.
    """

    def __init__(self, whole: VectorModel, width: int) -> None:
        self.whole, self.width, self.mteb_model_meta = whole, width, whole.mteb_model_meta
        self.dim = width

    @property
    def seen(self) -> dict[str, SeenTexts]:
        """Return what was put into the whole model."""
        return self.whole.seen

    @property
    def size(self) -> int | None:
        """Return the largest batch of the whole model."""
        return self.whole.size

    def encode(
        self, inputs: Foreign, *, task_metadata: Foreign, prompt_type: Foreign = None, **_named: Foreign
    ) -> Vectors:
        """Return a unit vector of this width per text."""
        return cut(self.whole.kept(inputs, task_metadata=task_metadata, prompt_type=prompt_type), self.width)

    def similarity(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of all rows of one side with all of the other."""
        return self.whole.similarity(one, other)

    def similarity_pairwise(self, one: Foreign, other: Foreign) -> Foreign:
        """Return the similarity of every row of one side with that of the other."""
        return self.whole.similarity_pairwise(one, other)


def cut(rows: Vectors, width: int) -> Vectors:
    """Return the first coordinates of vectors, each divided by its length."""
    return unit(rows[:, :width])


def _mark(batch: TextBatch, given: ModelInput) -> str:
    said = sha256("\0".join(batch.texts).encode()).hexdigest()
    return digest([given.identity, given.known or batch.task_metadata.name, batch.role, said])
