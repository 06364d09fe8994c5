"""How queries for a corpus come to be: documents drawn, queries written, filtered, chosen by length."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from curate.ask import billing
from curate.ask.llm_questions import AskedModel, QuestionClient
from curate.ask.panel import ASKED, ask_panel, asked_facts, refuse_one_family
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
    """A written query, what the filters said, and what became of it."""

    query: WrittenQuery
    votes: Mapping[str, str]
    outcome: str
    """`kept`, or why it is no query of the set."""

    @property
    def query_id(self) -> str:
        """Return its id."""
        return query_id(self.query.document.doc_id, self.query.text)


@dataclass(frozen=True)
class QueriesResult:
    """What writing and filtering came to."""

    drawn: DrawnTexts
    writer: QueryWriter
    queries: Sequence[FilteredQuery]
    """All that were written, in the order in which their documents were drawn."""
    failed: int
    """Questions that got no reply: the stage is not finished."""

    @property
    def kept(self) -> list[FilteredQuery]:
        """Return the queries of the set."""
        return [query for query in self.queries if query.outcome == KEPT]


def models(config: Config, context: Context) -> list[AskedModel]:
    """Return who writes, and then who filters."""
    panel = [AskedModel.named(context, name, "queries.panel", PURPOSE) for name in config.panel]
    return [AskedModel.named(context, config.generator or "", "queries.generator", PURPOSE), *panel]


def make(config: Config, context: Context, drawn: DrawnTexts, desk: QuestionClient) -> QueriesResult:
    """Write and filter; a dry desk plans what it would ask."""
    generator, *panel = models(config, context)
    writer = QueryWriter(QueryRules.of(config, context, {form(text) for text in drawn.real.values()}))
    writer.write(drawn.documents, generator, prompts.writing(context), desk, config.again)
    there = {
        document.doc_id: writer.written[document.doc_id]
        for document in drawn.documents
        if document.doc_id in writer.written
    }
    asked = {name: (each.text, each.document.text) for name, each in there.items()}
    votes = ask_panel(asked, panel, prompts.filtering(context), desk, "is it a good query?")
    failed = sum(said == "failed" for vote in votes.values() for said in vote.values())
    fates = {name: fate(votes.get(name, {})) for name in there}
    chosen = matched({name: len(each.text) for name, each in there.items() if fates[name] == KEPT}, drawn, config)
    queries = [
        FilteredQuery(each, votes.get(name, {}), BEYOND if fates[name] == KEPT and name not in chosen else fates[name])
        for name, each in there.items()
    ]
    return QueriesResult(drawn, writer, queries, writer.failed + failed)


def fate(votes: Mapping[str, str]) -> str:
    """Return `kept` if all filters accept a query, else why not: a missing answer, or the first objection by name."""
    if not votes or any(vote in NONE for vote in votes.values()):
        return UNASKED
    objections = sorted(set(votes.values()) - {GOOD})
    return f"a filter says: {objections[0]}" if objections else KEPT


def matched(lengths: Mapping[str, int], drawn: DrawnTexts, config: Config) -> set[str]:
    """Return the queries that make the set: of each class of length its share of the real ones, then any, in order.

    Without real queries they are the first ones.
    """
    if not drawn.real:
        return set(list(lengths)[: config.wanted])
    classes = LengthClasses([len(text) for text in drawn.real.values()], config.deciles)
    wanted = min(config.wanted, len(lengths))
    room = Counter(
        {at: round(share * wanted) for at, share in enumerate(classes.shares(classes.real))},
    )
    chosen: list[str] = []
    for name, length in lengths.items():
        if room[classes.of(length)] > 0:
            room[classes.of(length)] -= 1
            chosen.append(name)
    rest = [name for name in lengths if name not in set(chosen)]
    return set([*chosen, *rest][:wanted])


# What a set of synthetic queries came to: its tables, its file for `ingest`, and how like real queries it is.

DIGITS = 4
QUESTIONS = ("?", "？", "吗", "呢")
"""Ends of what reads as a question."""


def mark(writer: AskedModel) -> str:
    """Return the mark of the writer's queries in the column `source`."""
    return synthetic.marked(writer.settings.model, writer.settings.family)


def table(made: QueriesResult, writer: AskedModel) -> pl.DataFrame:
    """Return the table `synthetic`: every query that was written, what the filters said, and what became of it."""
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
        for query in made.queries
    )
    return frame("synthetic", rows).sort("query_id")


def dropped(made: QueriesResult) -> pl.DataFrame:
    """Return the table `dropped`: every document that was drawn and of which no query is in the set, by reason."""
    rows = [
        {"table": "corpus", "id": doc_id, "stage": "queries", "reason": reason}
        for doc_id, reason in reasons(made).items()
    ]
    return frame("dropped", rows).sort("table", "id")


def reasons(made: QueriesResult) -> dict[str, str]:
    """Return document -> why no query of it is in the set."""
    lost = dict(made.writer.lost)
    return lost | {query.query.document.doc_id: query.outcome for query in made.queries if query not in made.kept}


def lines(made: QueriesResult, asked: Sequence[AskedModel], prompts: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield the rows of queries.jsonl, sorted by id: what `ingest` reads, and where a query comes from."""
    writer, *panel = asked
    filters: Json = {each.name: each.settings.model for each in panel}
    for each in sorted(made.kept, key=lambda one: one.query_id):
        yield {
            "_id": each.query_id,
            "text": each.query.text,
            "source": mark(writer),
            "metadata": {
                "doc_id": each.query.document.doc_id,
                "writer": writer.settings.model,
                "family": writer.family,
                "filters": filters,
                "prompts": dict(prompts),
                "attempt": each.query.attempt,
            },
        }


def facts(made: QueriesResult, asked: Sequence[AskedModel], config: Config) -> dict[str, Json]:
    """Return the figures of the set."""
    kept, writer = made.kept, made.writer
    return {
        "planned": len(made.drawn.documents),
        "built": len(kept),
        "dropped": dict(sorted(Counter(reasons(made).values()).items())),
        "broken_rules": dict(sorted(writer.broken.items())),
        "documents": {"corpus": made.drawn.corpus, "too_short": made.drawn.too_short},
        "families": {each.name: each.family for each in asked},
        "filters": _filters(made.queries, [each.name for each in asked[1:]]),
        "style": style(made.drawn, kept, config.deciles),
    }


def _filters(queries: Sequence[FilteredQuery], panel: Sequence[str]) -> dict[str, Json]:
    """Return filter -> answer -> how many queries got it."""
    return {
        name: dict(sorted(Counter(query.votes[name] for query in queries if query.votes).items())) for name in panel
    }


def style(drawn: DrawnTexts, kept: Sequence[FilteredQuery], deciles: int) -> dict[str, Json]:
    """Return how like the real queries the synthetic ones are; figures of either are None where there are none.

    `apart` is half the sum of the differences between both sides' shares in classes of length, 0 to 1: the total
    variation distance. `copied` is the median of the longest piece that a query has in common with its document.
    """
    real, texts = list(drawn.real.values()), [each.query.text for each in kept]
    classes = LengthClasses([len(text) for text in real], deciles)
    sides = [classes.shares([len(text) for text in some]) for some in (real, texts)]
    both = bool(real and texts)
    runs = [longest_run(each.query.text, each.query.document.text) for each in kept]
    return {
        "real": _side(real),
        "synthetic": _side(texts),
        "classes": [
            {"from": start, "real": round(one, DIGITS), "synthetic": round(other, DIGITS)}
            for start, one, other in zip([0, *classes.bounds], *sides, strict=True)
        ]
        if both
        else [],
        "apart": round(sum(abs(one - other) for one, other in zip(*sides, strict=True)) / 2, DIGITS) if both else None,
        "copied": round(median(runs), DIGITS) if runs else None,
    }


def _side(texts: Sequence[str]) -> dict[str, Json]:
    """Return number, median of the characters, and share of questions of some queries."""
    asked = sum(text.rstrip().endswith(QUESTIONS) for text in texts)
    return {
        "queries": len(texts),
        "characters": float(median(map(len, texts))) if texts else None,
        "questions": round(asked / len(texts), DIGITS) if texts else None,
    }


# Synthetic queries for a corpus, where there are none or few of real users.

FILE = "queries.jsonl"
APART = 0.2
"""Distance of the lengths from those of real queries above which a note says so."""


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, write, filter, and write the tables."""
    drawn = _drawn(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        dry = QuestionClient(ledger, context, dry=True)
        make(config, context, drawn, dry)
        dry.permit("writing queries")
        desk = QuestionClient(ledger, context, mixed_models=config.mixed_models)
        made = make(config, context, drawn, desk)
        paid, named = desk.cost(), desk.named()
    _write(config, context, made)
    told: dict[str, Json] = {"generator": config.generator, "panel": list(config.panel), "models": named}
    found = facts(made, models(config, context), config)
    return Report(
        len(drawn.documents),
        len(made.kept),
        len(drawn.documents) - len(made.kept),
        cost=paid.amount,
        unfinished=f"{made.failed:,} questions failed; run `curate queries` again to retry" if made.failed else "",
        facts={**told, "prompts": _digests(context), **found, **billing.facts(paid)},
        notes=_notes(config, context, made),
        spent=desk.spent,
    )


def planned(config: Config, context: Context) -> list[dict[str, Json]]:
    """Return rows for all that would be sent now, at most; what breaks a rule is asked again beyond that."""
    drawn = _drawn(config, context)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        desk = QuestionClient(ledger, context, dry=True)
        make(config, context, drawn, desk)
        return desk.rows()


def _drawn(config: Config, context: Context) -> DrawnTexts:
    drawn = draw(config, context, config.lengths or prompts.writing(context).lengths)
    if not drawn.documents:
        raise DataError(
            f"queries: found no document of {config.shortest} characters among {drawn.corpus:,}; lower "
            "queries.shortest, or check the corpus"
        )
    return drawn


def _write(config: Config, context: Context, made: QueriesResult) -> None:
    asked = models(config, context)
    write_table(context.out, "synthetic", table(made, asked[0]))
    write_table(context.out, "dropped", dropped(made))
    rows = lines(made, asked, _digests(context))
    write_text(context.out / FILE, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    write_json(context.out / ASKED, asked_facts({prompts.FILTER: (prompts.filtering(context), asked[1:])}))


def _digests(context: Context) -> dict[str, Json]:
    """Return name -> digest of the two prompts that models are asked with."""
    both = (prompts.writing(context), prompts.filtering(context))
    return {each.name: each.digest for each in both}


def _notes(config: Config, context: Context, made: QueriesResult) -> list[str]:
    if not made.kept:
        return [
            "no synthetic query is kept; `curate show dropped` has the reason per document, and queries.jsonl is empty"
        ]
    place = context.run / "queries" / FILE
    after = "name the file in ingest.queries.path of another pipeline, behind that of real queries if there are some"
    notes = [f"{len(made.kept):,} synthetic queries: {place}; {after}"]
    if len(made.kept) < config.wanted:
        notes.append(
            f"fewer queries than wanted ({len(made.kept):,} of {config.wanted:,}); more queries.documents give more"
        )
    if not made.drawn.real:
        notes.append("no real query showed how users ask: style and length are the prompt's, and nothing was matched")
    apart = style(made.drawn, made.kept, config.deciles)["apart"]
    if isinstance(apart, float) and apart > APART:
        notes.append(
            f"lengths differ from those of real queries (distance {apart:.2f}, expected at most {APART}); more "
            "queries.documents match them better"
        )
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names and who may filter; return what identifies models, prompts and what is masked."""
    if not config.generator:
        raise ConfigError(
            "queries.generator: found no model; name the language model that writes with --generator, and one of "
            "another family that filters with --panel; `curate models` lists them"
        )
    asked = models(config, context)
    refuse_one_family("queries.panel", asked[1:], asked[0])
    mask = context.settings.get("mask")
    return {"models": [model.identity for model in asked], "prompts": _digests(context), "mask": mask}


def preflight(config: Config, context: Context) -> None:
    """Check the keys of the models."""
    for model in () if context.consent.offline else models(config, context):
        provider(model.settings)


STAGE = Stage("queries", Config, ("diversify",), run, fingerprint, preflight, head=("language", "seed"))
