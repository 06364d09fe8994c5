"""Paraphrases: pairs of a query and a sentence that means the same or another thing, and retrieval of the originals.

In: queries of `diversify`. Out: `paraphrases`, every pair with its votes and, if selected, its split; `originals`, the
queries that a paraphrase is judged equivalent to; `dropped`. A model writes one paraphrase per query. Negatives are
neighbours that retrievers of different families propose in turn, and small edits that change the meaning. A panel with
a judge outside the generator's family confirms; unanimous pairs are retained. Then equal numbers of positives and
negatives are selected in every class of overlap, so that shared characters do not predict the label.
"""

from collections import Counter
from typing import Any

import polars as pl

from curate.ask import billing
from curate.ask.billing import PlanRow
from curate.ask.panel import ASKED, AskedModel, Panel, asked_facts, refuse_one_family
from curate.commands.paraphrase import TEMPLATES, Config, figures, prompts, templates
from curate.commands.paraphrase import pairs as neighbours
from curate.commands.paraphrase import pairs as originals
from curate.commands.paraphrase.figures import SPLITS
from curate.commands.paraphrase.making import PURPOSE, ParaphraseResult, draw, make, questions
from curate.commands.paraphrase.pairs import NEIGHBOUR
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.pipeline.stage import Context, Report, Stage
from curate.system.files import frame, write_json, write_table
from curate.tables.exporters.labels import parts

TARGET = 0.55
"""Average precision of character overlap above which a note is written; 0.5 is chance."""
FEWEST = 10
"""Minimum number of neighbours for the note on a panel that calls most of them equal."""


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, write, confirm, match the overlap, and write the tables."""
    queries = _queries(context)
    drawn = draw(config, context, queries)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = _asked(config, context, ledger)
        result = panel.permitted("making a set of paraphrases", lambda panel: make(config, context, drawn, panel))
        paid, models = panel.cost(), panel.named()
    in_set = figures.chosen(result, {name: getattr(config, name) for name in SPLITS}, config.deciles, context.seed)
    pairs = figures.table(result, in_set)
    _write(config, context, result, pairs, in_set)
    sources: dict[str, Json] = {"generator": config.generator, "models": models, "prompts": _prompts(config, context)}
    facts = {**sources, **figures.facts(result, in_set, config.panel, context.seed), **billing.facts(paid)}
    return Report(
        len(queries),
        len(in_set),
        len(pairs) - len(in_set),
        cost=paid.amount,
        unfinished=f"{result.failed:,} questions failed; run `curate paraphrase` again to retry"
        if result.failed
        else "",
        facts={**facts, "parts": _parts(config, context, result)},
        notes=_notes(config, pairs, facts["splits"]),
        spent=panel.spent,
    )


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return rows for the requests that would be sent now; repeated requests after a broken rule are not included."""
    drawn = draw(config, context, _queries(context))
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return _asked(config, context, ledger).planned(lambda panel: make(config, context, drawn, panel))


def _queries(context: Context) -> list[tuple[str, str]]:
    return list(context.queries.select("query_id", "text").iter_rows())


def _write(config: Config, context: Context, result: ParaphraseResult, pairs: pl.DataFrame, in_set: set[str]) -> None:
    write_table(context.out, "paraphrases", pairs)
    rows = originals.rows(result.drawn.texts, result.originals, result.pairs)
    write_table(context.out, "originals", frame("originals", rows).sort("query_id", "pair_id"))
    write_table(context.out, "dropped", figures.dropped(*figures.fates(result, in_set)))
    if panel := _panel(config, context):
        write_json(
            context.out / ASKED, asked_facts({name: (question, panel) for name, question in questions(context).items()})
        )


def _panel(config: Config, context: Context) -> list[AskedModel]:
    return [AskedModel.named(context, name, "paraphrase.panel", PURPOSE) for name in config.panel]


def _writer(config: Config, context: Context) -> AskedModel | None:
    if config.generator == TEMPLATES:
        return None
    return AskedModel.named(context, config.generator, "paraphrase.generator", PURPOSE)


def _asked(config: Config, context: Context, ledger: Ledger) -> Panel:
    judges = _panel(config, context)
    return Panel(ledger, context, judges, _writer(config, context), mixed_models=config.mixed_models)


def _models(config: Config, context: Context) -> list[AskedModel]:
    """Return the models that may be asked; the generator comes first if it is a model."""
    writer = _writer(config, context)
    return [*([writer] if writer else []), *_panel(config, context)]


def _parts(config: Config, context: Context, result: ParaphraseResult) -> dict[str, Json]:
    """Return role -> names of contributors; their scores on this set are biased upwards."""
    judges: dict[str, Any] = {judge.name: judge.identity for judge in _panel(config, context)}
    contributors: dict[str, Json] = {
        **parts([miner.name for miner in result.drawn.miners], judges, context.definitions)
    }
    return contributors | ({} if config.generator == TEMPLATES else {"generator": [config.generator]})


def _prompts(config: Config, context: Context) -> list[Json]:
    """Return name and short digest of every prompt in use."""
    panel_questions = questions(context).values() if config.panel else ()
    used = [(question.name, question.digest) for question in panel_questions]
    if config.generator != TEMPLATES:
        writing = prompts.writing(context)
        used.insert(0, (writing.name, writing.digest))
    return [f"{name} ({digest[:12]})" for name, digest in used]


def _notes(config: Config, pairs: pl.DataFrame, splits: Any) -> list[str]:  # noqa: ANN401 - figures as JSON
    notes = []
    if config.generator == TEMPLATES:
        notes.append("templates wrote these paraphrases: they are for testing only, no evidence about any model")
    if not config.panel:
        notes.append("nobody confirmed these pairs: neighbours and edits may mean the same, and paraphrases may not")
    if len(config.panel) == 1:
        notes.append(f"{config.panel[0]} alone confirmed these pairs, so nothing is known of how far judges agree")
    near = pairs.filter(pl.col("kind") == NEIGHBOUR)
    same = near.filter(pl.col("verdict") == "rejected").height
    if near.height >= FEWEST and 2 * same > near.height:
        notes.append(
            f"the panel calls {same:,} of {near.height:,} neighbours equal to their query, where one in eight is "
            "usual: it may say yes to anything; read some with `curate show paraphrases`"
        )
    sizes = Counter(pairs["split"])
    short = [f"{name}: {sizes[name]:,} of {most:,}" for name in SPLITS if sizes[name] < (most := getattr(config, name))]
    if short:
        notes.append(
            f"fewer pairs than wanted ({', '.join(short)}); more queries or edits, or fewer deciles, give more"
        )
    predictive = {
        name: split["floors"]["overlap"] for name, split in splits.items() if (split["floors"]["overlap"] or 0) > TARGET
    }
    notes += [
        f"{name}: the overlap of characters still tells the label (average precision {precision:.2f}, expected at most "
        f"{TARGET}); more queries or more deciles match it better"
        for name, precision in predictive.items()
    ]
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names and families; return the identities of retrievers, models, prompts and word lists."""
    if config.lexicon is not None and not config.lexicon.is_file():
        raise ConfigError(f"paraphrase.lexicon: {config.lexicon}: no such file; give a list of words, one per line")
    models, by_template = _models(config, context), config.generator == TEMPLATES
    refuse_one_family("paraphrase.panel", models if by_template else models[1:], None if by_template else models[0])
    if by_template:
        templates.needed(context)
    return {
        "retrievers": {retriever.name: retriever.identity for retriever in neighbours.chosen(config, context)},
        "words": templates.digests(config, context),
        "models": [model.identity for model in models],
        "prompts": [prompts.writing(context).digest, *(question.digest for question in questions(context).values())],
    }


def preflight(config: Config, context: Context) -> None:
    """Check that every model's API key is available, unless offline."""
    for model in () if context.consent.offline else _models(config, context):
        provider(model.settings)


STAGE = Stage("paraphrase", Config, (FILTERED,), run, fingerprint, preflight, head=("language", "seed"))
