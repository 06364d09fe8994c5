"""Small HTML tables for notebooks: escaped texts, no colours, no external resources."""

from collections.abc import Mapping, Sequence
from html import escape

Row = Mapping[str, object]


def block(title: str, *parts: str) -> str:
    """Return HTML parts under a title; the title is plain text and is escaped."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def lines(texts: Sequence[str]) -> str:
    """Return plain texts as paragraphs."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def table(rows: Sequence[Row], digits: int = 3, caption: str = "") -> str:
    """Return rows with the same columns as an HTML table, or "" without rows.

    Floats have `digits` decimals; None is shown as a dash.
    """
    if not rows:
        return ""
    names = list(rows[0])
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row[name], digits) for name in names)}</tr>" for row in rows)
    caption_tag = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{caption_tag}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(content: object, digits: int) -> str:
    if isinstance(content, int | float) and not isinstance(content, bool):
        number = f"{content:,}" if isinstance(content, int) else f"{content:,.{digits}f}"
        return f'<td style="text-align:right">{number}</td>'
    return f'<td style="text-align:left">{escape("–" if content is None else str(content))}</td>'
