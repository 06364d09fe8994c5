"""Figures that know their names: records, of which JSON, JSON Schema, tables and texts are made.

The type of a field gives the unit (count, number, estimate with an interval, text); `figure` says what a type cannot.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import polars as pl

    from curate.core.config import Json

Schema = dict[str, Any]
ABSENT: Any = ...
"""Default of an optional figure of which None is a value; an absent one is left out of the JSON."""
_NUMBERS_AND_TEXTS = {str: "string", Path: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Display:
    """How a figure is described in a schema, and rounded in a text."""

    description: str = ""
    digits: int = 3
    percent: bool = False


def figure(
    description: str = "",
    *,
    digits: int = 3,
    percent: bool = False,
    default: Any = MISSING,  # noqa: ANN401 - of the field's type
    optional: bool = False,
    nullable: bool = False,
    key: str = "",
) -> Any:  # noqa: ANN401
    """Return a field of a record, whose float or estimate is shown with `digits` decimals, times 100 if `percent`.

    An `optional` figure is left out of the JSON if it has its default, None, or `ABSENT` if None is a value. A record
    that overrides `left_out` decides by itself; its optional figures may be `nullable`. A `nullable` float may be
    infinite, which is null in JSON. `key` is the name in JSON if it is no name in Python.
    """
    if optional and default is MISSING:
        default = None
    metadata = {
        "display": Display(description, digits, percent),
        "optional": optional,
        "nullable": nullable,
        "key": key,
    }
    return field(default=default, metadata=metadata, kw_only=optional)


@dataclass_transform(frozen_default=True, field_specifiers=(figure, field))
class Record:
    """Base of frozen dataclasses of figures; a subclass needs no decorator.

    The first line of its docstring describes the data of a command, `schema_name` its type in the JSON Schema.
    """

    schema_name: ClassVar[str]

    def __init_subclass__(cls, schema_name: str = "") -> None:
        """Name the type, by default the class in lower case with underscores, and make it a frozen dataclass."""
        if "schema_name" in cls.__annotations__:
            raise TypeError(f"{cls.__name__}: a figure cannot be called schema_name")
        cls.schema_name = schema_name or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        dataclass(frozen=True)(cls)

    def to_json(self, *without: str) -> dict[str, "Json"]:
        """Return the figures by key, inner records as objects; the figures `without` are left out."""
        left_out = self.left_out() | {*without}
        return {
            _key(entry): _json(getattr(self, entry.name))
            for entry in fields(cast("Any", self))
            if entry.name not in left_out
        }

    def left_out(self) -> set[str]:
        """Return the optional figures that are left out of the JSON: those with their default."""
        return {
            entry.name
            for entry in fields(cast("Any", self))
            if entry.metadata.get("optional") and getattr(self, entry.name) is entry.default
        }

    def rounded(self, digits: int = 6) -> Self:
        """Return the record with rounded floats, so that a last bit cannot make two runs differ."""
        return type(self)(
            **{entry.name: _rounded(getattr(self, entry.name), digits) for entry in fields(cast("Any", self))}
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the record that `to_json` wrote; a figure that an older version did not write has its default."""
        kinds = get_type_hints(cls)
        return cls(
            **{
                entry.name: _read(kinds[entry.name], content[_key(entry)])
                for entry in fields(cast("Any", cls))
                if _key(entry) in content
            }
        )

    def displays(self) -> dict[str, tuple[Any, Display]]:
        """Return name -> figure and its display."""
        return {
            entry.name: (getattr(self, entry.name), _display(entry.metadata)) for entry in fields(cast("Any", self))
        }

    def frame(self, name: str) -> "pl.DataFrame":
        """Return a list of records as a table; an estimate `share` becomes `share`, `share_low` and `share_high`."""
        import polars as pl

        return pl.DataFrame([dict(_columns(row)) for row in getattr(self, name)], infer_schema_length=None)


class Figure(Record):
    """A figure with its percentile interval (95 % by default); None where it is not defined."""

    value: float | None = figure("the estimate; null if it is not defined")
    low: float | None = figure("lower bound of the 95 % interval", default=None)
    high: float | None = figure("upper bound", default=None)


def decimal(number: float, digits: int) -> str:
    """Return a number with thousands separators and so many decimals; never a negative zero."""
    return f"{round(number, digits) + 0.0:,.{digits}f}"


def schema(answer: Any) -> Schema:  # noqa: ANN401 - a type, or a generic of types
    """Return the JSON Schema of a record, or a list of records, with `$defs`; TypeError for two records of one name."""
    records = dict[str, type[Record]]()
    root = _type(answer, records)
    definitions: dict[str, Schema] = {}
    while len(definitions) < len(records):  # a definition may add records, always behind
        name = list(records)[len(definitions)]
        definitions[name] = _definition(records[name], records)
    return {**root, "$defs": definitions}


def described(answer: Any) -> str:  # noqa: ANN401
    """Return the first line of a record's docstring, likewise of a list of records; empty for another type."""
    record = next(
        (kind for kind in (answer, *get_args(answer)) if isinstance(kind, type) and issubclass(kind, Record)), None
    )
    return str(record.__doc__).partition("\n")[0] if record else ""


def _definition(record: type[Record], records: dict[str, type[Record]]) -> Schema:
    kinds = get_type_hints(record)
    properties, required = {}, []
    for entry in fields(cast("Any", record)):
        text, kind = _display(entry.metadata).description, kinds[entry.name]
        if not entry.metadata.get("optional"):
            required.append(_key(entry))
        elif entry.default is None and not entry.metadata["nullable"]:
            kind = Union[tuple(option for option in get_args(kind) or [kind] if option is not NoneType)]  # noqa: UP007
        kind = kind | None if entry.metadata.get("nullable") else kind
        properties[_key(entry)] = _type(kind, records) | ({"description": text} if text else {})
    return {"type": "object", "properties": properties, "required": required}


def _type(kind: Any, records: dict[str, type[Record]]) -> Schema:  # noqa: ANN401
    """Return the JSON Schema of a type, and add the records that it refers to to `records`."""
    outer, inner = get_origin(kind) or kind, get_args(kind)
    if isinstance(outer, type) and issubclass(outer, Record):
        if records.setdefault(outer.schema_name, outer) is not outer:
            raise TypeError(f"{outer.schema_name}: two records of one name in a schema")
        return {"$ref": f"#/$defs/{outer.schema_name}"}
    if outer in (Union, UnionType):
        return _union(
            [_type(option, records) for option in inner if option is not NoneType], optional=NoneType in inner
        )
    if outer is Literal:
        return {"enum": list(inner)}
    if outer in (list, tuple, Sequence):
        mixed = outer is tuple and inner[1:] != (Ellipsis,)
        return {"type": "array", "items": {} if mixed else _type(inner[0], records)}
    if outer in (dict, Mapping):
        return {"type": "object"} | ({} if inner[1] is Any else {"additionalProperties": _type(inner[1], records)})
    return {"type": _NUMBERS_AND_TEXTS[outer]} if outer in _NUMBERS_AND_TEXTS else {}


def _union(options: list[Schema], *, optional: bool) -> Schema:
    if optional and options[0].keys() == {"type"}:
        return {"type": [options[0]["type"], "null"]}
    return {"anyOf": [*options, {"type": "null"}] if optional else options}


def _json(content: object) -> "Json":
    if isinstance(content, Record):
        return content.to_json()
    if isinstance(content, list | tuple):
        return [_json(entry) for entry in content]
    if isinstance(content, Mapping):
        return {str(key): _json(entry) for key, entry in content.items()}
    return cast("Json", content)


def _key(entry: Field[Any]) -> str:
    return entry.metadata.get("key") or entry.name


def _rounded(content: Any, digits: int) -> Any:  # noqa: ANN401
    if isinstance(content, Record):
        return content.rounded(digits)
    if isinstance(content, list | tuple):
        return tuple(_rounded(entry, digits) for entry in content)
    if isinstance(content, Mapping):
        return {key: _rounded(entry, digits) for key, entry in content.items()}
    if isinstance(content, float):
        return round(content, digits) if math.isfinite(content) else None
    return content


def _read(kind: Any, content: Any) -> Any:  # noqa: ANN401
    """Return JSON as a value of a type of a record's field."""
    outer, inner = get_origin(kind) or kind, get_args(kind)
    if content is None:
        return None
    if isinstance(outer, type) and issubclass(outer, Record):
        return outer.from_json(content)
    if outer in (Union, UnionType):
        return _read(next(option for option in inner if option is not NoneType), content)
    if outer in (list, tuple, Sequence):
        return tuple(_read(inner[0], entry) for entry in content)
    if outer in (dict, Mapping):
        return {key: _read(inner[1], entry) for key, entry in content.items()}
    return content


def _display(metadata: Mapping[str, Any]) -> Display:
    return cast("Display", metadata.get("display", Display()))


def _columns(record: Record) -> Iterator[tuple[str, object]]:
    for name, (content, _) in record.displays().items():
        if isinstance(content, Figure):
            yield from ((name, content.value), (f"{name}_low", content.low), (f"{name}_high", content.high))
        elif not isinstance(content, list | tuple | Record):
            yield name, content
