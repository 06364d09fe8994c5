"""Errors of the published labels after assessors' answers have replaced the panel's verdicts on the pairs they read.

A pair that assessors read has their answer as its label, taken as correct. All others have the panel's verdict, with
the panel's error rate in their stratum. If n of a stratum's N pairs were read and x of these are hits (pairs that a
figure counts), the N - n unread pairs add (N - n) x / n expected hits, and the read pairs add their labels. Only the
unread part is uncertain; `sample_estimates.share_after` has formula and interval. A read pair on which assessors
disagree keeps the panel's label, which is checked against the first reader's answer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.panel.sampling_design import DECIDED, verdict_of
from curate.panel.voting import EXPERTS, PAIR
from curate.review.agreement import CheckedRow, checked, rounded_estimate, stratum_counts
from curate.review.desk import relevance_desks
from curate.stats import sample_estimates
from curate.stats.sample_estimates import Estimate, StratumCounts
from curate.system.files import read_json, read_scale, read_table

OTHERS = tuple(name for name in VERDICTS if name not in DECIDED)


def prove(run: Path, resolved: Path | None = None) -> dict[str, Json] | None:
    """Return the figures of a run's published labels: `agreement`, `confirmed`, `relevant`, `recall` as `proof.prove`.

    `kappa` is that of labels and assessors on decided pairs. `samples` are the names of the samples whose answers
    became labels, `read` the number of their answered pairs. `outdated`: the labels come from other answers than the
    current ones, or the samples were drawn from different verdicts. `beyond`: sources of labels other than the
    consensus rule and random samples; no sample covers their errors. In both cases no figure is defined.

    None if no assessor's answer became a label, or on a scale without a relevance threshold. `resolved` is the folder
    of the stage `resolve` if it is not yet `run/resolve`.
    """
    resolved = resolved or run / "resolve"
    mark = resolved / "stage.json"
    facts: Mapping[str, Any] = read_json(mark)["report"]["facts"] if mark.is_file() else {}
    if facts.get("policy") != EXPERTS or not facts.get("reviewed") or not read_scale(run / "judge").relevant:
        return None
    sample_names, beyond = facts.get("samples"), cast("Sequence[str]", facts.get("beyond") or ())
    desks = [
        review for review in relevance_desks(run) if sample_names is None or review.sample.design.name in sample_names
    ]
    sizes = [{stratum.name: stratum.size for stratum in review.sample.design.strata} for review in desks]
    verdicts = read_table(resolved, "verdicts").select(*PAIR, "verdict")
    rows = {tuple(row.ids): row for review in reversed(desks) for row in checked(review) if row.settled}
    pairs = pl.DataFrame(list(rows), dict.fromkeys(PAIR, pl.String), orient="row")
    labels = pairs.join(verdicts, on=PAIR, how="left", maintain_order="left")["verdict"].to_list()
    read = list(zip(rows.values(), labels, strict=True))
    counts = dict(verdicts.group_by("verdict").len().iter_rows())
    alike = bool(sizes) and all(size == sizes[0] for size in sizes)
    fits = not beyond and alike and _explained(sizes[0], read) == counts
    return {
        "samples": [review.sample.design.name for review in desks],
        "read": len(read),
        "outdated": not fits and not beyond,
        "beyond": list(beyond),
        **_figures(sizes[0] if fits else {}, read if fits else []),
    }


def _explained(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> dict[str, int]:
    """Return verdict -> number of pairs to expect if only the labels of read pairs differ from the panel's."""
    counts = dict.fromkeys([*map(verdict_of, sizes), *(label for _, label in read)], 0)
    for name, size in sizes.items():
        counts[verdict_of(name)] += size
    for row, label in read:
        counts[verdict_of(row.stratum)] -= 1
        counts[label] += 1
    return {name: count for name, count in counts.items() if count}


def _figures(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> dict[str, Json]:
    rows = [row for row, _ in read]

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        return [stratum_counts(name, size, rows, hit) for name, size in sizes.items() if verdict_of(name) in verdicts]

    def share(verdicts: Sequence[str], hit: str) -> Json:
        right = [row.relevant == (hit == "relevant" or label == "relevant") for row, label in read if label in verdicts]
        return _json(
            sample_estimates.share_after(StratumCounts(len(right), len(right), sum(right)), parts(verdicts, hit))
        )

    relevant = [label == "relevant" for row, label in read if row.relevant]
    detected, missed = sum(relevant), len(relevant) - sum(relevant)
    lacking = parts([*OTHERS, "not relevant"], "relevant")
    return {
        "agreement": share(DECIDED, "confirmed"),
        "confirmed": {name: share([name], "confirmed") for name in DECIDED},
        "relevant": {name: share([name], "relevant") for name in OTHERS if parts([name], "")},
        "recall": _json(sample_estimates.recall(parts(["relevant"], "relevant"), lacking, known=(detected, missed))),
        "kappa": _json(_kappa(sizes, read)),
    }


def _json(estimate: Estimate | None) -> Json:
    rounded = rounded_estimate(estimate)
    return rounded.to_json() if rounded else None


def _kappa(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> Estimate | None:
    """Return Cohen's kappa of published labels and assessors on the decided pairs; None if none was read."""
    read_counts = np.zeros((2, 2))
    for row, label in read:
        if label in DECIDED:
            read_counts[int(label != "relevant"), int(not row.relevant)] += 1
    ruled = {name: size for name, size in sizes.items() if verdict_of(name) in DECIDED}
    rows = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row, _ in read]
    ruled_rows = [row for row in rows if row[0] in ruled]
    if not ruled_rows:
        return None
    strata, first, second = zip(*ruled_rows, strict=True)
    return sample_estimates.kappa(strata, first, second, ruled, 2, known=read_counts)
