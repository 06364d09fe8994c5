"""What a sample is drawn for: the figures that it is to prove, and how narrow their intervals are to be."""

import math
from collections.abc import Mapping, Sequence

from curate.core.errors import ConfigError, suggestion

TARGETS: Mapping[str, Sequence[str]] = {
    "both": ("precision", "recall"),
    "precision": ("precision",),
    "recall": ("recall",),
    "agreement": ("agreement",),
}
"""What a sample can be drawn for, by the name of `--target` -> its figures."""
ACCEPT = "accept"
"""The `--target` of a sample by which a threshold on the sum of grades is proved; it has a design of its own."""
FIGURES = {
    "precision": "precision of the positives",
    "recall": "recall of relevant pairs in the pool",
    "agreement": "agreement with the panel, of all decided pairs",
}

SCORES = {"level": "precision at 10 of a model", "difference": "difference of two models in it"}
"""What a margin of a sample for models' scores can be of -> its name in a plan."""


def wanted(target: str | None, margins: Sequence[str]) -> dict[str, float | None]:
    """Return figure -> margin (None without one) of `--target` and `--margin`; ConfigError unless they go together.

    A margin without a name is that of the agreement, or of every figure of the target where one is named.
    """
    if target is not None and target not in TARGETS:
        raise ConfigError(f"--target: found {target!r}; {suggestion(target, [*TARGETS, ACCEPT])}")
    if not margins:
        return dict.fromkeys(TARGETS[target or "both"])
    found: dict[str, float | None] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        for figure in [name.strip()] if equals else TARGETS[target or "agreement"]:
            if figure not in FIGURES or figure in found:
                what = "a second margin of" if figure in found else "a margin of"
                raise ConfigError(f"--margin: found {what} {figure!r}; {suggestion(figure, FIGURES)}, each once")
            found[figure] = _margin(text, number)
    if target is not None and set(found) != set(TARGETS[target]):
        raise ConfigError(
            f"--target {target}: found margins of {', '.join(found)}, expected those of {', '.join(TARGETS[target])}; "
            "leave out --target, for margins name their figures"
        )
    return found


def of_scores(margins: Sequence[str]) -> dict[str, float]:
    """Return figure of `SCORES` -> half width of `--margin 0.1` (of a level), `level=0.1` and `difference=0.1`."""
    found: dict[str, float] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        figure = name.strip() if equals else "level"
        if figure not in SCORES or figure in found:
            raise ConfigError(
                f"--margin: found {text!r} with --for-scores, expected a half width of {' or '.join(SCORES)}, each "
                "once; give 0.1, or difference=0.1"
            )
        found[figure] = _margin(text, number)
    return found


def _margin(text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise ConfigError(
            f"--margin: found {text!r}, expected a half width between 0 and 1; give 0.01, or precision=0.02"
        )
    return value


def purpose(aims: Mapping[str, float | None]) -> str:
    """Return what a sample is drawn for in words, with the margins that were asked for."""
    asked = (f"{FIGURES[name]}{f' (half width {margin} at most)' if margin else ''}" for name, margin in aims.items())
    return "; ".join(asked)
