"""Marks of charts as strings of SVG: bars, dots, rules and texts, all of them escaped.

Widths are shares of the page and heights pixels, so a chart fills its column and letters never shrink. Colours are
classes, which a page's style sheet fills for light, dark and print.
"""

from collections.abc import Sequence
from html import escape
from unicodedata import east_asian_width

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
ROW, BAR = 50, 22
"""Pixels of a row with its label, and of the bar in it."""


def svg(title: str, height: int, marks: Sequence[str]) -> str:
    """Return a chart: its marks, read aloud and shown by its title."""
    name = escape(title)
    head = f'<svg role="img" aria-label="{name}" width="100%" height="{height}"'
    return "\n".join([f'{head} font-family="{FONTS}" font-size="13">', f"<title>{name}</title>", *marks, "</svg>"])


def bar(start: float, width: float, top: float, style: str, hint: str, *, height: float = BAR) -> str:
    """Return a bar with a hint."""
    geometry = f'x="{percent(start)}" y="{top:g}" width="{percent(width)}" height="{height:g}"'
    return f'<rect class="{escape(style)}" {geometry}><title>{escape(hint)}</title></rect>'


def dot(middle: float, top: float, style: str, hint: str) -> str:
    """Return a dot with its hint, if any."""
    title = f"<title>{escape(hint)}</title>" if hint else ""
    return f'<circle class="{style}" cx="{percent(middle)}" cy="{top:g}" r="5">{title}</circle>'


def rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return a straight line between two points."""
    ends = f'x1="{percent(x1)}" y1="{y1:g}" x2="{percent(x2)}" y2="{y2:g}"'
    return f'<line class="{style}" {ends} stroke="currentColor"/>'


def heading(label: str, number: str, top: int) -> str:
    """Return the line above a bar: its label on the left, its number on the right."""
    name = letters(0, top + 14, short(label, 36), "label", "start", hint=label)
    return name + letters(1, top + 14, number, "number", "end")


def letters(start: float, top: float, text: str, style: str, anchor: str, *, hint: str = "") -> str:
    """Return a text; `hint` is the full text of a shortened one."""
    full = f"<title>{escape(hint)}</title>" if hint and hint != text else ""
    geometry = f'x="{percent(start)}" y="{top:g}" text-anchor="{anchor}"'
    return f'<text class="{escape(style)}" {geometry} fill="currentColor">{full}{escape(text)}</text>' if text else ""


def percent(share: float) -> str:
    """Return a share as a percentage with at most two digits, the same on every machine."""
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
