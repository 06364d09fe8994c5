"""Stage `export`: checks the benchmark, then writes it in the configured formats.

Input: queries and corpus of `diversify`, pool, ratings, agreement, and the labels of `resolve`. Output: one folder per
format, and `dropped` (excluded queries, with reasons). The output has no times or paths, so exports of the same run are
byte-identical. Nothing is written while `mask` lists residual PII in a text of the export.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from curate.ask import privacy_guard
from curate.ask.billing import beside_stages
from curate.commands.export import Config, gate, integrity, least_items, shortcuts
from curate.commands.export import labels as growth
from curate.commands.export import labels as reranking
from curate.commands.export.labels import made_from, made_of_kinds
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel
from curate.core.protocols import Benchmark
from curate.core.records import FILTERED
from curate.panel.judge_dependence import Dependence
from curate.panel.voting import PAIR
from curate.pipeline import facts as circularity
from curate.pipeline import facts as synthetic_queries
from curate.pipeline import parent
from curate.pipeline.facts import NO_GAIN, NO_POSITIVE, TOO_FEW, nothing_left, pooled
from curate.pipeline.stage import Context, Report, Stage
from curate.review import flags
from curate.runs import card_facts, graded_labels, published_ids
from curate.runs.pool_record import FollowedPool, export_record
from curate.system.corpus import CountedCorpus, KeptCorpus
from curate.system.files import frame, read_json, there, write_table
from curate.tables.exporters import EXPORTERS, FOLDERS, OF_CANDIDATES, holds_candidates_only, manifest
from curate.tables.exporters.ids import PublishedIds, of_passages, published
from curate.tables.exporters.triples import alone
from curate.tables.kinds import kinds, stages


def run(config: Config, context: Context) -> Report:
    """Assemble, scan and check the benchmark, and write every format."""
    judged, positives = (context.read("resolve", name) for name in ("verdicts", "qrels"))
    removed = frozenset(context.read("resolve", "dropped").filter(pl.col("table") == "corpus")["id"])
    # from here on, only documents that are still in the corpus
    verdicts = judged.filter(~pl.col("doc_id").is_in(sorted(removed)))
    graded = graded_labels.made(config, context, verdicts)
    if graded is not None:
        positives = positives.join(graded.filter(pl.col("score") > 0), on="query_id", how="semi")
    queries = _with_a_positive(context, positives)
    lost = _unexported_counts(verdicts, queries)
    verdicts = verdicts.join(queries, on="query_id", how="semi")
    tables = _kind_tables(context, removed)
    suspicious = _suspicious(context, [queries, *tables.values()], removed)
    ids = published_ids.published_identifiers(context)
    config, chosen, short, small = _drawn(config, context, verdicts, ids)
    mix = reranking.mix(chosen, verdicts, context.scale)
    agreed = read_json(context.folder("consensus") / "agreement.json")
    agreed["rerank"] = reranking.agreement(context, chosen, agreed["panel"])
    common = card_facts.dependence(context)
    facts = {**card_facts.facts(context, agreed, common, suspicious), **_chosen_settings(config, mix)}
    benchmark = Benchmark(
        queries=queries,
        corpus=KeptCorpus(context.corpus, removed),
        qrels=positives,
        candidates=chosen,
        verdicts=verdicts,
        facts=facts,
        tables=tables,
        graded=None if graded is None else graded.join(queries, on="query_id", how="semi"),
        **_fixed(config, context),
    )
    reranking.need_retrieval(benchmark, config, short)
    benchmark, finds, gated = gate.passed(benchmark, context)
    benchmark, small = least_items.large_enough(benchmark, config, small)
    dropped = _left_out(context, queries, benchmark.queries, short, ids)
    benchmark, ids, renamed = published(benchmark, ids)
    integrity.check(_with_progress(benchmark, context, "checking the corpus"))
    tried, warned = shortcuts.check(config.shortcuts, context, benchmark)
    grown = growth.growth(context, judged, positives)
    common_facts = {"lost": lost, "dependence": common.to_json(), **least_items.fact(small)}
    provenance = partial(_provenance, config, context, judged, common_facts, ids)
    formats = least_items.formats(benchmark, config, small)
    _write(formats, context, benchmark, ids, renamed, provenance, grown)
    write_table(context.out, gate.TABLE, finds)
    write_table(context.out, "dropped", dropped)
    counts: dict[str, Json] = {
        **_counts(benchmark, formats, grown),
        "rerank_negatives_by_best_grade": mix,
        "rerank_agreement": agreed["rerank"],
        "residual": suspicious,
        "gate": gated,
        **_resolution(context),
        "shortcuts": tried,
    }
    notes = [*_notes(config, common, short, renamed, suspicious, grown), *graded_labels.notes(benchmark), *warned]
    notes += [*published_ids.id_notes(ids, context), *gate.notes(gated), *least_items.notes(small, benchmark, config)]
    notes += integrity.filling_notes(config, benchmark)
    return Report(len(judged), len(positives), len(dropped) - len(short), facts=counts, notes=notes)


def _drawn(
    config: Config, context: Context, verdicts: pl.DataFrame, ids: PublishedIds
) -> tuple[Config, pl.DataFrame, list[str], least_items.Small]:
    """Return the settings, the reranking candidates, the queries without enough negatives, and what is too small.

    Reranking of too few queries is off in these settings, as if the user had switched it off.
    """
    chosen, short = reranking.drawn(config, context, verdicts, ids)
    small = least_items.of_reranking(chosen, config)
    if small:
        config = config.model_copy(update={"rerank": config.rerank.model_copy(update={"enabled": False})})
        chosen, short = chosen.clear(), []
    return config, chosen, short, small


def _kind_tables(context: Context, removed: frozenset[str]) -> dict[str, pl.DataFrame]:
    """Return name -> table for the kinds whose stage has run, without items of removed documents."""
    tables = {
        kind.table: context.read(kind.stage, kind.table, kind.columns)
        for kind in kinds()
        if kind.stage and kind.table and context.report(kind.stage)
    }
    is_removed = (pl.col("side") == "corpus") & pl.col("item_id").is_in(sorted(removed))
    return {name: rows.filter(~is_removed) if "side" in rows else rows for name, rows in tables.items()}


def _with_a_positive(context: Context, positives: pl.DataFrame) -> pl.DataFrame:
    """Return the queries with a positive; DataError if there is none."""
    queries = context.queries.join(positives, on="query_id", how="semi", maintain_order="left")
    if queries.is_empty():
        raise DataError(
            "\n".join(
                (
                    "export: no query has a positive, so there is no benchmark to write",
                    *nothing_left(context, ("ingest", *AFTER), partial(beside_stages, context)),
                    "next: look at `curate report`, or at `curate show verdicts`",
                )
            )
        )
    return queries


def _suspicious(context: Context, tables: Sequence[pl.DataFrame], removed: frozenset[str]) -> int:
    """Return the number of texts with residual PII among the queries of these tables and the corpus.

    Accepted texts do not count. UserError for others, unless the settings permit them, and while an assessor's flag of
    personal data is open.
    """
    corpus = pl.scan_parquet(context.folder(FILTERED) / "corpus.parquet").select("doc_id").collect()["doc_id"]
    flags.stop("export", context.run)
    residual = privacy_guard.residual(context)
    queries = pl.concat(
        [
            table.filter(pl.col("side") == "queries")["item_id"] if "side" in table else table["query_id"]
            for table in tables
            if "side" in table or "query_id" in table
        ]
    )
    is_query = (pl.col("table") == "queries") & pl.col("id").is_in(queries.implode())
    is_document = (
        (pl.col("table") == "corpus") & pl.col("id").is_in(corpus.implode()) & ~pl.col("id").is_in(sorted(removed))
    )
    return privacy_guard.stop("export", residual.filter(is_query | is_document), context)


def _fixed(config: Config, context: Context) -> dict[str, Any]:
    """Return the attributes of the benchmark that follow from the settings alone."""
    return {
        "name": context.name,
        "language": context.language,
        "duplicates": context.duplicates,
        "scale": context.scale,
        "replaced": config.labels == "graded",
        "apart": config.rerank.apart,
    }


def _counts(benchmark: Benchmark, formats: Sequence[str], grown: dict[str, Json] | None) -> dict[str, Json]:
    return {
        "formats": list(formats),
        "queries": len(benchmark.queries),
        "corpus": len(benchmark.corpus),
        "qrels": len(benchmark.qrels),
        "rerank_queries": benchmark.candidates["query_id"].n_unique(),
        "rerank_candidates": len(benchmark.candidates),
        **growth.fact(grown),
    }


def _resolution(context: Context) -> dict[str, Json]:
    """Return the number of pairs that experts overrode, and the decisions by a threshold or a tie-breaker judge."""
    facts = context.done("resolve").facts
    beyond = {name: fact for name, fact in facts.items() if name in ("accept", "settle")}
    return {"overridden": facts["overridden"], "beyond": beyond}


def _unexported_counts(verdicts: pl.DataFrame, queries: pl.DataFrame) -> dict[str, Json]:
    """Return the numbers of judged queries without a positive, which are not exported, and of their pairs."""
    gone = verdicts.join(queries, on="query_id", how="anti")
    contested = gone.filter(pl.col("verdict") == "contested")
    return {"queries": gone["query_id"].n_unique(), "pairs": len(gone), "contested": len(contested)}


def _provenance(
    config: Config,
    context: Context,
    judged: pl.DataFrame,
    common_facts: Mapping[str, Json],
    ids: PublishedIds,
    held: Benchmark,
) -> dict[str, Json]:
    """Return the provenance of one format's labels, for its manifest."""
    labels = made_from(context, held, judged, config, ids)
    judges: dict[str, Json] = {**circularity.of_judges(context)}
    of_parts = {**card_facts.synthetic_in_manifest(context), **made_of_kinds(context, held)}
    return {"labels": labels, **common_facts, "judges": judges, **of_parts}


def _write(
    formats: Sequence[str],
    context: Context,
    benchmark: Benchmark,
    ids: PublishedIds,
    renamed: pl.DataFrame | None,
    provenance: Callable[..., dict[str, Json]],
    grown: dict[str, Json] | None,
) -> None:
    """Write every format with its verdicts, passages and manifest, the map of renamed ids, and the export records."""
    passages, pool = _passages(context, ids), FollowedPool.of_run(context, ids)
    all_documents, records = _doc_ids(benchmark), list[dict[str, Json]]()
    for name in formats:
        folder = context.out / name
        folder.mkdir()
        held = _part_for(benchmark, name)
        EXPORTERS.load(name)(_with_progress(held, context, f"writing {name}"), folder)
        write_table(folder, "verdicts", held.verdicts.sort(PAIR))
        synthetic_queries.write(folder, held.queries)
        candidates_only = holds_candidates_only(held, name)
        doc_ids = _doc_ids(held) if name in OF_CANDIDATES else all_documents
        if passages is not None:
            write_table(folder, "passages", passages.filter(pl.col("doc_id").is_in(doc_ids)))
        body = {**manifest.described(held, name), **provenance(held)}
        followed = None if candidates_only else pool
        if followed is not None:
            body["pool"] = followed.entry
        if grown is not None:
            growth.write(folder, context, grown)
            body["grown"] = grown
        manifest.write(folder, body)
        if followed is not None:
            pairs = followed.pairs.join(held.verdicts, on=PAIR, how="semi")
            records.append(
                export_record(followed.record, manifest.read(folder), pairs, doc_ids, held.queries["query_id"])
            )
    if pool is not None:
        pool.note(context, records)
    if renamed is not None:
        renamed.write_csv(context.out / "renamed_ids.tsv", separator="\t")


def _doc_ids(benchmark: Benchmark) -> list[str]:
    return [document.doc_id for batch in benchmark.corpus.batches() for document in batch]


def _passages(context: Context, ids: PublishedIds) -> pl.DataFrame | None:
    """Return the passages of the documents that `ingest` cut, by published ids; None if it cuts none."""
    if not there(context.folder("ingest"), "passages"):
        return None
    return of_passages(context.read("ingest", "passages"), ids)


def _part_for(benchmark: Benchmark, name: str) -> Benchmark:
    """Return the benchmark limited to the content of a format."""
    if name in OF_CANDIDATES:
        return alone(benchmark)
    return benchmark if name in FOLDERS else benchmark.of_retrieval()


def _with_progress(benchmark: Benchmark, context: Context, label: str) -> Benchmark:
    """Return the benchmark with a corpus that reports progress while it is read."""
    return replace(benchmark, corpus=CountedCorpus(benchmark.corpus, context.progress, StepLabel(label, "documents")))


def _notes(
    config: Config,
    common: Dependence,
    short: list[str],
    renamed: pl.DataFrame | None,
    suspicious: int,
    grown: Mapping[str, Json] | None,
) -> list[str]:
    notes = [f"WARNING: {warning}" for warning in common.warnings or ()]
    if suspicious:
        notes.append(f"{suspicious:,} texts hold what looks like personal data and was allowed; see mask/residual")
    if short:
        notes.append(f"{len(short):,} queries are in no reranking: under {config.rerank.negatives} negatives")
    if renamed is not None:
        notes.append("ids of queries and documents met, so all got prefixes; see renamed_ids.tsv")
    return [*notes, *growth.notes(grown)]


def fingerprint(config: Config, context: Context) -> Json:
    """Return the facts of the dataset card that do not come from a table, after checking formats and settings."""
    if not config.formats:
        raise ConfigError(f"export.formats: expected one or more of {', '.join(EXPORTERS.names())}")
    for name in config.formats:
        EXPORTERS.load(name)
    graded_labels.refuse(config, context)
    integrity.refuse_filling(config)
    shortcuts.refuse_sending(config.shortcuts, context)
    judged = context.report("judge")
    return {
        "duplicates": context.duplicates,
        "rubric": judged.facts.get("rubric") if judged else None,
        "residual": privacy_guard.allowed(context),
        "experts": card_facts.experts(context),
        "told": card_facts.settings(context),
        "families": card_facts.families(context),
        "circular": circularity.checked(context),
        **parent.identity(context.run),
    }


def _chosen_settings(config: Config, mix: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings of this stage that the card shows."""
    return {
        **{name: getattr(config, name) for name in ("license", "source", "citation", "instruction")},
        **({"task_metadata": config.mteb.given} if config.mteb.given else {}),
        **({} if config.gain is None else {"graded labels": graded_labels.in_words(config.gain)}),
        **({"reranking queries": "a set of their own, in no retrieval task"} if config.rerank.apart else {}),
        "reranking negatives, drawn": config.rerank.draw,
        "reranking negatives, best grade of a vote": ", ".join(f"{grade} {count}" for grade, count in mix.items()),
    }


def _left_out(
    context: Context, queries: pl.DataFrame, exported: pl.DataFrame, short: list[str], ids: PublishedIds
) -> pl.DataFrame:
    """Return the queries that are not exported, or not in reranking, with reasons; by published ids.

    `queries` have a positive; those of them that are not `exported` are of a task with too few items.
    """
    excluded = pooled(context).join(queries, on="query_id", how="anti")["query_id"]
    with_gain = set(context.read("resolve", "qrels")["query_id"])
    reasons = [(query_id, NO_GAIN if query_id in with_gain else NO_POSITIVE) for query_id in excluded]
    too_few = queries.join(exported, on="query_id", how="anti")["query_id"]
    reasons += [(query_id, TOO_FEW) for query_id in too_few]
    reasons += [(query_id, "too few negatives for reranking") for query_id in short]
    rows = ({"table": "queries", "id": name, "stage": "export", "reason": reason} for name, reason in sorted(reasons))
    dropped = frame("dropped", rows)
    return dropped if ids.key is None else ids.of(dropped.rename({"id": "query_id"})).rename({"query_id": "id"})


AFTER = ("mask", FILTERED, "pool", "judge", "consensus", "resolve", *stages())
STAGE = Stage("export", Config, AFTER, run, fingerprint, optional=stages(), version=11)
