"""Options of `curate init`, as pipeline settings and as a command line."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from curate.core.config import Json, Settings, override, put
from curate.core.errors import ConfigError, suggestion
from curate.tables.readers import TABLES, Table
from curate.tables.readers.items import NAMES

Assignment = tuple[tuple[str, ...], Json]
"""Path of keys of a setting, and its value."""
_COLUMN, _SET = "--column", "--set"
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_LONGEST = 80
"""Maximum number of characters of a benchmark's name, as in `Head`."""


@dataclass(frozen=True)
class InitRequest:
    """The options of `curate init`."""

    source: str | None = None
    queries: str | None = None
    corpus: str | None = None
    qrels: str | None = None
    name: str | None = None
    language: str | None = None
    models: str | None = None
    """Names of judges, separated by commas; None: available ones are proposed."""
    file: Path | None = None
    columns: tuple[str, ...] = ()
    """Columns, each as TABLE.FIELD=NAME."""
    assign: tuple[str, ...] = ()
    """Settings, each as section.key=value, like those of `curate run --set`."""

    @property
    def called(self) -> str:
        """Return the benchmark's name: the given one, else one made from the folder or file of the data."""
        if self.name:
            return self.name
        path = Path(self.source or self.queries or "").expanduser()
        stem = (path.parent if path.suffix and not path.is_dir() else path).resolve().name
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)
        return plain.lstrip(".")[:_LONGEST] or "benchmark"

    @property
    def path(self) -> Path:
        """Return the path of the pipeline file."""
        return self.file or Path(f"{self.called}.yaml")

    def also(self, options: Sequence[tuple[str, str]]) -> "InitRequest":
        """Return the request with added `--column` or `--set` options; they replace earlier ones of the same target."""
        columns, assign = list(self.columns), list(self.assign)
        for option, argument in options:
            target = argument.partition("=")[0]
            table, _, field = target.partition(".")
            same = {target} if option == _SET else {f"ingest.columns.{target}", f"ingest.{table}.columns.{field}"}
            assign = [assignment for assignment in assign if assignment.partition("=")[0].strip() not in same]
            if option == _COLUMN:
                columns = [column for column in columns if column.partition("=")[0].strip() != target]
            (columns if option == _COLUMN else assign).append(argument)
        return replace(self, columns=tuple(columns), assign=tuple(assign))

    def command(self, *extra: str) -> str:
        """Return the command line of the request with `extra` words appended, quoted for a shell."""
        words = ["curate", "init", *([self.source] if self.source else [])]
        for option in ("queries", "corpus", "qrels", "name", "language", "models", "file"):
            argument = getattr(self, option)
            words += [f"--{option}", str(argument)] if argument is not None else []
        for option, arguments in ((_COLUMN, self.columns), (_SET, self.assign)):
            words += [word for argument in arguments for word in (option, argument)]
        return " ".join(quoted(word) for word in (*words, *extra))

    @cached_property
    def assignments(self) -> Sequence[Assignment]:
        """Return the parsed `--set` options, in order; ConfigError for an invalid one."""
        assignments: list[Assignment] = []
        for assignment in self.assign:
            setting: Json = override({}, [assignment])
            keys = tuple(assignment.partition("=")[0].strip().split("."))
            for key in keys:
                assert isinstance(setting, Mapping)
                setting = setting[key]
            assignments.append((keys, setting))
        return assignments

    @cached_property
    def settings(self) -> Settings:
        """Return all options as pipeline settings; ConfigError for a column of an unknown table or field."""
        settings: Settings = {}
        if self.source is not None:
            put(settings, ["ingest", "source"], self.source)
        for table in TABLES:
            if (path := getattr(self, table)) is not None:
                put(settings, ["ingest", table], {"path": [path]})
        for column in self.columns:
            table, field, name = _parsed_column(column)
            put(settings, ["ingest", "columns", table, field], name)
        for keys, setting in self.assignments:
            put(settings, keys, setting)
        return settings

    def said(self, *keys: str) -> Json:
        """Return a setting given by the options; None if it is not set."""
        setting: Json = self.settings
        for key in keys:
            setting = setting.get(key) if isinstance(setting, Mapping) else None
        return setting


def quoted(word: str) -> str:
    """Return a word quoted for a shell if needed; letters of any script need no quotes."""
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _parsed_column(text: str) -> tuple[Table, str, str]:
    """Return table, field and column of TABLE.FIELD=NAME; ConfigError suggests the nearest known table and field."""
    target, _, name = text.partition("=")
    table, _, field = target.strip().partition(".")
    targets = [f"{known_table}.{known_field}" for known_table in TABLES for known_field in NAMES[known_table]]
    if f"{table}.{field}" not in targets or not name:
        raise ConfigError(f"{_COLUMN} {text!r}: expected TABLE.FIELD=NAME; {suggestion(target.strip(), targets)}")
    return next(known_table for known_table in TABLES if known_table == table), field, name
