"""Graded labels of an export: the lower median or the minimum of the panel's grades, contested pairs included.

They need the grade of every judge for every labelled pair; a `positives` cascade, which skips votes, rules them out.
"""

from typing import Protocol

import polars as pl

from curate.ask import settling
from curate.core.config import check
from curate.core.errors import ConfigError
from curate.core.protocols import Benchmark
from curate.panel import voting
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context
from curate.tables.exporters.labels import Gain, gains


class GradedConfig(Protocol):
    """Settings of graded labels, such as those of the stage `export`."""

    @property
    def labels(self) -> str:
        """Return which labels are published: `binary` or a kind of graded labels."""

    @property
    def grade(self) -> str:
        """Return which of a pair's grades counts: `lower-median` or the minimum."""

    @property
    def gain(self) -> Gain | None:
        """Return the settings of gains; None for binary labels only."""


def made(config: GradedConfig, context: Context, verdicts: pl.DataFrame) -> pl.DataFrame | None:
    """Return the graded labels of judged pairs; None for binary labels only.

    Pairs decided by experts get the lower median or minimum of the experts' grades. ConfigError if a cascade, even one
    recorded in the verdicts, skipped votes.
    """
    if config.gain is None:
        return None
    if hidden := voting.spared(verdicts):
        raise ConfigError(_lacking(config, f"a `positives` cascade gave up {hidden:,} pairs"))
    overrides = context.read("resolve", "overrides")
    choose = context.scale.lower_median if config.grade == "lower-median" else context.scale.minimum
    settled = overrides.with_columns(grade=pl.col("grades").map_elements(choose, pl.String, skip_nulls=False))
    return gains(verdicts, context.scale, config.gain, settled)


def refuse(config: GradedConfig, context: Context) -> None:
    """Raise ConfigError if graded labels are combined with a tie-breaker judge or a cascade that skips votes."""
    section = check(JudgeConfig, context.settings.get("judge") or {}, "judge")
    if config.gain is None:
        return
    if name := settling.judge_of(context):
        raise ConfigError(
            f"export.labels: {config.labels} keeps contested pairs with the panel's lower median, and consensus.settle "
            f"has {name!r} decide them; leave consensus.settle out, or take `binary`"
        )
    if section.cascade == "positives" and section.cascade_sample < 1:
        raise ConfigError(_lacking(config, "judge.cascade: positives leaves out some"))


def _lacking(config: GradedConfig, why: str) -> str:
    return (
        f"export.labels: {config.labels} needs every judge's grade, and {why}; judge in full "
        "(`curate judge --set judge.cascade=null`), or take `binary`"
    )


def notes(benchmark: Benchmark) -> list[str]:
    """Return a sentence on the number of pairs with a gain above 0; [] for binary labels only."""
    if benchmark.graded is None:
        return []
    gaining = benchmark.graded.filter(pl.col("score") > 0)
    doubtful = gaining.filter("contested").height
    return [f"graded labels: {gaining.height:,} pairs gain something, {doubtful:,} of them contested"]


def in_words(gain: Gain) -> str:
    """Return the settings of gains in words."""
    return f"{gain.grade}, gains below the cut {'kept' if gain.gain_below_cut else 'are 0'}"
