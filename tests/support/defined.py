"""Figures that are defined: what a test goes on with."""

from typing import TypeVar

Figure = TypeVar("Figure")


def defined(figure: Figure | None) -> Figure:
    """Return a figure, which is not None."""
    assert figure is not None
    return figure
