"""Words of HTML pages in a language, and the template engine of the pages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from curate.system import resources
from curate.view import run_figures

if TYPE_CHECKING:
    from jinja2 import Environment


def html_environment(folder: str = "") -> "Environment":
    """Return a Jinja environment of the templates below a folder of the package.

    It escapes every text and refuses unknown names. `mapping.name` is the mapping's item if it has one: Jinja itself
    prefers the method, so that `words.copy` and `words.items` would never be read.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    class ItemsFirst(Environment):
        def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - as Jinja has it
            if isinstance(obj, Mapping) and attribute in obj:
                return obj[attribute]
            return super().getattr(obj, attribute)

    loader = FunctionLoader(lambda name: resources.template(f"{folder}{name}"))
    return ItemsFirst(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, loader=loader)


def environment(words: Mapping[str, Any]) -> "Environment":
    """Return the environment of a report, which shows None as the word for "not defined"."""
    undefined = words["undefined"]
    engine = html_environment()
    engine.filters |= {
        "number": lambda figure: undefined if figure is None else f"{figure:,}",
        "figure": lambda figure: undefined if figure is None else f"{figure:,.3f}",
        "ranged": lambda figure, bounds: run_figures.ranged(figure, bounds) or undefined,
        "stated": lambda measures, name: run_figures.stated(measures, name, words),
        "interval": lambda figure: run_figures.between(figure) or undefined,
        "effect": lambda figure: run_figures.effect(figure) or undefined,
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
