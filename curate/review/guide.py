"""The guide for assessors, read for other places: what each answer means, and its text as HTML."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_HEADS = {"zh": "中文", "en": "meaning"}
"""Head of the column in which the guide's table says what an answer means."""


def html(text: str) -> "Markup":
    """Return the guide, which is CommonMark with a table, as HTML; tags in it stay text."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))  # noqa: S704 - escaped there


def meanings(text: str, language: str) -> Mapping[str, str]:
    """Return answer -> what it means, in a language, as the guide's table says; empty if there is none."""
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    head = _HEADS.get(language, _HEADS["en"])
    if not rows or head not in rows[0]:
        return {}
    column = rows[0].index(head)
    return {row[0].strip("*"): row[column] for row in rows[2:]}
