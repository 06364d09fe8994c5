"""A place in a text with what stands around it, to be shown in a terminal."""

from dataclasses import dataclass

AROUND = 30
"""Code points that are shown on each side."""


@dataclass(frozen=True)
class Excerpt:
    """What stands before, at and behind a place, on one line."""

    before: str
    place: str
    behind: str

    def __str__(self) -> str:
        return f"{self.before}»{self.place}«{self.behind}"


def excerpt(text: str, start: int, end: int) -> Excerpt:
    """Return a place with `AROUND` code points on each side; … stands where the text goes on."""
    before, behind = max(start - AROUND, 0), end + AROUND
    return Excerpt(
        "…" * (before > 0) + _line(text[before:start]),
        _line(text[start:end]),
        _line(text[end:behind]) + "…" * (behind < len(text)),
    )


def _line(text: str) -> str:
    """Return a text as one line that gives no orders to a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
