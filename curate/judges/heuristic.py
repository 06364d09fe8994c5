"""Offline judges, plainly heuristic: they make a pipeline runnable, not a benchmark publishable.

Each turns one number in [0, 1] into a grade by four thresholds. The packaged thresholds were calibrated by
`benchmarks/calibrate_heuristics.py` on known grades of the demos, Chinese and English; on other texts they are a guess.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import model_validator

from curate.config import Json, Section, parse_yaml
from curate.egress import Egress
from curate.errors import ConfigError
from curate.protocols import Kit
from curate.records import GRADES, Document, Grade, Outcome, Query

DIGITS = 5
"""Scores are rounded before they meet a threshold, so that reruns agree."""


STEM = 5
"""Letters of a word that count: treat, treated and treatment are one term, and so are words of long compounds."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff]")
"""Letters of scripts without spaces: Thai, Lao, Myanmar, Khmer, Chinese, Japanese, Yi."""


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
    """Grade by lexical coverage: the weighted share of the query's terms that occur in the passage, in [0, 1].

    Terms of a query in a script without spaces between words (Chinese, Japanese, Thai ...) are character bigrams of
    equal weight. Terms of any other are words, cut to their first STEM letters in place of a stemmer; a word weighs the
    square of the letters that are left, for short words are mostly function words.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:  # noqa: ARG002 - every judge is given the kit
        if config.encoder is not None:
            raise ConfigError(f"judges.{name}.encoder: lexical coverage needs no encoder; remove it")
        self.name = name
        self.bigrams = config.thresholds or packaged(name, "lexical")
        self.words = config.thresholds or packaged(name, "lexical, words")
        self.scales = () if config.thresholds else ("lexical", "lexical, words")
        self.identity: Mapping[str, Json] = {
            "heuristic": "lexical 2",
            "thresholds": self.bigrams.model_dump(),
            "words": self.words.model_dump(),
        }

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome per passage."""
        thresholds = self.words if _spaced(query.text) else self.bigrams
        return [Outcome(thresholds.grade(score)) for score in self.scores(query, passages)]

    def scores(self, query: Query, passages: Sequence[Document]) -> list[float]:
        """Return the coverage of each passage; 0 for a query without a term."""
        terms = _words if _spaced(query.text) else _bigrams
        wanted = terms(query.text)
        whole = sum(wanted.values())
        found = ((wanted.keys() & terms(each.shown()).keys()) for each in passages)
        return [sum(wanted[term] for term in each) / whole if whole else 0.0 for each in found]


class Similarity:
    """Grade by the cosine between an encoder's vectors of query and passage."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self._encoder = kit.encoder(config.encoder or name)
        self.thresholds = config.thresholds or packaged(name, self._encoder.name)
        self.scales = () if config.thresholds else (self._encoder.name,)
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
    known = _packaged()["thresholds"]
    if scale not in known:
        raise ConfigError(
            f"judges.{judge}: no thresholds are packaged for {scale!r} (only for {', '.join(sorted(known))}); "
            f"give judges.{judge}.thresholds with S, A, B and C"
        )
    return Thresholds(**known[scale])


def guessing(judge: Lexical | Similarity, language: str) -> str:
    """Return a sentence for a heuristic whose packaged thresholds were calibrated on other languages; else nothing."""
    known = [each for scale in judge.scales for each in _packaged()["languages"][scale]]
    if not known or language in known:
        return ""
    return (
        f"{judge.name}: its thresholds were calibrated on {' and '.join(known)} texts; on {language} they are a guess"
    )


@cache
def _packaged() -> dict[str, Any]:
    known: dict[str, Any] = parse_yaml(Path(__file__).with_name("thresholds.yaml").read_text(encoding="utf-8"))
    return known


def _spaced(text: str) -> bool:
    """Say whether most letters are of scripts that put spaces between words."""
    letters = [char for char in unicodedata.normalize("NFKC", text) if char.isalpha()]
    return 2 * sum(bool(_UNSPACED.match(char)) for char in letters) < len(letters)


def _words(text: str) -> dict[str, int]:
    """Return the beginning of every word, weighted by its letters."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())
    return {word[:STEM]: len(word[:STEM]) ** 2 for word in words}


def _bigrams(text: str) -> dict[str, int]:
    """Return the pairs of neighbouring letters and digits, of one weight."""
    plain = [char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum()]
    return dict.fromkeys(("".join(pair) for pair in pairwise(plain)), 1)
