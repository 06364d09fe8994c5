"""Small HTML tables for notebooks: every text escaped, no colours of their own, nothing from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape

Row = Mapping[str, object]


def block(title: str, *parts: str) -> str:
    """Return parts of a value under its title; the title is plain text."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def lines(texts: Sequence[str]) -> str:
    """Return plain texts as paragraphs."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def table(rows: Sequence[Row], digits: int = 3, caption: str = "") -> str:
    """Return rows of the same columns as a table; numbers that are not whole with so many digits, None as a dash."""
    if not rows:
        return ""
    names = list(rows[0])
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row[name], digits) for name in names)}</tr>" for row in rows)
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object, digits: int) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
        return f'<td style="text-align:right">{shown}</td>'
    return f'<td style="text-align:left">{escape("–" if value is None else str(value))}</td>'
