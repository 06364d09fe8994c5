"""Facts for the dataset card of an export: judges, agreement, expert review, settings, personal data."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl

from curate.ask import privacy_guard, settling
from curate.core.config import Json
from curate.core.records import FILTERED
from curate.llm.providers import presets
from curate.panel import judge_dependence
from curate.panel.judge_dependence import Dependence
from curate.pipeline import facts as circularity
from curate.pipeline import facts as looked_up
from curate.pipeline import facts as synthetic_queries
from curate.pipeline import legacy
from curate.pipeline.stage import Context
from curate.pipeline.withdrawn import Withdrawn
from curate.retrieval import ranking
from curate.review import acceptance, agreement, item_proof, items, relevance_desks
from curate.review.lead import lead
from curate.review.showing import columns
from curate.stats import ratios
from curate.system.files import read_json
from curate.tables import kinds
from curate.tables.exporters.labels import parts
from curate.view import charts, run_figures
from curate.view.run_figures import lead_rows
from curate.view.words import strings

KINDS = {"replay": "recorded grades", "heuristic": "heuristic"}
"""Key of a judge's identity -> kind of judge."""
_FATE = {"merge": "merged", "keep": "kept"}
"""Value of the setting for exact duplicates -> past participle, for sentences."""
TOLD = (
    f"{FILTERED}.encoder",
    f"{FILTERED}.approximate",
    f"{FILTERED}.queries",
    f"{FILTERED}.corpus",
    "pool.retrievers",
    "pool.method",
    "pool.depth",
    "pool.size",
    "pool.legacy",
    "judge.batch",
    "judge.passage_tokens",
    "judge.cascade",
    "consensus.policy",
    "consensus.corpus",
    "consensus.accept",
    "consensus.settle",
)
"""Settings shown on the card if the pipeline sets them; none contains a path."""


def dependence(context: Context) -> Dependence:
    """Return the dependence of the run's judges, with warnings in English, as `agreement.dependence` does."""
    return agreement.dependence(
        context.run, context.seed, context.definitions.get("judges", {}), judged=context.folder("judge")
    )


def warned(common: Dependence) -> dict[str, Json]:
    """Return the card's `warnings` of dependent judges and a sentence on their `effective` number."""
    return {
        "warnings": list(common.warnings or ()),
        "effective": judge_dependence.worth(common, strings("en")["dependence"]),
    }


def leading(context: Context, agreed: Mapping[str, Any], common: Dependence) -> dict[str, Json]:
    """Return the key facts that open HTML report and card (see `review.lead.lead`), with the writers of queries.

    `agreed` is the content of agreement.json, `common` the result of `dependence`.
    """
    first_section = lead(context.run, agreed, common, circularity.checked(context), context.scale)
    return {**first_section, "synthetic": list(synthetic_writers(context))}


def synthetic_writers(context: Context) -> list[dict[str, Json]]:
    """Return one row per model that wrote queries of the run, as `synthetic_queries.writers`; empty without any."""
    queries = context.queries
    if synthetic_queries.marked(queries).is_empty():
        return []
    return synthetic_queries.writers(queries, _retrieved_and_judged(context), families(context))


def synthetic_in_manifest(context: Context) -> dict[str, Json]:
    """Return the manifest's entry `synthetic`: one row per model that wrote queries; no entry without such queries."""
    wrote = synthetic_writers(context)
    return {"synthetic": list(wrote)} if wrote else {}


def _lead(context: Context, agreed: Mapping[str, Any], common: Dependence) -> list[Json]:
    """Return the key facts of `leading` as rows of a title and a text."""
    words = charts.fitted(strings("en"), context.scale)
    rows = lead_rows(leading(context, agreed, common), words)
    return [{"": row.title, "here": ". ".join(line[:1].upper() + line[1:] for line in row.lines)} for row in rows]


def _baselines(context: Context) -> list[Json]:
    """Return one row per retriever of the pools: its nDCG@10 on the published positives, with its interval."""
    positives = context.read("resolve", "qrels").filter(pl.col("score") > 0)
    relevant = {str(query): {*rows["doc_id"]} for (query,), rows in positives.group_by("query_id", maintain_order=True)}
    ranked = pl.scan_parquet(context.folder("pool") / "rankings.parquet").filter(pl.col("rank") <= 10).collect()
    definitions = context.definitions.get("retrievers", {})
    rows: list[Json] = []
    for (retriever,), hits in ranked.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        top = {str(query): ten["doc_id"].to_list() for (query,), ten in hits.group_by("query_id", maintain_order=True)}
        scores = [ranking.ndcg(top.get(query, []), documents) for query, documents in relevant.items()]
        if mean := ratios.mean(scores, range(len(scores)), context.seed):
            bounds = None if mean.low is None or mean.high is None else (mean.low, mean.high)
            figure = run_figures.ranged(mean.value, bounds)
            kind = definitions.get(str(retriever), {}).get("kind", retriever)
            name = retriever if kind == retriever else f"{retriever} ({kind})"
            rows.append({"retriever": name, "nDCG@10": figure, "queries": len(scores)})
    return rows


def checked(context: Context) -> dict[str, Sequence[item_proof.ItemProof]]:
    """Return task type -> figures of the reviewed samples of its items, for checkable types whose stage has run."""
    proofs: dict[str, Sequence[item_proof.ItemProof]] = {}
    for name, kind in items.checkable().items():
        if kind.stage and context.report(kind.stage):
            published = kind.to_review(context.read(kind.stage, kind.table, kind.columns))
            proofs[name] = item_proof.of_kind(context.run, kind, published) if published else []
    return proofs


def experts(context: Context) -> dict[str, Json]:
    """Return sample name -> digest of the experts' answers on this run's labels and items."""
    reviews = [*relevance_desks(context.run), *items.item_desks(context.run)]
    return {answers.sample.design.name: digest for answers in reviews if (digest := answers.digest) is not None}


def families(context: Context) -> dict[str, Json]:
    """Return judge -> its model family; empty before the stage `judge` has run."""
    path = context.folder("judge") / "panel.json"
    return {**presets.families(read_json(path), context.definitions.get("judges", {}))} if path.is_file() else {}


def facts(context: Context, agreed: Mapping[str, Any], common: Dependence, suspicious: int) -> dict[str, Json]:
    """Return the facts of a run for its card, without times and paths.

    `agreed` is the content of agreement.json, `common` the result of `dependence`, `suspicious` the number of texts
    with possible residual PII.
    """
    judged: dict[str, Any] = dict(context.done("judge").facts)
    resolved: dict[str, Any] = dict(context.done("resolve").facts)
    panel: list[str] = agreed["panel"]
    return {
        "weak_judges": run_figures.only_heuristics(panel, judged["heuristic"]),
        "judges": _judges(context, judged, panel),
        "parts": had_a_part(context),
        "prompts": [judged["rubric"]] if judged["rubric"] else [],
        "agreement": agreement_rows(agreed),
        "dependence": warned(common),
        "lead": _lead(context, agreed, common),
        "baselines": _baselines(context),
        "experts": _experts(context),
        "privacy": _privacy(context, suspicious),
        "checked": {name: item_proof.on_card(proofs) for name, proofs in checked(context).items() if proofs},
        "kinds": {stage: dict(did.facts) for stage in kinds.stages() if (did := context.report(stage))},
        "counts": _counts(agreed["counts"], resolved["counts"]),
        **settings(context),
        "labels": resolved["policy"],
        "pairs that experts read": resolved["reviewed"],
        "verdicts that experts changed": resolved["overridden"],
        **_beyond(resolved),
        "equal texts": "kept under their own ids" if context.duplicates == "keep" else "merged",
    }


def _beyond(resolved: Mapping[str, Any]) -> dict[str, Json]:
    """Return what else decided labels: known positives of the data, a reviewed threshold, a tie-breaker judge."""
    facts: dict[str, Json] = {}
    if brought := resolved.get("legacy"):
        facts["known positives that the data came with, and joined the pools"] = legacy.sentence(brought)
    if accepted := resolved.get("accept"):
        facts["relevant by a reviewed threshold"] = acceptance.headline(accepted)
    if settled := resolved.get("settle"):
        facts[f"contested pairs decided by one judge, {settled['judge']}"] = (
            f"{settled['pairs']:,}: {settled['relevant']:,} relevant, {settled['not relevant']:,} not; "
            f"{settled['left']:,} are still contested"
        )
    return facts


def had_a_part(context: Context) -> dict[str, Json]:
    """Return role -> names of the models that took part in building the set: retrievers, judges, generators.

    Roles as in `tables.exporters.labels.parts`.
    """
    wrote = [str(synthetic_writer["writer"]) for synthetic_writer in synthetic_writers(context)]
    return {**_retrieved_and_judged(context), **({"generator": list(wrote)} if wrote else {})}


def _retrieved_and_judged(context: Context) -> dict[str, Json]:
    rankings = pl.scan_parquet(context.folder("pool") / "rankings.parquet")
    retrievers = rankings.select(pl.col("retriever").unique()).collect()["retriever"]
    panel = read_json(context.folder("judge") / "panel.json")
    if name := settling.judge_of(context):  # a model of its family is as circular as one of the panel's
        panel[name] = settling.identity(name, context)
    return {**parts(retrievers, panel, context.definitions)}


def _judges(context: Context, judged: Mapping[str, Any], panel: list[str]) -> list[Json]:
    """Return one row per judge: kind, parameters and names in replies of a model, results of its checks."""
    identities, rows = read_json(context.folder("judge") / "panel.json"), list[Json]()
    circular = circularity.checked(context)
    agreed: dict[str, Any] = dict(context.done("consensus").facts)
    gains = {judge["judge"]: run_figures.effect(judge["effect"]) for judge in circular["judges"]} if circular else {}
    for name in panel:
        identity = identities[name]
        kind = (
            "recorded grades" if "replay" in identity else "heuristic" if "heuristic" in identity else "language model"
        )
        parameters = {key: identity[key] for key in ("model", "temperature") if key in identity}
        if isinstance(model := identity.get("model"), Mapping) and "vendor" in model:
            parameters["model"] = {**model, "vendor": presets.published_vendor(model["vendor"])}
        replied = (judged.get("models") or {}).get(name)
        names = {"in replies": ", ".join(replied)} if replied else {}
        controls = {"controls": "reads its prompts; not qualified"} if name in (judged.get("controls") or {}) else {}
        share = (agreed.get("places") or {}).get(name, (None,))[0]
        position_effect = (
            {} if share is None else {"grades explained by the place in the prompt": f"{max(share, 0):.1%}"}
        )
        gained = {"nDCG@10 gained by judging itself": gains.get(name)} if gains else {}
        heuristic = " (heuristic)" if name in judged["heuristic"] else ""
        failed = " (did not pass its controls)" if name in run_figures.failed(judged) else ""
        row: dict[str, Json] = {"judge": f"{name}{heuristic}{failed}", "kind": kind}
        rows.append({**row, **parameters, **names, **controls, **position_effect, **gained})
    return rows


def settings(context: Context) -> dict[str, Json]:
    """Return the settings of `TOLD` that are set, the effect of near-duplicate filtering, and the pool's indexes."""
    shown_settings: dict[str, Json] = {}
    for key in TOLD:
        stage, _, name = key.partition(".")
        section = context.settings.get(stage)
        if isinstance(section, Mapping) and section.get(name) is not None:
            shown_settings[key] = section[name]
    thinned = context.report(FILTERED)
    for table in ("queries", "corpus"):
        counts = thinned.facts.get(table) if thinned else None
        if isinstance(counts, Mapping):
            shown_settings[f"{table} before and after diversify"] = f"{counts['items']:,} and {counts['kept']:,}"
    return {**shown_settings, **looked_up.on_card(context)}


def _counts(panel: Mapping[str, Any], published: Mapping[str, Any]) -> Json:
    """Return verdict -> number of pairs; if the panel's and the published ones differ, rows with a column for each."""
    if all(panel[name] == count for name, count in published.items()):
        return dict(panel)
    plain = {name: count for name, count in panel.items() if not isinstance(count, Mapping)}
    scores = panel.get("ndcg_at_10", {})
    plain |= {f"ndcg_at_10, {name}, {corpus}": score for name, both in scores.items() for corpus, score in both.items()}
    return [{"": name, "panel": count, "published": published.get(name, "")} for name, count in plain.items()]


def _experts(context: Context) -> list[Json]:
    """Return one row per figure of expert review, with a column per set of labels (panel, published) and sample."""
    columns_by_head = {
        f"{column.labels}, {' and '.join(column.samples)}": column
        for column in columns(context.run, context.folder("resolve"))
    }
    names = dict.fromkeys(name for column in columns_by_head.values() for name in column.shares)
    read: dict[str, Json] = {"": "pairs read", **{head: column.read for head, column in columns_by_head.items()}}
    rows: list[dict[str, Json]] = [
        {
            "": name,
            **{
                head: run_figures.between(cast("Any", column.shares.get(name)))
                for head, column in columns_by_head.items()
            },
        }
        for name in names
    ]
    return [read, *rows] if columns_by_head else []


def _privacy(context: Context, suspicious: int) -> list[Json]:
    """Return sentences on the handling of personal data, and on withdrawn records."""
    withdrawn = Withdrawn.read(context.run).note()
    return [
        *_masking(context, suspicious),
        *([f"{withdrawn}, and are in no table and no figure."] if withdrawn else []),
    ]


def _masking(context: Context, suspicious: int) -> list[Json]:
    section, report = context.settings.get("mask"), context.report("mask")
    options = section if isinstance(section, Mapping) else {}
    if options.get("enabled") is False or report is None:
        return ["The texts were not masked by this pipeline."]
    changed = f"{report.facts['masked_queries']:,} queries and {report.facts['masked_corpus']:,} documents"
    looked = "Rules and a local language model" if options.get("model") else "Rules"
    lines: list[Json] = [
        f"{looked} looked for names, addresses, telephone and identity numbers and the like, and masked them.",
        f"Something was masked in {changed}, of all that were read.",
        "A second scan looked for what was missed; no such scan finds everything.",
    ]
    if renamed := run_figures.counted_texts(report.facts, "renamed"):
        lines.append(f"The ids of {renamed} held what looks like personal data, and were replaced.")
    decided = privacy_guard.decided(context)
    if any(decided.values()):
        counts = f"{decided['accepted']:,} were accepted and {decided['masked']:,} masked by people"
        lines.append(f"Of the places that it listed, {counts}.")
    lines += _altered(report.facts, context.duplicates)
    if suspicious:
        lines.append(f"{suspicious:,} texts hold what looks like personal data to that scan, and were allowed.")
    return lines


def _altered(facts: Mapping[str, Json], duplicates: str) -> list[Json]:
    """Return sentences on texts that masking made equal to another or shortened by more than a third."""
    effects = (
        ("made_equal", f"became equal to another text when both were masked, and were {_FATE[duplicates]}"),
        ("shortened", "lost more than a third of their characters to masking"),
    )
    return [f"{counted} {words}." for fact, words in effects if (counted := run_figures.counted_texts(facts, fact))]


def agreement_rows(agreed: Mapping[str, Any]) -> dict[str, Json]:
    """Return the card's agreement figures with intervals, as text, for all pairs and for subsets.

    On reranking candidates binary agreement is 1 by construction, so only the grades are shown.
    """
    words = {
        "fleiss": "Fleiss' kappa",
        "alpha_ordinal": "Krippendorff's alpha (ordinal)",
        "percent": "percent agreement",
    }
    top, rerank = agreed["top_50"] or {}, agreed["rerank"] or {}
    levels = {
        "grades": agreed["all_grades"],
        "relevant or not": agreed["cut"],
        "grades, top 50": top.get("all_grades"),
        "relevant or not, top 50": top.get("cut"),
        "grades, reranking candidates": rerank.get("all_grades"),
    }
    rows: dict[str, Json] = {
        f"{word}, {level}": run_figures.stated(figures, name, strings("en"))
        for level, figures in levels.items()
        for name, word in words.items()
        if figures and not (level.startswith("relevant") and name == "alpha_ordinal")
    }
    return {**rows, "queries resampled for the 95 % intervals in brackets": agreed["all_grades"]["clusters"]}
