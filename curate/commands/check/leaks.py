"""Train-test overlap of any two run folders, or folders that `ingest` can read."""

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
"""Maximum number of leaks in the result, the most similar first; the table has all."""


class LeakOptions(Section):
    """Settings of the comparison."""

    leaks: Leaks = Leaks()
    encoders: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)


def check(
    train: Path, test: Path, assignments: Sequence[str] = (), out: Path | None = None, progress: PaidProgress = quiet
) -> dict[str, Json]:
    """Return the counts of leaks from `test` into `train`, the thresholds, and the nearest leaks.

    The table `leaks` is written into `out`, if given. `assignments` change thresholds, such as `leaks.queries=0.9`, or
    define an encoder: `encoders.NAME={kind: dense, ..}`.
    """
    options = config.check(LeakOptions, config.override({}, assignments), "--set")
    rule = options.leaks
    definitions = cast("Mapping[str, Mapping[str, Settings]]", {"encoders": options.encoders})
    if out is not None:
        free_place(out, [COMPARED])
    context = Context(run=train, out=train, home=home(), definitions=definitions, progress=progress)
    train_split, test_split = splits.read(train), splits.read(test)
    leaks = compare(train_split, test_split, rule, context)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_table(out, "leaks", leaks)
        compared = {"train": splits.digests(train), "test": splits.digests(test)}
        write_json(out / COMPARED, {**compared, **counts(leaks)})
    nearest = leaks.filter("removed").sort("similarity", "query_id", descending=[True, False]).head(NAMED)
    return {
        "train_queries": len(train_split.queries),
        "test_queries": len(test_split.queries),
        **rule.model_dump(),
        **counts(leaks),
        "nearest": nearest.select(pl.exclude("removed")).to_dicts(),
    }
