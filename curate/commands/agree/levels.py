"""The levels that agreement is measured at, by the words that people read: all ratings, and the cut of the scale."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curate.core.scale import Scale

Figures = Mapping[str, Any]


class MeasuredLevels(NamedTuple):
    """Agreement at several levels."""

    figures: dict[str, Figures]
    """Level -> `agreement_figures.figures`."""
    labels: dict[str, Sequence[str]]
    """Level -> what its categories stand for, in the order of the scale."""


def of_ratings(found: Figures, positive: Sequence[str]) -> MeasuredLevels:
    """Return the levels of `ratings_file.measure`: all ratings, and the cut if ratings were named as positive."""
    levels = {"all ratings": found["ratings"], **({"cut": found["cut"]} if found["cut"] else {})}
    return MeasuredLevels(levels, {"all ratings": found["labels"], "cut": [" ".join(positive), "others"]})


def of_comparison(found: Figures, scale: Scale) -> MeasuredLevels:
    """Return the levels of `compare`: grades and cut, of all pairs, and of the top 50 where pools are deeper."""
    agreed, sides = found["agreement"], {"all_grades": "grades", "cut": "cut"}
    levels = {name: agreed[side] for side, name in sides.items()}
    for side, name in sides.items() if agreed["top_50"] else ():
        levels[f"{name}, top 50"] = agreed["top_50"][side]
    cut = [" ".join(scale.positives), " ".join(scale.labels[len(scale.positives) :])]
    return MeasuredLevels(levels, {"grades": scale.labels, "cut": cut})
