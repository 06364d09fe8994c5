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
    setting, known_presets, definition = f"judges.{name}", presets(), definitions.get(name)
    settings = complete(name, known_presets.get(name, {}) if definition is None else definition, known_presets, setting)
    if definition is not None and "kind" not in settings and name not in JUDGES.names():
        raise ConfigError(f"{setting}: give a kind, or the name of a preset: {suggestion(name, known_presets)}")
    return check(LanguageModel, settings, setting) if settings.get("kind") in PROVIDERS.names() else None
