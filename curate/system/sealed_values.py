"""Values of a judge's `extra_body`: ${NAME} is read from the environment, and run folders store digests of values.

A body is the value of `extra_body`: JSON that is sent to a provider with every request, and that may contain secrets.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from curate.core.config import Json, Settings, canonical, digest, read_yaml
from curate.core.errors import ConfigError
from curate.system.resources import data_file

KEY = "extra_body"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_NAMED = re.compile(rf"\$\{{({VARIABLE})\}}")
_SEALED = re.compile(r"sha256:[0-9a-f]{64}")
_WORD = re.compile(r"[a-z_.-]+")
_SHORT, _LONG = 8, 16
"""Lengths in characters, for `private`. A value below `_SHORT` is not hidden, as it may be a common word of a reply;
one of `_LONG` or more is too long for a provider's keyword."""
Place = tuple[str, ...]
"""Path of keys from the top of a body to a value; an item of a list has its index as key, from "0"."""


def leaves(node: Json, keys: Place = ()) -> Iterator[tuple[Place, Json]]:
    """Yield (path, value) for every value of a JSON tree that is no list or mapping; `keys` is the path of `node`."""
    if isinstance(node, Mapping):
        for key, child in node.items():
            yield from leaves(child, (*keys, key))
    elif isinstance(node, list | tuple):
        for number, child in enumerate(node):
            yield from leaves(child, (*keys, str(number)))
    else:
        yield keys, node


def variable(leaf: Json) -> str | None:
    """Return NAME if a value is the string ${NAME}; None for any other value."""
    match = _NAMED.fullmatch(leaf) if isinstance(leaf, str) else None
    return match[1] if match else None


def problem(body: Json) -> str | None:
    """Return a message on the first string of a body that contains ${ but is not exactly ${NAME}; None without one."""
    for keys, leaf in leaves(body):
        if isinstance(leaf, str) and "${" in leaf and variable(leaf) is None:
            return f"{'.'.join(keys)}: expected ${{NAME}} alone, where a value is read from the environment"
    return None


def opened(body: Json, where: str) -> Json:
    """Return a body with every ${NAME} replaced by the variable's value; ConfigError if one is unset or empty.

    `where` is the path of the body in the settings.
    """
    return _mapped(body, lambda keys, leaf: _read(leaf, f"{where}.{'.'.join(keys)}"))


def need_values(body: Json, where: str) -> None:
    """Raise ConfigError if a value is only known as a digest, so that the body cannot be sent.

    `where` is the path of the body in the settings.
    """
    for keys, leaf in leaves(body):
        if isinstance(leaf, str) and _SEALED.fullmatch(leaf):
            raise ConfigError(
                f"{where}.{'.'.join(keys)}: a run folder keeps a digest of this value alone; give the pipeline file "
                "again with --pipeline, or write ${NAME} there, which is read from the environment"
            )


def sealed(body: Json) -> Json:
    """Return a body as it is stored: keys are unchanged, values are replaced by digests.

    true, false and null stay plain, since a digest would not hide them. So do values that a packaged preset has under
    the same keys.
    """
    return _mapped(body, _digested)


def frozen(settings: Settings) -> Settings:
    """Return settings as a run folder stores them: values of `extra_body` as digests, except ${NAME}, which stays."""
    judges = settings.get("judges")
    if not isinstance(judges, Mapping):
        return settings
    sealed = {
        name: {**judge, KEY: _mapped(judge[KEY], _variable_or_digest)}
        if isinstance(judge, Mapping) and KEY in judge
        else judge
        for name, judge in judges.items()
    }
    return {**settings, "judges": sealed}


def private(written: Json, sent: Json) -> list[str]:
    """Return the strings of a body to hide in a provider's messages: values of variables, and all but keywords.

    A keyword is a short lower-case word written in the settings, such as `json_object`. Strings shorter than `_SHORT`
    and values of packaged presets are not hidden. `written` is the body as in the settings, with ${NAME}; `sent` has
    the values of the variables instead.
    """
    written_leaves, secrets = dict(leaves(written)), list[str]()
    for keys, leaf in leaves(sent):
        if isinstance(leaf, str) and len(leaf) >= _SHORT and _digested(keys, leaf) != leaf:
            # a short lower-case word that is written in the file is a keyword, such as "json_object"
            plain = len(leaf) < _LONG and _WORD.fullmatch(leaf) and variable(written_leaves.get(keys)) is None
            secrets += [] if plain else [leaf]
    return secrets


def _mapped(body: Json, convert: Callable[[Place, Json], Json], keys: Place = ()) -> Json:
    if isinstance(body, Mapping):
        return {key: _mapped(child, convert, (*keys, key)) for key, child in body.items()}
    if isinstance(body, list | tuple):
        return [_mapped(child, convert, (*keys, str(number))) for number, child in enumerate(body)]
    return convert(keys, body)


def _read(leaf: Json, where: str) -> Json:
    name = variable(leaf)
    if name is None:
        return leaf
    if not (content := os.environ.get(name, "").strip()):
        raise ConfigError(f"{where}: the environment variable {name} holds nothing; type `export {name}=...`")
    return content


def _variable_or_digest(keys: Place, leaf: Json) -> Json:
    return leaf if variable(leaf) else _digested(keys, leaf)


def _digested(keys: Place, leaf: Json) -> Json:
    if leaf is None or isinstance(leaf, bool) or (isinstance(leaf, str) and _SEALED.fullmatch(leaf)):
        return leaf
    return leaf if (keys, canonical(leaf)) in _public() else f"sha256:{digest(leaf)}"


@cache
def _public() -> frozenset[tuple[Place, str]]:
    """Return (path, canonical JSON) of all values that packaged presets have in `extra_body`."""
    presets = read_yaml(data_file("llm/providers/presets.yaml")).values()
    bodies = [preset[KEY] for preset in presets if isinstance(preset, Mapping) and KEY in preset]
    return frozenset((keys, canonical(leaf)) for body in bodies for keys, leaf in leaves(body))
