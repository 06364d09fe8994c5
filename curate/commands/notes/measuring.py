"""How well a linear probe reads the label from vectors: AUROC on texts of groups that it was not fitted on.

Logistic regression of scikit-learn, C = 1, on unit vectors. Random folds stand beside: texts of one group then lie on
both sides, and what the probe gains by that is the leak.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.commands.notes.table import NotesTable
from curate.core.errors import DataError
from curate.core.progress import StepLabel
from curate.core.protocols import Progress, Vectors
from curate.stats.auroc import macro_auroc, mean_of_defined
from curate.stats.neighbour_recall import PROTOCOLS, queries, ranks
from curate.stats.silhouette import silhouettes
from curate.stats.tally import Floats, Ints
from curate.system.extras import needed

STEPS = 1_000
"""Most iterations of a fit."""
FOLDINGS = ("disjoint", "random")


@dataclass(frozen=True)
class ProbeSet:
    """The texts that a probe is fitted and measured on."""

    texts: Ints
    """Their places among all texts."""
    labels: Ints
    """From 0, without gaps."""
    names: Sequence[str]
    group: Ints


@dataclass(frozen=True)
class Fold:
    """One fold's probabilities."""

    texts: Ints
    """Places among all texts."""
    labels: Ints
    scores: Floats
    """Shape (texts, labels)."""


def chosen(names: Sequence[str], codes: Ints, group: Ints, folds: int) -> tuple[ProbeSet | None, list[str], str]:
    """Return what can be probed, the labels that are left out for too few groups, and why nothing can be, or "".

    A label needs as many groups as there are folds, so that each fold is fitted on some.
    """
    with_label = codes >= 0
    pairs = np.unique(np.stack([codes[with_label], group[with_label]]), axis=1)
    groups = np.bincount(pairs[0], minlength=len(names))
    kept = np.flatnonzero(groups >= folds)
    few = [names[int(at)] for at in np.flatnonzero(groups < folds)]
    if len(kept) < 2:
        found = "one label" if len(names) == 1 else f"{len(names)} labels, {len(kept)} of them in {folds} groups"
        return None, few, f"found {found}, expected two that stand in {folds} groups each"
    places = np.flatnonzero(np.isin(codes, kept))
    return (
        ProbeSet(places, np.searchsorted(kept, codes[places]), [names[int(at)] for at in kept], group[places]),
        few,
        "",
    )


def fitted(
    vectors: Vectors, probe: ProbeSet, folds: int, seeds: Sequence[int], told: Callable[[], None]
) -> dict[str, list[list[Fold]]]:
    """Return folding -> seed -> folds; `told` hears of every fit that is done."""
    rows = vectors[probe.texts]
    found: dict[str, list[list[Fold]]] = {}
    for folding in FOLDINGS:
        found[folding] = []
        for seed in seeds:
            found[folding].append([])
            for train, test in _folds(folding, probe, folds, seed):
                scores = _scores(rows[train], probe.labels[train], rows[test], len(probe.names))
                found[folding][-1].append(Fold(probe.texts[test], probe.labels[test], scores))
                told()
    return found


def areas(seeds: Sequence[Sequence[Fold]], weights: Floats) -> Floats:
    """Return the mean over folds and seeds of the macro AUROC, under each row of weights of all texts."""
    found = [macro_auroc(fold.scores, fold.labels, weights[:, fold.texts]) for folds in seeds for fold in folds]
    return mean_of_defined(np.stack(found))


def halves(probe: ProbeSet, parts: int) -> tuple[Ints, Ints]:
    """Return the rows to train on and those to test on, one of so many parts; no group is on both sides."""
    pairs = np.unique(np.stack([probe.labels, probe.group]), axis=1)
    return _folds("disjoint", probe, min(parts, int(np.bincount(pairs[0]).min())), 0)[0]


def _folds(folding: str, probe: ProbeSet, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return (train, test) of every fold, as places in the probe; DataError if one would be fitted without a label."""
    with needed("the probe of labels"):
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
    splitter = StratifiedGroupKFold if folding == "disjoint" else StratifiedKFold
    groups = probe.group if folding == "disjoint" else None
    found = list(splitter(folds, shuffle=True, random_state=seed).split(probe.labels, probe.labels, groups))
    for train, _ in found:
        if len(np.unique(probe.labels[train])) < len(probe.names):
            raise DataError(
                f"seed {seed}: found a fold that holds all texts of a label, so that none is left to fit on; give "
                "fewer --folds, or leave the rarest label empty"
            )
    return found


def _scores(train: Vectors, labels: Ints, test: Vectors, count: int) -> Floats:
    from sklearn.linear_model import LogisticRegression

    found: Floats = LogisticRegression(max_iter=STEPS).fit(train, labels).predict_proba(test)
    assert found.shape[1] == count, "every label is in every training part"
    return found.astype(np.float64)


# One encoder's figures as sums per group, from which any resample of groups follows, and its probes.

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
        probe, few, why = chosen(*table.codes("label"), table.chains.group, folds)
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
    defined = [name for name in names if name.name not in undefined]
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
        told = _counted(progress, f"probing, {name}", "fits", len(FOLDINGS) * asked.folds * len(asked.seeds))
        probes = fitted(vectors, asked.probe, asked.folds, asked.seeds, told)
    return EncoderResult(strict, chance, probes)


def _recalls(
    asked: MeasurePlan, vectors: Vectors, name: str, progress: Progress
) -> tuple[dict[Measure, PerGroup], dict[Measure, PerGroup]]:
    chains, wanted = asked.table.chains, [measure for measure in asked.measures if measure.at is not None]
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
