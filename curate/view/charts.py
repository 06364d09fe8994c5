"""Charts as strings of inline SVG, without scripts and files; text has the same size at any width.

Widths are shares of the page and heights pixels, so a chart fills its column and letters never shrink. Colours are CSS
classes that the style sheet of the page defines for light and dark screens and for print.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

from curate.core.figures import Figure
from curate.core.scale import FIVE, Scale
from curate.stats.distribution import Bin

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
ROW, BAR = 50, 22
"""Height in pixels of a row with its label, and of the bar in it."""


def svg(title: str, height: int, marks: Sequence[str]) -> str:
    """Return an SVG chart of these marks; its title is the tooltip and the text for screen readers."""
    name = escape(title)
    head = f'<svg role="img" aria-label="{name}" width="100%" height="{height}"'
    return "\n".join([f'{head} font-family="{FONTS}" font-size="13">', f"<title>{name}</title>", *marks, "</svg>"])


def bar(start: float, width: float, top: float, style: str, hint: str, *, height: float = BAR) -> str:
    """Return a bar with a tooltip."""
    geometry = f'x="{percent(start)}" y="{top:g}" width="{percent(width)}" height="{height:g}"'
    return f'<rect class="{escape(style)}" {geometry}><title>{escape(hint)}</title></rect>'


def dot(middle: float, top: float, style: str, hint: str) -> str:
    """Return a dot with a tooltip."""
    return f'<circle class="{style}" cx="{percent(middle)}" cy="{top:g}" r="5"><title>{escape(hint)}</title></circle>'


def rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return a straight line between two points."""
    ends = f'x1="{percent(x1)}" y1="{y1:g}" x2="{percent(x2)}" y2="{y2:g}"'
    return f'<line class="{style}" {ends} stroke="currentColor"/>'


def heading(label: str, number: str, top: int) -> str:
    """Return the line of text above a bar: label on the left, number on the right."""
    name = letters(0, top + 14, short(label, 36), "label", "start", hint=label)
    return name + letters(1, top + 14, number, "number", "end")


def letters(start: float, top: float, text: str, style: str, anchor: str, *, hint: str = "") -> str:
    """Return an SVG text element; `hint` is the full text if `text` was shortened."""
    full = f"<title>{escape(hint)}</title>" if hint and hint != text else ""
    geometry = f'x="{percent(start)}" y="{top:g}" text-anchor="{anchor}"'
    return f'<text class="{escape(style)}" {geometry} fill="currentColor">{full}{escape(text)}</text>' if text else ""


def percent(share: float) -> str:
    """Return a share as a percentage with at most two decimals, equal on every machine."""
    return f"{round(100 * share, 2):g}%"


def share_of(part: float, whole: float) -> float:
    """Return part / whole, 0 for an empty whole."""
    return part / whole if whole else 0.0


def short(text: str, size: int = 12) -> str:
    """Return a label of at most `size` half-width letters (a Chinese one counts twice), with … if it was cut."""
    width = 0
    for index, letter in enumerate(text):
        width += 2 if east_asian_width(letter) in "WF" else 1
        if width > size:
            return text[: max(index - 1, 1)] + "…"
    return text


# Colours of grades: the five grades have those of the style sheet, any other scale has its own.

STATUSES = ("refused", "unparsed", "failed", "stopped")
NOT_ASKED = "-"
"""Key of a judge with neither grade nor status; not a label of any scale."""
_Colour = tuple[float, float, float]
"""Lightness, chroma and hue as in CSS oklch()."""
_RELEVANT: Sequence[tuple[_Colour, _Colour]] = (
    ((0.36, 0.065, 195), (0.55, 0.095, 215)),
    ((0.84, 0.085, 195), (0.66, 0.1, 225)),
)
"""Colours of the best and the lowest relevant grade, on a light page, then on a dark one; others are interpolated."""
_OTHERS: Sequence[tuple[_Colour, _Colour]] = (
    ((0.93, 0.09, 95), (0.7, 0.045, 60)),
    ((0.53, 0.095, 75), (0.36, 0.02, 60)),
)
"""Colours of the highest and the lowest grade below the relevance threshold, on a light page, then on a dark one."""
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
"""Colour of a label of a nominal scale -> colour of text on it."""


def classes(scale: Scale) -> dict[str, str]:
    """Return label, status or `-` (judge not asked) -> CSS class."""
    by_label = {label: f"g-{label if scale == FIVE else f'x{index}'}" for index, label in enumerate(scale.labels)}
    return by_label | {status: f"g-{status}" for status in STATUSES} | {NOT_ASKED: "g-none"}


def styles(scale: Scale) -> str:
    """Return the CSS rules for the grades' colours.

    Empty for the default five grades, which other style sheets define.
    """
    if scale == FIVE:
        return ""
    return "\n".join(
        f"rect.g-x{index} {{ fill: {colour}; }} "
        f"i.g-x{index}, b.g-x{index} {{ background: {colour}; color: {text}; }} text.g-x{index} {{ fill: {text}; }}"
        for index, (colour, text) in enumerate(colours(scale))
    )


def colours(scale: Scale) -> list[tuple[str, str]]:
    """Return (CSS colour of the bar, CSS colour of text on it) per label of a scale."""
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


# The words of the report page that depend on the grades: their number and names, the cut, the gains.


def fitted(words: Mapping[str, Any], scale: Scale) -> dict[str, Any]:
    """Return the words of a language with {grades}, {low} and {below} filled in for an ordinal scale.

    `grades` maps each label to itself; `agreement_note` names the gains if they are not equally spaced.
    """
    above = len(scale.positives)
    placeholders = {
        "grades": words["sizes"][len(scale.labels) - 2],
        "low": scale.relevant_from,
        "below": scale.labels[above],
    }
    texts = {f"{{{name}}}": text for name, text in placeholders.items()}
    filled: dict[str, Any] = {key: _filled(text_or_table, texts) for key, text_or_table in words.items()}
    filled["grades"] = {**{label: label for label in scale.labels}, **words["grades"]}
    if len({one - two for one, two in pairwise(scale.gains)}) > 1:
        gains = words["gains_note"].format(gains=words["comma"].join(map(str, scale.gains)))
        filled["agreement_note"] += f"{words['gap']}{gains}"
    return filled


def _filled(content: object, texts: Mapping[str, str]) -> object:
    """Return texts, also nested in mappings and lists, with placeholders filled in; other braces are unchanged."""
    if isinstance(content, str):
        for name, text in texts.items():
            content = content.replace(name, text)
        return content
    if isinstance(content, Mapping):
        return {key: _filled(entry, texts) for key, entry in content.items()}
    return [_filled(entry, texts) for entry in content] if isinstance(content, list) else content


# Charts as strings of inline SVG: no script, no file, and text that stays readable at any width.

PLOT = 150
"""Height in pixels of the tallest bar of a histogram."""
SQUARE = 300
"""Height in pixels of a scatter plot."""
LETTER = 0.0088
"""Maximum width of a half-width letter as a share of a page of 820 pixels."""
MARGIN = 20


def histogram(title: str, bins: Sequence[Bin], axis: str) -> str:
    """Return a chart of upright bars, one per bin: counts above, the lower ends of the bins and `axis` below."""
    largest, wide = max((value_bin.count for value_bin in bins), default=0), 1 / max(len(bins), 1)
    labels = [f"≥{value_bin.low:,}" if value_bin.high is None else f"{value_bin.low:,}" for value_bin in bins]
    every = 1 if all(len(label) <= 4 for label in labels) else 2
    marks = []
    for index, (label, value_bin) in enumerate(zip(labels, bins, strict=True)):
        full = label if value_bin.high in (None, value_bin.low) else f"{label}–{value_bin.high:,}"
        height = round(PLOT * share_of(value_bin.count, largest), 1)
        middle, count = (index + 0.47) * wide, f"{value_bin.count:,}"
        marks.append(bar(index * wide, wide * 0.94, 18 + PLOT - height, "bar", f"{full}: {count}", height=height))
        marks.append(letters(middle, 12 + PLOT - height, count if value_bin.count else "", "number", "middle"))
        if index % every == 0:
            marks.append(letters(middle, PLOT + 36, label, "number", "middle"))
    base = rule(0, PLOT + 18.5, 1, PLOT + 18.5, "axis")
    return svg(title, PLOT + 62, [*marks, base, letters(0.5, PLOT + 56, axis, "label", "middle")])


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot: a score with its interval, and its text on the right."""

    label: str
    score: Figure
    text: str
    hollow: bool = False
    """Whether its dot is drawn hollow: the score is biased."""
    tied: bool = False
    """Whether its row is shaded: the score is not significantly below the best."""


def forest(title: str, rows: Sequence[ForestRow]) -> str:
    """Return a forest plot of rows, from the top down, on an axis that contains all intervals."""
    scores = [row.score for row in rows]
    axis = _scale([end for score in scores for end in (score.value, score.low, score.high) if end is not None])
    ticks, height = [(_inside(share), text) for share, text in axis.ticks], len(rows) * ROW
    marks = [bar(0, 1, index * ROW, "tied", row.label, height=ROW) for index, row in enumerate(rows) if row.tied]
    marks += [rule(start, 0, start, height, "axis") for start, _ in ticks]
    marks += [letters(start, height + 16, text, "number", "middle") for start, text in ticks]
    for index, row in enumerate(rows):
        middle, score, style = index * ROW + 31, row.score, "hollow" if row.hollow else "member"
        marks.append(heading(row.label, row.text, index * ROW))
        if score.low is not None and score.high is not None:
            low, high = (_inside(axis.share(end)) for end in (score.low, score.high))
            marks.append(rule(low, middle, high, middle, "whisker"))
        if score.value is not None:
            marks.append(dot(_inside(axis.share(score.value)), middle, style, f"{row.label}: {row.text}"))
    return svg(title, height + 22, marks)


def _inside(share: float) -> float:
    """Return a share of a plot's width with a margin on both sides, for dots and letters at its ends."""
    return 0.03 + 0.94 * share


def scores(title: str, rows: Sequence[tuple[str, float, float | None, float | None]], largest: float = 1.0) -> str:
    """Return one bar per row (label, score, low and high of its interval or None).

    The interval is drawn over the bar's end.
    """
    marks = []
    for index, (label, score, low, high) in enumerate(rows):
        top = index * ROW
        text = f"{score:.3f}" if low is None or high is None else f"{score:.3f} ({low:.3f} to {high:.3f})"
        marks.append(heading(label, text, top))
        marks.append(bar(0, max(score, 0) / largest, top + 20, "bar", f"{label}: {text}"))
        if low is not None and high is not None:
            low_end, high_end = (min(max(end, 0) / largest, 1) for end in (low, high))
            marks.append(rule(low_end, top + 31, high_end, top + 31, "axis"))
            marks += [rule(end, top + 26, end, top + 36, "axis") for end in (low_end, high_end)]
    return svg(title, len(rows) * ROW, marks)


def scatter(
    title: str, points: Sequence[tuple[str, float, float]], across: str, up: str, *, logarithmic: bool = False
) -> str:
    """Return a scatter plot of points (label, x, y); both axes extend to the next round values.

    With `logarithmic`, the horizontal axis is logarithmic, and x must be above 0. Labels cover no dot and no other
    label; a label without room is only in the tooltip of its dot.
    """
    left, right, top, bottom = 0.1, 0.9, 34, 34 + SQUARE
    xs = (_log_scale if logarithmic else _scale)([x for _, x, _ in points])
    ys = _scale([y for _, _, y in points])
    marks = [
        rule(left, bottom, right, bottom, "axis"),
        rule(left, top, left, bottom, "axis"),
        letters(0, 18, up, "label", "start"),
        letters(right, bottom + 42, across, "label", "end"),
    ]
    marks += [letters(left + share * (right - left), bottom + 20, text, "number", "middle") for share, text in xs.ticks]
    marks += [letters(left - 0.01, bottom - share * SQUARE + 4, text, "number", "end") for share, text in ys.ticks]
    centres = [(left + xs.share(x) * (right - left), bottom - ys.share(y) * SQUARE) for _, x, y in points]
    for (label, x, y), (start, down) in zip(points, centres, strict=True):
        hint = escape(f"{label}: {across} {x:.4g}, {up} {y:.4g}")
        marks.append(f'<circle class="bar" cx="{percent(start)}" cy="{down:g}" r="6"><title>{hint}</title></circle>')
    return svg(title, bottom + 50, [*marks, *_labels([label for label, _, _ in points], centres)])


def alone(picture: str, style: str, width: int = 820) -> str:
    """Return a chart as a separate SVG file, `width` pixels wide, with a background and the style sheet `style`."""
    height = int(picture.split('height="', 1)[1].split('"', 1)[0])
    inner = picture.replace("<svg ", f'<svg x="{MARGIN}" y="{MARGIN}" ', 1).replace(
        'width="100%"', f'width="{width - 2 * MARGIN}"', 1
    )
    size = f'width="{width}" height="{height + 2 * MARGIN}"'
    ground = f'<style>{style}</style>\n<rect class="ground" width="100%" height="100%"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{ground}\n{inner}\n</svg>\n'


def _labels(labels: Sequence[str], centres: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the labels of dots, from top to bottom, each at the first free of four positions."""
    occupied = [(start - 0.01, start + 0.01, down) for start, down in centres]
    for label, (start, down) in sorted(zip(labels, centres, strict=True), key=lambda labelled: labelled[1][1]):
        text = short(label, 24)
        wide = LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
        for below, sign in ((-9, 1), (-9, -1), (19, 1), (19, -1)):
            near = start + sign * 0.012
            box = (min(near, near + sign * wide), max(near, near + sign * wide), down + below - 5)
            free = all(box[1] < one or box[0] > two or abs(box[2] - middle) > 14 for one, two, middle in occupied)
            if free and box[0] >= 0 and box[1] <= 1:
                occupied.append(box)
                yield letters(near, down + below, text, "label", "start" if sign > 0 else "end")
                break


@dataclass(frozen=True)
class _Scale:
    """Linear axis: maps values to shares of its length."""

    low: float
    high: float
    step: float

    def share(self, number: float) -> float:
        return (number - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (share of the axis, text) of every round value."""
        count = round((self.high - self.low) / self.step)
        values = [self.low + step * self.step for step in range(count + 1)]
        return [(self.share(tick), f"{round(tick, 6):,.10g}") for tick in values]


def _scale(values: Sequence[float]) -> _Scale:
    """Return an axis with round steps that contains all values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    wide = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(wide / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if wide / (power * factor) <= 6)
    start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return _Scale(start, end if end > start else start + step, step)


@dataclass(frozen=True)
class _LogScale:
    """Logarithmic axis between two powers of ten: maps values above 0 to shares of its length."""

    low: int
    high: int

    def share(self, number: float) -> float:
        return (math.log10(number) - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return (share of the axis, text) of every power of ten."""
        return [(self.share(10.0**power), f"{10.0**power:,.10g}") for power in range(self.low, self.high + 1)]


def _log_scale(values: Sequence[float]) -> _LogScale:
    """Return a logarithmic axis from the power of ten at or below the minimum to the one at or above the maximum."""
    low = math.floor(math.log10(min(values, default=1.0)) + 1e-9)
    return _LogScale(low, max(math.ceil(math.log10(max(values, default=1.0)) - 1e-9), low + 1))
