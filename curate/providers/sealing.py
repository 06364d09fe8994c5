"""Values of `extra_body`: read from the environment where they name a variable, and written down as digests alone."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from curate.config import Json, Settings, canonical, digest, read_yaml
from curate.errors import ConfigError

KEY = "extra_body"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_NAMED = re.compile(rf"\$\{{({VARIABLE})\}}")
_SEALED = re.compile(r"sha256:[0-9a-f]{64}")
_WORD = re.compile(r"[a-z_.-]+")
_SHORT, _LONG = 8, 16
"""A shorter value could not be told from words in a reply; a longer one is no word of a vendor's."""
Place = tuple[str, ...]
"""The keys that lead to a value."""


def leaves(value: Json, place: Place = ()) -> Iterator[tuple[Place, Json]]:
    """Yield every value that is no list or mapping, with its place."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from leaves(item, (*place, str(number)))
    else:
        yield place, value


def variable(value: Json) -> str | None:
    """Return the environment variable that a value names as ${NAME}; None for any other value."""
    named = _NAMED.fullmatch(value) if isinstance(value, str) else None
    return named[1] if named else None


def problem(value: Json) -> str | None:
    """Return what is wrong with the variables of a body, None if nothing is."""
    for place, leaf in leaves(value):
        if isinstance(leaf, str) and "${" in leaf and variable(leaf) is None:
            return f"{'.'.join(place)}: expected ${{NAME}} alone, where a value is read from the environment"
    return None


def opened(value: Json, where: str) -> Json:
    """Return a body with the values of its variables; ConfigError if one holds nothing."""
    return _mapped(value, lambda place, leaf: _read(leaf, f"{where}.{'.'.join(place)}"))


def need_values(value: Json, where: str) -> None:
    """Raise ConfigError if a value was kept as a digest alone, so that the body cannot be sent."""
    for place, leaf in leaves(value):
        if isinstance(leaf, str) and _SEALED.fullmatch(leaf):
            raise ConfigError(
                f"{where}.{'.'.join(place)}: a run folder keeps a digest of this value alone; give the pipeline file "
                "again with --pipeline, or write ${NAME} there, which is read from the environment"
            )


def sealed(value: Json) -> Json:
    """Return a body as it is written down: keys, and digests of values.

    Plain stay true, false and null, of which a digest hides nothing, and what the packaged presets hold at that place.
    """
    return _mapped(value, _digested)


def frozen(settings: Settings) -> Settings:
    """Return a pipeline's settings as a run folder keeps them: values of `extra_body` sealed, variables by name."""
    judges = settings.get("judges")
    if not isinstance(judges, Mapping):
        return settings
    return {**settings, "judges": {name: _kept(own) for name, own in judges.items()}}


def private(written: Json, sent: Json) -> list[str]:
    """Return the texts of a body that nobody should read where a vendor repeats them: of variables, or no plain words.

    `written` names the variables that `sent` was read from.
    """
    spoken, found = dict(leaves(written)), list[str]()
    for place, leaf in leaves(sent):
        if isinstance(leaf, str) and len(leaf) >= _SHORT and _digested(place, leaf) != leaf:
            plain = len(leaf) < _LONG and _WORD.fullmatch(leaf) and variable(spoken.get(place)) is None
            found += [] if plain else [leaf]
    return found


def _mapped(value: Json, made: Callable[[Place, Json], Json], place: Place = ()) -> Json:
    if isinstance(value, Mapping):
        return {key: _mapped(item, made, (*place, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, made, (*place, str(number))) for number, item in enumerate(value)]
    return made(place, value)


def _read(leaf: Json, where: str) -> Json:
    name = variable(leaf)
    if name is None:
        return leaf
    if not (found := os.environ.get(name, "").strip()):
        raise ConfigError(f"{where}: the environment variable {name} holds nothing; type `export {name}=...`")
    return found


def _named(place: Place, leaf: Json) -> Json:
    return leaf if variable(leaf) else _digested(place, leaf)


def _digested(place: Place, leaf: Json) -> Json:
    if leaf is None or isinstance(leaf, bool) or (isinstance(leaf, str) and _SEALED.fullmatch(leaf)):
        return leaf
    return leaf if (place, canonical(leaf)) in _public() else f"sha256:{digest(leaf)}"


def _kept(own: Json) -> Json:
    return {**own, KEY: _mapped(own[KEY], _named)} if isinstance(own, Mapping) and KEY in own else own


@cache
def _public() -> frozenset[tuple[Place, str]]:
    """Return place and value of what the packaged presets send."""
    presets = read_yaml(Path(__file__).with_name("presets.yaml")).values()
    bodies = [each[KEY] for each in presets if isinstance(each, Mapping) and KEY in each]
    return frozenset((place, canonical(leaf)) for body in bodies for place, leaf in leaves(body))
