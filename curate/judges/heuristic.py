"""Offline judges, plainly heuristic: they make a pipeline runnable, not a benchmark publishable.

Each turns one number in [0, 1] into a grade by four thresholds. The packaged thresholds were calibrated on the
known grades of the demo by `benchmarks/calibrate_heuristics.py`; on other texts they are a guess.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml
from pydantic import model_validator

from curate.config import Json, Section
from curate.errors import ConfigError
from curate.protocols import Kit
from curate.records import GRADES, Document, Grade, Outcome, Query

DIGITS = 5
"""Scores are rounded before they meet a threshold, so that reruns agree."""


class Thresholds(Section):
    """Lowest score of each grade; what is below C is D."""

    S: float
    A: float
    B: float
    C: float

    @model_validator(mode="after")
    def _falling(self) -> "Thresholds":
        if not self.S >= self.A >= self.B >= self.C:
            raise ValueError("expected S >= A >= B >= C")
        return self

    def grade(self, score: float) -> Grade:
        """Return the best grade whose threshold the rounded score reaches."""
        rounded = round(score, DIGITS)
        bounds: dict[Grade, float] = {"S": self.S, "A": self.A, "B": self.B, "C": self.C}
        return next((grade for grade in GRADES[:4] if rounded >= bounds[grade]), "D")


class Config(Section):
    """What a heuristic judge compares, and where its grades begin."""

    encoder: str | None = None
    """For `similarity`: the encoder whose cosine is graded."""
    thresholds: Thresholds | None = None
    """None takes the packaged ones, which exist for lexical, e5 and use."""


class Lexical:
    """Grade by lexical coverage: the share of the query's character bigrams that occur in the passage."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:  # noqa: ARG002 - every judge is given the kit
        if config.encoder is not None:
            raise ConfigError(f"judges.{name}.encoder: lexical coverage needs no encoder; remove it")
        self.name = name
        self.thresholds = config.thresholds or packaged(name, "lexical")
        self.identity: Mapping[str, Json] = {"heuristic": "lexical 1", "thresholds": self.thresholds.model_dump()}

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome a passage."""
        return [Outcome(self.thresholds.grade(score)) for score in self.scores(query, passages)]

    def scores(self, query: Query, passages: Sequence[Document]) -> list[float]:
        """Return the coverage of each passage, in [0, 1]; 0 for a query without a bigram."""
        wanted = _bigrams(query.text)
        return [len(wanted & _bigrams(each.shown())) / len(wanted) if wanted else 0.0 for each in passages]


class Similarity:
    """Grade by the cosine between an encoder's vectors of query and passage."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self._encoder = kit.encoder(config.encoder or name)
        self.thresholds = config.thresholds or packaged(name, self._encoder.name)
        self.identity: Mapping[str, Json] = {
            "heuristic": "similarity 1",
            "encoder": self._encoder.name,
            "revision": self._encoder.revision,
            "thresholds": self.thresholds.model_dump(),
        }

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome a passage."""
        return [Outcome(self.thresholds.grade(score)) for score in self.scores(query, passages)]

    def scores(self, query: Query, passages: Sequence[Document]) -> list[float]:
        """Return the cosine of each passage, in [-1, 1]."""
        asked = self._encoder.encode([query.text], "query")[0].astype(np.float64)
        rows = self._encoder.encode([each.shown() for each in passages], "document").astype(np.float64)
        return [float(score) for score in rows @ asked]


def packaged(judge: str, scale: str) -> Thresholds:
    """Return the packaged thresholds for a scale: lexical, or an encoder's name; ConfigError if there are none."""
    path = Path(__file__).with_name("thresholds.yaml")
    known = yaml.safe_load(path.read_text(encoding="utf-8"))["thresholds"]
    if scale not in known:
        raise ConfigError(
            f"judges.{judge}: no thresholds are packaged for {scale!r} (only for {', '.join(sorted(known))}); "
            f"give judges.{judge}.thresholds with S, A, B and C"
        )
    return Thresholds(**known[scale])


def _bigrams(text: str) -> set[str]:
    plain = [char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum()]
    return {"".join(pair) for pair in pairwise(plain)}
