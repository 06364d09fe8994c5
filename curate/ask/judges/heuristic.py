"""Offline judges, plainly heuristic: they make a pipeline runnable, not a benchmark publishable.

Each turns one number in [0, 1] into a grade by a threshold per grade. The packaged thresholds were calibrated by
`benchmarks/calibrate_heuristics.py` on known grades of the demos, Chinese and English, one set per script; on texts of
other languages they are a guess.
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
"""Scores are rounded before they meet a threshold, so that reruns agree."""


STEM = 5
"""Letters of a word that count: treat, treated and treatment are one term, and so are words of long compounds."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff]")
"""Letters of scripts without spaces: Thai, Lao, Myanmar, Khmer, Chinese, Japanese, Yi."""


class Thresholds:
    """Lowest score per grade of a scale, best first; what is below the last is the worst grade."""

    def __init__(self, bounds: Mapping[str, float], scale: Scale, place: str) -> None:
        """Raise ConfigError, naming the place of the settings, unless every grade but the worst has a bound."""
        wanted = scale.labels[:-1]
        if {*bounds} != {*wanted}:
            raise ConfigError(
                f"{place}: found thresholds for {', '.join(bounds) or 'no grade'}, expected {', '.join(wanted)}: one "
                "per grade of the rubric, the worst aside"
            )
        self.bounds = {label: bounds[label] for label in wanted}
        self._worst = scale.labels[-1]
        if [*self.bounds.values()] != sorted(bounds.values(), reverse=True):
            raise ConfigError(f"{place}: expected {' >= '.join(wanted)}")

    def grade(self, score: float) -> str:
        """Return the best grade whose threshold the rounded score reaches."""
        rounded = round(score, DIGITS)
        return next((label for label, bound in self.bounds.items() if rounded >= bound), self._worst)


class Config(Section):
    """What a heuristic judge compares, and where its grades begin."""

    encoder: str | None = None
    """For `similarity`: the encoder whose cosine is graded."""
    thresholds: Mapping[str, float] | None = None
    """Grade -> its lowest score, for all but the worst; None takes the packaged ones, for lexical, e5 and use."""


class Lexical:
    """Grade by lexical coverage: the weighted share of the query's terms that occur in the passage, in [0, 1].

    Terms of a query in a script without spaces between words (Chinese, Japanese, Thai ...) are character bigrams of
    equal weight. Terms of any other are words, cut to their first STEM letters in place of a stemmer; a word weighs the
    square of the letters that are left, for short words are mostly function words.
    """

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        if config.encoder is not None:
            raise ConfigError(f"judges.{name}.encoder: lexical coverage needs no encoder; remove it")
        self.name = name
        self.bigrams, self.words = (_thresholds(name, config, "lexical", each, kit.scale) for each in ("zh", "en"))
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
        """Return the coverage of each passage; 0 for a query without a term."""
        terms = _words if _spaced(query.text) else _bigrams
        wanted = terms(query.text)
        whole = sum(wanted.values())
        found = ((wanted.keys() & terms(each.shown()).keys()) for each in passages)
        return [sum(wanted[term] for term in each) / whole if whole else 0.0 for each in found]


class Similarity:
    """Grade by the cosine between an encoder's vectors of query and passage, by thresholds for the texts' script.

    The identity holds only the thresholds that grade, so those of another script can change and nothing is judged anew.
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
        asked = self._encoder.encode([query.text], "query")[0].astype(np.float64)
        rows = self._encoder.encode([each.shown() for each in passages], "document").astype(np.float64)
        return [float(score) for score in rows @ asked]


def packaged(judge: str, measure: str) -> ThresholdsByScript[Mapping[str, float]]:
    """Return the packaged bounds of the five grades for lexical or an encoder; ConfigError if there are none."""
    known: Mapping[str, Mapping[Script, Mapping[str, float]]] = _packaged()["thresholds"]
    if measure not in known:
        raise ConfigError(
            f"judges.{judge}: no thresholds are packaged for {measure!r} (only for {', '.join(sorted(known))}); "
            f"give judges.{judge}.thresholds, one per grade of the rubric, the worst aside"
        )
    return ThresholdsByScript(known[measure])


def rescaled(five: Mapping[str, float], scale: Scale) -> dict[str, float]:
    """Return bounds for the grades of a scale from those of S, A, B and C.

    The cut stays where it is. Grades above it divide the stretch from S to A evenly, those below it that from B to C;
    one grade alone begins at the lower end. ConfigError for a nominal scale, whose labels no score orders.
    """
    if scale.order == "nominal":
        raise ConfigError("judge: a heuristic grades by one number, and the rubric's labels have no order; use models")
    above = len(scale.relevant)
    divided = [*_divided(five["S"], five["A"], above), *_divided(five["B"], five["C"], len(scale.labels) - above - 1)]
    return dict(zip(scale.labels, divided, strict=False))


def _divided(high: float, low: float, number: int) -> list[float]:
    return [round(high + (low - high) * at / (number - 1), DIGITS) if number > 1 else low for at in range(number)]


def _thresholds(judge: str, config: Config, measure: str, language: str, scale: Scale) -> Thresholds:
    place = f"judges.{judge}.thresholds"
    if config.thresholds is not None:
        return Thresholds(config.thresholds, scale, place)
    return Thresholds(rescaled(packaged(judge, measure).of(language, place), scale), scale, place)


def guessing(judge: Lexical | Similarity, language: str) -> str:
    """Return a sentence for a heuristic whose packaged thresholds were calibrated on other languages; else nothing."""
    return guess(f"{judge.name}: its thresholds", language) if judge.calibrated else ""


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
