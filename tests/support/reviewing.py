"""A small sample to review, and its page served by a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from curate.core.scale import FIVE, Scale
from curate.review import Design, Sample
from curate.review.sample import name_row
from curate.system.files import frame
from tests import ROOT

TEXTS = [
    (query, passage)
    for query, passage in yaml.safe_load((ROOT / "tests/data/review_pairs.yaml").read_text(encoding="utf-8"))
]
"""Queries with a passage that fits more or less."""


def sample(
    folder: Path,
    texts: Sequence[tuple[str, str]],
    people: Sequence[str] = ("张医生",),
    language: str = "zh",
    scale: Scale = FIVE,
    meanings: Mapping[str, Mapping[str, str]] | None = None,
) -> Sample:
    """Return a frozen sample of these texts, which all assessors read; `meanings` are those of another scale."""
    rows = [
        {
            "row_id": name_row(folder.name, number, [f"q{number}", f"d{number}"], pair),
            "ids": [f"q{number}", f"d{number}"],
            "texts": list(pair),
            "stratum": "all",
            "probability": 0.5,
            "assessors": list(people),
            "verdict": "relevant",
        }
        for number, pair in enumerate(texts, start=1)
    ]
    asked = None if scale == FIVE else scale.to_json()
    design = Design(folder.name, "relevance", language, 0, list(people), [], scale=asked, meanings=meanings or {})
    drawn = Sample(folder, design, frame("survey", rows))
    drawn.freeze()
    return Sample.load(folder)


class Server:
    """The page of a sample, in a process that can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        """Serve; returns when the address is known, at which connections are taken."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, ROOT / "tests/support/review_child.py", self.folder, str(self.port)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout
        with self.process.stdout as stream:
            self.address = stream.readline().strip()
        assert self.address, self.log
        self.port = urlsplit(self.address).port or 0
        self.origin = f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Return what the process complained of."""
        return (self.folder / "server.log").read_text(encoding="utf-8")

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Serve a sample's page until the block ends."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.kill()
