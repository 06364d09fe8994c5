"""Options of `curate init`, as pipeline settings and as a command line."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from curate.core.config import Json, Settings, override, put
from curate.core.errors import ConfigError, suggestion
from curate.runs.command import Assignments, Command, Names, argument, option
from curate.tables.readers import TABLES, Table
from curate.tables.readers.items import NAMES

Assignment = tuple[tuple[str, ...], Json]
"""Path of keys of a setting, and its value."""
_COLUMN, _SET = "--column", "--set"
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_LONGEST = 80
"""Maximum number of characters of a benchmark's name, as in `Head`."""


class InitOptions(Command):
    """The options of `curate init`, and what follows from them."""

    words = "init"
    examples = ("init my-data --name my-benchmark", "init --queries questions.csv --corpus answers.jsonl")

    asks = True
    speaks_json = False

    source: str | None = argument("A folder with queries, corpus and perhaps qrels, or an mteb task's name.", None)
    queries: str | None = option("File of the queries.", None, metavar="FILE")
    corpus: str | None = option("File of the documents.", None, metavar="FILE")
    qrels: str | None = option("File of known relevant pairs, if there is one.", None, metavar="FILE")
    column: tuple[str, ...] = option(
        "Column of a field, such as corpus.id=doc_no; '<line>' takes line numbers for ids; may be repeated.",
        (),
        metavar="TABLE.FIELD=NAME",
    )
    name: str | None = option("Name of the benchmark and of its run folder.", None, metavar="NAME")
    language: str | None = option("Language of the texts, such as zh; default: detected.", None, metavar="zh|en|...")
    models: Names = option(
        "Judges, separated by commas; default: those of models.yaml, and those with a key.",
        (),
        complete="judges",
        metavar="NAMES",
    )
    file: Path | None = option("Pipeline file to write; default: NAME.yaml.", None, metavar="FILE")
    settings: Assignments = option(
        "Write a setting into the file; may be repeated.",
        (),
        flag="--set",
        complete="settings",
        metavar="SECTION.KEY=VALUE",
    )

    @property
    def benchmark_name(self) -> str:
        """Return the benchmark's name: the given one, else one made from the folder or file of the data."""
        if self.name:
            return self.name
        path = Path(self.source or self.queries or "").expanduser()
        stem = (path.parent if path.suffix and not path.is_dir() else path).resolve().name
        hyphenated = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)
        return hyphenated.lstrip(".")[:_LONGEST] or "benchmark"

    @property
    def path(self) -> Path:
        """Return the path of the pipeline file."""
        return self.file or Path(f"{self.benchmark_name}.yaml")

    def with_options(self, **options: object) -> Self:
        """Return the command with other options."""
        return self.model_copy(update=options)

    def with_assignments(self, options: Sequence[tuple[str, str]]) -> Self:
        """Return the command with added `--column` or `--set` options; they replace earlier ones of the same target."""
        columns, assign = list(self.column), list(self.settings)
        for flag, assigned in options:
            target = assigned.partition("=")[0]
            table, _, field = target.partition(".")
            same = {target} if flag == _SET else {f"ingest.columns.{target}", f"ingest.{table}.columns.{field}"}
            assign = [assignment for assignment in assign if assignment.partition("=")[0].strip() not in same]
            if flag == _COLUMN:
                columns = [column for column in columns if column.partition("=")[0].strip() != target]
            (columns if flag == _COLUMN else assign).append(assigned)
        return self.with_options(column=tuple(columns), settings=tuple(assign))

    def command(self, *extra: str) -> str:
        """Return the command line with `extra` words appended, quoted for a shell."""
        words = ["curate", "init", *([self.source] if self.source else [])]
        for name in ("queries", "corpus", "qrels", "name", "language", "models", "file"):
            chosen = ",".join(self.models) or None if name == "models" else getattr(self, name)
            words += [f"--{name}", str(chosen)] if chosen is not None else []
        for flag, assignments in ((_COLUMN, self.column), (_SET, self.settings)):
            words += [word for assignment in assignments for word in (flag, assignment)]
        return " ".join(quoted(word) for word in (*words, *extra))

    @property
    def parsed_settings(self) -> Sequence[Assignment]:
        """Return the parsed `--set` options, in order; ConfigError for an invalid one."""
        assignments: list[Assignment] = []
        for assignment in self.settings:
            setting: Json = override({}, [assignment])
            keys = tuple(assignment.partition("=")[0].strip().split("."))
            for key in keys:
                assert isinstance(setting, Mapping)
                setting = setting[key]
            assignments.append((keys, setting))
        return assignments

    @property
    def pipeline_settings(self) -> Settings:
        """Return all options as pipeline settings; ConfigError for a column of an unknown table or field."""
        settings: Settings = {}
        if self.source is not None:
            put(settings, ["ingest", "source"], self.source)
        for table in TABLES:
            if (path := getattr(self, table)) is not None:
                put(settings, ["ingest", table], {"path": [path]})
        for column in self.column:
            table, field, name = _parsed_column(column)
            put(settings, ["ingest", "columns", table, field], name)
        for keys, setting in self.parsed_settings:
            put(settings, keys, setting)
        return settings

    def setting_at(self, *keys: str) -> Json:
        """Return a setting given by the options; None if it is not set."""
        setting: Json = self.pipeline_settings
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
