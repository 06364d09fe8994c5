"""Price of a panel before anything is retrieved: from the size of pools and the texts of the first rows."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from curate.ask.forecast import JudgeForecast, PoolSize, SampleTexts, forecast
from curate.ask.language_guard import newest_rubric
from curate.commands.ingest import Config as IngestConfig
from curate.commands.init.judges import FoundJudge, askable, keyless, panel, variables
from curate.commands.init.looking import DataSources
from curate.commands.init.request import InitRequest, quoted
from curate.core.config import Json, Settings, check, parse_yaml
from curate.core.errors import ConfigError
from curate.llm.budget import CostEstimate, together
from curate.llm.exchange_rates import Rates
from curate.llm.providers.presets import rates
from curate.pipeline.configs import PoolConfig
from curate.pipeline.edit import assigned, flow
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.pipeline import Head, Pipeline
from curate.pipeline.stage import Context
from curate.system.resources import template
from curate.tables.readers import Table
from curate.tables.readers.settings import OTHER


@dataclass(frozen=True)
class PlanPrice:
    """What a panel would be asked for so many queries, and what that costs, by estimate."""

    queries: int
    judges: Sequence[JudgeForecast]
    total: CostEstimate | None
    """Of all judges; its cost is None where a price or a rate is unknown. None without a language model."""
    least: float | None = None
    """What the total comes to if a cascade spares all that it may; None where the total is unknown."""


def plan_price(pipeline: Pipeline, texts: SampleTexts, queries: int, documents: int) -> PlanPrice:
    """Return what the language models of a pipeline would be asked for the pools of so many queries."""
    pool, judging = pipeline.sections["pool"], pipeline.sections["judge"]
    assert isinstance(pool, PoolConfig)
    assert isinstance(judging, JudgeConfig)
    head = pipeline.head
    definitions = {"encoders": head.encoders, "retrievers": head.retrievers, "judges": head.judges}
    context = Context(
        Path(), Path(), Path(), language=head.language, definitions=cast("dict[str, dict[str, Settings]]", definitions)
    )
    found = forecast(judging, context, texts, PoolSize.most(pool, queries, documents))
    if not found:
        return PlanPrice(queries, [], None)
    known = Rates(head.rates).over(rates())
    total = known.total([(each.estimate.cost, each.estimate.currency) for each in found], head.currency)
    least = known.total([(each.cost_least, each.estimate.currency) for each in found], head.currency)
    return PlanPrice(queries, found, together([each.estimate for each in found], total), least.amount)


# A commented pipeline file, written from what was found, checked before it is there.

TRIAL = 50
"""Queries of a first trial, where there are more than twice as many."""
DEPTH = 100
"""Documents that every retriever gives a query, and size of a pool; the paper used 500."""
_SHOWN_COLUMNS = 5
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class PipelineDraft:
    """A pipeline file that is not written yet, and what to expect of it."""

    request: InitRequest
    text: str
    pipeline: Pipeline
    judges: Sequence[FoundJudge]
    """Language models that were proposed; empty where the user named the panel, or none can be asked."""
    named: bool
    """Whether the user named the panel."""
    keyless: Sequence[FoundJudge]
    """Models of ./models.yaml whose keys are not set."""
    trial: PlanPrice | None
    """For the sample; None where all queries are taken."""
    whole: PlanPrice
    """For all queries."""

    @property
    def path(self) -> Path:
        """Return where it is to be written."""
        return self.request.path

    @property
    def ingest(self) -> IngestConfig:
        """Return what is read."""
        section = self.pipeline.sections["ingest"]
        assert isinstance(section, IngestConfig)
        return section

    @property
    def pool(self) -> PoolConfig:
        """Return how deep pools are."""
        section = self.pipeline.sections["pool"]
        assert isinstance(section, PoolConfig)
        return section

    @property
    def models(self) -> Sequence[str]:
        """Return the names of the judges."""
        section = self.pipeline.sections["judge"]
        assert isinstance(section, JudgeConfig)
        return section.models


def need_free(request: InitRequest) -> None:
    """Raise ConfigError if the pipeline file is there already, or its folder is not, or its name cannot be one."""
    check(Head, {"version": 1, "name": request.called, "language": request.language or OTHER}, "init")
    path = request.path
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path}: is there already; give another name with --file, or delete it")
    if not path.parent.is_dir():
        raise ConfigError(f"{path.parent}: no such folder; make it, or give another place with --file")


def draft(found: DataSources) -> PipelineDraft:
    """Return a commented pipeline file for the data, and what it will lead to.

    ConfigError if the name, the language, a setting or a model is none. Without names of models the panel is up to
    three that can be asked, else the offline heuristics.
    """
    request = found.request
    named = request.models.split(",") if request.models else request.said("judge", "models")
    proposed = [] if named else panel(askable(os.environ))
    models = [*map(str, named)] if isinstance(named, list) else [each.name for each in proposed]
    text = _text(found, models)
    pipeline = Pipeline.check(parse_yaml(text), "init")
    queries, documents = (found.tables[table].rows - found.tables[table].empty for table in ("queries", "corpus"))
    section = pipeline.sections["ingest"]
    assert isinstance(section, IngestConfig)
    sample = min(section.sample or queries, queries)
    whole = plan_price(pipeline, found.samples, queries, documents)
    trial = plan_price(pipeline, found.samples, sample, documents) if sample < queries else None
    return PipelineDraft(request, text, pipeline, proposed, bool(named), keyless(os.environ), trial, whole)


def write(made: PipelineDraft) -> None:
    """Write the file; ConfigError if one is there, or came to be there meanwhile."""
    need_free(made.request)
    try:
        with made.path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(made.text)
    except FileExistsError:
        need_free(made.request)
        raise


def _text(found: DataSources, models: Sequence[str]) -> str:
    """Return the text of the file: the template's, with what `--set` says."""
    text = _rendered(**_values(found, models, found.tables["queries"].rows))
    for keys, value in found.request.assignments:
        if keys[:2] != ("ingest", "columns"):  # which stand there by the guess
            text = assigned(text, keys, value)
    return text


def _values(found: DataSources, models: Sequence[str], queries: int) -> dict[str, object]:
    request, documents = found.request, found.tables["corpus"].rows
    return {
        "path": quoted(str(request.path)),
        "name": request.called,
        "language": request.language or found.spoken.language,
        "source": found.input.source,
        "pairs": found.pairs and request.said("ingest", "pairs") is None,
        "tables": [_table(found, table) for table in found.tables],
        "queries": queries,
        "html": sum(table.html for table in found.tables.values())
        if found.request.said("ingest", "html") is None
        else 0,
        "documents": documents,
        "sample": TRIAL if queries > 2 * TRIAL else None,
        "depth": max(min(DEPTH, documents), 1),
        "models": models,
        "rubric": newest_rubric(request.language or found.spoken.language),
        "keys": variables(),
    }


def _rendered(**values: object) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - YAML, not HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["quoted"] = flow
    environment.filters["names"] = lambda names: f"[{', '.join(map(_word, names))}]"
    environment.filters["listed"] = lambda names: _comment(", ".join(names))
    return environment.from_string(template("commands/init/pipeline.yaml.j2")).render(**values)


def _word(name: str) -> str:
    """Return a name as an item of a list, without quotes where YAML reads it as it is typed."""
    return name if _PLAIN.fullmatch(name) and parse_yaml(name) == name else flow(name)


def _comment(text: str) -> str:
    """Return a text as it may stand in a comment: on one line, without signs that YAML refuses."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _table(found: DataSources, table: Table) -> Mapping[str, Json]:
    section, guessed = getattr(found.input, table), found.tables[table].guess
    assert guessed is not None
    paths = section.path if section else []
    return {
        "name": table,
        "path": paths[0] if len(paths) == 1 else paths or None,
        "columns": dict(guessed.columns),
        "usual": [f"{field} is {column}" for field, column in guessed.usual.items()],
        "others": list(guessed.others[:_SHOWN_COLUMNS]) if table != "qrels" else [],
    }
