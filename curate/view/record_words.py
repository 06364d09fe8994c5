"""Sentences and table rows of records, from templates by language; rounding and "not defined" once for all texts."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from curate.core.figures import Display, Figure, Record, decimal
from curate.system import resources

DASH = "–"
"""An empty cell of a table in Markdown or HTML; in a terminal it is a minus."""


class RecordWords(Formatter):
    """The words of a command in a language: key -> template, or heading of a column -> its field or template."""

    def __init__(self, name: str, language: str = "en", *, empty: str = "-") -> None:
        """Read `commands/NAME.words.yaml`; `empty` is what a missing number or text is shown as."""
        shared = resources.words("view/record_words.yaml", language)
        self.words: Mapping[str, Any] = shared | resources.words(f"commands/{name}.words.yaml", language)
        self.empty = empty

    def __call__(self, key: str, *records: Record, **values: object) -> str:
        """Return the sentence `key` on records; of two figures of one name, that of the later record is meant."""
        return self.vformat(self.words[key], (), _displays(records, values))

    def cells(self, key: str, *records: Record, **values: object) -> dict[str, str]:
        """Return a row of the table `key`: heading -> text."""
        displays = _displays(records, values)
        return {
            self.vformat(heading, (), displays): self.vformat(cell, (), displays)
            for heading, template in self.words[key].items()
            for cell in [f"{{{template}}}" if template and "{" not in template else template]
        }

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:  # noqa: ANN401, ARG002
        """Return a figure with its display, and its name; `a.b` is the figure b of the record a, None without one."""
        name, *inner = field_name.split(".")
        content, display = kwargs[name]
        for attribute in inner if content is not None else ():
            inner_content, inner_display = content.displays()[attribute]
            # the value and the bounds of an estimate are shown like the estimate
            content, display = inner_content, display if isinstance(content, Figure) else inner_display
        return (content, display), name

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401
        """Return a figure as text, rounded by its display unless the template says how."""
        content, display = value
        if content is None:
            return self.empty
        if isinstance(content, bool):
            return str(self.words["flags"][content])
        if not isinstance(content, int | float | Figure):
            return format(content, format_spec)

        def shown(number: float) -> str:
            number = 100 * number if display.percent else number
            if format_spec:
                return format(number, format_spec)
            return f"{number:,}" if isinstance(content, int) else decimal(number, display.digits)

        if not isinstance(content, Figure):
            return shown(content)
        if content.value is None:
            return str(self.words["undefined"] or self.empty)
        number, *bounds = (shown(bound) for bound in (content.value, content.low, content.high) if bound is not None)
        return str(self.words["interval"].format(number, *bounds)) if bounds else number


def _displays(records: tuple[Record, ...], values: Mapping[str, object]) -> dict[str, tuple[object, Display]]:
    displays: dict[str, tuple[object, Display]] = {}
    for record in records:
        displays |= record.displays()
    return displays | {name: (content, Display()) for name, content in values.items()}
