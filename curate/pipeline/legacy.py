"""Account of the original labels that a user's data came with: the status of every known positive after judging."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from curate.core.config import Json
from curate.core.records import FILTERED, VERDICTS
from curate.panel.voting import PAIR
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.system.files import read_positives

FILE = "legacy.tsv"
LOST = "lost_positives"
"""Fact of `ingest`: status -> number of known positives among the dropped rows of the qrels."""
STATUSES = ("confirmed", "rejected", "contested", "incomplete", "not in corpus", "dropped", "not judged")
"""Statuses of a known positive; the first four are by its verdict. `dropped`: its query or document was left out before
judging, or its row of the qrels was invalid. `not judged`: its query has no pool."""
_OF_VERDICT = dict(zip(VERDICTS, ("confirmed", "rejected", "contested", "incomplete", "rejected"), strict=True))


def joins(config: PoolConfig, context: Context) -> bool:
    """Return whether known positives are added to the pools; never in an audit, which measures their recall."""
    return config.legacy and "audit" not in context.stages


def identity(context: Context) -> dict[str, Json]:
    """Return the settings that decide which known positives join the pools, for fingerprints; {} if none were added."""
    pool = context.report("pool")
    return {"legacy": {"relevant_from": context.relevant_from}} if pool and "legacy" in pool.facts else {}


def account(verdicts: pl.DataFrame, context: Context) -> dict[str, Json]:
    """Write `legacy.tsv`, one row per known positive with its votes, and return the counts by status as `legacy`.

    Its column `policy` names who decided, as in `verdicts`, since that may contradict the votes.
    Labels of exact duplicates count once. Rows dropped by `ingest` are counted but only listed in its table `dropped`.
    Empty if there is no known positive.
    """
    if not identity(context):
        return {}
    labels = context.read("mask", "qrels")
    others = labels.join(read_positives(labels, context.folder("ingest")), on=PAIR, how="anti")
    lost = context.read(FILTERED, "dropped").filter(pl.col("table") == "qrels")["id"].str.split_exact(" ", 1)
    dropped = lost.struct.rename_fields([*PAIR]).struct.unnest().join(others, on=PAIR, how="anti")
    positives = [context.legacy_positives().select(PAIR), dropped.select(PAIR).with_columns(status=pl.lit("dropped"))]
    status = pl.col("verdict").replace_strict(_OF_VERDICT, return_dtype=pl.String).fill_null("not judged")
    vote = pl.format("{} {}", pl.element().struct.field("judge"), pl.element().struct.field("grade").fill_null("-"))
    rows = pl.concat(positives, how="diagonal").join(verdicts, on=PAIR, how="left").sort(PAIR)
    votes = pl.col("votes").list.eval(vote).list.join(", ")
    rows = rows.select(*PAIR, status=pl.coalesce("status", status), votes=votes, policy="policy")
    rows.write_csv(context.out / FILE, separator="\t")
    by_status = dict(rows.group_by("status").len().iter_rows())
    lost_in_ingest: Any = context.done("ingest").facts.get(LOST) or {}
    counts = {name: by_status.get(name, 0) + lost_in_ingest.get(name, 0) for name in STATUSES}
    return {"legacy": {"brought": sum(counts.values()), **counts}} if any(counts.values()) else {}


def sentence(counts: Mapping[str, int]) -> str:
    """Return a sentence with the number of known positives, in total and by status."""
    clauses = ", ".join(f"{counts[name]:,} {name}" for name in STATUSES if counts[name] or name in STATUSES[:3])
    return f"{counts['brought']:,} known positives: {clauses}"
