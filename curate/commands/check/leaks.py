"""Whether a training set leaks into a test set, of any two run folders or folders that `ingest` can read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import polars as pl
from pydantic import Field, JsonValue

from curate.core import config
from curate.core.config import Json, Section, Settings
from curate.core.protocols import PaidProgress, quiet
from curate.pipeline.stage import Context, home
from curate.runs import leaks as splits
from curate.runs.leaks import COMPARED, Leaks, compare, counts
from curate.runs.outputs import free_place
from curate.system.files import write_json, write_table

NAMED = 20
"""Leaks that are listed, the nearest first; the table has all of them."""


class LeakOptions(Section):
    """What a user may set."""

    leaks: Leaks = Leaks()
    encoders: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)


def check(
    train: Path, test: Path, assignments: Sequence[str] = (), out: Path | None = None, progress: PaidProgress = quiet
) -> dict[str, Json]:
    """Return what leaks from `test` into `train`, with the rule; the `leaks` table is written into `out` if given.

    `assignments` change the rule, such as `leaks.queries=0.9`, or define an encoder: `encoders.NAME={kind: dense, ..}`.
    """
    asked = config.check(LeakOptions, config.override({}, assignments), "--set")
    rule = asked.leaks
    definitions = cast("Mapping[str, Mapping[str, Settings]]", {"encoders": asked.encoders})
    if out is not None:
        free_place(out, [COMPARED])
    context = Context(run=train, out=train, home=home(), definitions=definitions, progress=progress)
    one, other = splits.read(train), splits.read(test)
    found = compare(one, other, rule, context)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_table(out, "leaks", found)
        compared = {"train": splits.digests(train), "test": splits.digests(test)}
        write_json(out / COMPARED, {**compared, **counts(found)})
    worst = found.filter("removed").sort("similarity", "query_id", descending=[True, False]).head(NAMED)
    return {
        "train_queries": len(one.queries),
        "test_queries": len(other.queries),
        **rule.model_dump(),
        **counts(found),
        "nearest": worst.select(pl.exclude("removed")).to_dicts(),
    }
