"""What a user typed after `curate init`, as settings of a pipeline, and as the command that says more."""

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
"""The keys that lead to a setting, and its value."""
_COLUMN, _SET = "--column", "--set"
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_LONGEST = 80
"""Letters of a name, as in `Head`."""


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
    """Names of judges, separated by commas; None proposes those that can be asked."""
    file: Path | None = None
    columns: tuple[str, ...] = ()
    """TABLE.FIELD=NAME."""
    assign: tuple[str, ...] = ()
    """section.key=value, as `curate run --set` has it."""

    @property
    def called(self) -> str:
        """Return the name of the benchmark: as typed, else that of the folder of the data."""
        return self.name or _name(self.source or self.queries or "")

    @property
    def path(self) -> Path:
        """Return the place of the pipeline file."""
        return self.file or Path(f"{self.called}.yaml")

    def also(self, options: Sequence[tuple[str, str]]) -> "InitRequest":
        """Return the request with each `--column X` or `--set X` as well; what was said of the same place gives way."""
        columns, assign = list(self.columns), list(self.assign)
        for option, value in options:
            place = value.partition("=")[0]
            table, _, field = place.partition(".")
            same = {place} if option == _SET else {f"ingest.columns.{place}", f"ingest.{table}.columns.{field}"}
            assign = [each for each in assign if each.partition("=")[0].strip() not in same]
            if option == _COLUMN:
                columns = [column for column in columns if column.partition("=")[0].strip() != place]
            (columns if option == _COLUMN else assign).append(value)
        return replace(self, columns=tuple(columns), assign=tuple(assign))

    def command(self, *more: str) -> str:
        """Return the command line of the request, with more words behind it, quoted for a shell."""
        words = ["curate", "init", *([self.source] if self.source else [])]
        for option in ("queries", "corpus", "qrels", "name", "language", "models", "file"):
            value = getattr(self, option)
            words += [f"--{option}", str(value)] if value is not None else []
        for option, values in ((_COLUMN, self.columns), (_SET, self.assign)):
            words += [word for each in values for word in (option, each)]
        return " ".join(quoted(word) for word in (*words, *more))

    @cached_property
    def assignments(self) -> Sequence[Assignment]:
        """Return what `--set` assigns, in order; ConfigError for what is no assignment."""
        found: list[Assignment] = []
        for each in self.assign:
            value: Json = override({}, [each])
            keys = tuple(each.partition("=")[0].strip().split("."))
            for key in keys:
                assert isinstance(value, Mapping)
                value = value[key]
            found.append((keys, value))
        return found

    @cached_property
    def settings(self) -> Settings:
        """Return what all options say, as settings of a pipeline; ConfigError for a column of no table or field."""
        settings: Settings = {}
        for key, value in (("source", self.source), *((table, _paths(getattr(self, table))) for table in TABLES)):
            if value is not None:
                put(settings, ["ingest", key], value)
        for column in self.columns:
            table, field, name = _column(column)
            put(settings, ["ingest", "columns", table, field], name)
        for keys, value in self.assignments:
            put(settings, keys, value)
        return settings

    def said(self, *keys: str) -> Json:
        """Return what an option says of a setting; None if it says nothing."""
        value: Json = self.settings
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def quoted(word: str) -> str:
    """Return a word as a shell takes it; letters of any script need no quotes."""
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _paths(path: str | None) -> Json:
    return None if path is None else {"path": [path]}


def _column(text: str) -> tuple[Table, str, str]:
    """Return table, field and column of TABLE.FIELD=NAME; ConfigError names the nearest known table or field."""
    place, _, name = text.partition("=")
    table, _, field = place.strip().partition(".")
    known = [f"{each}.{below}" for each in TABLES for below in NAMES[each]]
    if f"{table}.{field}" not in known or not name:
        raise ConfigError(f"{_COLUMN} {text!r}: expected TABLE.FIELD=NAME; {suggestion(place.strip(), known)}")
    return next(each for each in TABLES if each == table), field, name


def _name(place: str) -> str:
    """Return a name for a run from the name of a folder or a file."""
    path = Path(place).expanduser()
    stem = (path.parent if path.suffix and not path.is_dir() else path).resolve().name
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)
    return plain.lstrip(".")[:_LONGEST] or "benchmark"
