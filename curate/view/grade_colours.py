"""Colours of grades: the five grades have those of the style sheet, any other scale has its own.

On an ordinal scale relevant grades are dark blue-greens and the others light yellows to greys, on a dark page the other
way round, so that lightness shows the cut too, for colour-blind readers and in print. A nominal scale has categorical
colours, those of Okabe and Ito (2008, Color Universal Design) and three of Tol (2021, Colour Schemes), one after the
other and again from the first.
"""

from collections.abc import Mapping, Sequence

from curate.core.scale import FIVE, Scale

STATUSES = ("refused", "unparsed", "failed", "stopped")
NOT_ASKED = "-"
"""Key of a judge without grade and status; no label of a scale."""
_Colour = tuple[float, float, float]
"""Lightness, chroma and hue as in CSS oklch()."""
_RELEVANT: Sequence[tuple[_Colour, _Colour]] = (
    ((0.36, 0.065, 195), (0.55, 0.095, 215)),
    ((0.84, 0.085, 195), (0.66, 0.1, 225)),
)
"""From the best grade to the lowest relevant one, on a light page and on a dark one."""
_OTHERS: Sequence[tuple[_Colour, _Colour]] = (
    ((0.93, 0.09, 95), (0.7, 0.045, 60)),
    ((0.53, 0.095, 75), (0.36, 0.02, 60)),
)
"""From the grade below the cut to the worst."""
_LIGHT, _DARK = "#ffffff", "#14191d"
_CATEGORIES: Mapping[str, str] = {
    "#e69f00": _DARK,
    "#56b4e9": _DARK,
    "#009e73": _DARK,
    "#f0e442": _DARK,
    "#0072b2": _LIGHT,
    "#d55e00": _DARK,
    "#cc79a7": _DARK,
    "#bbbbbb": _DARK,
    "#aa3377": _LIGHT,
    "#663333": _LIGHT,
}
"""Colour -> colour of text on it."""


def classes(scale: Scale) -> dict[str, str]:
    """Return label, status or `-` (not asked) -> CSS class."""
    by_label = {label: f"g-{label if scale == FIVE else f'x{index}'}" for index, label in enumerate(scale.labels)}
    return by_label | {status: f"g-{status}" for status in STATUSES} | {NOT_ASKED: "g-none"}


def styles(scale: Scale) -> str:
    """Return the rules of a style sheet for grades that are not the five; empty for those."""
    return "" if scale == FIVE else "\n".join(_rule(f"g-x{index}", *pair) for index, pair in enumerate(colours(scale)))


def colours(scale: Scale) -> list[tuple[str, str]]:
    """Return the CSS colours of every label of a scale and of text on it."""
    if scale.order == "nominal":
        pairs = list(_CATEGORIES.items())
        return [pairs[index % len(pairs)] for index in range(len(scale.labels))]
    above = len(scale.positives)
    below = len(scale.labels) - above
    best = [(index / max(above - 1, 1), _RELEVANT, (_LIGHT, _DARK)) for index in range(above)]
    worse = [(index / (below - 1) if below > 1 else 1.0, _OTHERS, (_DARK, _LIGHT)) for index in range(below)]
    return [
        (f"light-dark({', '.join(_mixed(*ends, share) for ends in ramp)})", f"light-dark({', '.join(text)})")
        for share, ramp, text in best + worse
    ]


def _mixed(first: _Colour, last: _Colour, share: float) -> str:
    components = (f"{one + share * (two - one):.3f}" for one, two in zip(first, last, strict=True))
    return f"oklch({' '.join(components)})"


def _rule(name: str, colour: str, text: str) -> str:
    return (
        f"rect.{name} {{ fill: {colour}; }} i.{name}, b.{name} {{ background: {colour}; color: {text}; }} "
        f"text.{name} {{ fill: {text}; }}"
    )
