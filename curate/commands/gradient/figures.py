"""What gradients came to without any model: overlap and length against their levels, counts, agreement."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curate.ask.edits.confirmation import CHANGED
from curate.commands.gradient import mixes
from curate.commands.gradient.editing import EditPair
from curate.core.config import Json
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.stats.gradients import GradientFigures, ceiling, gradient_figures, paired_accuracy, pooled
from curate.stats.shortcuts import alike_in_length, overlap
from curate.stats.tally import Floats, Ints
from curate.tables.kinds.mixing import LEVELS

Rows = Sequence[Mapping[str, Any]]
MEASURES = {"overlap": overlap, "length": alike_in_length}
"""Shortcuts that know no meaning: shared characters, and how alike two texts are in length."""


def of_levels(rows: Rows, seed: int) -> dict[str, Json]:
    """Return pooled, within and strict of both shortcuts, and the highest rho that levels with ties allow."""
    levels, group = _levels(rows), _groups(rows)
    both = [(str(row["source"]), str(row["destination"])) for row in rows]
    found: dict[str, Json] = {
        name: _shown(gradient_figures(np.array([measure(*pair) for pair in both]), levels, group, seed))
        for name, measure in MEASURES.items()
    }
    return {**found, "ceiling": _rounded(ceiling(levels.tolist()))}


def of_mixes(rows: Rows, seed: int) -> dict[str, Json]:
    """Return the figures of mixes, with the pooled rho without level 0, and that of the foreign destinations.

    A foreign destination belongs to no source of its pair, so nothing but an artefact of mixing can order its levels.
    """
    levels, group = _levels(rows), _groups(rows)
    scores = np.array([overlap(row["source"], row["destination"]) for row in rows])
    strange = [overlap(row["source"], other) for row, other in zip(rows, mixes.foreign(rows), strict=True)]
    mixed = levels > LEVELS[0]
    return {
        **of_levels(rows, seed),
        "without_zero": _rounded(pooled(scores[mixed], levels[mixed])),
        "foreign": _shown(gradient_figures(np.array(strange), levels, group, seed)),
        "means": {str(share): _rounded(float(scores[levels == share].mean())) for share in LEVELS if len(rows)},
    }


def of_edits(rows: Rows, seed: int) -> dict[str, Json]:
    """Return kind of edit -> pairs, and paired accuracy of both shortcuts; under `all` those of all kinds."""
    levels, group = _levels(rows), _groups(rows)
    variants = list({row["pair_id"]: str(row["variant"]) for row in rows}.values())
    both = [(str(row["source"]), str(row["destination"])) for row in rows]
    found = {
        name: paired_accuracy(np.array([measure(*pair) for pair in both]), levels, group, variants, seed)
        for name, measure in MEASURES.items()
    }
    counts = {"": len(variants), **dict(sorted(Counter(variants).items()))}
    return {
        kind or "all": {"pairs": count, **{name: each[kind].shown() for name, each in found.items()}}
        for kind, count in counts.items()
    }


def agreement(made: Sequence[EditPair], panel: Sequence[str], seed: int) -> dict[str, Json]:
    """Return the panel's agreement on counterparts and on edits; None with fewer than two judges."""
    votes = {"counterparts": [(each.same, "yes") for each in made], "edits": [(each.changed, CHANGED) for each in made]}
    return {name: _agreed(said, panel, seed) for name, said in votes.items()}


def _agreed(votes: Sequence[tuple[Mapping[str, str], str]], panel: Sequence[str], seed: int) -> Json:
    asked = [(said, wanted) for said, wanted in votes if set(panel) <= set(said)]
    if len(panel) < 2 or not asked:
        return None
    codes = [[int(said[name] == wanted) for name in panel] for said, wanted in asked]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, list(range(len(codes))), seed=seed)


def _levels(rows: Rows) -> Floats:
    return np.array([float(row["level"]) for row in rows])


def _groups(rows: Rows) -> Ints:
    places: dict[str, int] = {}
    return np.array([places.setdefault(str(row["pair_id"]), len(places)) for row in rows], dtype=np.int64)


def _shown(found: GradientFigures) -> dict[str, Json]:
    figures = {"pooled": found.pooled, "within": found.within, "strict": found.strict}
    return {**{name: each.shown() for name, each in figures.items()}, "undefined": found.undefined}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
