"""What a task says of itself where the pipeline says nothing, by language."""

from typing import Any

from curate.core.config import parse_yaml
from curate.system.resources import template

WORDS = "tables/kinds/words.yaml"


def of(language: str) -> dict[str, Any]:
    """Return the words of a language; the English ones where it has none."""
    known: dict[str, dict[str, Any]] = parse_yaml(template(WORDS))
    return known.get(language.partition("-")[0], known["en"])
