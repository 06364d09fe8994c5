"""Charts as strings of inline SVG: no script, no file, and text that stays readable at any width.

Lengths along the page are percentages and heights are pixels, so a chart fills its column and its letters never shrink.
Colours are classes (`g-S`, `v-relevant`, `bar`, ...), which the page's style sheet fills for light, dark and print.
Every chart has a title, read aloud and shown as a hint; so has every mark in it. Labels are escaped.
"""

from collections.abc import Mapping, Sequence
from html import escape
from unicodedata import east_asian_width

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
ROW, BAR = 50, 22
"""Pixels of a row with its label, and of the bar in it."""
PLOT = 150
"""Pixels of a histogram's tallest bar."""
DOTS, LINE = 28, 19
"""Pixels of a row of dots, and of a line of figures."""
INSIDE = 0.09
"""A bar narrower than this share of the width holds no number: on a phone it would not fit."""


def funnel(title: str, steps: Sequence[tuple[str, int]]) -> str:
    """Return one bar a step, as wide as its share of the largest step."""
    largest = max((count for _, count in steps), default=0)
    marks = []
    for place, (label, count) in enumerate(steps):
        top, share = place * ROW, _over(count, largest)
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
            share = _over(counts.get(kind, 0), total)
            hint = f"{label}, {names.get(kind, kind)}: {counts.get(kind, 0):,} ({_percent(share)})"
            if share:
                marks.append(_bar(start, share, top + 20, style, hint))
            if share >= INSIDE:
                marks.append(_text(start + share / 2, top + 36, f"{counts[kind]:,}", f"on {style}", "middle"))
            start += share
    return _svg(title, len(rows) * ROW, marks)


def upset(title: str, sets: Sequence[tuple[str, int]], groups: Sequence[tuple[Sequence[str], int]]) -> str:
    """Return an UpSet plot: an upright bar a group, and below it which of the sets its members belong to.

    `sets` are names and sizes, one row each; `groups` are names of sets, and how many members are in exactly them.
    """
    left = 0.3
    wide = (1 - left) / max(len(groups), 1)
    most, largest = max((count for _, count in groups), default=0), max((size for _, size in sets), default=0)
    marks, base = [], PLOT + 26
    for place, (name, size) in enumerate(sets):
        top = base + place * DOTS
        marks.append(_bar(0, 1, top, "band" if place % 2 else "band odd", f"{name}: {size:,}", height=DOTS))
        marks.append(
            _bar(0, (left - 0.03) * _over(size, largest), top + DOTS - 8, "bar", f"{name}: {size:,}", height=4)
        )
        marks.append(_text(0.005, top + 17, short(name), "label", "start", hint=name))
        marks.append(_text(left - 0.03, top + 17, f"{size:,}", "number", "end"))
    for place, (members, count) in enumerate(groups):
        middle, height = left + (place + 0.5) * wide, round(PLOT * _over(count, most), 1)
        hint = f"{' + '.join(members)}: {count:,}"
        marks.append(_bar(middle - 0.35 * wide, 0.7 * wide, 18 + PLOT - height, "bar", hint, height=height))
        marks.append(_text(middle, 12 + PLOT - height, f"{count:,}", "number", "middle"))
        marks += _dots(middle, base, [name in members for name, _ in sets])
    return _svg(title, base + len(sets) * DOTS, marks)


def forest(
    title: str, rows: Sequence[tuple[str, Sequence[tuple[str, float | None, Sequence[float] | None, str]]]]
) -> str:
    """Return figures with their intervals on one scale, which ends at 1 and begins at 0, or below if one of them does.

    A row is a label and its entries: name, figure (None: nothing is drawn), interval and what is written beside it.
    """
    every = [entry for _, entries in rows for entry in entries]
    low = min([0.0, *(min([figure, *(bounds or ())]) for _, figure, bounds, _ in every if figure is not None)])
    wide, top, marks = 0.6, 0, list[str]()

    def at(figure: float) -> float:
        return wide * (0.02 + 0.96 * (figure - low) / (1 - low))

    height = sum(LINE * (1 + len(entries)) + 4 for _, entries in rows)
    for tick in [0.0, 0.5, 1.0] if low > -0.25 else [low, 0.0, 1.0]:
        marks.append(_rule(at(tick), 0, at(tick), height, "axis"))
        marks.append(_text(at(tick), height + 16, f"{tick:.3g}", "number", "middle"))
    for label, entries in rows:
        marks.append(_text(0, top + 14, label, "label strong", "start"))
        for place, (name, figure, bounds, said) in enumerate(entries):
            middle, style = top + LINE * (place + 1) + 8, f"l-{place}"
            marks.append(_text(1, middle + 5, said, "number", "end", hint=f"{label}, {name}: {said}"))
            if figure is not None:
                ends = bounds or (figure, figure)
                marks.append(_rule(at(ends[0]), middle, at(ends[1]), middle, f"whisker {style}"))
                marks.append(_dot(at(figure), middle, style, f"{label}, {name}: {said}"))
        top += LINE * (1 + len(entries)) + 4
    return _svg(title, height + 22, marks)


def histogram(title: str, bars: Sequence[tuple[str, str, int]], axis: str) -> str:
    """Return one upright bar a (short label, full label, count), the counts above them and `axis` below them."""
    largest, wide = max((count for _, _, count in bars), default=0), 1 / max(len(bars), 1)
    every = 1 if all(len(label) <= 4 for label, _, _ in bars) else 2
    marks = []
    for place, (label, full, count) in enumerate(bars):
        height = round(PLOT * _over(count, largest), 1)
        middle = (place + 0.5) * wide
        marks.append(_bar(place * wide, wide * 0.94, 18 + PLOT - height, "bar", f"{full}: {count:,}", height=height))
        marks.append(_text(middle - 0.03 * wide, 12 + PLOT - height, f"{count:,}" if count else "", "number", "middle"))
        if place % every == 0:
            marks.append(_text(middle - 0.03 * wide, PLOT + 36, label, "number", "middle"))
    base = _rule(0, PLOT + 18.5, 1, PLOT + 18.5, "axis")
    return _svg(title, PLOT + 62, [*marks, base, _text(0.5, PLOT + 56, axis, "label", "middle")])


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


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _bar(start: float, width: float, top: float, style: str, hint: str, *, height: float = BAR) -> str:
    place = f'x="{_percent(start)}" y="{top:g}" width="{_percent(width)}" height="{height:g}"'
    return f'<rect class="{escape(style)}" {place}><title>{escape(hint)}</title></rect>'


def _dots(middle: float, base: float, members: Sequence[bool]) -> list[str]:
    """Return a column of dots, filled for the members and joined from the first of them to the last."""
    tops = [base + (place + 0.5) * DOTS for place in range(len(members))]
    filled = [top for top, member in zip(tops, members, strict=True) if member]
    line = [_rule(middle, filled[0], middle, filled[-1], "joint")] if filled else []
    dots = zip(tops, members, strict=True)
    return [*line, *(_dot(middle, top, "member" if member else "other", "") for top, member in dots)]


def _dot(middle: float, top: float, style: str, hint: str) -> str:
    said = f"<title>{escape(hint)}</title>" if hint else ""
    return f'<circle class="{style}" cx="{_percent(middle)}" cy="{top:g}" r="5">{said}</circle>'


def _rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    ends = f'x1="{_percent(x1)}" y1="{y1:g}" x2="{_percent(x2)}" y2="{y2:g}"'
    return f'<line class="{style}" {ends} stroke="currentColor"/>'


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
