"""The guide for assessors, read for other places: what each answer means, and its parts for a page.

The text is Markdown of a few kinds: headings, paragraphs, one table, numbered lists, and words in bold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_HEADS = {"zh": "中文", "en": "meaning"}
"""Head of the column in which the guide's table says what an answer means."""
_ITEM = re.compile(r"\d+\. ")


@dataclass(frozen=True)
class Block:
    """A part of the guide."""

    kind: Literal["h1", "paragraph", "table", "list"]
    lines: list[str] = field(default_factory=list)
    """The text of a heading or paragraph, the items of a list."""
    cells: list[list[str]] = field(default_factory=list)
    """The rows of a table, the first one being its head."""


def blocks(text: str) -> list[Block]:
    """Return the parts of the guide in order."""
    return [_block(part.splitlines()) for part in re.split(r"\n\s*\n", text.strip())]


def meanings(text: str, language: str) -> Mapping[str, str]:
    """Return answer -> what it means, in a language, as the guide's first table says; empty if there is none."""
    tables = [block.cells for block in blocks(text) if block.kind == "table"]
    head = _HEADS.get(language, _HEADS["en"])
    if not tables or head not in tables[0][0]:
        return {}
    column = tables[0][0].index(head)
    return {row[0].strip("*"): row[column] for row in tables[0][1:]}


def strong(text: str) -> list[tuple[str, bool]]:
    """Return a line in pieces, each with whether it is in bold."""
    return [(piece, number % 2 == 1) for number, piece in enumerate(text.split("**")) if piece]


def _block(lines: list[str]) -> Block:
    if lines[0].startswith("# "):
        return Block("h1", [lines[0][2:]])
    if lines[0].startswith("|"):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        return Block("table", cells=[row for row in rows if set("".join(row)) - set("-: ")])
    if _ITEM.match(lines[0]):
        items = re.split(r"\n(?=\d+\. )", "\n".join(lines))
        return Block("list", [_joined(_ITEM.sub("", item, count=1)) for item in items])
    return Block("paragraph", [_joined("\n".join(lines))])


def _joined(text: str) -> str:
    """Return text whose lines were broken for the file only as one line a language."""
    return re.sub(r"\s*\n\s*(?=[\x21-\x7e])", " ", re.sub(r"\s*\n\s*(?=[^\x00-\x7f])", "\n", text))
