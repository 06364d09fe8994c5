"""Labels of an export: changes since the parent version, provenance, and the candidates of reranking."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask.panel import ASKED
from curate.ask.settling import made_by_panel
from curate.commands.export import Config
from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel.agreement_figures import measure
from curate.panel.voting import EXPERTS, PAIR, SETTLED
from curate.pipeline import parent
from curate.pipeline.parent import CHANGES, ParentVersion
from curate.pipeline.stage import Context
from curate.retrieval.fusion import holes
from curate.system.files import frame, read_json, write_text
from curate.tables.exporters.ids import PublishedIds
from curate.tables.exporters.labels import candidates
from curate.tables.kinds import kinds

HARMLESS = 0.02
"""Maximum difference of two shares of labels without a warning."""
SHORTER = 0.5
"""Minimum ratio of passages per prompt, new pairs to earlier pairs, without a warning."""


def growth(context: Context, judged: pl.DataFrame, positives: pl.DataFrame) -> dict[str, Json] | None:
    """Return facts on the pairs added since the parent version, from all final verdicts; None for a first version.

    `systems` counts the unjudged documents of each added system by verdict (a document of two systems counts for both).
    `decided_by` counts earlier and new pairs by policy. `warnings` are differences in how earlier and new labels were
    made.
    """
    version = ParentVersion.load(context.run)
    if version is None:
        return None
    old = parent.table(context.run, "verdicts")
    new = judged.join(old, on=PAIR, how="anti")
    hole_pairs = holes(
        parent.table(context.run, "pool"), context.read("pool", "rankings"), version.added, version.depth
    )
    own_holes = {name: hole_pairs.filter(pl.col("systems").list.contains(name)) for name in version.added}
    judged_again = old.join(judged, on=PAIR, suffix="_now")
    earlier_queries = parent.table(context.run, "qrels")["query_id"].unique()
    facts: dict[str, Json] = {
        "version": version.version,
        "parent": dict(version.parent),
        "depth": version.depth,
        "holes": len(hole_pairs),
        **_counts(new),
        "systems": {
            name: {
                "what": what,
                "holes": len(own_holes[name]),
                **_counts(judged.join(own_holes[name], on=PAIR, how="semi")),
            }
            for name, what in sorted(version.added.items())
        },
        "queries_won": len(set(positives["query_id"]) - set(earlier_queries)),
        "changed": int((judged_again["verdict"] != judged_again["verdict_now"]).sum()),
        "same_panel": parent.panel(context.run) == read_json(context.folder("judge") / "panel.json"),
        "decided_by": _decided(judged, new),
        "passages_per_prompt": _passages(context, new),
    }
    return {**facts, "warnings": list(_warnings(facts))}


def fact(grown: Mapping[str, Any] | None) -> dict[str, Json]:
    """Return {"grown": what `growth` returned}, an entry of the stage's facts; {} for a first version."""
    return {} if grown is None else {"grown": dict(grown)}


def notes(grown: Mapping[str, Any] | None) -> list[str]:
    """Return one note per difference in how earlier and new labels were made; [] for a first version."""
    return [] if grown is None else [f"not judged alike: {warning}" for warning in grown["warnings"]]


def _counts(verdicts: pl.DataFrame) -> dict[str, Json]:
    return {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}


def _decided(judged: pl.DataFrame, new: pl.DataFrame) -> dict[str, Json]:
    """Return policy -> numbers of `earlier` and `new` pairs decided by it."""
    earlier = judged.join(new, on=PAIR, how="anti")
    names = judged["policy"].unique().sort()
    return {
        name: {"earlier": int((earlier["policy"] == name).sum()), "new": int((new["policy"] == name).sum())}
        for name in names
    }


def _passages(context: Context, new: pl.DataFrame) -> dict[str, Json]:
    """Return judge -> mean number of passages per prompt, for `earlier` and `new` pairs."""
    rated = context.read("judge", "ratings").filter(pl.col("batch_size").is_not_null())
    fresh = rated.join(new, on=PAIR, how="semi")
    earlier = rated.join(new, on=PAIR, how="anti")
    means_by_judge: dict[str, Json] = {}
    for name in rated["judge"].unique().sort():
        sides = {"earlier": earlier, "new": fresh}
        means: dict[str, Any] = {
            side: rows.filter(pl.col("judge") == name)["batch_size"].mean() for side, rows in sides.items()
        }
        means_by_judge[name] = {side: None if mean is None else round(float(mean), 2) for side, mean in means.items()}
    return means_by_judge


def _warnings(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on the differences in how earlier and new labels were made."""
    if not facts["same_panel"]:
        yield "another panel judged the new pairs, so systems that find them are measured by other judges"
    sums = {side: sum(counts[side] for counts in facts["decided_by"].values()) for side in ("earlier", "new")}
    for policy, counts in facts["decided_by"].items():
        if all(sums.values()) and abs(counts["earlier"] / sums["earlier"] - counts["new"] / sums["new"]) > HARMLESS:
            yield (
                f"`{policy}` decided {counts['earlier']:,} of {sums['earlier']:,} earlier pairs and {counts['new']:,} "
                f"of {sums['new']:,} new ones: labels by people and by models mixed in other parts favour some systems"
            )
    for judge, means in facts["passages_per_prompt"].items():
        if means["earlier"] and means["new"] and means["new"] < SHORTER * means["earlier"]:
            yield (
                f"{judge} saw the new pairs {means['new']:.1f} to a prompt and the earlier ones "
                f"{means['earlier']:.1f}: grades may depend on what stands beside a passage"
            )


def write(folder: Path, context: Context, facts: Mapping[str, Any]) -> None:
    """Write CHANGES.md into the folder of one format: this version first, then the earlier ones."""
    text = "\n".join(["# Changes", "", *_labels_section(facts)])
    earlier = parent.earlier_changes(context.run) or "## Version 1\n\nThe first version.\n"
    write_text(folder / CHANGES, f"{text}\n\n{earlier}")


def _labels_section(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Version {facts['version']}"
    yield ""
    yield (
        f"{facts['holes']:,} documents joined the pool: those that the systems below rank within {facts['depth']} and "
        f"that version {facts['version'] - 1} had not judged. {_verdict_words(facts)}."
    )
    yield ""
    for name, system in facts["systems"].items():
        yield f"- {name} ({system['what']['kind']}): {system['holes']:,} documents; {_verdict_words(system)}"
    yield f"- queries that have a relevant document since: {facts['queries_won']:,}"
    yield f"- labels of earlier pairs that changed: {facts['changed']:,}"
    yield f"- the same panel, rubric and prompt: {'yes' if facts['same_panel'] else 'no'}"
    for warning in facts["warnings"]:
        yield f"- not judged alike: {warning}"


def _verdict_words(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{counts[name]:,} {name}" for name in VERDICTS if counts[name]) or "none is judged"


# Provenance of the labels in the manifest, for `curate verify`.


def made_from(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, config: Config, ids: PublishedIds
) -> dict[str, Json]:
    """Return the inputs besides the ledger from which `curate verify` recomputes labels; `judged` are all verdicts."""
    experts = benchmark.verdicts.filter(pl.col("policy") == EXPERTS).height
    return {
        **made_by_panel(context, benchmark, judged, ids),
        "experts": experts,
        **_other_decisions(context, benchmark),
        "overridden": ids.of(context.read("resolve", "overrides")).join(benchmark.verdicts, on=PAIR, how="semi").height,
        **({} if config.gain is None else {"graded": {"labels": config.labels, **config.gain.model_dump()}}),
        "rerank": config.rerank.model_dump(),
    }


def _other_decisions(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return the decisions besides the consensus rule: threshold on grade sums (`accept`), tie-breaker (`settle`)."""
    resolved: Mapping[str, Any] = context.done("resolve").facts
    decisions: dict[str, Json] = {}
    if (accepted := resolved.get("accept")) and accepted["threshold"]:
        decisions["accept"] = {
            **accepted["threshold"],
            "promised": accepted["wrong"],
            "confidence": accepted["confidence"],
        }
    if settled := resolved.get("settle"):
        is_settled = pl.col("policy") == SETTLED + settled["judge"]
        pairs = benchmark.verdicts.filter(is_settled).height
        decisions["settle"] = {"name": settled["judge"], **settled["key"], "pairs": pairs}
    return decisions


def made_of_kinds(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return kind of benchmark -> {`asked`: the questions of its stage by judge}; kinds without questions are omitted.

    Judges have their names in the pipeline. No question and no digest contains addresses, keys or prices.
    """
    asked_by_kind: dict[str, Json] = {}
    for kind in kinds():
        path = context.folder(kind.stage) / ASKED if kind.stage and kind.present(benchmark) else None
        if path is not None and path.is_file() and (questions := read_json(path)):
            asked_by_kind[kind.name] = {"asked": questions}
    return {"kinds": asked_by_kind} if asked_by_kind else {}


# Reranking: candidates, agreement of the panel on them, and a separate set of queries.


def drawn(
    config: Config, context: Context, verdicts: pl.DataFrame, ids: PublishedIds
) -> tuple[pl.DataFrame, list[str]]:
    """Return the reranking candidates, and the queries with too few negatives; both empty if reranking is off.

    Draws use the published ids, so that they can be reproduced from the export.
    """
    if not config.rerank.enabled:
        return frame("qrels"), []
    pool = ids.of(context.read("pool", "pool"))
    chosen, short = candidates(ids.of(verdicts), pool, config.rerank, context.seed, context.scale)
    if ids.key is None:
        return chosen, short
    back = PublishedIds.by(ids.key.rename({"old_id": "new_id", "new_id": "old_id"}))
    return back.of(chosen), back.of(pl.DataFrame({"query_id": short}, {"query_id": pl.String}))["query_id"].to_list()


def need_retrieval(benchmark: Benchmark, config: Config, short: Collection[str]) -> None:
    """Raise DataError if a separate query set of reranking leaves no query for the retrieval task."""
    n_retrieval = benchmark.of_retrieval().queries.filter(~pl.col("query_id").is_in(list(short))).height
    if benchmark.apart and not n_retrieval:
        most = benchmark.candidates["query_id"].n_unique()
        raise DataError(
            f"export.rerank.queries: found {most:,} queries with a positive and {config.rerank.negatives} negatives, "
            f"expected more than {config.rerank.queries:,}, for those of reranking are in no retrieval task; "
            f"take fewer (half are {most // 2:,}), or let both share their queries: --set export.rerank.queries=null"
        )


def mix(chosen: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> dict[str, Json]:
    """Return grade -> number of reranking negatives with this best grade, best first; zeros are omitted."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=["query_id", "doc_id"], how="semi")
    grades_by_pair = [[vote["grade"] for vote in votes if vote["grade"]] for votes in negatives["votes"]]
    best_grades = [min(grades, key=scale.place) for grades in grades_by_pair if grades]
    return {grade: count for grade in scale.labels if (count := best_grades.count(grade))}


def agreement(context: Context, chosen: pl.DataFrame, panel: list[str]) -> dict[str, Json] | None:
    """Return the panel's agreement on the reranking candidates, measured as in `consensus`; None without candidates."""
    if chosen.is_empty():
        return None
    return measure(
        context.read("judge", "ratings").join(chosen, on=PAIR, how="semi"),
        panel,
        context.seed,
        context.scale,
        progress=context.progress,
    ).to_json()
