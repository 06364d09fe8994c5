"""Account of a user's original labels: the status of every known positive."""

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
"""Fact of `ingest`: status -> known positives among the rows of the qrels that it dropped."""
STATUSES = ("confirmed", "rejected", "contested", "incomplete", "not in corpus", "dropped", "not judged")
"""Statuses of a known positive. `dropped`: its query or document was left out before judging, or its row of the
qrels could not be used; `not judged`: its query has no pool."""
_OF_VERDICT = dict(zip(VERDICTS, ("confirmed", "rejected", "contested", "incomplete", "rejected"), strict=True))


def joins(config: PoolConfig, context: Context) -> bool:
    """Return whether known positives join the pools; not in an audit, which measures how many retrieval finds."""
    return config.legacy and "audit" not in context.stages


def identity(context: Context) -> dict[str, Json]:
    """Return the settings and labels that decide which known positives joined the pools, for fingerprints; or {}."""
    pool = context.report("pool")
    return {"legacy": {"relevant_from": context.relevant_from}} if pool and "legacy" in pool.facts else {}


def account(verdicts: pl.DataFrame, context: Context) -> dict[str, Json]:
    """Write `legacy.tsv`, a row per known positive with its votes, and return the counts as `legacy`, empty for none.

    Labels of equal texts are one. What `ingest` dropped is counted, and listed in its table `dropped` alone.
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
    rows = rows.select(*PAIR, status=pl.coalesce("status", status), votes=votes)
    rows.write_csv(context.out / FILE, separator="\t")
    by_status = dict(rows.group_by("status").len().iter_rows())
    lost_in_ingest: Any = context.done("ingest").facts.get(LOST) or {}
    counts = {name: by_status.get(name, 0) + lost_in_ingest.get(name, 0) for name in STATUSES}
    return {"legacy": {"brought": sum(counts.values()), **counts}} if any(counts.values()) else {}


def sentence(counts: Mapping[str, int]) -> str:
    """Return the account in words: known positives in all and by status."""
    clauses = ", ".join(f"{counts[name]:,} {name}" for name in STATUSES if counts[name] or name in STATUSES[:3])
    return f"{counts['brought']:,} known positives: {clauses}"
