"""Facts for the card of an export: judges, agreement, experts, settings, personal data."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl

from curate.ask import privacy_guard, settling
from curate.core.config import Json
from curate.llm.providers import presets
from curate.panel import judge_dependence
from curate.pipeline import circularity, legacy, looked_up, synthetic_queries
from curate.pipeline.stage import Context
from curate.review import acceptance, agreement, item_proof, items, relevance_desks
from curate.review.lead import lead
from curate.review.showing import columns
from curate.system.files import read_json
from curate.tables import kinds
from curate.tables.exporters.labels import parts
from curate.view import charts, run_figures
from curate.view.run_figures import lead_rows
from curate.view.words import strings

KINDS = {"replay": "recorded grades", "heuristic": "heuristic"}
"""Key of a judge's identity -> what kind of judge has it."""
_FATE = {"merge": "merged", "keep": "kept"}
"""What became of equal texts -> how it is said."""
TOLD = (
    "diversify.encoder",
    "diversify.approximate",
    "diversify.queries",
    "diversify.corpus",
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
"""Settings that the card shows where the pipeline names them; none holds a path."""


def dependence(context: Context) -> dict[str, Json]:
    """Return what the judges of the run have in common, with warnings in English; see `judge_errors.dependence`."""
    return agreement.dependence(
        context.run, context.seed, context.definitions.get("judges", {}), judged=context.folder("judge")
    )


def warned(common: Mapping[str, Any]) -> dict[str, Json]:
    """Return what a card says of judges that have something in common, and what the panel is worth."""
    return {"warnings": common["warnings"], "effective": judge_dependence.worth(common, strings("en")["dependence"])}


def leading(context: Context, agreed: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Json]:
    """Return what page and card begin with; see `review.lead`."""
    found = lead(context.run, agreed, common, circularity.checked(context), context.scale)
    return {**found, "synthetic": list(synthetic_writers(context))}


def synthetic_writers(context: Context) -> list[dict[str, Json]]:
    """Return a row per model that wrote queries of the run; see `synthetic_queries.writers`."""
    queries = context.read("diversify", "queries")
    if synthetic_queries.marked(queries).is_empty():
        return []
    return synthetic_queries.writers(queries, _retrieved_and_judged(context), families(context))


def synthetic_in_manifest(context: Context) -> dict[str, Json]:
    """Return `synthetic`, a row per model that wrote queries of the run; empty without such queries."""
    wrote = synthetic_writers(context)
    return {"synthetic": list(wrote)} if wrote else {}


def _lead(context: Context, agreed: Mapping[str, Any], common: Mapping[str, Any]) -> list[Json]:
    """Return the same for the card: rows of a title and what is known."""
    words = charts.fitted(strings("en"), context.scale)
    rows = lead_rows(leading(context, agreed, common), words)
    return [{"": row.title, "here": ". ".join(line[:1].upper() + line[1:] for line in row.lines)} for row in rows]


def checked(context: Context) -> dict[str, Sequence[item_proof.Proof]]:
    """Return kind -> what people said of samples of its items; of kinds that can be checked and whose stage has run."""
    found: dict[str, Sequence[item_proof.Proof]] = {}
    for name, kind in items.checkable().items():
        if kind.stage and context.report(kind.stage):
            published = kind.to_review(context.read(kind.stage, kind.table, kind.columns))
            found[name] = item_proof.of_kind(context.run, kind, published) if published else []
    return found


def experts(context: Context) -> dict[str, Json]:
    """Return what identifies all that people said of this run's labels and items."""
    desks = [*relevance_desks(context.run), *items.item_desks(context.run)]
    return {desk.sample.design.name: digest for desk in desks if (digest := desk.digest) is not None}


def families(context: Context) -> dict[str, Json]:
    """Return judge -> its family; empty before the panel has judged."""
    path = context.folder("judge") / "panel.json"
    return {**presets.families(read_json(path), context.definitions.get("judges", {}))} if path.is_file() else {}


def facts(context: Context, agreed: Mapping[str, Any], common: Mapping[str, Any], suspicious: int) -> dict[str, Json]:
    """Return what the card says of a run: no times, no paths.

    `common` is what `dependence` says of the judges, `suspicious` what the scan of `mask` left.
    """
    judged: dict[str, Any] = dict(context.done("judge").facts)
    resolved: dict[str, Any] = dict(context.done("resolve").facts)
    panel: list[str] = agreed["panel"]
    return {
        "weak_judges": run_figures.only_heuristics(panel, judged["heuristic"]),
        "judges": _judges(context, judged, panel),
        "parts": had_a_part(context),
        "prompts": [judged["rubric"]] if judged["rubric"] else [],
        "agreement": _agreement(agreed),
        "dependence": warned(common),
        "lead": _lead(context, agreed, common),
        "experts": _experts(context),
        "privacy": _privacy(context, suspicious),
        "checked": {name: item_proof.on_card(found) for name, found in checked(context).items() if found},
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
    """Return what had a part in the labels besides policy and experts, such as a threshold that a review proved."""
    found: dict[str, Json] = {}
    if brought := resolved.get("legacy"):
        found["known positives that the data came with, and joined the pools"] = legacy.sentence(brought)
    if asked := resolved.get("accept"):
        found["relevant by a reviewed threshold"] = acceptance.headline(asked)
    if settled := resolved.get("settle"):
        found[f"contested pairs decided by one judge, {settled['judge']}"] = (
            f"{settled['pairs']:,}: {settled['relevant']:,} relevant, {settled['not relevant']:,} not; "
            f"{settled['left']:,} are still contested"
        )
    return found


def had_a_part(context: Context) -> dict[str, Json]:
    """Return role -> names of those who retrieved, judged and wrote queries; see `parts`."""
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
    """Return a row per judge: what it is, and of a language model how it was asked and what its replies call it."""
    identities, rows = read_json(context.folder("judge") / "panel.json"), list[Json]()
    found = circularity.checked(context)
    agreed: dict[str, Any] = dict(context.done("consensus").facts)
    gains = {each["judge"]: run_figures.between(each["effect"]) for each in found["judges"]} if found else {}
    for name in panel:
        identity = identities[name]
        kind = (
            "recorded grades" if "replay" in identity else "heuristic" if "heuristic" in identity else "language model"
        )
        asked = {key: identity[key] for key in ("model", "temperature") if key in identity}
        replied = (judged.get("models") or {}).get(name)
        names = {"in replies": ", ".join(replied)} if replied else {}
        controls = {"controls": "reads its prompts; not qualified"} if name in (judged.get("controls") or {}) else {}
        share = (agreed.get("places") or {}).get(name, (None,))[0]
        place = {} if share is None else {"grades explained by the place in the prompt": f"{share:.1%}"}
        gained = {"nDCG@10 gained by judging itself": gains.get(name)} if gains else {}
        rows.append({"judge": _described(name, judged), "kind": kind, **asked, **names, **controls, **place, **gained})
    return rows


def settings(context: Context) -> dict[str, Json]:
    """Return the settings that a reader needs to judge the set by, and which indexes the pool came from."""
    found: dict[str, Json] = {}
    for place in TOLD:
        stage, _, name = place.partition(".")
        section = context.settings.get(stage)
        if isinstance(section, Mapping) and section.get(name) is not None:
            found[place] = section[name]
    thinned = context.report("diversify")
    for table in ("queries", "corpus"):
        counts = thinned.facts.get(table) if thinned else None
        if isinstance(counts, Mapping):
            found[f"{table} before and after diversify"] = f"{counts['items']:,} and {counts['kept']:,}"
    return {**found, **looked_up.on_card(context)}


def _counts(panel: Mapping[str, Any], published: Mapping[str, Any]) -> Json:
    """Return the pairs of a run by verdict; the panel's and the published ones as columns where they differ."""
    if all(panel[name] == count for name, count in published.items()):
        return dict(panel)
    plain = {name: count for name, count in panel.items() if not isinstance(count, Mapping)}
    scores = panel.get("ndcg_at_10", {})
    plain |= {f"ndcg_at_10, {name}, {corpus}": each for name, both in scores.items() for corpus, each in both.items()}
    return [{"": name, "panel": count, "published": published.get(name, "")} for name, count in plain.items()]


def _experts(context: Context) -> list[Json]:
    """Return a row per figure, and what it is by every sample that people read, of the panel's and published labels."""
    found = {
        f"{column.labels}, {' and '.join(column.samples)}": column
        for column in columns(context.run, context.folder("resolve"))
    }
    names = dict.fromkeys(name for each in found.values() for name in each.shares)
    read: dict[str, Json] = {"": "pairs read", **{head: each.read for head, each in found.items()}}
    rows: list[dict[str, Json]] = [
        {"": name, **{head: run_figures.between(cast("Any", each.shares.get(name))) for head, each in found.items()}}
        for name in names
    ]
    return [read, *rows] if found else []


def _privacy(context: Context, suspicious: int) -> list[Json]:
    """Return what was done about personal data, in sentences."""
    section, report = context.settings.get("mask"), context.report("mask")
    said = section if isinstance(section, Mapping) else {}
    if said.get("enabled") is False or report is None:
        return ["The texts were not masked by this pipeline."]
    changed = f"{report.facts['masked_queries']:,} queries and {report.facts['masked_corpus']:,} documents"
    looked = "Rules and a local language model" if said.get("model") else "Rules"
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
    """Return how many texts masking made equal to others, and how many lost much of their characters."""
    told = (
        ("made_equal", f"became equal to another text when both were masked, and were {_FATE[duplicates]}"),
        ("shortened", "lost more than a third of their characters to masking"),
    )
    return [f"{counted} {words}." for fact, words in told if (counted := run_figures.counted_texts(facts, fact))]


def _agreement(agreed: Mapping[str, Any]) -> dict[str, Json]:
    """Return the card's figures of agreement, with their intervals, on each set of pairs that they were measured on.

    On the candidates agreement at the cut is complete by construction, so that only the grades are shown.
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
    shown: dict[str, Json] = {
        f"{word}, {level}": run_figures.stated(found, name, strings("en"))
        for level, found in levels.items()
        for name, word in words.items()
        if found and not (level.startswith("relevant") and name == "alpha_ordinal")
    }
    return {**shown, "queries resampled for the 95 % intervals in brackets": agreed["all_grades"]["clusters"]}


def _described(judge: str, judged: Mapping[str, Any]) -> str:
    """Return a judge's name with what a reader of the card must know of it."""
    heuristic = " (heuristic)" if judge in judged["heuristic"] else ""
    return f"{judge}{heuristic}{' (did not pass its controls)' if judge in run_figures.failed(judged) else ''}"
