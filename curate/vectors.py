"""Embeddings on disk, by text: a text that was encoded before under the same model is never encoded again."""

import hashlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curate.config import digest, text_digest
from curate.errors import RunFailed
from curate.files import replacing
from curate.protocols import Corpus, Encoder, Progress, Vectors, quiet
from curate.records import Role
from curate.sampling import chunks

CHUNK = 64
"""Texts encoded at once. Fixed, because a row may depend in its last bits on its neighbours in a batch:
a run that was killed then encodes the same batches as one that was not."""
SHARD = 4 * CHUNK
"""Rows a file: at most this many are lost to a kill."""


class CachedEncoder:
    """An encoder with a memory: rows come from files in `<folder>/<name>-<digest>/`, the rest is encoded.

    A file is named by the digest of its bytes and renamed into place when whole; one that is damaged is deleted
    and its texts are encoded again. Several processes may share the folder.
    """

    def __init__(self, encoder: Encoder, folder: Path, progress: Progress = quiet) -> None:
        self._encoder, self._progress = encoder, progress
        self.name, self.revision = encoder.name, encoder.revision
        plain = re.sub(r"[^\w.-]", "_", encoder.name)
        self.folder = folder / f"{plain}-{digest([encoder.name, encoder.revision])[:12]}"
        self._rows: dict[bytes, Vectors] | None = None
        self.encoded = 0
        """Texts that had to be encoded since this object was made."""

    @property
    def dim(self) -> int:
        """Return the length of a vector; this may load the model."""
        return self._encoder.dim

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised float32 row a text, shape (len(texts), dim), in order.

        RunFailed if the encoder gives NaN, infinity or another number of rows: such rows are never kept.
        """
        rows = self._load()
        keys = [key_of(text, role) for text in texts]
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in rows}.items())
        for number, part in enumerate(chunks(missing, SHARD)):
            rows.update(self._add(part, role))
            self._progress(f"encode {role} texts, {self.name}", len(missing), number * SHARD + len(part))
        return np.stack([rows[key] for key in keys]) if keys else np.empty((0, self.dim), dtype=np.float32)

    def _add(self, part: Sequence[tuple[bytes, str]], role: Role) -> dict[bytes, Vectors]:
        block = np.concatenate([self._new([text for _, text in few], role) for few in chunks(part, CHUNK)])
        self.encoded += len(part)
        rows = dict(zip((key for key, _ in part), block, strict=True))
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder, rows)
        return rows

    def _new(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.asarray(self._encoder.encode(texts, role), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise RunFailed(f"encoders.{self.name}: found vectors of shape {rows.shape} for {len(texts)} texts")
        bad = int((~np.isfinite(rows)).any(axis=1).sum())
        if bad:
            raise RunFailed(
                f"encoders.{self.name}: {bad} of {len(texts)} vectors hold NaN or infinity; "
                "use a model or a precision (dtype) that encodes these texts"
            )
        return rows

    def _load(self) -> dict[bytes, Vectors]:
        if self._rows is None:
            self._rows = {}
            for path in sorted(self.folder.glob("*.npy")):
                self._rows.update(_read(path))
        return self._rows


def key_of(text: str, role: Role) -> bytes:
    """Return the cache key of a text in a role, 32 bytes."""
    return bytes.fromhex(text_digest(f"{role}\n{text}"))


def of_corpus(encoder: Encoder, corpus: Corpus, progress: Progress = quiet) -> tuple[list[str], Vectors]:
    """Return document ids and their vectors, shape (len(corpus), dim), read and encoded batch by batch."""
    ids: list[str] = []
    rows: Vectors | None = None
    for batch in corpus.batches():
        part = encoder.encode([doc.shown() for doc in batch], "document")
        if rows is None:  # the shape comes from the rows: asking for `dim` would load a model that may not be needed
            rows = np.empty((len(corpus), part.shape[1]), dtype=np.float32)
        rows[len(ids) : len(ids) + len(batch)] = part
        ids.extend(doc.doc_id for doc in batch)
        progress(f"vectors of documents, {encoder.name}", len(corpus), len(ids))
    return ids, np.empty((0, encoder.dim), dtype=np.float32) if rows is None else rows


def default_folder(home: Path) -> Path:
    """Return where embeddings are kept: $CURATE_VECTORS, else `<home>/vectors`."""
    return Path(os.environ.get("CURATE_VECTORS") or home / "vectors")


def _write(folder: Path, rows: dict[bytes, Vectors]) -> None:
    block = np.stack(list(rows.values()))
    shard = np.empty(len(rows), dtype=[("key", "V32"), ("row", "<f4", block.shape[1:])])
    shard["key"], shard["row"] = np.frombuffer(b"".join(rows), dtype="V32"), block
    stream = io.BytesIO()
    np.save(stream, shard)
    with replacing(folder / _name(stream.getvalue())) as beside:
        beside.write_bytes(stream.getvalue())


def _read(path: Path) -> dict[bytes, Vectors]:
    """Return key -> row of a file; nothing of a damaged one, which is deleted."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # another process found the damage first
        return {}
    if _name(data) != path.name:
        path.unlink(missing_ok=True)
        return {}
    shard = np.load(io.BytesIO(data))
    return dict(zip((key.tobytes() for key in shard["key"]), shard["row"], strict=True))


def _name(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:32]}.npy"
