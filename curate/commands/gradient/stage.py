"""Gradients: texts whose similarity in meaning to another falls by level, to measure how well scores follow meaning.

Figures need no model: overlap and length against the levels, counts, agreement of the panel.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curate.ask import billing
from curate.ask.billing import PlanRow
from curate.ask.edits import dictionary
from curate.ask.edits.confirmation import CHANGED, edit_questions
from curate.ask.edits.rewriting import RULES, has_rules
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.panel import ASKED, AskedModel, Panel, asked_facts, packaged_question, refuse_one_family
from curate.commands.gradient import PARAPHRASE, Config, editing, mixes
from curate.commands.gradient import editing as grades
from curate.commands.gradient.editing import CONSENSUS, EDIT, SAME, EditPair
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.records import FILTERED
from curate.ledger import Ledger, default_path
from curate.llm.providers import provider
from curate.llm.questions import Question
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.pipeline.stage import Context, Report, Stage
from curate.stats.rank_correlation import GradientFigures, ceiling, gradient_figures, paired_accuracy, pooled
from curate.stats.shortcuts import alike_in_length, overlap
from curate.stats.tally import Floats, Ints
from curate.system import resources
from curate.system.files import frame, read_json, sha256, write_json, write_table
from curate.tables.kinds import gradient
from curate.tables.kinds.gradient import LEVELS, MIX

Rows = Sequence[Mapping[str, Any]]
MEASURES = {"overlap": overlap, "length": alike_in_length}
"""Lexical shortcuts: shared characters, and similarity in length."""


def of_levels(rows: Rows, seed: int) -> dict[str, Json]:
    """Return pooled, within and strict correlation of both shortcuts, and the highest rho possible with tied levels."""
    levels, group = _levels(rows), _groups(rows)
    texts = [(str(row["source"]), str(row["destination"])) for row in rows]
    correlations: dict[str, Json] = {
        name: _figure_values(gradient_figures(np.array([measure(*pair) for pair in texts]), levels, group, seed))
        for name, measure in MEASURES.items()
    }
    return {**correlations, "ceiling": _rounded(ceiling(levels.tolist()))}


def of_mixes(rows: Rows, seed: int) -> dict[str, Json]:
    """Return the figures of mixes: also pooled rho without level 0, and figures against foreign destinations.

    A foreign destination belongs to neither source of its pair, so only an artefact of mixing can order the levels.
    """
    levels, group = _levels(rows), _groups(rows)
    scores = np.array([overlap(row["source"], row["destination"]) for row in rows])
    foreign_scores = [overlap(row["source"], foreign) for row, foreign in zip(rows, mixes.foreign(rows), strict=True)]
    mixed = levels > LEVELS[0]
    return {
        **of_levels(rows, seed),
        "without_zero": _rounded(pooled(scores[mixed], levels[mixed])),
        "foreign": _figure_values(gradient_figures(np.array(foreign_scores), levels, group, seed)),
        "means": {str(share): _rounded(float(scores[levels == share].mean())) for share in LEVELS if len(rows)},
    }


def of_edits(rows: Rows, seed: int) -> dict[str, Json]:
    """Return kind of edit -> number of pairs, and paired accuracy of both shortcuts; `all` for all kinds."""
    levels, group = _levels(rows), _groups(rows)
    variants = list({row["pair_id"]: str(row["variant"]) for row in rows}.values())
    texts = [(str(row["source"]), str(row["destination"])) for row in rows]
    accuracies = {
        name: paired_accuracy(np.array([measure(*pair) for pair in texts]), levels, group, variants, seed)
        for name, measure in MEASURES.items()
    }
    counts = {"": len(variants), **dict(sorted(Counter(variants).items()))}
    return {
        kind or "all": {"pairs": count, **{name: by_kind[kind].to_json() for name, by_kind in accuracies.items()}}
        for kind, count in counts.items()
    }


def agreement(edit_pairs: Sequence[EditPair], panel: Sequence[str], seed: int) -> dict[str, Json]:
    """Return the panel's agreement on counterparts and on edits; None with fewer than two judges."""
    votes = {
        "counterparts": [(pair.same, "yes") for pair in edit_pairs],
        "edits": [(pair.changed, CHANGED) for pair in edit_pairs],
    }
    return {name: _agreement_of_votes(kind_votes, panel, seed) for name, kind_votes in votes.items()}


def _agreement_of_votes(votes: Sequence[tuple[Mapping[str, str], str]], panel: Sequence[str], seed: int) -> Json:
    complete = [
        (answer_by_judge, confirming) for answer_by_judge, confirming in votes if set(panel) <= set(answer_by_judge)
    ]
    if len(panel) < 2 or not complete:
        return None
    codes = [[int(answer_by_judge[name] == confirming) for name in panel] for answer_by_judge, confirming in complete]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, list(range(len(codes))), seed=seed).to_json()


def _levels(rows: Rows) -> Floats:
    return np.array([float(row["level"]) for row in rows])


def _groups(rows: Rows) -> Ints:
    number_by_pair: dict[str, int] = {}
    return np.array(
        [number_by_pair.setdefault(str(row["pair_id"]), len(number_by_pair)) for row in rows], dtype=np.int64
    )


def _figure_values(result: GradientFigures) -> dict[str, Json]:
    figures = {"pooled": result.pooled, "within": result.within, "strict": result.strict}
    return {**{name: figure.to_json() for name, figure in figures.items()}, "undefined": result.undefined}


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)


PURPOSE = "gradient"


@dataclass
class EditSeries:
    """Result of editing and confirming."""

    pairs: list[EditPair] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    failed: int = 0


def run(config: Config, context: Context) -> Report:
    """Plan, ask for permission, edit, confirm, mix, take grades, and write the tables."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = Panel(ledger, context, _panel(config, context), mixed_models=config.mixed_models)
        edited = panel.permitted("confirming edits", lambda panel: edit(config, context, panel))
        paid, models = panel.cost(), panel.named()
    confirmed = [pair for pair in edited.pairs if pair.kept(asked=bool(config.panel))]
    lost = {pair.query_id: editing.why_not(pair) for pair in edited.pairs if pair not in confirmed}
    rows, dropped = _series(config, context)
    if EDIT in config.kind:
        rows[EDIT], dropped[EDIT] = list(editing.rows(confirmed)), mixes.Fates({**edited.dropped, **lost})
    _write(config, context, rows, dropped, edited.pairs)
    facts = {
        "generator": config.generator if EDIT in config.kind else None,
        "panel": list(config.panel),
        "models": models,
        "prompts": [f"{question.name} ({question.digest[:12]})" for question in questions(context).values()]
        if config.panel and EDIT in config.kind
        else [],
        **_facts(rows, dropped, context.seed),
        "edited": _edited(edited.pairs),
        "agreement": agreement(edited.pairs, config.panel, context.seed),
        **billing.facts(paid),
    }
    failed = edited.failed
    return Report(
        sum(facts["planned_by_kind"].values()),
        sum(facts["built_by_kind"].values()),
        sum(len(fates.dropped) for fates in dropped.values()),
        cost=paid.amount,
        unfinished=f"{failed:,} questions failed; run `curate gradient` again to retry them" if failed else "",
        facts=facts,
        notes=_notes(config, context, rows),
        spent=panel.spent,
    )


def planned(config: Config, context: Context) -> list[PlanRow]:
    """Return rows for the requests that would be sent now, at most."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        panel = Panel(ledger, context, _panel(config, context))
        return panel.planned(lambda panel: edit(config, context, panel))


def edit(config: Config, context: Context, panel: Panel) -> EditSeries:
    """Write a counterpart and an edit per query, and have both confirmed; nothing if edits are not wanted."""
    if EDIT not in config.kind:
        return EditSeries()
    lexer = Lexer(dictionary.dictionary(config, context, "gradient").entries)
    written = _paraphrases(context) if config.generator == PARAPHRASE else {}
    edit_pairs, dropped = editing.propose(_queries(context), config, context, lexer, written)
    failed = editing.confirm(edit_pairs, panel, questions(context)) if panel.models else 0
    return EditSeries(edit_pairs, dropped, failed)


def questions(context: Context) -> dict[str, Question]:
    """Return name -> question for the panel."""
    return {SAME: packaged_question(context, SAME), **edit_questions(context)}


def _series(config: Config, context: Context) -> tuple[dict[str, list[dict[str, object]]], dict[str, mixes.Fates]]:
    """Return the rows of mixes and grades, and the dropped candidates, by kind."""
    rows: dict[str, list[dict[str, object]]] = {}
    dropped: dict[str, mixes.Fates] = {}
    queries = _queries(context)
    if MIX in config.kind:
        pairs, dropped[MIX] = mixes.pairs(config, context, queries)
        rows[MIX] = gradient.mix_rows(pairs)
    if CONSENSUS in config.kind:
        rows[CONSENSUS], gone = grades.graded_rows(context, queries, config.consensus)
        dropped[CONSENSUS] = mixes.Fates(gone)
    return rows, dropped


def _queries(context: Context) -> dict[str, str]:
    return dict(context.queries.select("query_id", "text").iter_rows())


def _paraphrases(context: Context) -> dict[str, tuple[str, dict[str, str]]]:
    if context.report(PARAPHRASE) is None:
        raise ConfigError(
            "gradient.generator: found paraphrase, and the stage of that name has not run; run `curate paraphrase` "
            "first, or use templates"
        )
    return editing.paraphrases(context.read(PARAPHRASE, "paraphrases"))


def _write(
    config: Config,
    context: Context,
    rows: Mapping[str, Sequence[Mapping[str, object]]],
    dropped: Mapping[str, mixes.Fates],
    pairs: Sequence[EditPair],
) -> None:
    every = [row for kind in config.kind for row in rows[kind]]
    write_table(context.out, "gradients", frame("gradients", every).sort("kind", "pair_id", "level", "item_id"))
    write_table(context.out, "edited", frame("edited", list(editing.proposals(pairs))).sort("item_id"))
    lost = [
        {"table": fates.table, "id": name, "stage": PURPOSE, "reason": f"{kind}: {reason}"}
        for kind, fates in dropped.items()
        for name, reason in fates.dropped.items()
    ]
    write_table(context.out, "dropped", frame("dropped", lost).sort("table", "id", "reason"))
    if config.panel and EDIT in config.kind:
        panel = _panel(config, context)
        facts_by_question: dict[str, Any] = asked_facts(
            {name: (question, panel) for name, question in questions(context).items()}
        )
        if config.generator == PARAPHRASE:
            facts_by_question[SAME] = read_json(context.folder(PARAPHRASE) / ASKED).get(SAME, facts_by_question[SAME])
        write_json(context.out / ASKED, facts_by_question)


def _facts(
    rows: Mapping[str, Sequence[Mapping[str, object]]], dropped: Mapping[str, mixes.Fates], seed: int
) -> dict[str, Any]:
    """Return the numbers of planned, built and dropped pairs, and the shortcuts' figures, by kind of gradient."""
    built = {kind: len({row["pair_id"] for row in kind_rows}) for kind, kind_rows in rows.items()}
    lost = {kind: Counter(fates.dropped.values()) for kind, fates in dropped.items()}
    planned_by_kind = {kind: count + lost[kind].total() for kind, count in built.items()}
    figures_by_kind = {MIX: of_mixes, EDIT: of_edits, CONSENSUS: of_levels}
    return {
        "planned": sum(planned_by_kind.values()),
        "built": sum(built.values()),
        "dropped": {f"{kind}: {why}": count for kind in lost for why, count in lost[kind].most_common()},
        "planned_by_kind": planned_by_kind,
        "built_by_kind": built,
        "items": {kind: len(row) for kind, row in rows.items()},
        "figures": {
            kind: figure(rows[kind], seed) if rows.get(kind) else None for kind, figure in figures_by_kind.items()
        },
    }


def _edited(pairs: Sequence[EditPair]) -> dict[str, Json]:
    """Return kind of edit, or way of the counterpart -> verdict -> count."""
    counts_by_name: dict[str, Counter[str]] = {}
    for pair in pairs:
        for name, verdict in zip((pair.way, pair.variant), pair.verdicts, strict=True):
            counts_by_name.setdefault(name, Counter())[verdict] += 1
    return {name: dict(sorted(counts.items())) for name, counts in sorted(counts_by_name.items())}


def _panel(config: Config, context: Context) -> list[AskedModel]:
    names = config.panel if EDIT in config.kind else ()
    return [AskedModel.named(context, name, "gradient.panel", PURPOSE) for name in names]


def _notes(config: Config, context: Context, rows: Mapping[str, Sequence[Mapping[str, object]]]) -> list[str]:
    notes = [f"{kind}: no gradient could be made; `curate show dropped` says why" for kind in rows if not rows[kind]]
    if EDIT in config.kind and not config.panel:
        notes.append("nobody confirmed these edits and counterparts: they are for testing only, no evidence")
    if EDIT in config.kind and not has_rules(context.language):
        notes.append(f"there are no rules of edits for {context.language}: words of the dictionary are swapped alone")
    if len(config.panel) == 1:
        notes.append(f"{config.panel[0]} alone confirmed these edits, so nothing is known of how far judges agree")
    if CONSENSUS in config.kind:
        notes.append("consensus is experimental: who retrieved its pool has a part in it; it is not exported")
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Check names, files and families; return the digests of files, models and prompts outside the run."""
    if config.lexicon is not None and not config.lexicon.is_file():
        raise ConfigError(f"gradient.lexicon: {config.lexicon}: no such file; give a list of words, one per line")
    models = _panel(config, context)
    refuse_one_family("gradient.panel", models, None)
    if EDIT not in config.kind:
        return None
    files = [dictionary.path(config, context), resources.data_file(RULES)]
    files += filter(None, (config.lexicon, dictionary.longer(context)))
    return {
        "files": [sha256(path) for path in files],
        "models": [model.identity for model in models],
        "prompts": [question.digest for question in questions(context).values()] if models else None,
    }


def preflight(config: Config, context: Context) -> None:
    """Check the dictionary, and the keys of the models."""
    if EDIT in config.kind:
        dictionary.dictionary(config, context, "gradient")
    for model in () if context.consent.offline else _panel(config, context):
        provider(model.settings)


STAGE = Stage(
    "gradient",
    Config,
    (FILTERED, "judge", "consensus", "resolve", PARAPHRASE),
    run,
    fingerprint,
    preflight,
    head=("language", "seed"),
    optional=("resolve", PARAPHRASE),
)
