"""Words of pages in a language, and the template engine that shows figures in them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from curate.system import resources
from curate.view import run_figures

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(words: Mapping[str, Any]) -> "Environment":
    """Return a template engine that escapes every text and shows None as "not defined", in the words of a language."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    undefined = words["undefined"]
    loader = FunctionLoader(resources.template)  # of sections that kinds of benchmark bring with them
    made = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, loader=loader)
    made.filters |= {
        "number": lambda value: undefined if value is None else f"{value:,}",
        "figure": lambda value: undefined if value is None else f"{value:,.3f}",
        "ranged": lambda value, bounds: run_figures.ranged(value, bounds) or undefined,
        "stated": lambda found, name: run_figures.stated(found, name, words),
        "interval": lambda figure: run_figures.between(figure) or undefined,
        "counted": lambda figure: run_figures.counted(figure, words),
        "hundred": lambda figure: run_figures.hundred(figure) or undefined,
        "mean": lambda value: undefined if value is None else f"{value:,.1f}",
        "named": lambda keys, names: [names[key] for key in keys],
        "share": lambda part, whole: f"{part / whole:.1%}" if whole else undefined,
    }
    return made


def strings(language: str, kind: str = "report") -> dict[str, Any]:
    """Return the words of a kind of page, report or audit, in a language; English where there are none of it."""
    words: dict[str, Any] = resources.words(f"commands/{kind}/words.yaml", language)
    return words
