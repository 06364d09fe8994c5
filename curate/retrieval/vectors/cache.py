"""Encoder with a cache of vectors on disk, and a check of half-precision vectors against float32."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from curate.core.config import digest, text_digest
from curate.core.errors import RunFailed
from curate.core.figures import Record, figure
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Progress, Vectors, quiet
from curate.core.records import Role
from curate.core.sampling import chunks
from curate.retrieval.vectors.store import KEY, Keys, Lost, Store
from curate.system.files import read_json, write_json

TEXTS, LEAST = 64, 0.999
"""Precision check: number of texts compared, and minimum cosine of each vector with that in float32."""


class PrecisionCheck(Record):
    """Result of comparing vectors in another precision with those in float32: cosines of the same texts."""

    texts: int = figure("compared texts")
    lowest: float = figure("lowest cosine of a text", digits=5)
    mean: float = figure("mean cosine over the texts", digits=5)


def nearness(subject: str, remedy: str, vectors: Sequence[Vectors], exact: Sequence[Vectors]) -> PrecisionCheck:
    """Return the cosines of `vectors` with `exact`, those in float32; RunFailed below LEAST or for NaN and infinity.

    `subject`, model and precision, begins the error message, and `remedy` ends it.
    """
    ours, theirs = ([rows.astype(np.float64) for rows in matrices] for matrices in (vectors, exact))
    count = sum(map(len, ours))
    if bad := sum(int((~np.isfinite(rows)).any(axis=1).sum()) for rows in ours):
        raise RunFailed(f"{subject} {bad} of {count} vectors hold NaN or infinity, expected none; {remedy}")
    cosines = np.concatenate([_cosines(*both) for both in zip(ours, theirs, strict=True)])
    lowest, mean = float(cosines.min()), float(cosines.mean())
    if not lowest >= LEAST:
        raise RunFailed(
            f"{subject} the vectors of {count} texts are not those of float32: lowest cosine {lowest:.5f}, "
            f"expected {LEAST} or more; {remedy}"
        )
    return PrecisionCheck(count, round(lowest, 6), round(mean, 6))


def spread(texts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` texts, evenly spaced."""
    step = max(len(texts) / most, 1)
    return [texts[int(index * step)] for index in range(min(len(texts), most))]


def some(texts: Sequence[str], count: int = TEXTS) -> list[str]:
    """Return `count` evenly spaced texts, with the longest, whose activations are largest; all if there are fewer."""
    if len(texts) <= count:
        return list(texts)
    return [*spread(texts, count - 1), max(texts, key=len)]


def _cosines(one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    same = (one == two).all(axis=1)  # also of two vectors of length 0, which have no cosine
    return np.where(same, 1.0, (one * two).sum(axis=1) / np.where(lengths > 0, lengths, 1))


# An encoder with a cache on disk: missing texts are encoded in groups that neither a kill nor a shard can change.

BLOCK, GROUP = 1024, 256
"""Number of texts that are sorted by length together (block) and, of these, encoded and written together (group).

The last bits of a vector may depend on the other texts of its batch. Blocks are ranges of the list of all texts, and a
group is cached completely or not at all. So the same texts are encoded together after any interruption, and with any
number of parts.
"""
LAYOUT = 2
"""Version of the file layout, part of the folder's name, so that rows of an older layout are never misread."""
CHECKED = "float32.json"
"""File next to the vectors of a model in half precision, with the result of the comparison with float32."""
TRIES = 3
"""Attempts to encode rows that are missing or damaged when read."""

MANY: dict[Role, str] = {"query": "queries", "document": "documents"}

Item = TypeVar("Item")
Result = TypeVar("Result")
Texts = Callable[[], Iterable[str]]
Float32Rows = Callable[[Role], Callable[[Sequence[str]], Vectors] | None]
Group = tuple[list[int], list[str]]
"""(Indexes into the list of all texts, these texts)."""


class CachedEncoder:
    """Encoder with a cache of vectors in files below `FOLDER/NAME-DIGEST/`, which several processes may share.

    The digest is of the encoder's name and revision, so model, prompts, length and precision are part of the key. An
    encoder with a revision per role (`revisions`) has a folder per role, so that vectors of documents stay valid with
    another query model. Copies in other processes, by pickle, use the same folders.
    """

    def __init__(
        self,
        encoder: Encoder,
        folder: Path,
        progress: Progress = quiet,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.encoder, self._base, self._progress, self._tell = encoder, folder, progress, tell
        self.name, self.revision = encoder.name, encoder.revision
        revisions: Mapping[Role, str] = getattr(encoder, "revisions", None) or {}
        plain = re.sub(r"[^\w.-]", "_", self.name)
        self._folders = {
            role: folder / f"{plain}-{digest([LAYOUT, self.name, revisions.get(role, self.revision)])[:12]}"
            for role in MANY
        }
        self.encoded = 0
        """Texts that had to be encoded since this object was made."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.encoder, self._base)

    @property
    def dim(self) -> int:
        """Return the length of a vector; this may load the model."""
        return self.encoder.dim

    @property
    def folder(self) -> Path:
        """Return the folder of the vectors; that of documents, if queries have a separate one."""
        return self._folders["document"]

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised float32 row per text, shape (len(texts), dim), in order; missing ones are encoded.

        RunFailed if the encoder returns NaN, infinity or another number of rows, which are never cached.
        """
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        keys = keys_of(texts, role)
        return self._filled(keys, lambda: texts, role, lambda: self._store(role).take(keys))

    def matrix(self, keys: Keys, texts: Texts, role: Role, part: slice = slice(None)) -> Vectors:
        """Return the vectors of `part` of the texts as a read-only matrix mapped from disk.

        All missing texts, not only those of the part, are encoded first. `texts` yields the texts of `keys`, in order.
        """
        if not len(keys[part]):
            return np.empty((0, self.dim), dtype=np.float32)
        return self._filled(keys, texts, role, lambda: self._store(role).matrix(keys[part]))

    def missing(self, keys: Keys, role: Role) -> int:
        """Return the number of distinct texts of a role that the cache lacks."""
        store = self._store(role)
        store.load()
        return len(np.unique(keys[store.find(keys) < 0]))

    def fill(self, keys: Keys, texts: Texts, role: Role, part: slice = slice(None)) -> int:
        """Encode the texts of `part` that are not cached, and return their number.

        `part` is a slice that starts and ends at blocks. A repeated text belongs to its first occurrence.
        """
        store = self._store(role)
        missing = store.find(keys) < 0
        if missing.any() and store.outdated():
            store.load()
            missing = store.find(keys) < 0
        if missing.any():
            firsts, inside = np.zeros((2, len(keys)), bool)
            firsts[np.unique(keys, return_index=True)[1]] = True
            inside[part] = True
            missing &= firsts & inside
        if total := int(missing.sum()):
            self._compare(texts, role)
            self._encode(keys, _groups(texts, missing), role, total)
        return total

    def _encode(self, keys: Keys, groups: Iterable[Group], role: Role, total: int) -> None:
        load: Callable[[], object] | None = getattr(self.encoder, "load", None)
        if load is not None:  # before the texts, so that its time does not count for their rate
            with waiting(self._progress, StepLabel(f"loading {self.name}")):
                load()
        encoded, empty, workers = 0, 0, int(getattr(self.encoder, "lanes", 1))
        label = StepLabel(f"encoding {MANY[role]}, {self.name}", "texts")
        self._progress(label, total, 0)
        step = getattr(self.encoder, "step", None) or GROUP
        batches = ((indexes, chunk) for indexes, texts in groups for chunk in chunks(texts, step))
        waiting_rows: list[Vectors] = []
        with ThreadPoolExecutor(workers) as pool, self._store(role).writing() as keep:
            for (indexes, batch_texts), rows_of_batch in _ahead(
                pool, workers, lambda batch: self._new(batch[1], role), batches
            ):
                waiting_rows.append(rows_of_batch)
                encoded += len(batch_texts)
                if sum(map(len, waiting_rows)) == len(indexes):
                    rows, waiting_rows = np.concatenate(waiting_rows), []
                    keep(keys[indexes], rows)
                    empty += int((~rows.any(axis=1)).sum())
                    self.encoded += len(indexes)
                self._progress(label, total, encoded)
        if empty:
            self._tell(f"encoders.{self.name}: {empty:,} of {total:,} texts have a vector of length 0: alike to none")

    def _compare(self, texts: Texts, role: Role) -> None:
        """Compare a model in half precision with its copy in float32 on 64 of the first texts, once per model and role.

        Repeated only if there are twice as many texts. RunFailed if the two differ: no row is stored.
        """
        find: Float32Rows | None = getattr(self.encoder, "float32_rows", None)
        if find is None or (exact := find(role)) is None:
            return
        sample, mark = some(list(islice(texts(), BLOCK))), self._folders[role] / f"{role}-{CHECKED}"
        if mark.is_file() and 2 * int(read_json(mark)["texts"]) > len(sample):
            return
        with waiting(self._progress, StepLabel(f"comparing {self.name} with float32")):
            rows = exact(sample)  # first, and gone before the model itself is loaded
            subject = f"encoders.{self.name}: in half precision"
            remedy = f"set encoders.{self.name}.dtype to float32, or to bfloat16 where float16 overflows"
            precision_check = nearness(subject, remedy, [self._new(sample, role)], [rows])
        mark.parent.mkdir(parents=True, exist_ok=True)
        write_json(mark, precision_check.to_json())

    def _filled(self, keys: Keys, texts: Texts, role: Role, read: Callable[[], Vectors]) -> Vectors:
        for _ in range(TRIES):
            self.fill(keys, texts, role)
            with suppress(Lost):
                return read()
        raise RunFailed(f"{self.folder}: rows were damaged or gone {TRIES} times; check the disk, or delete the folder")

    def _new(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.asarray(self.encoder.encode(texts, role), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise RunFailed(f"encoders.{self.name}: found vectors of shape {rows.shape} for {len(texts)} texts")
        bad = int((~np.isfinite(rows)).any(axis=1).sum())
        if bad:
            raise RunFailed(
                f"encoders.{self.name}: {bad} of {len(texts)} vectors hold NaN or infinity; "
                "use a model or a precision (dtype) that encodes these texts"
            )
        return rows

    def _store(self, role: Role) -> Store:
        return self._stores[self._folders[role]]

    @cached_property
    def _stores(self) -> dict[Path, Store]:
        return {folder: Store(folder) for folder in self._folders.values()}


def key_of(text: str, role: Role) -> bytes:
    """Return the cache key of a text in a role, 16 bytes."""
    return bytes.fromhex(text_digest(f"{role}\n{text}"))[:KEY]


def keys_of(texts: Iterable[str], role: Role) -> Keys:
    """Return the cache keys of texts, in order."""
    return np.frombuffer(b"".join(key_of(text, role) for text in texts), f"S{KEY}")


def default_folder(home: Path) -> Path:
    """Return the folder of all caches of vectors: $CURATE_VECTORS, else `HOME/vectors`."""
    return Path(os.environ.get("CURATE_VECTORS") or home / "vectors")


def _groups(texts: Texts, missing: npt.NDArray[np.bool_]) -> Iterator[Group]:
    """Yield the missing texts in groups, block by block, the longest of a block first, to run out of memory early."""
    end = int(np.flatnonzero(missing)[-1])
    block: list[tuple[int, str]] = []
    for index, text in zip(range(end + 1), texts(), strict=False):
        if missing[index]:
            block.append((index, text))
        if index % BLOCK == BLOCK - 1 or index == end:
            block.sort(key=lambda indexed_text: -len(indexed_text[1]))
            for group in chunks(block, GROUP):
                yield [index for index, _ in group], [text for _, text in group]
            block = []


def _ahead(
    pool: ThreadPoolExecutor, lanes: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result]]:
    """Yield (item, result of the function), in order; further items are drawn while the pool computes."""
    running: deque[tuple[Item, Future[Result]]] = deque()
    for argument in items:
        if len(running) == lanes:
            first, future = running.popleft()
            result = future.result()  # if it failed, nothing more begins
            running.append((argument, pool.submit(function, argument)))
            yield first, result
        else:
            running.append((argument, pool.submit(function, argument)))
    for argument, future in running:
        yield argument, future.result()
