"""The stage `report`: one HTML file on a whole run, which loads nothing from the network.

In: tables and figures of every stage from `mask` on (of `resolve`, `export` and stages of task types if they have run),
counts of `ingest`, reviews, checks, audit, analysis and evaluation. Out: report.html. Nothing is dropped. The report of
a run is byte-identical if written again: it contains no times and no absolute paths. Long tables are shown in part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, cast

import polars as pl
import yaml

from curate.ask import privacy_guard
from curate.ask.billing import Bill, beside_stages, by_currency
from curate.commands.report import Config
from curate.commands.report.figures import Labels, Shown, ShownKind, Step
from curate.commands.report.page import page
from curate.core.config import Json
from curate.core.languages import FALLBACK, base_language
from curate.core.progress import StepLabel, waiting
from curate.core.records import FILTERED, VERDICTS
from curate.core.sampling import generator
from curate.panel.agreement_figures import confusions
from curate.panel.voting import PAIR
from curate.pipeline import facts as circularity
from curate.pipeline import facts as reckoning
from curate.pipeline.facts import pooled
from curate.pipeline.stage import Context, Report, Stage
from curate.pipeline.withdrawn import Withdrawn
from curate.review import flags
from curate.review.showing import columns
from curate.runs import card_facts, checks
from curate.stats.distribution import Spread, spread
from curate.system import resources
from curate.system.files import frame, read_json, read_meanings, write_text
from curate.tables import kinds
from curate.tables.kinds import ALWAYS, counted
from curate.tables.kinds.benchmark_kind import tokeniser
from curate.view import run_figures
from curate.view.charts import STATUSES
from curate.view.run_figures import Drop

OPTIONAL = ("resolve", *kinds.stages(), "export")
PAGES = "view/index.html"
READ = (*ALWAYS, *OPTIONAL)
"""Stages whose tables are read. Not `ingest`: its raw texts are deleted by now, and `mask` copies its `dropped`."""


def portable(setting: Json) -> Json:
    """Return settings with absolute paths reduced to their last part, so that no folder is disclosed."""
    if isinstance(setting, Mapping):
        return {key: portable(entry) for key, entry in setting.items()}
    if isinstance(setting, str):
        paths = (PurePosixPath(setting), PureWindowsPath(setting))
        absolute = [path for path in paths if path.is_absolute() or setting.startswith("~")]
        return f"…/{absolute[0].name}" if absolute and "\n" not in setting else setting
    return [portable(entry) for entry in setting] if isinstance(setting, Sequence) else setting


def run(config: Config, context: Context) -> Report:
    """Run the stage: gather the figures and write the report."""
    contents = gather(config, context)
    with waiting(context.progress, StepLabel("writing the page")):
        language = config.language or context.language
        tags = resources.translations("commands/report/words.yaml")
        second_language = next(tag for tag in (FALLBACK, *tags) if tag != base_language(language))
        write_text(context.out / "report.html", page(contents, language, second_language))
    rows = contents.steps["consensus"].rows_in
    if not context.outdated:
        return Report(rows, rows)
    outdated = ", ".join(context.outdated)
    note = (
        f"out of date, and shown as they are: {outdated}; `curate run {context.run}/pipeline.yaml --run {context.run}`"
    )
    return Report(rows, rows, facts={"outdated": list(context.outdated)}, notes=[note])


def gather(config: Config, context: Context) -> Shown:
    """Return the contents of the report; the corpus is read in batches."""
    absent = [name for name in ("resolve", *kinds.stages(), "export") if context.report(name) is None]
    steps = {name: _step(context.done(name)) for name in counted() if name not in absent}
    agreed = read_json(context.folder("consensus") / "agreement.json")
    queries, pool = pooled(context), context.read("pool", "pool")
    verdicts = context.read("consensus", "verdicts")
    changed = "resolve" in steps and _differ(verdicts, context.read("resolve", "verdicts"))
    left_out = context.read("export", "dropped") if "export" in steps else frame("dropped")
    ratings = context.read("judge", "ratings")
    reports = {name: context.done(name) for name in ("ingest", "mask", FILTERED)}
    tokens, texts = tokeniser(), queries["text"].to_list()
    measured = generator(context.seed, "report", "queries").sample(texts, min(len(texts), config.lengths))
    return Shown(
        name=context.name,
        description=str(context.settings.get("description") or ""),
        seed=context.seed,
        steps=steps,
        drops=_drops(context, steps),
        left_out={str(key[0]): rows["id"].to_list() for key, rows in left_out.group_by("reason", maintain_order=True)},
        agreed=agreed,
        dependence=(common := card_facts.dependence(context)),
        lead=card_facts.leading(context, agreed, common),
        overlap=run_figures.overlap(pool, verdicts),
        lengths={"queries": spread([tokens(text) for text in measured]), "corpus": _document_lengths(config, context)},
        sizes={"queries": len(queries), "corpus": len(context.corpus)},
        confusions=confusions(ratings, agreed["panel"], context.scale),
        queries=run_figures.per_query(queries, pool, verdicts),
        published=_published_labels(context, queries, pool) if changed else None,
        experts=columns(context.run, context.folder("resolve")),
        scale=context.scale,
        meanings=read_meanings(context.folder("judge")),
        kinds=_kinds(context, steps),
        outdated=context.outdated,
        settings=yaml.safe_dump(portable(context.settings), allow_unicode=True, sort_keys=False, width=100),
        decided=privacy_guard.decided(context),
        withdrawn=Withdrawn.read(context.run),
        # queries read, including those dropped before judging or without a pool
        asked=len(context.queries) + reckoning.left_out(reports, context.read).total(),
        beside={name: check.result(context) for name, check in checks.CHECKS.items()},
        pages=_pages(context),
        further=beside_stages(context, by_currency(cast("Mapping[str, Bill]", steps["judge"].facts.get("bill") or {}))),
    )


def fingerprint(_config: Config, context: Context) -> Json:
    """Return the inputs of the report that are not in tables of stages: settings, facts of stages, reviews, checks."""
    reports = {name: report for name in counted() if (report := context.report(name))}
    return {
        "settings": context.settings,
        "allowed": privacy_guard.allowed(context),
        "steps": {name: asdict(_step(report)) for name, report in reports.items()},
        "experts": card_facts.experts(context),
        "families": card_facts.families(context),
        "circular": circularity.checked(context),
        "beside": checks.identity(context.run),
        **({"pages": pages} if (pages := _pages(context)) else {}),
        **({"flagged": len(flagged)} if (flagged := flags.personal_rows(context.run)) else {}),
    }


def _pages(context: Context) -> str:
    """Return the relative path of the pages that `curate view --export` wrote into the run; empty without them."""
    return PAGES if (context.run / PAGES).is_file() else ""


def _differ(panel: pl.DataFrame, published: pl.DataFrame) -> bool:
    """Return whether a published verdict is not the panel's."""
    joined = panel.select(*PAIR, own="verdict").join(published.select(*PAIR, "verdict"), on=PAIR)
    return joined.filter(pl.col("own") != pl.col("verdict")).height > 0


def _published_labels(context: Context, queries: pl.DataFrame, pool: pl.DataFrame) -> Labels:
    """Return the counts of the published labels."""
    verdicts, counts = context.read("resolve", "verdicts"), context.done("resolve").facts["counts"]
    assert isinstance(counts, Mapping)
    return Labels(counts, run_figures.overlap(pool, verdicts), run_figures.per_query(queries, pool, verdicts))


def _kinds(context: Context, steps: Mapping[str, Step]) -> list[ShownKind]:
    """Return the task types with a section in the report, whose stage has run."""
    checked = card_facts.checked(context)
    return [
        ShownKind(
            kind.name,
            kind.stage,
            kind.section,
            kind.section_words,
            steps[kind.stage].facts,
            [proof.to_json() for proof in checked[kind.name]] if kind.name in checked else None,
        )
        for kind in kinds.kinds()
        if kind.section and kind.stage and kind.stage in steps
    ]


def _step(report: Report) -> Step:
    return Step(report.rows_in, report.rows_out, report.dropped, report.facts, report.unfinished)


def _drops(context: Context, steps: Mapping[str, Step]) -> list[Drop]:
    """Return the dropped rows by reason, in the order of the stages."""
    keeping = ("mask", FILTERED, "consensus", *kinds.stages(), "export")
    tables = [context.read(name, "dropped") for name in keeping if name in steps]
    if "resolve" in steps and steps["resolve"].count("overridden"):
        tables.append(context.read("resolve", "dropped").with_columns(stage=pl.lit("resolve")))
    rows = run_figures.drops(tables) + _counted_drops(steps)
    order = counted()
    return sorted(rows, key=lambda drop: order.index(drop.stage))


def _counted_drops(steps: Mapping[str, Step]) -> list[Drop]:
    """Return the drops that stages count without a row in a table `dropped`."""
    merged = {"ingest": "merged with an equal text", "mask": "merged with a text that masking made equal"}
    drops = [
        Drop(stage, table, reason, steps[stage].count(f"merged_{table}"))
        for stage, reason in merged.items()
        for table in ("queries", "corpus")
    ]
    drops.append(Drop("pool", "pairs", "retrieved, but not chosen for the pool", steps["pool"].dropped))
    drops += [Drop("judge", "ratings", name, steps["judge"].count(name)) for name in STATUSES]
    drops += [Drop("consensus", "pairs", name, steps["consensus"].count(name)) for name in VERDICTS[2:]]
    if "resolve" in steps and steps["resolve"].count("overridden"):
        counts: Any = steps["resolve"].facts["counts"]
        drops += [Drop("resolve", "pairs", name, counts[name]) for name in VERDICTS[2:]]
    return [drop for drop in drops if drop.count]


def _document_lengths(config: Config, context: Context) -> Spread:
    """Return the token lengths of a sample of all documents."""
    corpus, tokens = context.corpus, tokeniser()
    size = min(len(corpus), config.lengths)
    sample = set(generator(context.seed, "report", "corpus").sample(range(len(corpus)), size))
    counts: list[int] = []
    label = StepLabel("counting lengths", "documents")
    context.progress(label, size, 0)
    for index, document in enumerate(document for batch in corpus.batches() for document in batch):
        if index in sample:
            counts.append(tokens(document.shown()))
            context.progress(label, size, len(counts))
    return spread(counts)


STAGE = Stage("report", Config, READ, run, fingerprint, optional=OPTIONAL, renders=True, version=9)
