"""One encoder's figures as sums per group, from which any resample of groups follows, and its probes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.commands.notes import probing
from curate.commands.notes.probing import Fold, ProbeSet
from curate.commands.notes.table import NotesTable
from curate.core.progress import StepLabel
from curate.core.protocols import Progress, Vectors
from curate.stats.neighbour_recall import PROTOCOLS, queries, ranks
from curate.stats.silhouette import silhouettes
from curate.stats.tally import Floats, Ints

DEPTHS = (1, 5, 10)
LABELLINGS = ("label", "style")


@dataclass(frozen=True)
class Measure:
    """What is measured of every encoder."""

    name: str
    """A protocol of recall, auroc_disjoint, auroc_random, auroc_leak, silhouette_label, _style or _delta."""
    at: int | None = None
    """Depth of a recall."""

    @property
    def is_quality(self) -> bool:
        """Return whether more of it is better: a leak, random folds and the style are only to be known."""
        return self.at is not None or self.name in ("auroc_disjoint", "silhouette_label")


@dataclass(frozen=True)
class PerGroup:
    """Numerators and denominators of a mean by group."""

    above: Floats
    below: Floats


@dataclass(frozen=True)
class EncoderResult:
    """What one encoder did."""

    strict: Mapping[Measure, PerGroup]
    chance: Mapping[Measure, PerGroup]
    """The same where chance orders what ties; of a mean without ranks the same."""
    probes: Mapping[str, Sequence[Sequence[Fold]]]
    """Folding -> seed -> folds; empty without labels to probe."""


@dataclass(frozen=True)
class MeasurePlan:
    """What can be measured in a table, and why the rest cannot."""

    table: NotesTable
    measures: Sequence[Measure]
    probe: ProbeSet | None
    folds: int
    seeds: Sequence[int]
    undefined: Mapping[str, str]
    """Name of a measure -> why it is not defined."""
    notes: Sequence[str]


def feasible(table: NotesTable, folds: int, seeds: Sequence[int]) -> MeasurePlan:
    """Return what can be measured in a table."""
    undefined, notes = _without_chains(table), list[str]()
    probe = None
    if "label" in table.labels:
        probe, few, why = probing.chosen(*table.codes("label"), table.chains.group, folds)
        notes += [f"labels in fewer than {folds} groups, left out of the AUROC: {', '.join(few)}"] if few else []
        undefined |= {f"auroc_{each}": why for each in ("disjoint", "random", "leak") if why}
        if not why and len(np.unique(table.chains.group)) == len(table.texts):
            notes.append("every group is one text: group-disjoint folds are random ones, and there is no leak to find")
    else:
        undefined |= dict.fromkeys(("auroc_disjoint", "auroc_random", "auroc_leak"), _absent("label"))
    for name in LABELLINGS:
        if why := _without_clusters(table, name):
            undefined[f"silhouette_{name}"] = why
    lacking = [undefined[f"silhouette_{name}"] for name in LABELLINGS if f"silhouette_{name}" in undefined]
    if lacking:
        undefined["silhouette_delta"] = lacking[0]
    names = [Measure(protocol, depth) for protocol in PROTOCOLS for depth in DEPTHS]
    names += [Measure(f"auroc_{each}") for each in ("disjoint", "random", "leak")]
    names += [Measure(f"silhouette_{each}") for each in (*LABELLINGS, "delta")]
    defined = [each for each in names if each.name not in undefined]
    return MeasurePlan(table, defined, probe, folds, seeds, undefined, notes)


def _absent(name: str) -> str:
    return f"no column holds the {name}; name it with --column {name}=NAME"


def _without_chains(table: NotesTable) -> dict[str, str]:
    """Return why protocols are not defined."""
    found: dict[str, str] = {}
    if "group" not in table.columns:
        return dict.fromkeys(PROTOCOLS, _absent("group"))
    if not len(table.chains.member):
        return dict.fromkeys(PROTOCOLS, "every group has one text, expected some with two")
    if "order" not in table.columns:
        found = dict.fromkeys(PROTOCOLS[:3], _absent("order"))
    elif not len(table.chains.query):
        found = dict.fromkeys(PROTOCOLS[:3], "no group has two texts with a place in their order")
    if "group" not in found and len(np.unique(table.chains.group)) < 2:
        found |= dict.fromkeys(PROTOCOLS[2:], "found one group, expected texts of others to be told from")
    return found


def _without_clusters(table: NotesTable, name: str) -> str:
    if name not in table.labels:
        return _absent(name)
    values, codes = table.codes(name)
    if len(values) < 2:
        return f"found {len(values)} {name}, expected two: the column {table.columns[name]} does not vary"
    if len(values) >= int((codes >= 0).sum()):
        return f"every text has a {name} of its own, expected some to share one"
    return ""


def measured(asked: MeasurePlan, vectors: Vectors, name: str, progress: Progress) -> EncoderResult:
    """Return what one encoder did."""
    strict, chance = _recalls(asked, vectors, name, progress)
    for labelling in LABELLINGS:
        if f"silhouette_{labelling}" not in asked.undefined:
            found = _silhouettes(asked.table, vectors, labelling)
            strict[Measure(f"silhouette_{labelling}")] = chance[Measure(f"silhouette_{labelling}")] = found
    probes: Mapping[str, Sequence[Sequence[Fold]]] = {}
    if asked.probe is not None:
        told = _counted(progress, f"probing, {name}", "fits", len(probing.FOLDINGS) * asked.folds * len(asked.seeds))
        probes = probing.fitted(vectors, asked.probe, asked.folds, asked.seeds, told)
    return EncoderResult(strict, chance, probes)


def _recalls(
    asked: MeasurePlan, vectors: Vectors, name: str, progress: Progress
) -> tuple[dict[Measure, PerGroup], dict[Measure, PerGroup]]:
    chains, wanted = asked.table.chains, [each for each in asked.measures if each.at is not None]
    if not wanted:
        return {}, {}
    total, label = queries(chains), StepLabel(f"ranking, {name}", "queries")
    progress(label, total, 0)
    found = ranks(vectors, chains, lambda done: progress(label, total, done))
    sides: tuple[dict[Measure, PerGroup], dict[Measure, PerGroup]] = {}, {}
    for each in wanted:
        assert each.at is not None
        ranked = found[each.name]
        group = chains.group[ranked.query]
        for side, values in zip(sides, (ranked.hits(each.at), ranked.by_chance(each.at)), strict=True):
            side[each] = _by_group(values, group, asked.table.groups)
    return sides


def _silhouettes(table: NotesTable, vectors: Vectors, labelling: str) -> PerGroup:
    _, codes = table.codes(labelling)
    places = np.flatnonzero(codes >= 0)
    values = silhouettes(vectors[places], codes[places])
    return _by_group(values, table.chains.group[places], table.groups)


def _by_group(values: Floats, group: Ints, groups: int) -> PerGroup:
    above = np.bincount(group, values, minlength=groups).astype(np.float64)
    return PerGroup(above, np.bincount(group, minlength=groups).astype(np.float64))


def _counted(progress: Progress, text: str, unit: str, total: int) -> Callable[[], None]:
    label, done = StepLabel(text, unit), 0
    progress(label, total, done)

    def told() -> None:
        nonlocal done
        done += 1
        progress(label, total, done)

    return told
