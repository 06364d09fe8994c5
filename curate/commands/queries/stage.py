"""Synthetic queries for a corpus, where there are none or few of real users.

In: corpus of `diversify`, masked, and its queries, which show how real ones read; there may be none. Out: `synthetic`,
every query that was written with what became of it; `queries.jsonl`, those of the set, which `ingest.queries.path` of
another run takes; `dropped`, the documents without one. A model writes one query beside each drawn document; rules
check what can be checked without a model; models that are not all of the writer's family filter. Every query carries
its mark in `source`. The document of a query is known to its writer alone: it is no label, and no stage makes it one.
"""

import json

from curate.ask import billing
from curate.ask.llm_questions import QuestionClient
from curate.ask.panel import ASKED, asked_facts, refuse_one_family
from curate.commands.queries import Config, figures, prompts
from curate.commands.queries.drawing import DrawnTexts, draw
from curate.commands.queries.making import QueriesResult, make, models
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.pipeline.stage import Context, Report, Stage
from curate.system.files import write_json, write_table, write_text

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
    found = figures.facts(made, models(config, context), config)
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
    write_table(context.out, "synthetic", figures.table(made, asked[0]))
    write_table(context.out, "dropped", figures.dropped(made))
    rows = figures.lines(made, asked, _digests(context))
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
    apart = figures.style(made.drawn, made.kept, config.deciles)["apart"]
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
