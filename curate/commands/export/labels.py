"""What a version of a benchmark has that the earlier one had not, and whether all of its labels were judged alike."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask.judged_labels import made_by_panel
from curate.ask.panel import ASKED
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
from curate.retrieval.grown_pool import holes
from curate.system.files import frame, read_json, write_text
from curate.tables.exporters.ids import PublishedIds
from curate.tables.exporters.labels import candidates
from curate.tables.kinds import kinds

HARMLESS = 0.02
"""Difference of two shares of labels that says nothing."""
SHORTER = 0.5
"""Passages per prompt of the new pairs, as a share of those of the old ones, below which it is said."""


def growth(context: Context, judged: pl.DataFrame, positives: pl.DataFrame) -> dict[str, Json] | None:
    """Return what the run has grown by, of all its final `judged` verdicts; None for a first version.

    `systems` counts each added system's holes by verdict (one that two systems have counts for both); `decided_by`
    counts the earlier and the new pairs by policy; `warnings` says in which way labels were not made alike.
    """
    before = ParentVersion.load(context.run)
    if before is None:
        return None
    old = parent.table(context.run, "verdicts")
    new = judged.join(old, on=PAIR, how="anti")
    found = holes(parent.table(context.run, "pool"), context.read("pool", "rankings"), before.added, before.depth)
    asked = parent.table(context.run, "qrels")["query_id"].unique()
    facts: dict[str, Json] = {
        "version": before.version,
        "parent": dict(before.parent),
        "depth": before.depth,
        "holes": len(found),
        **_counts(new),
        "systems": {
            name: {"what": what, **_of_system(name, found, judged)} for name, what in sorted(before.added.items())
        },
        "queries_won": len(set(positives["query_id"]) - set(asked)),
        "changed": _changed(old, judged),
        "same_panel": parent.panel(context.run) == read_json(context.folder("judge") / "panel.json"),
        "decided_by": _decided(judged, new),
        "passages_per_prompt": _passages(context, new),
    }
    return {**facts, "warnings": list(_warnings(facts))}


def fact(grown: Mapping[str, Any] | None) -> dict[str, Json]:
    """Return what a run grew by as a fact of the stage; none for a first version."""
    return {} if grown is None else {"grown": dict(grown)}


def notes(grown: Mapping[str, Any] | None) -> list[str]:
    """Return what is said of labels that were not judged alike."""
    return [] if grown is None else [f"not judged alike: {said}" for said in grown["warnings"]]


def _counts(verdicts: pl.DataFrame) -> dict[str, Json]:
    return {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}


def _of_system(name: str, found: pl.DataFrame, judged: pl.DataFrame) -> dict[str, Json]:
    mine = found.filter(pl.col("systems").list.contains(name))
    return {"holes": len(mine), **_counts(judged.join(mine, on=PAIR, how="semi"))}


def _changed(old: pl.DataFrame, judged: pl.DataFrame) -> int:
    """Return the number of earlier pairs whose verdict is another one by now."""
    both = old.join(judged, on=PAIR, suffix="_now")
    return int((both["verdict"] != both["verdict_now"]).sum())


def _decided(judged: pl.DataFrame, new: pl.DataFrame) -> dict[str, Json]:
    """Return policy -> how many of the `earlier` and of the `new` pairs it decided."""
    earlier = judged.join(new, on=PAIR, how="anti")
    names = judged["policy"].unique().sort()
    return {
        name: {"earlier": int((earlier["policy"] == name).sum()), "new": int((new["policy"] == name).sum())}
        for name in names
    }


def _passages(context: Context, new: pl.DataFrame) -> dict[str, Json]:
    """Return judge -> mean number of passages in the prompts of the `earlier` and of the `new` pairs."""
    rated = context.read("judge", "ratings").filter(pl.col("batch_size").is_not_null())
    fresh = rated.join(new, on=PAIR, how="semi")
    earlier = rated.join(new, on=PAIR, how="anti")
    found: dict[str, Json] = {}
    for name in rated["judge"].unique().sort():
        sides = {"earlier": earlier, "new": fresh}
        means: dict[str, Any] = {
            side: rows.filter(pl.col("judge") == name)["batch_size"].mean() for side, rows in sides.items()
        }
        found[name] = {side: None if mean is None else round(float(mean), 2) for side, mean in means.items()}
    return found


def _warnings(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield in which way the labels of the whole pool were not made alike."""
    if not facts["same_panel"]:
        yield "another panel judged the new pairs, so systems that find them are measured by other judges"
    sums = {side: sum(each[side] for each in facts["decided_by"].values()) for side in ("earlier", "new")}
    for policy, each in facts["decided_by"].items():
        if all(sums.values()) and abs(each["earlier"] / sums["earlier"] - each["new"] / sums["new"]) > HARMLESS:
            yield (
                f"`{policy}` decided {each['earlier']:,} of {sums['earlier']:,} earlier pairs and {each['new']:,} of "
                f"{sums['new']:,} new ones: labels by people and by models mixed in other parts favour some systems"
            )
    for judge, means in facts["passages_per_prompt"].items():
        if means["earlier"] and means["new"] and means["new"] < SHORTER * means["earlier"]:
            yield (
                f"{judge} saw the new pairs {means['new']:.1f} to a prompt and the earlier ones "
                f"{means['earlier']:.1f}: grades may depend on what stands beside a passage"
            )


def write(folder: Path, context: Context, facts: Mapping[str, Any]) -> None:
    """Write CHANGES.md into the folder of one format: this version first, then the earlier ones."""
    text = "\n".join(["# Changes", "", *_section(facts)])
    earlier = parent.earlier_changes(context.run) or "## Version 1\n\nThe first version.\n"
    write_text(folder / CHANGES, f"{text}\n\n{earlier}")


def _section(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Version {facts['version']}"
    yield ""
    yield (
        f"{facts['holes']:,} documents joined the pool: those that the systems below rank within {facts['depth']} and "
        f"that version {facts['version'] - 1} had not judged. {_words(facts)}."
    )
    yield ""
    for name, each in facts["systems"].items():
        yield f"- {name} ({each['what']['kind']}): {each['holes']:,} documents; {_words(each)}"
    yield f"- queries that have a relevant document since: {facts['queries_won']:,}"
    yield f"- labels of earlier pairs that changed: {facts['changed']:,}"
    yield f"- the same panel, rubric and prompt: {'yes' if facts['same_panel'] else 'no'}"
    for said in facts["warnings"]:
        yield f"- not judged alike: {said}"


def _words(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{counts[name]:,} {name}" for name in VERDICTS if counts[name]) or "none is judged"


# What the manifest of an export says of how its labels were made, so that they can be derived again.


def made_from(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, config: Config, ids: PublishedIds
) -> dict[str, Json]:
    """Return what `curate verify` derives the labels from, beside the ledger; `judged` are all verdicts of the run."""
    experts = benchmark.verdicts.filter(pl.col("policy") == EXPERTS).height
    return {
        **made_by_panel(context, benchmark, judged, ids),
        "experts": experts,
        **_beyond(context, benchmark),
        "overridden": ids.of(context.read("resolve", "overrides")).join(benchmark.verdicts, on=PAIR, how="semi").height,
        **({} if config.gain is None else {"graded": {"labels": config.labels, **config.gain.model_dump()}}),
        "rerank": config.rerank.model_dump(),
    }


def _beyond(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return what decided besides the policy: a threshold on the sum of grades (`accept`), a judge (`settle`)."""
    resolved: Mapping[str, Any] = context.done("resolve").facts
    found: dict[str, Json] = {}
    if (accepted := resolved.get("accept")) and accepted["threshold"]:
        found["accept"] = {**accepted["threshold"], "promised": accepted["wrong"], "confidence": accepted["confidence"]}
    if settled := resolved.get("settle"):
        by = pl.col("policy") == SETTLED + settled["judge"]
        pairs = benchmark.verdicts.filter(by).height
        found["settle"] = {"name": settled["judge"], **settled["key"], "pairs": pairs}
    return found


def made_of_kinds(context: Context, benchmark: Benchmark) -> dict[str, Json]:
    """Return `kinds`, kind -> `asked`: which questions its stage has put to which judges; empty if none has asked.

    Judges are named as the pipeline names them. Addresses, keys and prices are in no question and in no digest.
    """
    found: dict[str, Json] = {}
    for kind in kinds():
        path = context.folder(kind.stage) / ASKED if kind.stage and kind.present(benchmark) else None
        if path is not None and path.is_file() and (asked := read_json(path)):
            found[kind.name] = {"asked": asked}
    return {"kinds": found} if found else {}


# What a reranker is given: its candidates, how the panel agrees on them, and a query set of its own.


def drawn(
    config: Config, context: Context, verdicts: pl.DataFrame, ids: PublishedIds
) -> tuple[pl.DataFrame, list[str]]:
    """Return a reranker's candidates and the queries that have too few negatives; none where none are asked for.

    Draws are by the published ids, so that a reader of the export can repeat them.
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
    """Raise DataError if a query set of reranking's own takes every query that has enough negatives for it."""
    left = benchmark.of_retrieval().queries.filter(~pl.col("query_id").is_in(list(short))).height
    if benchmark.apart and not left:
        most = benchmark.candidates["query_id"].n_unique()
        raise DataError(
            f"export.rerank.queries: found {most:,} queries with a positive and {config.rerank.negatives} negatives, "
            f"expected more than {config.rerank.queries:,}, for those of reranking are in no retrieval task; "
            f"take fewer (half are {most // 2:,}), or let both share their queries: --set export.rerank.queries=null"
        )


def mix(chosen: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> dict[str, Json]:
    """Return how many rerank negatives have each best grade, best first, those that occur."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=["query_id", "doc_id"], how="semi")
    given = [[vote["grade"] for vote in votes if vote["grade"]] for votes in negatives["votes"]]
    best = [min(grades, key=scale.place) for grades in given if grades]
    return {grade: count for grade in scale.labels if (count := best.count(grade))}


def agreement(context: Context, chosen: pl.DataFrame, panel: list[str]) -> dict[str, Json] | None:
    """Return the panel's agreement on a reranker's candidates, as `consensus` measures it; None without candidates."""
    if chosen.is_empty():
        return None
    return measure(
        context.read("judge", "ratings").join(chosen, on=PAIR, how="semi"),
        panel,
        context.seed,
        context.scale,
        progress=context.progress,
    )
