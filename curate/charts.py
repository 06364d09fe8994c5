"""Charts as strings of inline SVG: no script, no file, and text that stays readable at any width.

Lengths along the page are percentages and heights are pixels, so a chart fills its column and its letters never shrink.
Colours are classes (`g-S`, `v-relevant`, `bar`, ...), which the page's style sheet fills for light, dark and print.
Every chart has a title, read aloud and shown as a hint; so has every mark in it. Labels are escaped.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
ROW, BAR = 50, 22
"""Pixels of a row with its label, and of the bar in it."""
PLOT = 150
"""Pixels of a histogram's tallest bar."""
SQUARE = 300
"""Pixels of a scatter's height."""
LETTER = 0.0088
"""Share of the width that a half-width letter takes at most, on a page of 820 pixels."""
MARGIN = 20
CELL = 40
INSIDE = 0.09
"""A bar narrower than this share of the width holds no number: on a phone it would not fit."""
STRONG = 0.85
"""A cell of a larger share is so dark that its text must be light."""


def funnel(title: str, steps: Sequence[tuple[str, int]]) -> str:
    """Return one bar a step, as wide as its share of the largest step."""
    largest = max((count for _, count in steps), default=0)
    marks = []
    for place, (label, count) in enumerate(steps):
        top, share = place * ROW, count / largest if largest else 0.0
        marks.append(_line(label, f"{count:,}", top))
        marks.append(_bar(0, share, top + 20, "bar", f"{label}: {count:,} ({_percent(share)})"))
    return _svg(title, len(steps) * ROW, marks)


def stacked(
    title: str, rows: Sequence[tuple[str, Mapping[str, int]]], kinds: Mapping[str, str], names: Mapping[str, str]
) -> str:
    """Return one full bar a row, split by the shares of its counts.

    `kinds` gives the order of the parts and the class of each, `names` what a reader calls them.
    """
    marks = []
    for place, (label, counts) in enumerate(rows):
        top, total, start = place * ROW, sum(counts.values()), 0.0
        marks.append(_line(label, f"{total:,}", top))
        for kind, style in kinds.items():
            share = counts.get(kind, 0) / total if total else 0.0
            hint = f"{label}, {names.get(kind, kind)}: {counts.get(kind, 0):,} ({_percent(share)})"
            if share:
                marks.append(_bar(start, share, top + 20, style, hint))
            if share >= INSIDE:
                marks.append(_text(start + share / 2, top + 36, f"{counts[kind]:,}", f"on {style}", "middle"))
            start += share
    return _svg(title, len(rows) * ROW, marks)


def heat(title: str, names: Sequence[str], cells: Sequence[Sequence[tuple[float | None, str]]]) -> str:
    """Return a square of cells, rows and columns by name; a cell is a share from 0 to 1 (None: empty) and its text."""
    left = 0.22
    wide = (1 - left) / max(len(names), 1)
    middles = [left + (place + 0.5) * wide for place in range(len(names))]
    heads = zip(names, middles, strict=True)
    marks = [_text(middle, 16, short(name), "label", "middle", hint=name) for name, middle in heads]
    for row, (name, shares) in enumerate(zip(names, cells, strict=True)):
        top = 26 + row * CELL
        marks.append(_text(0, top + 25, short(name), "label", "start", hint=name))
        for column, (share, text) in enumerate(shares):
            start = left + column * wide
            if share is not None:
                hint = f"{name} × {names[column]}: {text}"
                marks.append(_bar(start, wide * 0.98, top, "heat", hint, height=CELL - 2, opacity=0.1 + 0.9 * share))
            tone = "number strong" if share is not None and share > STRONG else "number"
            marks.append(_text(start + wide * 0.49, top + 24, text, tone, "middle"))
    return _svg(title, 26 + len(names) * CELL, marks)


def histogram(title: str, bars: Sequence[tuple[str, str, int]], axis: str) -> str:
    """Return one upright bar a (short label, full label, count), the counts above them and `axis` below them."""
    largest, wide = max((count for _, _, count in bars), default=0), 1 / max(len(bars), 1)
    every = 1 if all(len(label) <= 4 for label, _, _ in bars) else 2
    marks = []
    for place, (label, full, count) in enumerate(bars):
        height = round(PLOT * count / largest, 1) if largest else 0.0
        middle = (place + 0.5) * wide
        marks.append(_bar(place * wide, wide * 0.94, 18 + PLOT - height, "bar", f"{full}: {count:,}", height=height))
        marks.append(_text(middle - 0.03 * wide, 12 + PLOT - height, f"{count:,}" if count else "", "number", "middle"))
        if place % every == 0:
            marks.append(_text(middle - 0.03 * wide, PLOT + 36, label, "number", "middle"))
    base = _rule("0", "100%", PLOT + 18.5, PLOT + 18.5)
    return _svg(title, PLOT + 62, [*marks, base, _text(0.5, PLOT + 56, axis, "label", "middle")])


def scores(title: str, rows: Sequence[tuple[str, float, float | None, float | None]], largest: float = 1.0) -> str:
    """Return one bar a row (label, score from 0, bounds of its interval or None), the interval a line over its end."""
    marks = []
    for place, (label, score, low, high) in enumerate(rows):
        top = place * ROW
        shown = f"{score:.3f}" if low is None or high is None else f"{score:.3f} ({low:.3f} to {high:.3f})"
        marks.append(_line(label, shown, top))
        marks.append(_bar(0, max(score, 0) / largest, top + 20, "bar", f"{label}: {shown}"))
        if low is not None and high is not None:
            left, right = (_percent(min(max(end, 0) / largest, 1)) for end in (low, high))
            marks.append(_rule(left, right, top + 31, top + 31))
            marks += [_rule(end, end, top + 26, top + 36) for end in (left, right)]
    return _svg(title, len(rows) * ROW, marks)


def scatter(title: str, points: Sequence[tuple[str, float, float]], across: str, up: str) -> str:
    """Return a dot a point (label, x, y), both axes from just below the least value to just above the greatest.

    A label stands where it covers no dot and no other label; one that has no such place is left to the hint of its dot.
    """
    left, right, top, bottom = 0.1, 0.9, 34, 34 + SQUARE
    xs, ys = _scale([x for _, x, _ in points]), _scale([y for _, _, y in points])
    marks = [
        _rule(_percent(left), _percent(right), bottom, bottom),
        _rule(_percent(left), _percent(left), top, bottom),
        _text(0, 18, up, "label", "start"),
        _text(right, bottom + 42, across, "label", "end"),
    ]
    marks += [_text(left + share * (right - left), bottom + 20, text, "number", "middle") for share, text in xs.ticks]
    marks += [_text(left - 0.01, bottom - share * SQUARE + 4, text, "number", "end") for share, text in ys.ticks]
    places = [(left + xs.share(x) * (right - left), bottom - ys.share(y) * SQUARE) for _, x, y in points]
    for (label, x, y), (start, down) in zip(points, places, strict=True):
        hint = escape(f"{label}: {across} {x:.4g}, {up} {y:.4g}")
        marks.append(f'<circle class="bar" cx="{_percent(start)}" cy="{down:g}" r="6"><title>{hint}</title></circle>')
    return _svg(title, bottom + 50, [*marks, *_labels([label for label, _, _ in points], places)])


def _labels(labels: Sequence[str], places: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the labels of dots, the uppermost first, each at the first of four places that is free."""
    taken = [(start - 0.01, start + 0.01, down) for start, down in places]
    for label, (start, down) in sorted(zip(labels, places, strict=True), key=lambda each: each[1][1]):
        text = short(label, 24)
        wide = LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
        for below, sign in ((-9, 1), (-9, -1), (19, 1), (19, -1)):
            near = start + sign * 0.012
            box = (min(near, near + sign * wide), max(near, near + sign * wide), down + below - 5)
            free = all(box[1] < one or box[0] > other or abs(box[2] - middle) > 14 for one, other, middle in taken)
            if free and box[0] >= 0 and box[1] <= 1:
                taken.append(box)
                yield _text(near, down + below, text, "label", "start" if sign > 0 else "end")
                break


def alone(svg: str, style: str, width: int = 820) -> str:
    """Return a chart as a file of its own: so wide, on a ground, with the colours that `style` gives to its classes."""
    height = int(svg.split('height="', 1)[1].split('"', 1)[0])
    inner = svg.replace("<svg ", f'<svg x="{MARGIN}" y="{MARGIN}" ', 1).replace(
        'width="100%"', f'width="{width - 2 * MARGIN}"', 1
    )
    size = f'width="{width}" height="{height + 2 * MARGIN}"'
    ground = f'<style>{style}</style>\n<rect class="ground" width="100%" height="100%"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{ground}\n{inner}\n</svg>\n'


def short(text: str, size: int = 12) -> str:
    """Return a label of at most `size` half-width letters (a Chinese one counts twice), with … if it was cut."""
    width = 0
    for place, letter in enumerate(text):
        width += 2 if east_asian_width(letter) in "WF" else 1
        if width > size:
            return text[: max(place - 1, 1)] + "…"
    return text


def _svg(title: str, height: int, marks: Sequence[str]) -> str:
    name = escape(title)
    head = f'<svg role="img" aria-label="{name}" width="100%" height="{height}"'
    return "\n".join([f'{head} font-family="{FONTS}" font-size="13">', f"<title>{name}</title>", *marks, "</svg>"])


def _bar(
    start: float, width: float, top: float, style: str, hint: str, *, height: float = BAR, opacity: float | None = None
) -> str:
    place = f'x="{_percent(start)}" y="{top:g}" width="{_percent(width)}" height="{height:g}"'
    faint = "" if opacity is None else f' fill-opacity="{opacity:.3f}"'
    return f'<rect class="{escape(style)}" {place}{faint}><title>{escape(hint)}</title></rect>'


@dataclass(frozen=True)
class _Scale:
    """Values as shares of an axis."""

    low: float
    high: float
    step: float

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return share and text of every round value."""
        count = round((self.high - self.low) / self.step)
        values = [self.low + place * self.step for place in range(count + 1)]
        return [(self.share(value), f"{round(value, 6):,.10g}") for value in values]


def _scale(values: Sequence[float]) -> _Scale:
    """Return an axis of four to ten round steps that holds all values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    wide = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(wide / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if wide / (power * factor) <= 6)
    start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return _Scale(start, end if end > start else start + step, step)


def _rule(left: str, right: str, top: float, bottom: float) -> str:
    return f'<line class="axis" x1="{left}" x2="{right}" y1="{top:g}" y2="{bottom:g}" stroke="currentColor"/>'


def _line(label: str, number: str, top: int) -> str:
    """Return what stands above a bar: its label on the left, its number on the right."""
    name = _text(0, top + 14, short(label, 36), "label", "start", hint=label)
    return name + _text(1, top + 14, number, "number", "end")


def _text(start: float, top: float, text: str, style: str, anchor: str, *, hint: str = "") -> str:
    full = f"<title>{escape(hint)}</title>" if hint and hint != text else ""
    place = f'x="{_percent(start)}" y="{top:g}" text-anchor="{anchor}"'
    return f'<text class="{escape(style)}" {place} fill="currentColor">{full}{escape(text)}</text>' if text else ""


def _percent(share: float) -> str:
    """Return a share as a percentage with at most two digits, the same on every machine."""
    return f"{round(100 * share, 2):g}%"
