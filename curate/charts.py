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
    base = f'<line class="axis" x1="0" x2="100%" y1="{PLOT + 18.5}" y2="{PLOT + 18.5}" stroke="currentColor"/>'
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


def _bar(
    start: float, width: float, top: float, style: str, hint: str, *, height: float = BAR, opacity: float | None = None
) -> str:
    place = f'x="{_percent(start)}" y="{top:g}" width="{_percent(width)}" height="{height:g}"'
    faint = "" if opacity is None else f' fill-opacity="{opacity:.3f}"'
    return f'<rect class="{escape(style)}" {place}{faint}><title>{escape(hint)}</title></rect>'


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
