"""File that records the decisions of `diversify` block by block, so that an interrupted run can resume."""

import zlib
from pathlib import Path

import numpy as np

from curate.retrieval.similarity.diversity import DECISION, Decisions

CHECK = 4
"""Bytes of the checksum after every block."""


class JournalFile:
    """A file of decisions on one set of texts under one rule; its name must identify both.

    Each block is written with a checksum when it is decided. An incomplete block (of a killed process) and all blocks
    after it count as undecided.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def known(self, block: int) -> Decisions:
        """Return the decisions on the first items, from complete blocks only; the rest of the file is truncated."""
        data = self.path.read_bytes() if self.path.is_file() else b""
        size, found = block * DECISION.itemsize, []
        for start in range(0, len(data) - size - CHECK + 1, size + CHECK):
            decided = data[start : start + size]
            if data[start + size : start + size + CHECK] != _check(decided):
                break
            found.append(np.frombuffer(decided, DECISION))
        if data:
            with self.path.open("r+b") as stream:
                stream.truncate(len(found) * (size + CHECK))
        return np.concatenate(found) if found else np.empty(0, DECISION)

    def add(self, decisions: Decisions) -> None:
        """Append the decisions on the next block."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.write(decisions.tobytes() + _check(decisions.tobytes()))

    def close(self) -> None:
        """Delete the file; call it after the decisions are stored elsewhere."""
        self.path.unlink(missing_ok=True)


def _check(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(CHECK, "little")
