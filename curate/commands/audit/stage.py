"""The stage `audit`: compares, counts and repairs original labels, and measures the effect on system rankings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from curate.ask import build, privacy_guard, seating
from curate.commands.audit import Config, page
from curate.commands.audit import labels as audit
from curate.commands.audit.labels import AuditMeasure, PatchSizes, mean
from curate.core.config import Json, check
from curate.core.duplicates import same_text
from curate.core.errors import ConfigError, DataError
from curate.core.figures import Record, figure
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Benchmark
from curate.core.records import FILTERED, Query
from curate.ledger import Ledger, default_path
from curate.panel.judge_dependence import Dependence
from curate.panel.voting import PAIR
from curate.pipeline import stages
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context, Report, Stage
from curate.retrieval import ranking
from curate.review import Desk
from curate.review.audit_correction import CorrectedCounts, corrected_counts, frames
from curate.review.desk import graded_desks, relevance_desks
from curate.runs import card_facts
from curate.stats import rank_correlation
from curate.stats.bootstrap import FEW
from curate.system.files import frame, read_json, write_json, write_table, write_text
from curate.tables.exporters import EXPORTERS, manifest
from curate.view import run_figures

TOP = 10
DIGITS = 5
Labels = Mapping[str, Collection[str]]
"""Query -> its relevant documents."""


@dataclass(frozen=True)
class Effect:
    """Scores of a system with old and new labels: means over the queries that have a positive with both."""

    system: str
    ndcg_old: float
    ndcg_new: float
    change: float
    low: float | None
    """Lower bound of the 95 % interval of the change of nDCG@10, a bootstrap over queries; `high` is the upper one."""
    high: float | None
    recall_old: float
    recall_new: float
    judged: float | None
    """Share of its first ten documents that the panel judged; unjudged documents count as not relevant."""
    rank_old: int = 0
    rank_new: int = 0
    circular: bool = False
    """Whether its encoder is also a judge, so that its score on the new labels is biased upwards."""


class SystemEffects(Record, schema_name="systems"):
    """Systems under the old and the new labels."""

    queries: int = figure("queries with a positive under both labels")
    recall_depth: int = figure("depth of recall, part of its keys")
    systems: tuple[Mapping[str, Any], ...] = figure(
        "system, nDCG@10 and recall under the old and the new labels, ranks, circular"
    )
    tau_b: float | None = figure("Kendall's tau-b of the two rankings")


class UnknownLabels(Record, schema_name="unknown"):
    """Labels of queries or documents that are not there."""

    labels: int = figure("labels of unknown queries or documents")
    named: tuple[str, ...] = figure("ids of the first labels, at most 20")
    reasons: Mapping[str, int] = figure("what is unknown -> labels")


class AuditMasking(Record, schema_name="masking"):
    """What masking did to the texts."""

    made_equal: int = figure("texts that masking made equal")
    patched: int = figure("labels of the patch on texts that masking made equal or much shorter")
    shortened: int = figure("texts that masking made much shorter")


class AuditFigures(Record, schema_name="figures"):
    """What a panel makes of the labels of a set, or the plan of judging (--plan)."""

    name: str = figure("name of the set")
    queries: int = figure("audited queries")
    queries_without_label: int = figure("audited queries without a label")
    pairs: int = figure("judged pairs")
    panel: tuple[str, ...] = figure("judges of the panel")
    heuristic: bool = figure("whether heuristics alone judged")
    relevant_from: int | None = figure("lowest score of the original qrels that means relevant", optional=True)
    unknown: UnknownLabels = figure("labels of unknown queries or documents")
    dependence: Dependence = figure("dependence of the judges")
    measures: Mapping[str, AuditMeasure] = figure("measure -> its counts per query")
    patch: PatchSizes = figure("labels that the patch adds and removes")
    masking: AuditMasking = figure("effects of masking on the labels")
    corrected: tuple[CorrectedCounts, ...] = figure("counts corrected by assessors' answers, a row per sample")
    systems: SystemEffects = figure("systems under the old and the new labels")


def compare(
    rankings: pl.DataFrame,
    old: pl.DataFrame,
    new: pl.DataFrame,
    judged: pl.DataFrame,
    *,
    depth: int,
    seed: int,
    judges: Collection[str] = (),
) -> SystemEffects:
    """Return the effect on the systems.

    `rankings` is the table `rankings`, `old` and `new` the labels, `judged` the judged pairs. Systems are ranked by
    nDCG@10 and sorted by their rank with the new labels. Recall is at `depth`, which is in the names of keys, such as
    `recall_at_50_old`. `judges` are the encoders on the panel; a system of such a name is `circular`.
    """
    old_labels, new_labels, judged_docs = _by_query(old), _by_query(new), _by_query(judged)
    queries = sorted(old_labels.keys() & new_labels.keys())
    system_effects = []
    for (system,), rows in rankings.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        lists = {str(key[0]): hits["doc_id"].to_list() for key, hits in rows.group_by("query_id", maintain_order=True)}
        if queries:
            ranked = {query: lists.get(query, []) for query in queries}
            system_effects.append(_system_effect(str(system), ranked, old_labels, new_labels, judged_docs, depth, seed))
    ranks = [
        _ranks([effect.ndcg_old for effect in system_effects]),
        _ranks([effect.ndcg_new for effect in system_effects]),
    ]
    placed = [
        replace(effect, rank_old=old_rank, rank_new=new_rank, circular=effect.system in judges)
        for effect, old_rank, new_rank in zip(system_effects, *ranks, strict=True)
    ]
    scores = [{effect.system: getattr(effect, side) for effect in system_effects} for side in ("ndcg_old", "ndcg_new")]
    return SystemEffects(
        queries=len(queries),
        recall_depth=depth,
        systems=tuple(
            {name.replace("recall_", f"recall_at_{depth}_"): entry for name, entry in asdict(effect).items()}
            for effect in sorted(placed, key=lambda effect: (effect.rank_new, effect.system))
        ),
        tau_b=rank_correlation.tau_b(*scores),
    )


def _system_effect(
    system: str, ranked: Mapping[str, Sequence[str]], old: Labels, new: Labels, seen: Labels, depth: int, seed: int
) -> Effect:
    """Return the `Effect` of one system, with ranks still 0."""
    old_scores, new_scores = (
        np.array([ranking.ndcg(docs, labels[query], TOP) for query, docs in ranked.items()]) for labels in (old, new)
    )
    change, low, high = mean(new_scores - old_scores, seed)
    is_judged = [doc in seen.get(query, ()) for query, docs in ranked.items() for doc in docs[:TOP]]
    return Effect(
        system=system,
        ndcg_old=_rounded(old_scores.mean()),
        ndcg_new=_rounded(new_scores.mean()),
        change=_rounded(change),
        low=None if low is None else _rounded(low),
        high=None if high is None else _rounded(high),
        recall_old=_rounded(np.mean([recall(docs, old[query], depth) for query, docs in ranked.items()])),
        recall_new=_rounded(np.mean([recall(docs, new[query], depth) for query, docs in ranked.items()])),
        judged=_rounded(np.mean(is_judged)) if is_judged else None,
    )


def recall(docs: Sequence[str], relevant: Collection[str], depth: int) -> float:
    """Return the share of the relevant documents among the first `depth` of a ranking; `relevant` is not empty."""
    return len(set(docs[:depth]) & set(relevant)) / len(relevant)


def _ranks(scores: Sequence[float]) -> list[int]:
    """Return the rank of every score, 1 for the highest; equal scores share the better rank."""
    return [1 + sum(competitor > score for competitor in scores) for score in scores]


def _rounded(figure: float | np.floating) -> float:
    return round(float(figure), DIGITS)


def _by_query(pairs: pl.DataFrame) -> dict[str, set[str]]:
    return {str(key[0]): set(rows["doc_id"]) for key, rows in pairs.group_by("query_id")}


# The stage: original labels compared with the panel's verdicts on retrieved documents.

NAMED = 20
"""Maximum number of ids listed in audit.json of labels whose query or document is unknown."""
LABELS = (
    "These are the labels that the set came with, less those that every judge found not relevant, and with the pairs "
    "that the panel found relevant. Labels that it left open, or whose text was not judged, are unchanged."
)
SCORES = (
    "Scores are those of the set: {0} and above mean relevant, what was added has {0}, lower ones are as they were. "
    "MTEB's nDCG takes every score as a gain, also one below {0}; its MAP and recall take every score above 0 as "
    "relevant and mean nothing here."
)
"""Sentences for the repaired set's README, added to `LABELS` if the lowest relevant original score is above 1."""


def run(config: Config, context: Context) -> Report:
    """Run the stage: write tables, patch, repaired set, figures and HTML report."""
    labels, cut = context.legacy_positives(), context.relevant_from or 1
    if labels.is_empty():
        raise DataError(
            f"audit: found no label above {cut - 1}, expected the labels to audit; give ingest.qrels, or another set"
        )
    queries, verdicts = context.queries, context.read("consensus", "verdicts")
    documents = _first_ids(context, "corpus", "doc_id")
    compared = audit.compare(verdicts, labels, _first_ids(context, "queries", "query_id"), documents)
    counts = audit.count(compared, queries["query_id"].to_list())
    patches = _with_call_ids(audit.patch(compared, documents, context.scale), context)
    all_labels = labels if context.relevant_from is None else context.read(FILTERED, "qrels")
    repaired = audit.repaired(all_labels, patches, cut)
    positives = repaired.filter(pl.col("score") >= cut)
    pooled: Any = check(stages.config("pool"), context.settings.get("pool") or {}, "pool")
    depth = min(config.recall, int(pooled.depth))  # pooled retrievers have no documents below the pool's depth
    rankings = _rankings(config, context, depth)
    panel = read_json(context.folder("judge") / "panel.json")
    encoders = {str(identity["encoder"]) for identity in panel.values() if "encoder" in identity}
    with waiting(context.progress, StepLabel("measuring labels and systems")):
        figures = AuditFigures(
            name=context.name,
            queries=len(counts),
            queries_without_label=int((counts["labels"] == 0).sum()),
            pairs=len(verdicts),
            panel=tuple(sorted(panel)),
            heuristic=all("heuristic" in identity for identity in panel.values()),
            relevant_from=context.relevant_from,
            unknown=_unknown(context),
            dependence=card_facts.dependence(context),
            measures=audit.measures(counts, context.seed),
            patch=audit.sizes(patches),
            masking=_masking(context, patches),
            corrected=tuple(
                corrected_counts(
                    answers,
                    frames(verdicts, labels, context.folder("pool"), context.scale),
                    queries["query_id"].to_list(),
                )
                for answers in _reviewed_samples(context)
            ),
            systems=compare(rankings, labels, positives, verdicts, depth=depth, seed=context.seed, judges=encoders),
        )
    _write(context, compared, counts, patches, repaired)
    _export(context, repaired, positives, figures)
    write_json(context.out / "audit.json", figures.to_json())
    write_text(context.out / "audit.html", _page(config, context, figures.to_json(), compared, counts))
    return Report(
        len(compared), len(repaired), facts={"labels": len(labels), **figures.patch.to_json()}, notes=_notes(figures)
    )


def _first_ids(context: Context, table: str, column: str) -> pl.DataFrame:
    """Return every id, in `column`, and the `first` id with the same text before masking."""
    classes = same_text(context.read("mask", "classes"), table)
    return classes.select(pl.col("id").alias(column), first=pl.col("id").first().over("class"))


def _unknown(context: Context) -> UnknownLabels:
    lost = context.read("mask", "dropped").filter(pl.col("table") == "qrels").sort("id")
    reasons = dict(lost.group_by("reason").len().sort("reason").iter_rows())
    return UnknownLabels(len(lost), tuple(lost["id"].head(NAMED)), reasons)


def _masking(context: Context, patches: pl.DataFrame) -> AuditMasking:
    altered, facts = context.read("mask", "altered"), context.done("mask").facts
    is_altered = [
        pl.col(column).is_in(altered.filter(pl.col("table") == table)["id"].implode())
        for table, column in (("queries", "query_id"), ("corpus", "doc_id"))
    ]
    counts = {
        fact: sum(int(cast("int", facts.get(f"{fact}_{table}", 0))) for table in ("queries", "corpus"))
        for fact in ("made_equal", "shortened")
    }
    return AuditMasking(**counts, patched=patches.filter(pl.any_horizontal(is_altered)).height)


def _with_call_ids(patches: pl.DataFrame, context: Context) -> pl.DataFrame:
    """Return the patch with a column of the ledger ids of its pairs' LLM calls."""
    panel = read_json(context.folder("judge") / "panel.json")
    llm_judges = tuple(name for name, identity in panel.items() if "rubric" in identity)
    calls = pl.DataFrame(schema={**dict.fromkeys(PAIR, pl.String), "calls": pl.String})
    if llm_judges:
        section = check(JudgeConfig, context.settings.get("judge") or {}, "judge")
        with Ledger(context.ledger or default_path(context.home)) as ledger:
            run = seating.seated(section.model_copy(update={"models": llm_judges}), context, ledger)
            calls_by_judge = [
                run.table.pool.pairs.join(run.table.standing(judge), on=["query_digest", "passage_digest"])
                .filter(pl.col("call_id").is_not_null())
                .select(*PAIR, calls=pl.concat_str(pl.lit(f"{judge.name}="), "call_id"))
                for judge in run.paid()
            ]
        calls = pl.concat(calls_by_judge).sort(*PAIR, "calls").group_by(PAIR).agg(pl.col("calls").str.join(" "))
    return patches.join(calls, on=PAIR, how="left", maintain_order="left")


def _rankings(config: Config, context: Context, depth: int) -> pl.DataFrame:
    """Return the rankings of the pooled retrievers and of further systems."""
    pooled = context.read("pool", "rankings")
    queries = [Query(*row) for row in context.queries.select("query_id", "text").iter_rows()]
    corpus = context.corpus
    rankings = [pooled]
    for name in config.systems:
        retriever = build.retriever(context, name)
        batches = ranking.ask(retriever, corpus, queries, depth, context.progress)
        rankings += [ranking.frame(name, batch, hits, depth) for batch, hits in batches]
    return pl.concat(rankings)


def _reviewed_samples(context: Context) -> list[Desk]:
    """Return the reviewed samples of this audit."""
    return [answers for answers in graded_desks(context.run) if answers.sample.design.facts.get("of") == "audit"]


def _write(
    context: Context, compared: pl.DataFrame, counts: pl.DataFrame, patches: pl.DataFrame, repaired: pl.DataFrame
) -> None:
    for name, table in (("compared", compared), ("audited", counts), ("patch", patches), ("qrels", repaired)):
        write_table(context.out, name, table)
    patches.write_csv(context.out / "patch.tsv", separator="\t")
    qrels = repaired.select(pl.col("query_id").alias("query-id"), pl.col("doc_id").alias("corpus-id"), "score")
    qrels.write_csv(context.out / "qrels.tsv", separator="\t")


def _export(context: Context, repaired: pl.DataFrame, positives: pl.DataFrame, figures: AuditFigures) -> None:
    """Write the repaired set, without queries that have no positive, in mteb's format; ids are unchanged."""
    queries = context.queries.join(positives, on="query_id", how="semi", maintain_order="left")
    rubric = context.done("judge").facts.get("rubric")
    benchmark = Benchmark(
        name=f"{context.name}-repaired",
        language=context.language,
        queries=queries,
        corpus=context.corpus,
        qrels=repaired.join(queries, on="query_id", how="semi", maintain_order="left"),
        candidates=frame("qrels"),
        verdicts=context.read("consensus", "verdicts").join(queries, on="query_id", how="semi"),
        scale=context.scale,
        relevant_from=context.relevant_from or 1,
        facts={
            "weak_judges": figures.heuristic,
            "judges": list(figures.panel),
            "dependence": card_facts.warned(figures.dependence),
            "prompts": [rubric] if rubric else [],
            "parts": card_facts.had_a_part(context),
            "repaired": LABELS if (cut := context.relevant_from or 1) == 1 else f"{LABELS} {SCORES.format(cut)}",
        },
        duplicates="keep",
    )
    (context.out / "mteb").mkdir()
    EXPORTERS.load("mteb")(benchmark, context.out / "mteb")
    manifest.write(context.out / "mteb", {"name": benchmark.name, "language": context.language, "format": "repaired"})


def _page(
    config: Config, context: Context, figures: Mapping[str, Any], compared: pl.DataFrame, counts: pl.DataFrame
) -> str:
    """Return the HTML report; only excerpts of example documents are read into memory, not the corpus."""
    worst = page.worst(counts, config.worst)
    pairs = page.examples(compared, worst, config.examples)
    doc_ids = set(pairs["doc_id"])
    corpus = context.corpus
    passages = {
        doc.doc_id: run_figures.excerpt(doc.shown(), config.excerpt)
        for batch in corpus.batches()
        for doc in batch
        if doc.doc_id in doc_ids
    }
    texts = dict(context.queries.select("query_id", "text").iter_rows())
    cards = page.cards(worst, pairs, counts, texts, passages)
    mask = context.settings.get("mask")
    masked = not isinstance(mask, Mapping) or mask.get("enabled") is not False
    return page.page(
        figures,
        cards,
        context.language,
        context.scale,
        weak=run_figures.failed(context.done("judge").facts),
        personal=privacy_guard.residual(context).select("table", "id").unique().height if masked else None,
    )


def _notes(figures: AuditFigures) -> list[str]:
    """Return notes on how the figures may be used, one sentence each."""
    notes = [f"WARNING: {warning}" for warning in figures.dependence.warnings or ()]
    if figures.heuristic:
        notes.append("all judges are heuristics: the means are for testing only, no evidence about the labels")
    if figures.queries < FEW:
        notes.append(f"with fewer than {FEW} queries the intervals are too narrow")
    if lost := figures.unknown.labels:
        notes.append(
            f"{lost:,} labels name texts that are not there, and are in no figure: see `unknown` in audit.json"
        )
    if lines := figures.masking.patched:
        notes.append(
            f"{lines:,} lines of the patch are about texts that masking made equal to others or took more than a third "
            "of, so the panel did not see what they said: see `curate show mask/altered`"
        )
    old = [sample.sample for sample in figures.corrected if sample.outdated]
    notes += [f"the sample {name!r} was drawn of other verdicts and corrects nothing" for name in old]
    return notes


def fingerprint(config: Config, context: Context) -> Json:
    """Return the identities of systems and the digests of reviews; ConfigError unless exact duplicates are retained."""
    diversify = context.settings.get(FILTERED)
    if context.duplicates != "keep" or not isinstance(diversify, Mapping) or diversify.get("enabled") is not False:
        raise ConfigError(
            "audit: expected every text of the set under its own id; set ingest.duplicates: keep and "
            "diversify.enabled: false, as pipelines/audit.yaml does"
        )
    pool = context.settings.get("pool")
    if isinstance(pool, Mapping) and pool.get("queries"):
        raise ConfigError("audit: found pool.queries, expected all queries judged; take a sample with ingest.sample")
    samples = [*_reviewed_samples(context), *relevance_desks(context.run)]  # these are about the judges too
    answers: dict[str, Json] = {sample.sample.design.name: sample.digest for sample in samples}
    scores: dict[str, Json] = {} if context.relevant_from is None else {"relevant_from": context.relevant_from}
    systems = {name: build.retriever(context, name).identity for name in config.systems}
    return {"systems": systems, "answers": answers, **scores}


STAGE = Stage("audit", Config, ("mask", FILTERED, "pool", "judge", "consensus"), run, fingerprint, version=3)
