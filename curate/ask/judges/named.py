"""Language models by the names that judges have in a pipeline."""

from collections.abc import Mapping

from curate.ask.judges import JUDGES
from curate.core.config import Settings, check
from curate.core.errors import ConfigError, suggestion
from curate.llm.providers import PROVIDERS
from curate.llm.providers.presets import LanguageModel, complete, presets


def named_model(definitions: Mapping[str, Settings], name: str) -> LanguageModel | None:
    """Return the settings of the language model of that name; None if the name means another kind of judge.

    The pipeline's own definitions come before the presets, and may change one: `gpt-4o: {concurrency: 64}`, or under
    another name `wide: {preset: gpt-4o, concurrency: 64}`. A `kind` that is a provider's (openai, anthropic) makes a
    language model of a definition.
    """
    place, known, own = f"judges.{name}", presets(), definitions.get(name)
    settings = complete(name, known.get(name, {}) if own is None else own, known, place)
    if own is not None and "kind" not in settings and name not in JUDGES.names():
        raise ConfigError(f"{place}: give a kind, or the name of a preset: {suggestion(name, known)}")
    return check(LanguageModel, settings, place) if settings.get("kind") in PROVIDERS.names() else None
