"""Estimates for the published labels, where experts' answers replace the panel's.

A pair that people read has their answer for its label: it is right as far as people are. All others have the panel's
verdict, and are as often wrong as the panel is in their stratum. Of a stratum's N pairs n were read and x of these were
hits, so N - n unread pairs bring (N - n) x / n hits to a figure, and read ones what their labels are. Only the unread
part is uncertain; `estimates.share_after` has formula and interval. A read pair on which people disagree keeps the
panel's label, and the first reader's answer says whether that is right.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.panel.sampling_design import DECIDED
from curate.panel.voting import EXPERTS, PAIR
from curate.review.agreement import CheckedRow, checked, part, shown
from curate.review.desk import relevance_desks
from curate.stats import sample_estimates
from curate.stats.sample_estimates import Estimate, StratumCounts
from curate.system.files import read_json, read_scale, read_table

OTHERS = tuple(name for name in VERDICTS if name not in DECIDED)


def prove(run: Path, resolved: Path | None = None) -> dict[str, Json] | None:
    """Return the figures of a run's published labels by the names of `proof.prove`.

    None where the labels are the panel's, and on a scale without a cut, whose labels are not relevant or not.
    `kappa` is that of the labels and people on the pairs that are decided, `counts` the pairs by verdict, of the panel
    and published, `samples` whose answers were labels. `outdated` says that other answers than those that there are now
    made the labels, or that the samples were not drawn of one panel's verdicts; then no figure is defined. Nor is one
    where something `beyond` the policy and random samples made labels: their errors are in no sample's strata.
    `resolved` is the folder of the stage `resolve`, if it is not in its place yet.
    """
    resolved = resolved or run / "resolve"
    facts = _facts(resolved)
    if facts.get("policy") != EXPERTS or not facts.get("reviewed") or not read_scale(run / "judge").relevant:
        return None
    named, beyond = facts.get("samples"), cast("Sequence[str]", facts.get("beyond") or ())
    desks = [desk for desk in relevance_desks(run) if named is None or desk.sample.design.name in named]
    sizes = [{each.name: each.size for each in desk.sample.design.strata} for desk in desks]
    verdicts = read_table(resolved, "verdicts").select(*PAIR, "verdict")
    rows = {tuple(row.ids): row for desk in reversed(desks) for row in checked(desk) if row.settled}
    pairs = pl.DataFrame(list(rows), dict.fromkeys(PAIR, pl.String), orient="row")
    labels = pairs.join(verdicts, on=PAIR, how="left", maintain_order="left")["verdict"].to_list()
    read = list(zip(rows.values(), labels, strict=True))
    counts = dict(verdicts.group_by("verdict").len().iter_rows())
    alike = bool(sizes) and all(size == sizes[0] for size in sizes)
    fits = not beyond and alike and _explained(sizes[0], read) == counts
    return {
        "samples": [desk.sample.design.name for desk in desks],
        "read": len(read),
        "outdated": not fits and not beyond,
        "beyond": list(beyond),
        **_figures(sizes[0] if fits else {}, read if fits else []),
    }


def _facts(resolved: Path) -> Mapping[str, Any]:
    """Return what the stage `resolve` reported; nothing if it has not run."""
    mark = resolved / "stage.json"
    facts: Mapping[str, Any] = read_json(mark)["report"]["facts"] if mark.is_file() else {}
    return facts


def _verdict(stratum: str) -> str:
    return stratum.split(", ", 1)[0]


def _explained(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> dict[str, int]:
    """Return the pairs by verdict if experts' answers changed nothing but what was read."""
    found = dict.fromkeys([*map(_verdict, sizes), *(label for _, label in read)], 0)
    for name, size in sizes.items():
        found[_verdict(name)] += size
    for row, label in read:
        found[_verdict(row.stratum)] -= 1
        found[label] += 1
    return {name: count for name, count in found.items() if count}


def _figures(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> dict[str, Json]:
    rows = [row for row, _ in read]

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        return [part(name, size, rows, hit) for name, size in sizes.items() if _verdict(name) in verdicts]

    def share(verdicts: Sequence[str], hit: str) -> Json:
        known = [row.relevant == (hit == "relevant" or label == "relevant") for row, label in read if label in verdicts]
        return shown(
            sample_estimates.share_after(StratumCounts(len(known), len(known), sum(known)), parts(verdicts, hit))
        )

    relevant = [label == "relevant" for row, label in read if row.relevant]
    found, missed = sum(relevant), len(relevant) - sum(relevant)
    lacking = parts([*OTHERS, "not relevant"], "relevant")
    return {
        "agreement": share(DECIDED, "confirmed"),
        "confirmed": {name: share([name], "confirmed") for name in DECIDED},
        "relevant": {name: share([name], "relevant") for name in OTHERS if parts([name], "")},
        "recall": shown(sample_estimates.recall(parts(["relevant"], "relevant"), lacking, known=(found, missed))),
        "kappa": shown(_kappa(sizes, read)),
    }


def _kappa(sizes: Mapping[str, int], read: Sequence[tuple[CheckedRow, str]]) -> Estimate | None:
    """Return Cohen's kappa of published labels and people on the decided pairs; read ones count as they are now."""
    known = np.zeros((2, 2))
    for row, label in read:
        if label in DECIDED:
            known[int(label != "relevant"), int(not row.relevant)] += 1
    ruled = {name: size for name, size in sizes.items() if _verdict(name) in DECIDED}
    rows = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row, _ in read]
    kept = [row for row in rows if row[0] in ruled]
    if not kept:
        return None
    strata, first, second = zip(*kept, strict=True)
    return sample_estimates.kappa(strata, first, second, ruled, 2, known=known)
