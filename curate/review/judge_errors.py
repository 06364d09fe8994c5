"""Errors of a run's judges against people's answers on samples of its pairs, and their correlation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.scale import Scale
from curate.llm.providers.presets import families
from curate.panel import judge_dependence, voting
from curate.panel.voting import PAIR
from curate.review.desk import settled
from curate.stats.ratios import numbered
from curate.system.files import read_json, read_scale, read_table
from curate.view.words import strings


def dependence(
    run: Path,
    seed: int,
    definitions: Mapping[str, Mapping[str, Any]],
    people: pl.DataFrame | None = None,
    judged: Path | None = None,
) -> dict[str, Json]:
    """Return what the judges of a finished `judge` stage have in common, as `in_common` does, and its `warnings`.

    `definitions` are the pipeline's own judges; `people` query_id, doc_id, relevant, weight, by default what all
    samples of the run were answered; `judged` the folder of the stage, if it is not in its place yet.
    """
    judged = judged or run / "judge"
    panel, scale = read_json(judged / "panel.json"), read_scale(judged)
    if people is None:
        people = settled(run).select(*PAIR, "weight", relevant=pl.col("grade").is_in(list(scale.relevant)))
    ratings = read_table(judged, "ratings")
    found = in_common(ratings, sorted(panel), people, families(panel, definitions), seed, scale)
    return {**found, "warnings": [*judge_dependence.warnings(found, strings("en")["dependence"])]}


def in_common(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    people: pl.DataFrame,
    kin: Mapping[str, str | None],
    seed: int,
    scale: Scale,
) -> dict[str, Json]:
    """Return what `judge_dependence.dependence` does, with errors on the cut against people.

    `people` has query_id, doc_id, relevant, weight. After a cascade two judges are compared on what both were asked.
    Without a cut there are no errors.
    """
    votes = voting.votes(ratings, panel, scale)
    codes = voting.coded(votes, panel, scale)
    true = votes.select(PAIR).join(people, on=PAIR, how="left", maintain_order="left")
    right = true["relevant"].cast(pl.Float64).to_numpy()[:, None]
    seen = (codes >= 0) & bool(scale.relevant)
    errors = np.where(seen, 1.0 - voting.sides(codes, scale), np.nan) - right
    return judge_dependence.dependence(
        panel,
        codes,
        clusters=numbered(votes["query_id"]),
        seed=seed,
        errors=errors,
        families=kin,
        weights=true["weight"].to_numpy(),
    )
