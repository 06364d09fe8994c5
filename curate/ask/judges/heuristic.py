"""Heuristic judges, which work offline: for trying a pipeline, not for publishing a benchmark.

Each maps a score in [0, 1] to a grade by a threshold per grade. The packaged thresholds were calibrated by
`benchmarks/calibrate_heuristics.py` on the grades of the demos, Chinese and English, one set per script; for other
languages they are a guess.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from curate.core.config import Json, Section, parse_yaml
from curate.core.errors import ConfigError
from curate.core.protocols import Kit
from curate.core.records import Document, Outcome, Query
from curate.core.scale import Scale
from curate.core.scripts import Script, ThresholdsByScript, guess
from curate.system.egress import Egress

DIGITS = 5
"""Decimals of scores before they are compared with a threshold, so that reruns agree."""


STEM = 5
"""Letters of a word that count: treat, treated and treatment are one term, and so are compounds that begin alike."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff]")
"""Letters of scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Chinese, Japanese, Yi."""


class Thresholds:
    """Lowest score per grade of a scale, best first; scores below the last get the worst grade."""

    def __init__(self, bounds: Mapping[str, float], scale: Scale, setting: str) -> None:
        """Raise ConfigError that names `setting` unless all grades but the worst have thresholds, in falling order."""
        labels = scale.labels[:-1]
        if {*bounds} != {*labels}:
            raise ConfigError(
                f"{setting}: found thresholds for {', '.join(bounds) or 'no grade'}, expected {', '.join(labels)}: one "
                "per grade of the rubric, the worst aside"
            )
        self.bounds = {label: bounds[label] for label in labels}
        self._worst = scale.labels[-1]
        if [*self.bounds.values()] != sorted(bounds.values(), reverse=True):
            raise ConfigError(f"{setting}: expected {' >= '.join(labels)}")

    def grade(self, score: float) -> str:
        """Return the best grade whose threshold the rounded score reaches."""
        rounded = round(score, DIGITS)
        return next((label for label, bound in self.bounds.items() if rounded >= bound), self._worst)


class Config(Section):
    """Settings of a heuristic judge."""

    encoder: str | None = None
    """Encoder of `similarity`; None for the one with the judge's name."""
    thresholds: Mapping[str, float] | None = None
    """Grade -> its lowest score, for all but the worst; None for the packaged ones of lexical, e5 and use."""


class Lexical:
    """Grade by lexical coverage: the weighted share of the query's terms that occur in the passage, in [0, 1].

    Terms of a query in a script without spaces between words (Chinese, Japanese, Thai ...) are character bigrams of
    equal weight. Terms of other scripts are words, cut to their first `STEM` letters instead of stemming; the weight is
    the square of the number of these letters, for short words are mostly function words.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        if config.encoder is not None:
            raise ConfigError(f"judges.{name}.encoder: lexical coverage needs no encoder; remove it")
        self.name = name
        self.bigrams, self.words = (
            _thresholds(name, config, "lexical", language, kit.scale) for language in ("zh", "en")
        )
        self.calibrated = config.thresholds is None
        self.identity: Mapping[str, Json] = {
            "heuristic": "lexical 2",
            "thresholds": self.bigrams.bounds,
            "words": self.words.bounds,
        }

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome per passage."""
        thresholds = self.words if _spaced(query.text) else self.bigrams
        return [Outcome(thresholds.grade(score)) for score in self.scores(query, passages)]

    def scores(self, query: Query, passages: Sequence[Document]) -> list[float]:
        """Return each passage's weighted share of the query's terms; 0 for a query without a term."""
        terms = _words if _spaced(query.text) else _bigrams
        query_terms = terms(query.text)
        total = sum(query_terms.values())
        shared_terms = ((query_terms.keys() & terms(passage.shown()).keys()) for passage in passages)
        return [sum(query_terms[term] for term in shared) / total if total else 0.0 for shared in shared_terms]


class Similarity:
    """Grade by the cosine between an encoder's vectors of query and passage, by thresholds for the texts' script.

    The identity holds only the thresholds of that script, so a change of another script's causes no new ratings.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name = name
        self._encoder = kit.encoder(config.encoder or name)
        self.thresholds = _thresholds(name, config, self._encoder.name, kit.language, kit.scale)
        self.calibrated = config.thresholds is None
        self.identity: Mapping[str, Json] = {
            "heuristic": "similarity 1",
            "encoder": self._encoder.name,
            "revision": self._encoder.revision,
            "thresholds": self.thresholds.bounds,
        }

    def rate(self, query: Query, passages: Sequence[Document]) -> list[Outcome]:
        """Return one outcome per passage."""
        return [Outcome(self.thresholds.grade(score)) for score in self.scores(query, passages)]

    def scores(self, query: Query, passages: Sequence[Document]) -> list[float]:
        """Return the cosine of each passage, in [-1, 1]."""
        query_vector = self._encoder.encode([query.text], "query")[0].astype(np.float64)
        rows = self._encoder.encode([passage.shown() for passage in passages], "document").astype(np.float64)
        return [float(score) for score in rows @ query_vector]


def packaged(judge: str, measure: str) -> ThresholdsByScript[Mapping[str, float]]:
    """Return the packaged thresholds of the five grades for `lexical` or an encoder; ConfigError if there are none."""
    measures: Mapping[str, Mapping[Script, Mapping[str, float]]] = _packaged()["thresholds"]
    if measure not in measures:
        raise ConfigError(
            f"judges.{judge}: no thresholds are packaged for {measure!r} (only for {', '.join(sorted(measures))}); "
            f"give judges.{judge}.thresholds, one per grade of the rubric, the worst aside"
        )
    return ThresholdsByScript(measures[measure])


def rescaled(five: Mapping[str, float], scale: Scale) -> dict[str, float]:
    """Return thresholds for the grades of a scale, derived from those of S, A, B and C.

    The relevance threshold keeps its score. The thresholds of relevant grades are spaced evenly from S to A, the others
    from B to C; a single grade gets the lower end. ConfigError for a nominal scale, whose labels have no order.
    """
    if scale.order == "nominal":
        raise ConfigError("judge: a heuristic grades by one number, and the rubric's labels have no order; use models")
    above = len(scale.relevant)
    bounds = [
        *_spaced_evenly(five["S"], five["A"], above),
        *_spaced_evenly(five["B"], five["C"], len(scale.labels) - above - 1),
    ]
    return dict(zip(scale.labels, bounds, strict=False))


def _spaced_evenly(high: float, low: float, number: int) -> list[float]:
    return [round(high + (low - high) * index / (number - 1), DIGITS) if number > 1 else low for index in range(number)]


def _thresholds(judge: str, config: Config, measure: str, language: str, scale: Scale) -> Thresholds:
    path = f"judges.{judge}.thresholds"
    if config.thresholds is not None:
        return Thresholds(config.thresholds, scale, path)
    return Thresholds(rescaled(packaged(judge, measure).of(language, path), scale), scale, path)


def guessing(judge: Lexical | Similarity, language: str) -> str:
    """Return a sentence if the packaged thresholds of a judge were calibrated on other languages; else an empty one."""
    return guess(f"{judge.name}: its thresholds", language) if judge.calibrated else ""


@cache
def _packaged() -> dict[str, Any]:
    content: dict[str, Any] = parse_yaml(Path(__file__).with_name("thresholds.yaml").read_text(encoding="utf-8"))
    return content


def _spaced(text: str) -> bool:
    """Return whether most letters are of scripts that put spaces between words."""
    letters = [char for char in unicodedata.normalize("NFKC", text) if char.isalpha()]
    return 2 * sum(bool(_UNSPACED.match(char)) for char in letters) < len(letters)


def _words(text: str) -> dict[str, int]:
    """Return the first `STEM` letters of every word -> weight, the square of their number."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())
    return {word[:STEM]: len(word[:STEM]) ** 2 for word in words}


def _bigrams(text: str) -> dict[str, int]:
    """Return the bigrams of letters and digits -> weight 1; other characters between them are ignored."""
    plain = [char for char in unicodedata.normalize("NFKC", text).lower() if char.isalnum()]
    return dict.fromkeys(("".join(pair) for pair in pairwise(plain)), 1)
