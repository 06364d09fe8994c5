"""Presets of encoders: a packaged table of models by name, which definitions in a pipeline change and extend."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from curate.core.config import Settings, parse_yaml
from curate.core.errors import ConfigError, suggestion

PRESETS = Path(__file__).with_name("presets.yaml")
_OF_THE_MODEL = ("revision", "trust_remote_code", "query_prompt", "document_prompt")
"""Settings of a preset that only apply to its own model; they are dropped if a definition names another model."""


def encoder_presets() -> Mapping[str, Settings]:
    """Return the settings of every packaged encoder, by name."""
    return _packaged()


def with_presets(own: Mapping[str, Settings]) -> dict[str, Settings]:
    """Return name -> complete settings, for all presets and for `own`, the encoders that a pipeline defines.

    A definition with a `preset` changes settings of that preset, one without `kind` those of the preset of its name.
    ConfigError for an unknown preset.
    """
    return {**_packaged(), **{name: _complete(name, settings) for name, settings in own.items()}}


def definition_hint(name: str) -> str:
    """Return a hint for messages: how to define an encoder by a model on the hub or in a folder."""
    short = re.sub(r"[^\w-]+", "-", name.rpartition("/")[2]).strip("-") or "mine"
    model = name if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else "ORGANISATION/NAME"
    definition = f"{{kind: dense, model: {model}}}"
    return (
        f"for another model write `encoders: {{{short}: {definition}}}` into the pipeline file, or add "
        f"--set 'encoders.{short}={definition}'; in place of {model} a folder may stand"
    )


def unknown_encoder(what: str, name: str, known: Iterable[str]) -> ConfigError:
    """Return the error for an unknown encoder; it suggests the preset of a model of that name, else a similar name.

    `what` is the object named in the message, `known` are the defined names.
    """
    names = sorted({*known})
    meant = next(
        (
            preset_name
            for preset_name, preset in _packaged().items()
            if name in (preset["model"], preset_name.casefold())
        ),
        None,
    )
    nearest = f"write {meant}" if meant else suggestion(name, names)
    return ConfigError(f"unknown {what} {name!r}: {nearest}; {definition_hint(name)}", choices=names)


def _complete(name: str, settings: Settings) -> Settings:
    changes = {key: setting for key, setting in settings.items() if key != "preset"}
    base = settings.get("preset", name if "kind" not in settings and name in _packaged() else None)
    if base is None:
        return changes
    if not isinstance(base, str) or base not in _packaged():
        raise ConfigError(f"encoders.{name}.preset: unknown preset {base!r}; {suggestion(str(base), _packaged())}")
    below = _packaged()[base]
    same = changes.get("model", below["model"]) == below["model"]
    inherited = {key: setting for key, setting in below.items() if same or key not in _OF_THE_MODEL}
    return {**inherited, **changes}


@cache
def _packaged() -> Mapping[str, Settings]:
    return cast("Mapping[str, Settings]", parse_yaml(PRESETS.read_text(encoding="utf-8")))
