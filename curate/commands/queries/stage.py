"""Synthetic queries for a corpus with few or no real ones: draw documents, write, filter, select by length."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from curate.ask import billing
from curate.ask.billing import PlanRow
from curate.ask.panel import ASKED, AskedModel, Panel, asked_facts, refuse_one_family
from curate.commands.queries import Config
from curate.commands.queries import task as prompts
from curate.commands.queries.task import (
    GOOD,
    DrawnTexts,
    LengthClasses,
    QueryRules,
    QueryWriter,
    WrittenQuery,
    draw,
    longest_run,
    query_id,
)
from curate.core import synthetic
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.llm.recorded_votes import NONE
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval.similarity.leaks import form
from curate.system.files import frame, write_json, write_table, write_text

PURPOSE = "queries"
KEPT, BEYOND = "kept", "beyond the number of queries wanted"
UNASKED = "a filter gave no answer"


@dataclass(frozen=True)
class FilteredQuery:
    """A written query, the votes of the filters, and its outcome."""

    query: WrittenQuery
    votes: Mapping[str, str]
    outcome: str
    """`kept`, or the reason for its exclusion."""

    @property
    def query_id(self) -> str:
        """Return its id."""
        return query_id(self.query.document.doc_id, self.query.text)


@dataclass(frozen=True)
class QueriesResult:
    """Result of writing and filtering."""

    drawn: DrawnTexts
    writer: QueryWriter
    queries: Sequence[FilteredQuery]
    """All written queries, in the order of their documents."""
    failed: int
    """Questions that got no reply: the stage is not finished."""

    @property
    def kept(self) -> list[FilteredQuery]:
        """Return the retained queries."""
        return [query for query in self.queries if query.outcome == KEPT]


def models(config: Config, context: Context) -> list[AskedModel]:
    """Return the generator, then the filter panel."""
    panel = [AskedModel.named(context, name, "queries.panel", PURPOSE) for name in config.panel]
    return [AskedModel.named(context, config.generator or "", "queries.generator", PURPOSE), *panel]


def make(config: Config, context: Context, drawn: DrawnTexts, panel: Panel) -> QueriesResult:
    """Write and filter; a dry panel only plans the requests."""
    writer = QueryWriter(QueryRules.of(config, context, {form(text) for text in drawn.real.values()}))
    writer.write(drawn.documents, prompts.writing(context), panel, config.again)
    written = {
        document.doc_id: writer.written[document.doc_id]
        for document in drawn.documents
        if document.doc_id in writer.written
    }
    texts = {name: (query.text, query.document.text) for name, query in written.items()}
    votes = panel.vote(prompts.filtering(context), texts, "is it a good query?")
    failed = sum(answer == "failed" for query_votes in votes.values() for answer in query_votes.values())
    outcomes = {name: fate(votes.get(name, {})) for name in written}
    chosen = matched(
        {name: len(query.text) for name, query in written.items() if outcomes[name] == KEPT}, drawn, config
    )
    queries = [
        FilteredQuery(
            query, votes.get(name, {}), BEYOND if outcomes[name] == KEPT and name not in chosen else outcomes[name]
        )
        for name, query in written.items()
    ]
    return QueriesResult(drawn, writer, queries, writer.failed + failed)


def fate(votes: Mapping[str, str]) -> str:
    """Return `kept` if all filters accept, else the reason: a missing answer, or the alphabetically first objection."""
    if not votes or any(vote in NONE for vote in votes.values()):
        return UNASKED
    objections = sorted(set(votes.values()) - {GOOD})
    return f"a filter says: {objections[0]}" if objections else KEPT


def matched(lengths: Mapping[str, int], drawn: DrawnTexts, config: Config) -> set[str]:
    """Return the ids of the selected queries: each length class up to its share among real queries, then any, in order.

    Without real queries, the first ones.
    """
    if not drawn.real:
        return set(list(lengths)[: config.wanted])
    classes = LengthClasses([len(text) for text in drawn.real.values()], config.deciles)
    size = min(config.wanted, len(lengths))
    room = Counter(
        {length_class: round(share * size) for length_class, share in enumerate(classes.shares(classes.real))},
    )
    chosen: list[str] = []
    for name, length in lengths.items():
        if room[classes.of(length)] > 0:
            room[classes.of(length)] -= 1
            chosen.append(name)
    others = [name for name in lengths if name not in set(chosen)]
    return set([*chosen, *others][:size])


# Output: tables, the file for `ingest`, and similarity to real queries.

DIGITS = 4
QUESTIONS = ("?", "？", "吗", "呢")
"""Endings of a question."""


def mark(writer: AskedModel) -> str:
    """Return the mark of the writer's queries in the column `source`."""
    return synthetic.marked(writer.settings.model, writer.settings.family)


def table(result: QueriesResult, writer: AskedModel) -> pl.DataFrame:
    """Return the table `synthetic`: every written query, with its votes and outcome."""
    rows = (
        {
            "query_id": query.query_id,
            "text": query.query.text,
            "source": mark(writer),
            "doc_id": query.query.document.doc_id,
            "asked_length": query.query.document.length,
            "copied": round(longest_run(query.query.text, query.query.document.text), DIGITS),
            "attempt": query.query.attempt,
            "outcome": query.outcome,
            "answers": [{"judge": name, "answer": answer} for name, answer in sorted(query.votes.items())],
        }
        for query in result.queries
    )
    return frame("synthetic", rows).sort("query_id")


def dropped(result: QueriesResult) -> pl.DataFrame:
    """Return the table `dropped`: every drawn document without a retained query, with the reason."""
    rows = [
        {"table": "corpus", "id": doc_id, "stage": "queries", "reason": reason}
        for doc_id, reason in reasons(result).items()
    ]
    return frame("dropped", rows).sort("table", "id")


def reasons(result: QueriesResult) -> dict[str, str]:
    """Return document -> reason why it has no retained query."""
    lost = dict(result.writer.lost)
    return lost | {query.query.document.doc_id: query.outcome for query in result.queries if query not in result.kept}


def lines(
    result: QueriesResult, asked_models: Sequence[AskedModel], prompts: Mapping[str, Json]
) -> Iterator[dict[str, Json]]:
    """Yield the rows of queries.jsonl, sorted by id: the columns of `ingest`, and the origin in `metadata`."""
    writer, *panel = asked_models
    filters: Json = {judge.name: judge.settings.model for judge in panel}
    for retained in sorted(result.kept, key=lambda query: query.query_id):
        yield {
            "_id": retained.query_id,
            "text": retained.query.text,
            "source": mark(writer),
            "metadata": {
                "doc_id": retained.query.document.doc_id,
                "writer": writer.settings.model,
                "family": writer.family,
                "filters": filters,
                "prompts": dict(prompts),
                "attempt": retained.query.attempt,
            },
        }


def facts(result: QueriesResult, asked_models: Sequence[AskedModel], config: Config) -> dict[str, Json]:
    """Return the figures of the set."""
    retained, writer = result.kept, result.writer
    return {
        "planned": len(result.drawn.documents),
        "built": len(retained),
        "dropped": dict(sorted(Counter(reasons(result).values()).items())),
        "broken_rules": dict(sorted(writer.broken.items())),
        "documents": {"corpus": result.drawn.corpus, "too_short": result.drawn.too_short},
        "families": {model.name: model.family for model in asked_models},
        "filters": {
            model.name: dict(
                sorted(Counter(query.votes[model.name] for query in result.queries if query.votes).items())
            )
            for model in asked_models[1:]
        },
        "style": style(result.drawn, retained, config.deciles),
    }


def style(drawn: DrawnTexts, retained: Sequence[FilteredQuery], deciles: int) -> dict[str, Json]:
    """Compare the style of synthetic and real queries; figures without queries are None.

    `apart` is the total variation distance of lengths, in length classes: half the sum of the absolute differences of
    shares, 0 to 1. `copied` is the median of `longest_run`.
    """
    real, texts = list(drawn.real.values()), [query.query.text for query in retained]
    classes = LengthClasses([len(text) for text in real], deciles)
    sides = [classes.shares([len(text) for text in queries]) for queries in (real, texts)]
    both = bool(real and texts)
    runs = [longest_run(query.query.text, query.query.document.text) for query in retained]
    return {
        "real": _text_figures(real),
        "synthetic": _text_figures(texts),
        "classes": [
            {"from": start, "real": round(real_share, DIGITS), "synthetic": round(synthetic_share, DIGITS)}
            for start, real_share, synthetic_share in zip([0, *classes.bounds], *sides, strict=True)
        ]
        if both
        else [],
        "apart": round(
            sum(abs(real_share - synthetic_share) for real_share, synthetic_share in zip(*sides, strict=True)) / 2,
            DIGITS,
        )
        if both
        else None,
        "copied": round(median(runs), DIGITS) if runs else None,
    }


def _text_figures(texts: Sequence[str]) -> dict[str, Json]:
    """Return number, median length in characters, and share of questions."""
    n_questions = sum(text.rstrip().endswith(QUESTIONS) for text in texts)
    return {
        "queries": len(texts),
        "characters": float(median(map(len, texts))) if texts else None,
        "questions": round(n_questions / len(texts), DIGITS) if texts else None,
    }


FILE = "queries.jsonl"
APART = 0.2
"""Distance of lengths from real queries (`apart`) above which a note is written."""


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, write, filter, and write the tables."""
    drawn = _draw(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = _panel(config, context, ledger)
        result = panel.permitted("writing queries", lambda panel: make(config, context, drawn, panel))
        paid, model_names = panel.cost(), panel.named()
    _write(config, context, result)
    sources: dict[str, Json] = {"generator": config.generator, "panel": list(config.panel), "models": model_names}
    figures = facts(result, models(config, context), config)
    return Report(
        len(drawn.documents),
        len(result.kept),
        len(drawn.documents) - len(result.kept),
        cost=paid.amount,
        unfinished=f"{result.failed:,} questions failed; run `curate queries` again to retry" if result.failed else "",
        facts={**sources, "prompts": _digests(context), **figures, **billing.facts(paid)},
        notes=_notes(config, context, result),
        spent=panel.spent,
    )


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return rows for the requests that would be sent now; repeated requests after a broken rule are not included."""
    drawn = _draw(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return _panel(config, context, ledger).planned(lambda panel: make(config, context, drawn, panel))


def _panel(config: Config, context: Context, ledger: Ledger) -> Panel:
    generator, *filters = models(config, context)
    return Panel(ledger, context, filters, generator, mixed_models=config.mixed_models)


def _draw(config: Config, context: Context) -> DrawnTexts:
    drawn = draw(config, context, config.lengths or prompts.writing(context).lengths)
    if not drawn.documents:
        raise DataError(
            f"queries: found no document of {config.shortest} characters among {drawn.corpus:,}; lower "
            "queries.shortest, or check the corpus"
        )
    return drawn


def _write(config: Config, context: Context, result: QueriesResult) -> None:
    asked_models = models(config, context)
    write_table(context.out, "synthetic", table(result, asked_models[0]))
    write_table(context.out, "dropped", dropped(result))
    rows = lines(result, asked_models, _digests(context))
    write_text(context.out / FILE, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    write_json(context.out / ASKED, asked_facts({prompts.FILTER: (prompts.filtering(context), asked_models[1:])}))


def _digests(context: Context) -> dict[str, Json]:
    """Return name -> digest of the two prompts."""
    both_prompts = (prompts.writing(context), prompts.filtering(context))
    return {prompt.name: prompt.digest for prompt in both_prompts}


def _notes(config: Config, context: Context, result: QueriesResult) -> list[str]:
    if not result.kept:
        return [
            "no synthetic query is kept; `curate show dropped` has the reason per document, and queries.jsonl is empty"
        ]
    path = context.run / "queries" / FILE
    remedy = "name the file in ingest.queries.path of another pipeline, behind that of real queries if there are some"
    notes = [f"{len(result.kept):,} synthetic queries: {path}; {remedy}"]
    if len(result.kept) < config.wanted:
        notes.append(
            f"fewer queries than wanted ({len(result.kept):,} of {config.wanted:,}); more queries.documents give more"
        )
    if not result.drawn.real:
        notes.append("no real query showed how users ask: style and length are the prompt's, and nothing was matched")
    apart = style(result.drawn, result.kept, config.deciles)["apart"]
    if isinstance(apart, float) and apart > APART:
        notes.append(
            f"lengths differ from those of real queries (distance {apart:.2f}, expected at most {APART}); more "
            "queries.documents match them better"
        )
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names and families; return the identities of models and prompts, and the settings of masking."""
    if not config.generator:
        raise ConfigError(
            "queries.generator: found no model; name the language model that writes, and in "
            "queries.panel one of another family that filters; `curate models` lists them"
        )
    asked_models = models(config, context)
    refuse_one_family("queries.panel", asked_models[1:], asked_models[0])
    mask = context.settings.get("mask")
    return {"models": [model.identity for model in asked_models], "prompts": _digests(context), "mask": mask}


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the models."""
    for model in () if context.consent.offline else models(config, context):
        provider(model.settings)


STAGE = Stage("queries", Config, (FILTERED,), run, fingerprint, preflight, head=("language", "seed"))
