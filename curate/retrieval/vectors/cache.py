"""An encoder with a cache on disk: missing texts are encoded in groups that neither a kill nor a shard can change."""

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
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Encoder, Progress, Vectors, quiet
from curate.core.records import Role
from curate.core.sampling import chunks
from curate.retrieval.vectors.precision import nearness, some
from curate.retrieval.vectors.shard import KEY, Keys
from curate.retrieval.vectors.store import Lost, Store
from curate.system.files import read_json, write_json

BLOCK, GROUP = 1024, 256
"""Texts that are sorted by length together, and of these, texts that are encoded and written together.

A row may depend in its last bits on its neighbours in a batch. Blocks are places in the list of all texts, and a group
is in the cache as a whole or not at all: after any kill, and in any number of parts, the same texts are
encoded side by side.
"""
LAYOUT = 2
"""Part of the folder's name: rows of an older layout are left alone, never misread."""
CHECKED = "float32.json"
"""Beside the rows of a model in half precision: how near 64 of them are to those of float32."""
TRIES = 3
"""How often rows are encoded that are gone or damaged when they are read."""

MANY: dict[Role, str] = {"query": "queries", "document": "documents"}

Item = TypeVar("Item")
Result = TypeVar("Result")
Texts = Callable[[], Iterable[str]]
Float32Rows = Callable[[Role], Callable[[Sequence[str]], Vectors] | None]
Group = tuple[list[int], list[str]]
"""Places in the list of all texts, and the texts."""


class CachedEncoder:
    """An encoder whose rows are kept in files below `<folder>/<name>-<digest>/`, which several processes may share.

    The digest is of the encoder's name and revision, so model, prompts, length and precision are part of the key. An
    encoder with a revision per role (`revisions`) has a folder per role: another query model leaves the documents'
    rows as they are. A copy in another process, made by pickle, has the same encoder and folders.
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
        self._folders = {role: self._folder(role) for role in MANY}
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
        """Return where rows are kept: those of documents, where queries have a revision of their own."""
        return self._folders["document"]

    def _folder(self, role: Role) -> Path:
        revisions: Mapping[Role, str] = getattr(self.encoder, "revisions", None) or {}
        plain = re.sub(r"[^\w.-]", "_", self.name)
        return self._base / f"{plain}-{digest([LAYOUT, self.name, revisions.get(role, self.revision)])[:12]}"

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised float32 row per text, shape (len(texts), dim), in order.

        RunFailed if the encoder gives NaN, infinity or another number of rows: such rows are never kept.
        """
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        keys = keys_of(texts, role)
        return self._filled(keys, lambda: texts, role, lambda: self._store(role).take(keys))

    def matrix(self, keys: Keys, texts: Texts, role: Role, part: slice = slice(None)) -> Vectors:
        """Return a part of some texts' rows as a read-only matrix on disk, after all that is missing was encoded."""
        if not len(keys[part]):
            return np.empty((0, self.dim), dtype=np.float32)
        return self._filled(keys, texts, role, lambda: self._store(role).matrix(keys[part]))

    def missing(self, keys: Keys, role: Role) -> int:
        """Return how many different texts of a role are not in the cache."""
        store = self._store(role)
        store.load()
        return len(np.unique(keys[store.find(keys) < 0]))

    def fill(self, keys: Keys, texts: Texts, role: Role, part: slice = slice(None)) -> int:
        """Encode what is missing in a part of some texts, whose edges are those of blocks; return how much it was.

        A text that stands there several times belongs to where it stands first.
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
        self._load()
        done, empty, lanes = 0, 0, int(getattr(self.encoder, "lanes", 1))
        label = StepLabel(f"encoding {MANY[role]}, {self.name}", "texts")
        self._progress(label, total, 0)
        step = getattr(self.encoder, "step", None) or GROUP
        parts = ((places, chunk) for places, texts in groups for chunk in chunks(texts, step))
        waiting_rows: list[Vectors] = []
        with ThreadPoolExecutor(lanes) as pool, self._store(role).writing() as keep:
            for (places, part), found in _ahead(pool, lanes, lambda each: self._new(each[1], role), parts):
                waiting_rows.append(found)
                done += len(part)
                if sum(map(len, waiting_rows)) == len(places):
                    rows, waiting_rows = np.concatenate(waiting_rows), []
                    keep(keys[places], rows)
                    empty += int((~rows.any(axis=1)).sum())
                    self.encoded += len(places)
                self._progress(label, total, done)
        if empty:
            self._tell(f"encoders.{self.name}: {empty:,} of {total:,} texts have a vector of length 0: alike to none")

    def _compare(self, texts: Texts, role: Role) -> None:
        """Compare a model in half precision with its copy in float32 on 64 of the first texts, once per model and role.

        It is done again only where twice as many texts are at hand. RunFailed where the two differ: no row is kept.
        """
        find: Float32Rows | None = getattr(self.encoder, "float32_rows", None)
        if find is None or (exact := find(role)) is None:
            return
        sample, mark = some(list(islice(texts(), BLOCK))), self._folders[role] / f"{role}-{CHECKED}"
        if mark.is_file() and 2 * int(read_json(mark)["texts"]) > len(sample):
            return
        with waiting(self._progress, StepLabel(f"comparing {self.name} with float32")):
            rows = exact(sample)  # first, and gone before the model itself is loaded
            told = f"encoders.{self.name}: in half precision"
            remedy = f"set encoders.{self.name}.dtype to float32, or to bfloat16 where float16 overflows"
            found = nearness(told, remedy, [self._new(sample, role)], [rows])
        mark.parent.mkdir(parents=True, exist_ok=True)
        write_json(mark, found.shown())

    def _load(self) -> None:
        """Load the encoder's model ahead of the texts, so that they are not counted as slow."""
        load: Callable[[], object] | None = getattr(self.encoder, "load", None)
        if load is not None:
            with waiting(self._progress, StepLabel(f"loading {self.name}")):
                load()

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
    """Return where embeddings are kept: $CURATE_VECTORS, else `<home>/vectors`."""
    return Path(os.environ.get("CURATE_VECTORS") or home / "vectors")


def _groups(texts: Texts, missing: npt.NDArray[np.bool_]) -> Iterator[Group]:
    """Yield the missing texts, block by block, in groups of texts of one length: longest first, to fail early."""
    end = int(np.flatnonzero(missing)[-1])
    block: list[tuple[int, str]] = []
    for place, text in zip(range(end + 1), texts(), strict=False):
        if missing[place]:
            block.append((place, text))
        if place % BLOCK == BLOCK - 1 or place == end:
            block.sort(key=lambda item: -len(item[1]))
            for group in chunks(block, GROUP):
                yield [place for place, _ in group], [text for _, text in group]
            block = []


def _ahead(
    pool: ThreadPoolExecutor, lanes: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result]]:
    """Yield each item and what the function makes of it, in order; the next item is made while the pool works."""
    running: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        if len(running) == lanes:
            first, future = running.popleft()
            result = future.result()  # if it failed, nothing more begins
            running.append((item, pool.submit(function, item)))
            yield first, result
        else:
            running.append((item, pool.submit(function, item)))
    for item, future in running:
        yield item, future.result()
