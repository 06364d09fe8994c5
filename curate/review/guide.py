"""The guide for assessors, read for other places: what each answer means, and its text as HTML."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from curate.core.scale import Scale

if TYPE_CHECKING:
    from markupsafe import Markup

_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")
_HEADS = {"zh": "中文", "en": "meaning"}
"""Head of the column in which the guide's table says what an answer means."""


def html(text: str) -> "Markup":
    """Return the guide, which is CommonMark with a table, as HTML; tags in it stay text."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))  # noqa: S704 - escaped there


def of_items(text: str, question: Mapping[str, str], scale: Scale, meanings: Mapping[str, Mapping[str, str]]) -> str:
    """Return the guide for items of a kind: its question in every language, and its answers in a table."""
    asked = "\n".join(f"**{_plain(said)}**  " for said in question.values())
    return of_scale(text, scale, meanings, "answer").replace("{question}", asked)


def of_scale(text: str, scale: Scale, meanings: Mapping[str, Mapping[str, str]], head: str = "grade") -> str:
    """Return the guide for a scale: its grades in a table, with what they mean per language, and the relevant ones.

    Without a cut the paragraph on relevant grades is left out.
    """
    heads = [_HEADS.get(language, language) for language in meanings]
    rows = [[head, *heads], ["---"] * (1 + len(heads))]
    rows += [
        [f"**{_plain(label)}**", *(_plain(said.get(label, "")) for said in meanings.values())] for label in scale.labels
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    paragraphs = [each for each in text.split("\n\n") if scale.positives or "{relevant}" not in each]
    relevant = " / ".join(f"**{_plain(label)}**" for label in scale.positives)
    return "\n\n".join(paragraphs).replace("{relevant}", relevant).replace("{grades}", table)


def _plain(text: str) -> str:
    """Return a text in one line of which Markdown makes nothing."""
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


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
