"""Words of HTML pages in a language, and the template engine of the pages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from curate.system import resources
from curate.view import run_figures

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(words: Mapping[str, Any]) -> "Environment":
    """Return a Jinja environment that escapes every text and shows None as the word for "not defined"."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    undefined = words["undefined"]
    loader = FunctionLoader(resources.template)  # for templates of sections by kind of benchmark
    engine = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, loader=loader
    )
    engine.filters |= {
        "number": lambda figure: undefined if figure is None else f"{figure:,}",
        "figure": lambda figure: undefined if figure is None else f"{figure:,.3f}",
        "ranged": lambda figure, bounds: run_figures.ranged(figure, bounds) or undefined,
        "stated": lambda measures, name: run_figures.stated(measures, name, words),
        "interval": lambda figure: run_figures.between(figure) or undefined,
        "counted": lambda figure: run_figures.counted(figure, words),
        "hundred": lambda figure: run_figures.hundred(figure) or undefined,
        "mean": lambda figure: undefined if figure is None else f"{figure:,.1f}",
        "named": lambda keys, names: [names[key] for key in keys],
        "share": lambda count, total: f"{count / total:.1%}" if total else undefined,
    }
    return engine


def strings(language: str, kind: str = "report") -> dict[str, Any]:
    """Return the words of a kind of page (`report` or `audit`) in a language; English if they are not translated."""
    words: dict[str, Any] = resources.words(f"commands/{kind}/words.yaml", language)
    return words
