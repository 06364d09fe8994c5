"""Commented pipeline file, and estimate of a panel's cost from pool sizes and the texts of the first rows."""

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
from curate.commands.init.request import InitOptions, quoted
from curate.core.config import Json, Settings, check, parse_yaml
from curate.core.errors import ConfigError
from curate.llm.budget import CostEstimate, together
from curate.llm.exchange_rates import Rates
from curate.llm.providers.presets import rates
from curate.pipeline.configs import JudgeConfig, PoolConfig
from curate.pipeline.pipeline import Head, Pipeline
from curate.pipeline.pipeline_edit import assigned, flow
from curate.pipeline.stage import Context
from curate.system.resources import template
from curate.tables.readers import Table
from curate.tables.readers.settings import OTHER


@dataclass(frozen=True)
class PlanPrice:
    """Estimated calls and cost of a panel for a number of queries."""

    queries: int
    judges: Sequence[JudgeForecast]
    total: CostEstimate | None
    """Sum over judges, with cost None if a price or exchange rate is unknown; None without a language model."""
    least: float | None = None
    """Total cost if a cascade skips as many calls as possible; None if unknown."""


def plan_price(pipeline: Pipeline, texts: SampleTexts, queries: int, documents: int) -> PlanPrice:
    """Return the estimated calls and cost of a pipeline's language models for the pools of `queries` queries."""
    pool, judging = pipeline.sections["pool"], pipeline.sections["judge"]
    assert isinstance(pool, PoolConfig)
    assert isinstance(judging, JudgeConfig)
    head = pipeline.head
    definitions = {"encoders": head.encoders, "retrievers": head.retrievers, "judges": head.judges}
    context = Context(
        Path(), Path(), Path(), language=head.language, definitions=cast("dict[str, dict[str, Settings]]", definitions)
    )
    forecasts = forecast(judging, context, texts, PoolSize.most(pool, queries, documents))
    if not forecasts:
        return PlanPrice(queries, [], None)
    exchange_rates = Rates(head.rates).over(rates())
    total = exchange_rates.total([(judge.estimate.cost, judge.estimate.currency) for judge in forecasts], head.currency)
    least = exchange_rates.total([(judge.cost_least, judge.estimate.currency) for judge in forecasts], head.currency)
    return PlanPrice(queries, forecasts, together([judge.estimate for judge in forecasts], total), least.amount)


# Commented pipeline file from a template, checked before it is written.

TRIAL = 50
"""Number of queries of a trial, which is proposed if there are more than twice as many."""
DEPTH = 100
"""Number of documents per retriever and query, and pool size; the paper used 500."""
_SHOWN_COLUMNS = 5
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class PipelineDraft:
    """A pipeline file before it is written, with judges and costs."""

    request: InitOptions
    text: str
    pipeline: Pipeline
    judges: Sequence[FoundJudge]
    """Proposed language models; empty if the user named the panel or no model is available."""
    named: bool
    """Whether the user named the panel."""
    keyless: Sequence[FoundJudge]
    """Models of ./models.yaml whose API keys are not set."""
    trial: PlanPrice | None
    """Cost of the trial; None if all queries are used."""
    whole: PlanPrice
    """Cost of all queries."""

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self.request.path

    @property
    def ingest(self) -> IngestConfig:
        """Return the section `ingest`."""
        section = self.pipeline.sections["ingest"]
        assert isinstance(section, IngestConfig)
        return section

    @property
    def pool(self) -> PoolConfig:
        """Return the section `pool`."""
        section = self.pipeline.sections["pool"]
        assert isinstance(section, PoolConfig)
        return section

    @property
    def models(self) -> Sequence[str]:
        """Return the names of the judges."""
        section = self.pipeline.sections["judge"]
        assert isinstance(section, JudgeConfig)
        return section.models


def need_free(request: InitOptions) -> None:
    """Raise ConfigError if the name is invalid, the pipeline file exists, or its folder does not."""
    check(Head, {"version": 1, "name": request.benchmark_name, "language": request.language or OTHER}, "init")
    path = request.path
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path}: is there already; give another name with --file, or delete it")
    if not path.parent.is_dir():
        raise ConfigError(f"{path.parent}: no such folder; make it, or give another place with --file")


def draft(user_data: DataSources) -> PipelineDraft:
    """Return a checked, commented pipeline file for the data, with cost estimates.

    ConfigError for an invalid name, language, setting or model. If the user named no models, the panel consists of up
    to `PANEL` available ones, else of the offline heuristics.
    """
    request = user_data.request
    given_models = list(request.models) or request.setting_at("judge", "models")
    proposed = [] if given_models else panel(askable(os.environ))
    models = [*map(str, given_models)] if isinstance(given_models, list) else [judge.name for judge in proposed]
    text = _text(user_data, models)
    pipeline = Pipeline.check(parse_yaml(text), "init")
    queries = user_data.tables["queries"].rows - user_data.tables["queries"].empty
    documents = user_data.documents - (0 if user_data.input.passages else user_data.tables["corpus"].empty)
    section = pipeline.sections["ingest"]
    assert isinstance(section, IngestConfig)
    sample = min(section.sample or queries, queries)
    full_price = plan_price(pipeline, user_data.samples, queries, documents)
    trial_price = plan_price(pipeline, user_data.samples, sample, documents) if sample < queries else None
    return PipelineDraft(
        request, text, pipeline, proposed, bool(given_models), keyless(os.environ), trial_price, full_price
    )


def write(draft: PipelineDraft) -> None:
    """Write the file; ConfigError if it exists, even if it was created in the meantime."""
    need_free(draft.request)
    try:
        with draft.path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(draft.text)
    except FileExistsError:
        need_free(draft.request)
        raise


def _text(user_data: DataSources, models: Sequence[str]) -> str:
    """Return the text of the pipeline file: the filled template with the `--set` options applied."""
    text = _rendered(**_template_values(user_data, models, user_data.tables["queries"].rows))
    for keys, setting in user_data.request.parsed_settings:
        if keys[:2] != ("ingest", "columns"):  # which stand there by the guess
            text = assigned(text, keys, setting)
    return text


def _template_values(user_data: DataSources, models: Sequence[str], queries: int) -> dict[str, object]:
    request, documents = user_data.request, user_data.documents
    return {
        "path": quoted(str(request.path)),
        "name": request.benchmark_name,
        "language": request.language or user_data.spoken.language,
        "source": user_data.input.source,
        "pairs": user_data.pairs and request.setting_at("ingest", "pairs") is None,
        "tables": [_table_values(user_data, table) for table in user_data.tables],
        "queries": queries,
        "html": sum(table.html for table in user_data.tables.values())
        if user_data.request.setting_at("ingest", "html") is None
        else 0,
        "documents": documents,
        "sample": TRIAL if queries > 2 * TRIAL else None,
        "depth": max(min(DEPTH, documents), 1),
        "models": models,
        "rubric": newest_rubric(request.language or user_data.spoken.language),
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
    """Return a name as a YAML list entry, quoted only if YAML would parse it differently."""
    return name if _PLAIN.fullmatch(name) and parse_yaml(name) == name else flow(name)


def _comment(text: str) -> str:
    """Return a text for a YAML comment: on one line, without unprintable characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _table_values(user_data: DataSources, table: Table) -> Mapping[str, Json]:
    section, guessed = getattr(user_data.input, table), user_data.tables[table].guess
    assert guessed is not None
    paths = section.path if section else []
    return {
        "name": table,
        "path": paths[0] if len(paths) == 1 else paths or None,
        "columns": dict(guessed.columns),
        "usual": [f"{field} is {column}" for field, column in guessed.usual.items()],
        "others": list(guessed.others[:_SHOWN_COLUMNS]) if table != "qrels" else [],
    }
