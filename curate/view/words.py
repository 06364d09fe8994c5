"""Words of HTML pages in a language, and the template engine of the pages."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from curate.system import resources
from curate.view import run_figures

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context


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


def environment(**filters: Callable[..., Any]) -> "Environment":
    """Return the environment of a report, with further filters.

    Filters show None as the word for "not defined" of the template's variable `words`: one environment serves all
    languages, so that a process compiles the templates once.
    """
    engine = html_environment()
    engine.filters |= {
        "number": in_words(lambda _words, figure: None if figure is None else f"{figure:,}"),
        "figure": in_words(lambda _words, figure: None if figure is None else f"{figure:,.3f}"),
        "ranged": in_words(lambda _words, figure, bounds: run_figures.ranged(figure, bounds)),
        "stated": in_words(lambda words, measures, name: run_figures.stated(measures, name, words)),
        "interval": in_words(lambda _words, figure: run_figures.between(figure)),
        "effect": in_words(lambda _words, figure: run_figures.effect(figure)),
        "counted": in_words(lambda words, figure: run_figures.counted(figure, words)),
        "hundred": in_words(lambda _words, figure: run_figures.hundred(figure)),
        "mean": in_words(lambda _words, figure: None if figure is None else f"{figure:,.1f}"),
        "named": lambda keys, names: [names[key] for key in keys],
        "share": in_words(lambda _words, count, total: f"{count / total:.1%}" if total else None),
        **filters,
    }
    return engine


def in_words(form: Callable[..., str | None]) -> Callable[..., str]:
    """Return a filter that calls `form(words, ...)`, with the words of the page, and shows None as "not defined"."""
    from jinja2 import pass_context

    @pass_context
    def shown(context: "Context", *values: Any, **options: Any) -> str:  # noqa: ANN401 - the filter's own
        words = context["words"]
        return form(words, *values, **options) or str(words["undefined"])

    return shown


def strings(language: str, kind: str = "report") -> dict[str, Any]:
    """Return the words of a kind of page (`report` or `audit`) in a language; English if they are not translated."""
    words: dict[str, Any] = resources.words(f"commands/{kind}/words.yaml", language)
    return words
