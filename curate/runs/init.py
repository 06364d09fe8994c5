"""Generation of a first pipeline file from a user's data: files, columns, judges, and what they cost."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from curate.core.config import Json, Settings, check, parse_yaml
from curate.core.errors import ConfigError
from curate.formats.readers import TABLES, Problem, Table
from curate.formats.readers.guess import Guess, guess
from curate.formats.readers.language import language
from curate.formats.readers.layout import find
from curate.formats.readers.settings import Input, sources
from curate.llm.budget import CostEstimate, plan
from curate.llm.providers.presets import presets
from curate.panel.judges.llm import LlmJudge
from curate.runs.pipeline import Pipeline
from curate.stages.asking import build, seating
from curate.stages.context import Context
from curate.stages.judge.config import Config as JudgeConfig
from curate.system.files import write_text
from curate.system.resources import DEMOS, template

PANEL = 3
TRIAL = 50
"""Queries of a first trial, where there are more than twice as many."""
DEPTH = 500
"""Documents that every retriever gives a query, and size of a pool, as in the paper."""


@dataclass(frozen=True)
class DataSources:
    """What lies where a user pointed."""

    input: Input
    guesses: Mapping[Table, Guess]
    counts: Mapping[Table, int]
    """Rows that can be read."""
    problems: Sequence[str]
    """What is wrong with the first row of every table that cannot be read: `curate run` stops at it."""

    @property
    def language(self) -> str:
        """Return the language of the texts that were looked at."""
        return language(text for each in self.guesses.values() for text in each.texts)


@dataclass(frozen=True)
class Started:
    """The file that was written, and what to expect."""

    path: Path
    language: str
    counts: Mapping[Table, int]
    models: Sequence[str]
    quote: Sequence[tuple[str, CostEstimate]]
    """What each language model would be asked, at most, for all pairs of the pools."""


def look(source: str | None, queries: str | None, corpus: str | None, qrels: str | None) -> DataSources:
    """Look at the data and return what it is.

    ConfigError or DataError, saying what to give, if something is missing or no column can hold what is needed.
    """
    files = {"queries": queries, "corpus": corpus, "qrels": qrels}
    _there(source, [table for table in ("queries", "corpus") if not files[table]])
    settings: Settings = {name: {"path": [path]} for name, path in files.items() if path}
    config = check(Input, settings | ({"source": source} if source else {}), "ingest")
    found = sources(config)
    tables: list[Table] = [table for table in TABLES if found.tables[table]]
    guesses = {table: guess(found.tables[table][0], table) for table in tables}
    counts: dict[Table, int] = dict.fromkeys(tables, 0)
    problems: dict[Table, str] = {}
    for table in tables:
        for each in found.tables[table]:
            for row in each.rows():
                if isinstance(row, Problem):
                    problems.setdefault(table, row.sentence(each.place))
                else:
                    counts[table] += 1
    return DataSources(config, guesses, counts, list(problems.values()))


def _there(source: str | None, needed: Sequence[Table]) -> None:
    """Raise ConfigError if a folder lacks what it is to hold, or is a file, saying what to type instead."""
    place = None if source in {None, *DEMOS} else Path(str(source)).expanduser()
    how = "for two files: curate init --queries FILE --corpus FILE"
    if place is None or not place.exists():
        return
    if not place.is_dir():
        raise ConfigError(f"{place}: found a file, expected a folder; {how}")
    parts = find(place, None)
    absent = [table for table in needed if not parts.of(table)]
    if absent:
        names = sorted(path.name for path in place.iterdir() if not path.name.startswith("."))
        held = ", ".join([*names[:8], *(["..."] if len(names) > 8 else [])]) or "nothing"
        raise ConfigError(
            f"{place}: found {held}, expected {' and '.join(f'{table}.jsonl' for table in absent)} (or .csv, .tsv, "
            f".parquet), or a README.md with `configs:`; {how}"
        )


def start(found: DataSources, path: Path, name: str, language: str | None, models: Sequence[str] | None) -> Started:
    """Write a commented pipeline file and return what it will lead to.

    ConfigError, and nothing is written, if the file is there already, or the name, the language or a model is none.

    Without `models` the panel is up to three language models whose keys are in the environment, of different families
    first, else the offline heuristics.
    """
    if path.exists():
        raise ConfigError(f"{path}: is there already; give another name with --file, or delete it")
    chosen = list(models) if models is not None else panel(os.environ)
    language = language or found.language
    queries, depth = found.counts["queries"], min(DEPTH, found.counts["corpus"])
    sample = TRIAL if queries > 2 * TRIAL else None
    text = _rendered(
        path=shlex.quote(str(path)),
        name=name,
        language=language,
        source=found.input.source,
        tables=[_table(found, table) for table in found.guesses],
        queries=queries,
        documents=found.counts["corpus"],
        sample=sample,
        depth=depth,
        models=chosen,
        keys=sorted({str(each["key_env"]) for each in presets().values() if "key_env" in each})[:3],
    )
    Pipeline.check(cast("Settings", parse_yaml(text)), "init")  # a name or a language may be none
    if not path.parent.is_dir():
        raise ConfigError(f"{path.parent}: no such folder; make it, or give another place with --file")
    quotes = [(model, _quote(model, found, (sample or queries) * depth, language)) for model in chosen]
    write_text(path, text)
    return Started(path, language, found.counts, chosen, [(model, each) for model, each in quotes if each is not None])


def _rendered(**values: object) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - YAML, not HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.filters["listed"] = lambda names: " ".join(", ".join(names).split())  # a comment has one line
    return environment.from_string(template("runs/pipeline.yaml.j2")).render(**values)


def panel(environment: Mapping[str, str]) -> list[str]:
    """Return up to three presets whose keys are there, one of each vendor first, in the order of the table."""
    there = {name: each for name, each in presets().items() if environment.get(str(each.get("key_env") or "?"))}
    firsts = {str(each["key_env"]): name for name, each in reversed(there.items())}
    ordered = [name for name in there if name in firsts.values()]
    return [*ordered, *(name for name in there if name not in ordered)][:PANEL]


def _table(found: DataSources, table: Table) -> dict[str, Json]:
    section, guessed = getattr(found.input, table), found.guesses[table]
    return {
        "name": table,
        "path": section.path[0] if section else None,
        "columns": dict(guessed.columns),
        "usual": [f"{field} is {column}" for field, column in guessed.usual.items()],
        "others": list(guessed.others[:5]) if table != "qrels" else [],
    }


def _quote(model: str, found: DataSources, pairs: int, language: str) -> CostEstimate | None:
    """Return what asking a model for so many pairs would use, by one prompt of typical texts; None for a heuristic."""
    context = Context(run=Path(), out=Path(), home=Path(), language=language)
    settings = JudgeConfig()
    made, config = build.judge(context, model, seating.load_rubric(settings, context))
    if config is None:
        return None
    assert isinstance(made, LlmJudge)
    texts, asked = found.guesses["corpus"].texts, found.guesses["queries"].texts
    requests = [
        made.build(query, texts[start : start + settings.batch])
        for query, start in zip(asked, range(0, len(texts), settings.batch), strict=False)
    ]
    return _times(plan(requests, config.price), pairs / settings.batch / len(requests))


def _times(found: CostEstimate, factor: float) -> CostEstimate:
    calls, prompt, output = (round(each * factor) for each in (found.calls, found.prompt_tokens, found.output_tokens))
    return CostEstimate(calls, prompt, output, None if found.cost is None else found.cost * factor, found.currency)
