"""Charts as strings of inline SVG: no script, no file, and text that stays readable at any width.

Widths are percentages and heights pixels, so a chart fills its column and its letters never shrink.
Colours are classes (`g-S`, `v-relevant`, `bar`, ...), which the page's style sheet fills for light, dark and print.
Charts and their marks have titles, for screen readers and as hints. Labels are escaped.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from curate.view.marks import ROW, bar, dot, heading, letters, percent, rule, share_of, short, svg

PLOT = 150
"""Pixels of a histogram's tallest bar."""
SQUARE = 300
"""Pixels of a scatter's height."""
LETTER = 0.0088
"""Maximum width of a half-width letter as a share of a page of 820 pixels."""
MARGIN = 20
DOTS, LINE = 28, 19
"""Pixels of a row of dots, and of a line of figures."""
INSIDE = 0.09
"""A bar narrower than this share of the width holds no number: on a phone it would not fit."""


def funnel(title: str, steps: Sequence[tuple[str, int]]) -> str:
    """Return one bar per step, as wide as its share of the largest step."""
    largest = max((count for _, count in steps), default=0)
    marks = []
    for index, (label, count) in enumerate(steps):
        top, share = index * ROW, share_of(count, largest)
        marks.append(heading(label, f"{count:,}", top))
        marks.append(bar(0, share, top + 20, "bar", f"{label}: {count:,} ({percent(share)})"))
    return svg(title, len(steps) * ROW, marks)


def stacked(
    title: str, rows: Sequence[tuple[str, Mapping[str, int]]], kinds: Mapping[str, str], names: Mapping[str, str]
) -> str:
    """Return one full bar per row, split by the shares of its counts.

    `kinds` maps parts, in order, to their classes, `names` to their labels.
    """
    marks = []
    for index, (label, counts) in enumerate(rows):
        top, total, start = index * ROW, sum(counts.values()), 0.0
        marks.append(heading(label, f"{total:,}", top))
        for kind, style in kinds.items():
            share = share_of(counts.get(kind, 0), total)
            hint = f"{label}, {names.get(kind, kind)}: {counts.get(kind, 0):,} ({percent(share)})"
            if share:
                marks.append(bar(start, share, top + 20, style, hint))
            if share >= INSIDE:
                marks.append(letters(start + share / 2, top + 36, f"{counts[kind]:,}", f"on {style}", "middle"))
            start += share
    return svg(title, len(rows) * ROW, marks)


def histogram(title: str, bars: Sequence[tuple[str, str, int]], axis: str) -> str:
    """Return one upright bar a (short label, full label, count), the counts above them and `axis` below them."""
    largest, wide = max((count for _, _, count in bars), default=0), 1 / max(len(bars), 1)
    every = 1 if all(len(label) <= 4 for label, _, _ in bars) else 2
    marks = []
    for index, (label, full, count) in enumerate(bars):
        height = round(PLOT * share_of(count, largest), 1)
        middle = (index + 0.5) * wide
        marks.append(bar(index * wide, wide * 0.94, 18 + PLOT - height, "bar", f"{full}: {count:,}", height=height))
        marks.append(
            letters(middle - 0.03 * wide, 12 + PLOT - height, f"{count:,}" if count else "", "number", "middle")
        )
        if index % every == 0:
            marks.append(letters(middle - 0.03 * wide, PLOT + 36, label, "number", "middle"))
    base = rule(0, PLOT + 18.5, 1, PLOT + 18.5, "axis")
    return svg(title, PLOT + 62, [*marks, base, letters(0.5, PLOT + 56, axis, "label", "middle")])


def upset(title: str, sets: Sequence[tuple[str, int]], groups: Sequence[tuple[Sequence[str], int]]) -> str:
    """Return an UpSet plot: an upright bar per group, and below it the sets of its members.

    `sets` are names and sizes, one row each; `groups` are names of sets, and the number of members in exactly these.
    """
    names_width = 0.3
    wide = (1 - names_width) / max(len(groups), 1)
    most, largest = max((count for _, count in groups), default=0), max((size for _, size in sets), default=0)
    marks, base = [], PLOT + 26
    for index, (name, size) in enumerate(sets):
        top = base + index * DOTS
        marks.append(bar(0, 1, top, "band" if index % 2 else "band odd", f"{name}: {size:,}", height=DOTS))
        marks.append(
            bar(0, (names_width - 0.03) * share_of(size, largest), top + DOTS - 8, "bar", f"{name}: {size:,}", height=4)
        )
        marks.append(letters(0.005, top + 17, short(name), "label", "start", hint=name))
        marks.append(letters(names_width - 0.03, top + 17, f"{size:,}", "number", "end"))
    for index, (members, count) in enumerate(groups):
        middle, height = names_width + (index + 0.5) * wide, round(PLOT * share_of(count, most), 1)
        hint = f"{' + '.join(members)}: {count:,}"
        marks.append(bar(middle - 0.35 * wide, 0.7 * wide, 18 + PLOT - height, "bar", hint, height=height))
        marks.append(letters(middle, 12 + PLOT - height, f"{count:,}", "number", "middle"))
        marks += _dots(middle, base, [name in members for name, _ in sets])
    return svg(title, base + len(sets) * DOTS, marks)


def forest(
    title: str, rows: Sequence[tuple[str, Sequence[tuple[str, float | None, Sequence[float] | None, str]]]]
) -> str:
    """Return a forest plot: figures with their intervals on one scale from 0, or the lowest negative figure, to 1.

    A row is a label and its entries: name, figure (None: nothing is drawn), interval and text on the right.
    """
    every = [entry for _, entries in rows for entry in entries]
    low = min([0.0, *(min([figure, *(bounds or ())]) for _, figure, bounds, _ in every if figure is not None)])
    wide, top, marks = 0.6, 0, list[str]()

    def at(figure: float) -> float:
        return wide * (0.02 + 0.96 * (figure - low) / (1 - low))

    height = sum(LINE * (1 + len(entries)) + 4 for _, entries in rows)
    for tick in [0.0, 0.5, 1.0] if low > -0.25 else [low, 0.0, 1.0]:
        marks.append(rule(at(tick), 0, at(tick), height, "axis"))
        marks.append(letters(at(tick), height + 16, f"{tick:.3g}", "number", "middle"))
    for label, entries in rows:
        marks.append(letters(0, top + 14, label, "label strong", "start"))
        for index, (name, figure, bounds, text) in enumerate(entries):
            middle, style = top + LINE * (index + 1) + 8, f"l-{index}"
            marks.append(letters(1, middle + 5, text, "number", "end", hint=f"{label}, {name}: {text}"))
            if figure is not None:
                ends = bounds or (figure, figure)
                marks.append(rule(at(ends[0]), middle, at(ends[1]), middle, f"whisker {style}"))
                marks.append(dot(at(figure), middle, style, f"{label}, {name}: {text}"))
        top += LINE * (1 + len(entries)) + 4
    return svg(title, height + 22, marks)


def scores(title: str, rows: Sequence[tuple[str, float, float | None, float | None]], largest: float = 1.0) -> str:
    """Return one bar per row (label, score from 0, bounds of its interval or None), with the interval over its end."""
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
    """Return a scatter plot of points (label, x, y), both axes from just below the minimum to just above the maximum.

    `logarithmic` is the axis across, whose values must then be above 0.

    Labels cover no dot and no other label; one without room is only in the hint of its dot.
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


def alone(svg: str, style: str, width: int = 820) -> str:
    """Return a chart as an SVG file: `width` pixels wide, with a background and the style sheet `style`."""
    height = int(svg.split('height="', 1)[1].split('"', 1)[0])
    inner = svg.replace("<svg ", f'<svg x="{MARGIN}" y="{MARGIN}" ', 1).replace(
        'width="100%"', f'width="{width - 2 * MARGIN}"', 1
    )
    size = f'width="{width}" height="{height + 2 * MARGIN}"'
    ground = f'<style>{style}</style>\n<rect class="ground" width="100%" height="100%"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{ground}\n{inner}\n</svg>\n'


def _dots(middle: float, base: float, members: Sequence[bool]) -> list[str]:
    """Return a column of dots, filled for the members and joined from the first of them to the last."""
    tops = [base + (index + 0.5) * DOTS for index in range(len(members))]
    filled = [top for top, member in zip(tops, members, strict=True) if member]
    line = [rule(middle, filled[0], middle, filled[-1], "joint")] if filled else []
    dots = zip(tops, members, strict=True)
    return [*line, *(dot(middle, top, "member" if member else "other", "") for top, member in dots)]


def _labels(labels: Sequence[str], centres: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the labels of dots, from the top, each at the first of four positions that is free."""
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
    """Values as shares of an axis."""

    low: float
    high: float
    step: float

    def share(self, number: float) -> float:
        return (number - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return share and text of every round value."""
        count = round((self.high - self.low) / self.step)
        values = [self.low + step * self.step for step in range(count + 1)]
        return [(self.share(tick), f"{round(tick, 6):,.10g}") for tick in values]


def _scale(values: Sequence[float]) -> _Scale:
    """Return an axis of four to ten round steps that holds all values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    wide = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(wide / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if wide / (power * factor) <= 6)
    start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return _Scale(start, end if end > start else start + step, step)


@dataclass(frozen=True)
class _LogScale:
    """Values above 0 as shares of a logarithmic axis between two powers of ten."""

    low: int
    high: int

    def share(self, number: float) -> float:
        return (math.log10(number) - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return share and text of every power of ten."""
        return [(self.share(10.0**power), f"{10.0**power:,.10g}") for power in range(self.low, self.high + 1)]


def _log_scale(values: Sequence[float]) -> _LogScale:
    """Return a logarithmic axis from the power of ten below the least value to the one above the greatest."""
    low = math.floor(math.log10(min(values, default=1.0)) + 1e-9)
    return _LogScale(low, max(math.ceil(math.log10(max(values, default=1.0)) - 1e-9), low + 1))
