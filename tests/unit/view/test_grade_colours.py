"""Colours of grades: text stands out, the cut is seen whatever a reader's eyes, and no grade looks like the next."""

import re
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest

from curate.core.scale import FIVE, Scale
from curate.view.charts import classes, colours, styles

Linear = npt.NDArray[np.float64]
"""Red, green and blue, linear, 0 to 1."""
LMS = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.63]])
OKLAB = np.array([[0.2105, 0.7936, -0.0041], [1.978, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
"""Ottosson's matrices (2020, A perceptual color space for image processing), to four digits."""
EYES = {
    "all cones": np.eye(3),
    "no red": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]]),
    "no green": np.array([[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.969]]),
    "no blue": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}
"""Dichromats, as Machado, Oliveira and Fernandes simulate them (2009)."""
SCALES = [
    Scale(tuple("abcdefghij"[:size]), "abcdefghij"[cut], tuple(range(size, 0, -1)))
    for size in range(2, 11)
    for cut in range(size - 1)
]


def linear(colour: str) -> Linear:
    """Return a colour of CSS, #rrggbb or oklch(L C H)."""
    if colour.startswith("#"):
        value = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    light, chroma, hue = map(float, colour.removeprefix("oklch(").removesuffix(")").split())
    lab = np.array([light, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))])
    found = np.linalg.solve(LMS, np.linalg.solve(OKLAB, lab) ** 3)
    assert -0.01 < found.min() < found.max() < 1.01, "a screen can show it"
    return np.clip(found, 0, 1)


def in_theme(colour: str, place: int) -> Linear:
    both = re.fullmatch(r"light-dark\((#\w+|oklch\([^)]+\)), (#\w+|oklch\([^)]+\))\)", colour)
    return linear(both[place + 1] if both else colour)


def distance(one: Linear, other: Linear) -> float:
    """Return how far two colours are apart in Oklab for the eyes that tell them apart the least."""
    apart = (
        OKLAB @ np.cbrt(LMS @ np.clip(eye @ one, 0, 1)) - OKLAB @ np.cbrt(LMS @ np.clip(eye @ other, 0, 1))
        for eye in EYES.values()
    )
    return min(float(np.linalg.norm(each)) for each in apart)


def contrast(one: Linear, other: Linear) -> float:
    low, high = sorted(float(each @ [0.2126, 0.7152, 0.0722]) + 0.05 for each in (one, other))
    return high / low


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("scale", SCALES, ids=Scale.described)
def test_any_ordinal_scale(scale: Scale, theme: int) -> None:
    found = [(in_theme(colour, theme), in_theme(text, theme)) for colour, text in colours(scale)]
    above = len(scale.positives)
    assert min(contrast(colour, text) for colour, text in found) >= 4.5
    shown = [colour for colour, _ in found]
    assert min(distance(one, other) for one in shown[:above] for other in shown[above:]) > 0.12
    assert min(distance(one, other) for one, other in pairwise(shown)) > 0.018


@pytest.mark.parametrize("size", [2, 5, 10, 200])
def test_a_nominal_scale_has_categories(size: int) -> None:
    found = colours(Scale(tuple(map(str, range(size))), order="nominal"))
    assert len(found) == size
    first = [linear(colour) for colour, _ in found[:10]]
    assert min(contrast(linear(colour), linear(text)) for colour, text in found) >= 4.5
    assert min(distance(one, other) for one, other in combinations(first, 2)) > 0.07


def test_the_five_grades_keep_their_own() -> None:
    assert styles(FIVE) == ""
    assert [classes(FIVE)[label] for label in (*FIVE.labels, "refused", "-")] == [
        *("g-S", "g-A", "g-B", "g-C", "g-D", "g-refused", "g-none")
    ]
    named = Scale(("none", "refuse"), "none", (1, 0))
    assert [classes(named)[label] for label in ("none", "refuse", "-")] == ["g-x0", "g-x1", "g-none"]
    assert styles(named).count("\n") == 1
