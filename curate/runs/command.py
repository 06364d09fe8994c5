"""Commands as models: a field is an option of the command line, a keyword in Python, and a line of the reference."""

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo

from curate.core.config import Section, complaints
from curate.core.errors import ConfigError, UserError
from curate.core.protocols import quiet
from curate.view.answers import Result

Settings = Mapping[str, object]
RUN, SPENDING = "Run", "Spending"
"""Headings of options in the help, for options that many commands share."""


def option(
    description: str,
    default: Any = ...,  # noqa: ANN401 - of any type, as of `Field`
    *,
    flag: str = "",
    key: str = "",
    complete: str = "",
    metavar: str = "",
    group: str = "",
    ge: float | None = None,
    le: float | None = None,
) -> Any:  # noqa: ANN401
    """Return a field that is an option of the command line.

    `flag` is its name there, by default the field's. `key` is the setting of a pipeline that it overrides, such as
    `pool.depth`. `complete` is a function of `completing` for the shell. `group` is the heading in the help. `ge` and
    `le` are the least and the greatest value.
    """
    access: Any = {
        "as": "option", "flag": flag, "key": key, "complete": complete, "metavar": metavar, "group": group,
        "ge": ge, "le": le,
    }  # fmt: skip
    return Field(default, description=description, json_schema_extra=access, ge=ge, le=le)


def argument(
    description: str,
    default: Any = ...,  # noqa: ANN401
    *,
    complete: str = "",
    metavar: str = "",
) -> Any:  # noqa: ANN401
    """Return a field that is a positional argument of the command line."""
    access: Any = {"as": "argument", "complete": complete, "metavar": metavar}
    return Field(default, description=description, json_schema_extra=access)


def setting(
    description: str,
    default: Any = ...,  # noqa: ANN401
    *,
    key: str = "",
    ge: float | None = None,
    le: float | None = None,
) -> Any:  # noqa: ANN401
    """Return a field that the command line reaches by `--set NAME=VALUE` alone, since few people ever need it.

    `key` is the setting of a pipeline that it overrides.
    """
    access: Any = {"as": "setting", "key": key}
    return Field(default, description=description, json_schema_extra=access, ge=ge, le=le)


def _split(names: object) -> object:
    """Return comma-separated names as a tuple; so, too, the names of a sequence."""
    if isinstance(names, str):
        names = [names]
    if isinstance(names, Sequence):
        single = [item for name in names for item in (name.split(",") if isinstance(name, str) else [name])]
        return tuple(name.strip() if isinstance(name, str) else name for name in single if name)
    return names


def _assignments(settings: object) -> object:
    """Return settings as assignments `KEY=VALUE`; a mapping is that of Python calls."""
    return tuple(assignments(settings)) if isinstance(settings, Mapping) else settings


Names = Annotated[Sequence[str], BeforeValidator(_split)]
"""Names, separated by commas on the command line."""
Assignments = Annotated[Sequence[str] | Mapping[str, object], BeforeValidator(_assignments)]
"""Settings that override those of a pipeline: `KEY=VALUE`, or a mapping in Python."""


def silent(_line: str) -> None:
    """Ignore a line."""


class Command(Section):
    """A command of the program, with its options; a call runs it and returns the data of its result."""

    words: ClassVar[str]
    """What is typed behind `curate`: `check pool`."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Two calls for the help, without the word `curate`."""
    answers: ClassVar[str] = ""
    """What `--json` prints, for its schema; by default the first line of the record's docstring."""
    removed: ClassVar[Mapping[str, str]] = {}
    """Option of the version before -> what to type instead."""
    asks: ClassVar[bool] = False
    """Whether it asks questions on a terminal, which bars of progress would wipe out: then it draws them itself."""
    speaks_json: ClassVar[bool] = True
    """Whether `--json` prints an answer."""

    progress: Callable[..., None] = Field(default=quiet, repr=False)
    """Called with label, total, done and money during long steps."""
    tell: Callable[[str], None] = Field(default=silent, repr=False)
    """Called with news, one line, such as that a stage has ended."""
    notify: Callable[[str], None] = Field(default=silent, repr=False)
    """Called with notices, one line, such as which run was chosen; by default `tell`."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        """Validate the options; ConfigError names each wrong one as Python writes it."""
        try:
            super().__init__(**{"notify": options.get("tell", silent), **options})
        except ValidationError as error:
            raise ConfigError(complaints(type(self), error, self.words, ": ")) from error

    def __call__(self) -> Any:  # noqa: ANN401 - the type of its own answer
        """Run the command and return its data; raise what the result says failed."""
        result = self.result()
        if result.failed is not None:
            raise result.failed
        return result.data

    @abstractmethod
    def result(self) -> Result[Any]:
        """Run the command."""

    @classmethod
    def answer(cls) -> Any:  # noqa: ANN401 - a type
        """Return the type of the data: a record, a list of records, or one of several such types."""
        return get_args(get_type_hints(cls.result)["return"])[0]

    def paid(self) -> str:
        """Return a line with what the command has paid; empty if it has asked no model."""
        return ""

    def afterwards(self) -> None:
        """Go on after the answer was printed, as with questions on a terminal; does nothing here."""

    def assignments(self) -> list[str]:
        """Return the options that override a setting of a pipeline, as assignments `KEY=JSON`."""
        overrides = {}
        for name, field in type(self).model_fields.items():
            chosen, key = getattr(self, name), described(field).get("key")
            if key and chosen != field.get_default():
                overrides[key] = chosen
        return assigned(overrides)


def described(field: FieldInfo) -> dict[str, Any]:
    """Return how a field is reached: `as` (option, argument, setting), and what these functions were given."""
    access = field.json_schema_extra
    return access if isinstance(access, dict) else {}


def assigned(options: Mapping[str, object]) -> list[str]:
    """Return options (setting -> value) as assignments `KEY=JSON`; those that are None are left out."""
    return [f"{key}={json.dumps(setting, default=_plain)}" for key, setting in options.items() if setting is not None]


def assignments(settings: Settings | None) -> list[str]:
    """Return overridden settings as assignments `SECTION.KEY=JSON`; UserError for a value that JSON cannot represent.

    A mapping as value overrides single keys of a section.
    """
    lines = []
    for key, setting in (settings or {}).items():
        changes: dict[str, object] = {key: setting}
        if isinstance(setting, Mapping):
            changes = {f"{key}.{name}": inner for name, inner in setting.items()}
        lines += [f"{name}={json.dumps(change, default=_plain)}" for name, change in changes.items()]
    return lines


def _plain(setting: object) -> object:
    """Return a path as text and a set as a sorted list, for JSON; UserError for other types."""
    if isinstance(setting, os.PathLike):
        return os.fspath(setting)
    if isinstance(setting, set | frozenset):
        return sorted(setting)
    raise UserError(
        f"settings: found {type(setting).__name__}, expected text, a number, true or false, a list or a dict"
    )
