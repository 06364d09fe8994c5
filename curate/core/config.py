"""Pipeline files: reading YAML, validating settings, and digests that change with the settings."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from curate.core import safe_yaml
from curate.core.errors import ConfigError, suggestion

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Settings = dict[str, Json]
parse_yaml = safe_yaml.parse


class Section(BaseModel):
    """A frozen group of settings; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


Model = TypeVar("Model", bound=BaseModel)

_ALTERNATIVE = re.compile(r"(constrained-|literal\[|function-|tuple\[|list\[|dict\[|\[key\]$|(str|int|float|bool)$)")
"""Pattern of the parts that pydantic adds to an error's location for the alternatives of a union; no key matches it."""
_WORDS = {
    "tuple_type": "expected a list, such as [one, two]",
    "list_type": "expected a list, such as [one, two]",
    "dict_type": "expected a mapping of settings",
    "model_type": "expected a mapping of settings",
    "string_pattern_mismatch": "has characters that are not allowed here, expected what {pattern} allows",
}


def read_yaml(path: Path) -> Settings:
    """Return the mapping in a YAML file; ConfigError names the file and the line of the mistake."""
    try:
        settings = safe_yaml.parse(safe_yaml.read(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the path of a pipeline file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML ({safe_yaml.problem(error)})") from error
    if not isinstance(settings, dict):
        raise ConfigError(
            f"{path}: expected a mapping of sections (ingest, pool, judge, ...), found {kind_of(settings)}"
        )
    return settings


def kind_of(content: object, mapping: str = "a mapping") -> str:
    """Return a word for the type of a value, as users of YAML call it, and those of JSON but for `mapping`."""
    words = {dict: mapping, list: "a list", str: "text", bool: "true/false", type(None): "nothing"}
    return words.get(type(content), "a number" if isinstance(content, int | float) else type(content).__name__)


def override(settings: Settings, assignments: Sequence[str]) -> Settings:
    """Return a copy of the settings with each assignment `section.key=value` applied; values are parsed as YAML."""
    changed: Settings = json.loads(json.dumps(settings))
    for assignment in assignments:
        path, sign, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not sign or not all(keys):
            raise ConfigError(f"--set {assignment!r}: expected section.key=value, for example pool.depth=100")
        try:
            parsed = safe_yaml.parse(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {path}: the value is not valid YAML ({safe_yaml.problem(error)})") from error
        put(changed, keys, cast("Json", parsed))
    return changed


def put(settings: Settings, keys: Sequence[str], value: Json) -> None:
    """Set the value at a path of keys in place; missing mappings on the path are created."""
    section_at: dict[str, Json] = settings
    for depth, key in enumerate(keys[:-1]):
        if section_at.get(key) is None:  # not there, or switched off
            section_at[key] = {}
        below = section_at[key]
        if not isinstance(below, dict):
            section = ".".join(keys[: depth + 1])
            raise ConfigError(f"{'.'.join(keys)}: {section} holds {kind_of(below)}, not a section")
        section_at = below
    section_at[keys[-1]] = value


def merged(below: Mapping[str, Json], settings: Mapping[str, Json]) -> Settings:
    """Return `settings` with defaults from `below`; nested mappings are merged key by key."""
    result: Settings = {**below, **settings}
    for key, default in below.items():
        setting = settings.get(key)
        if isinstance(default, Mapping) and isinstance(setting, Mapping):
            result[key] = merged(default, setting)
    return result


def check(model: type[Model], data: object, where: str) -> Model:
    """Return `data` validated as a `model`.

    ConfigError lists every mistake with its location and the nearest known key. `where` is the name of the file or
    section in messages.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # the name of a file is set apart from its keys
        separator = ": " if ": " not in where and where.endswith(".yaml") else "."
        raise ConfigError(complaints(model, error, where, separator)) from error


def complaints(model: type[BaseModel], error: ValidationError, where: str, separator: str) -> str:
    """Return one line per mistake with its location: `where`, the separator, and the dotted key."""
    words_by_location: dict[str, list[str]] = {}
    for problem in error.errors():
        keys = [str(key) for key in problem["loc"] if not _ALTERNATIVE.match(str(key))]
        location = f"{where}{separator}{'.'.join(keys)}" if keys else where
        words_by_location.setdefault(location, []).append(_complaint(model, keys, problem))
    # a value that fits no alternative of a union has several complaints at one location
    return "\n".join(f"{location}: {' or '.join(words)}" for location, words in words_by_location.items())


def _complaint(model: type[BaseModel], path: Sequence[str], problem: Mapping[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {suggestion(path[-1], _keys(model, path[:-1]))}"
    if problem["type"] == "missing":
        return "is missing"
    rejected = problem["input"]
    field = model.model_fields.get(path[0]) if path else None
    # a list or a mapping may hold texts or keys, and a field with repr=False holds a secret: name the type alone
    private = isinstance(rejected, dict | list) or (field is not None and not field.repr)
    description = kind_of(rejected) if private else repr(rejected)
    if isinstance(rejected, str) and "://" in rejected:  # may hold a password
        description = "an address"
    plain = str(problem["msg"]).removeprefix("Value error, ").replace("Input should be", "expected")
    words = _WORDS.get(problem["type"])
    return f"{plain if words is None else words.format(**problem.get('ctx', {}))} (found {description})"


def _keys(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    for key in path:
        field = model.model_fields.get(key)
        alternatives = [] if field is None else [*getattr(field.annotation, "__args__", ()), field.annotation]
        inner = [getattr(alternative, "__origin__", alternative) for alternative in alternatives]  # for Annotated
        sections = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)]
        model = sections[0] if sections else model
    return [field.alias or name for name, field in model.model_fields.items()]


def canonical(content: object) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, models as mappings."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(content: object) -> object:
    if isinstance(content, BaseModel):
        return content.model_dump(mode="json")
    if isinstance(content, set | frozenset):
        return sorted(content)
    raise TypeError(f"no canonical form for {type(content).__name__}")


def digest(content: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, as hexadecimal digits."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits: its identity in the ledger and caches."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
