"""Measures of an encoder on notes: recall of texts of the same group, silhouettes, and a linear probe of labels.

The probe is a logistic regression (scikit-learn, C = 1) on unit vectors, scored by AUROC on texts of held-out groups.
For comparison it is also scored with random folds, in which texts of one group are in both training and test part. The
difference of the two AUROCs (`auroc_leak`) is due to this leakage.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.commands.notes.table import NotesTable
from curate.core.errors import DataError
from curate.core.progress import StepLabel
from curate.core.protocols import Progress, Vectors
from curate.stats.confusion import macro_auroc, mean_of_defined
from curate.stats.neighbour_recall import PROTOCOLS, queries, ranks, silhouettes
from curate.stats.tally import Floats, Ints
from curate.system.extras import needed

STEPS = 1_000
"""Maximum iterations of a logistic regression."""
FOLDINGS = ("disjoint", "random")


@dataclass(frozen=True)
class ProbeSet:
    """Data of the linear probe: texts, labels and groups, one entry per labelled text."""

    texts: Ints
    """Indexes of the texts among all texts."""
    labels: Ints
    """Label of each text, as an index into `names`."""
    names: Sequence[str]
    group: Ints


@dataclass(frozen=True)
class Fold:
    """Test texts of one fold, with the probe's predictions."""

    texts: Ints
    """Indexes of the test texts among all texts."""
    labels: Ints
    scores: Floats
    """Predicted probabilities, shape (texts, labels)."""


def chosen(names: Sequence[str], codes: Ints, group: Ints, folds: int) -> tuple[ProbeSet | None, list[str], str]:
    """Return the probe's data, the labels dropped for few groups, and the reason if there are no data.

    `codes` is each text's index into `names`, -1 without a label. A label needs at least as many groups as there are
    folds, so that every training part contains it. The data are None with fewer than two labels; else the reason is "".
    """
    with_label = codes >= 0
    pairs = np.unique(np.stack([codes[with_label], group[with_label]]), axis=1)
    groups = np.bincount(pairs[0], minlength=len(names))
    usable = np.flatnonzero(groups >= folds)
    rare = [names[int(code)] for code in np.flatnonzero(groups < folds)]
    if len(usable) < 2:
        problem = "one label" if len(names) == 1 else f"{len(names)} labels, {len(usable)} of them in {folds} groups"
        return None, rare, f"found {problem}, expected two that stand in {folds} groups each"
    labelled = np.flatnonzero(np.isin(codes, usable))
    return (
        ProbeSet(
            labelled, np.searchsorted(usable, codes[labelled]), [names[int(code)] for code in usable], group[labelled]
        ),
        rare,
        "",
    )


def fitted(
    vectors: Vectors, probe: ProbeSet, folds: int, seeds: Sequence[int], on_fit: Callable[[], None]
) -> dict[str, list[list[Fold]]]:
    """Return folding (`disjoint` groups or `random`) -> seeds -> folds, with a probe fitted for every fold.

    `on_fit` is called after each fit.
    """
    rows = vectors[probe.texts]
    probes: dict[str, list[list[Fold]]] = {}
    for folding in FOLDINGS:
        probes[folding] = []
        for seed in seeds:
            probes[folding].append([])
            for train, test in _folds(folding, probe, folds, seed):
                scores = _scores(rows[train], probe.labels[train], rows[test], len(probe.names))
                probes[folding][-1].append(Fold(probe.texts[test], probe.labels[test], scores))
                on_fit()
    return probes


def areas(seeds: Sequence[Sequence[Fold]], weights: Floats) -> Floats:
    """Return the mean macro AUROC over folds and seeds, shape (resamples,); NaN folds are left out.

    `weights` has shape (resamples, texts): how often each text is drawn.
    """
    aurocs = [macro_auroc(fold.scores, fold.labels, weights[:, fold.texts]) for folds in seeds for fold in folds]
    return mean_of_defined(np.stack(aurocs))


def halves(probe: ProbeSet, part_count: int) -> tuple[Ints, Ints]:
    """Return the rows of the probe for train and test, without shared groups.

    The test part is 1 / `part_count` of the texts, more if a label has fewer groups than `part_count`.
    """
    pairs = np.unique(np.stack([probe.labels, probe.group]), axis=1)
    return _folds("disjoint", probe, min(part_count, int(np.bincount(pairs[0]).min())), 0)[0]


def _folds(folding: str, probe: ProbeSet, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return (train, test) rows of the probe per fold; DataError if a training part lacks a label."""
    with needed("the probe of labels"):
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
    splitter = StratifiedGroupKFold if folding == "disjoint" else StratifiedKFold
    groups = probe.group if folding == "disjoint" else None
    splits = list(splitter(folds, shuffle=True, random_state=seed).split(probe.labels, probe.labels, groups))
    for train, _ in splits:
        if len(np.unique(probe.labels[train])) < len(probe.names):
            raise DataError(
                f"seed {seed}: found a fold that holds all texts of a label, so that none is left to fit on; give "
                "fewer folds (--set folds=2), or leave the rarest label empty"
            )
    return splits


def _scores(train: Vectors, labels: Ints, test: Vectors, count: int) -> Floats:
    from sklearn.linear_model import LogisticRegression

    probabilities: Floats = LogisticRegression(max_iter=STEPS).fit(train, labels).predict_proba(test)
    assert probabilities.shape[1] == count, "every label is in every training part"
    return probabilities.astype(np.float64)


# Figures of one encoder as sums per group, which a resample of groups only reweights, and its probes.

DEPTHS = (1, 5, 10)
LABELLINGS = ("label", "style")


@dataclass(frozen=True)
class Measure:
    """A measure of an encoder, such as recall at a depth."""

    name: str
    """A recall protocol, or auroc_disjoint, auroc_random, auroc_leak, silhouette_label, _style or _delta."""
    at: int | None = None
    """Depth of a recall."""

    @property
    def is_quality(self) -> bool:
        """Return whether higher is better: recalls, auroc_disjoint and silhouette_label."""
        return self.at is not None or self.name in ("auroc_disjoint", "silhouette_label")


@dataclass(frozen=True)
class PerGroup:
    """Numerators (`above`) and denominators (`below`) of a mean, summed by group, to resample groups."""

    above: Floats
    below: Floats


@dataclass(frozen=True)
class EncoderResult:
    """Figures of one encoder as sums per group, and its probes."""

    strict: Mapping[Measure, PerGroup]
    chance: Mapping[Measure, PerGroup]
    """As `strict`, where ties favour the relevant text, but as the expectation over random orders of ties.

    Equal for measures without ranks."""
    probes: Mapping[str, Sequence[Sequence[Fold]]]
    """Folding -> seeds -> folds; empty without a probe."""


@dataclass(frozen=True)
class MeasurePlan:
    """Measures that are defined for a table, and reasons why others are not."""

    table: NotesTable
    measures: Sequence[Measure]
    probe: ProbeSet | None
    folds: int
    seeds: Sequence[int]
    undefined: Mapping[str, str]
    """Name of a measure -> why it is not defined."""
    notes: Sequence[str]


def feasible(table: NotesTable, folds: int, seeds: Sequence[int]) -> MeasurePlan:
    """Return the measures that are defined with the table's columns, chains and labels."""
    undefined, notes = _without_chains(table), list[str]()
    probe = None
    if "label" in table.labels:
        probe, rare, why = chosen(*table.codes("label"), table.chains.group, folds)
        notes += [f"labels in fewer than {folds} groups, left out of the AUROC: {', '.join(rare)}"] if rare else []
        undefined |= {f"auroc_{folding}": why for folding in ("disjoint", "random", "leak") if why}
        if not why and len(np.unique(table.chains.group)) == len(table.texts):
            notes.append("every group is one text: group-disjoint folds are random ones, and there is no leak to find")
    else:
        undefined |= dict.fromkeys(("auroc_disjoint", "auroc_random", "auroc_leak"), _missing_column("label"))
    for name in LABELLINGS:
        if why := _without_clusters(table, name):
            undefined[f"silhouette_{name}"] = why
    lacking = [undefined[f"silhouette_{name}"] for name in LABELLINGS if f"silhouette_{name}" in undefined]
    if lacking:
        undefined["silhouette_delta"] = lacking[0]
    names = [Measure(protocol, depth) for protocol in PROTOCOLS for depth in DEPTHS]
    names += [Measure(f"auroc_{folding}") for folding in ("disjoint", "random", "leak")]
    names += [Measure(f"silhouette_{labelling}") for labelling in (*LABELLINGS, "delta")]
    defined = [name for name in names if name.name not in undefined]
    return MeasurePlan(table, defined, probe, folds, seeds, undefined, notes)


def _missing_column(name: str) -> str:
    return f"no column holds the {name}; name it with --column {name}=NAME"


def _without_chains(table: NotesTable) -> dict[str, str]:
    """Return recall protocol -> reason why it is not defined; empty if all are."""
    undefined: dict[str, str] = {}
    if "group" not in table.columns:
        return dict.fromkeys(PROTOCOLS, _missing_column("group"))
    if not len(table.chains.member):
        return dict.fromkeys(PROTOCOLS, "every group has one text, expected some with two")
    if "order" not in table.columns:
        undefined = dict.fromkeys(PROTOCOLS[:3], _missing_column("order"))
    elif not len(table.chains.query):
        undefined = dict.fromkeys(PROTOCOLS[:3], "no group has two texts with a place in their order")
    if "group" not in undefined and len(np.unique(table.chains.group)) < 2:
        undefined |= dict.fromkeys(PROTOCOLS[2:], "found one group, expected texts of others to be told from")
    return undefined


def _without_clusters(table: NotesTable, name: str) -> str:
    if name not in table.labels:
        return _missing_column(name)
    values, codes = table.codes(name)
    if len(values) < 2:
        return f"found {len(values)} {name}, expected two: the column {table.columns[name]} does not vary"
    if len(values) >= int((codes >= 0).sum()):
        return f"every text has a {name} of its own, expected some to share one"
    return ""


def measured(plan: MeasurePlan, vectors: Vectors, name: str, progress: Progress) -> EncoderResult:
    """Return the recalls, silhouettes and probes of one encoder's vectors."""
    strict, chance = _recalls(plan, vectors, name, progress)
    for labelling in LABELLINGS:
        if f"silhouette_{labelling}" not in plan.undefined:
            _, codes = plan.table.codes(labelling)
            labelled = np.flatnonzero(codes >= 0)
            values = silhouettes(vectors[labelled], codes[labelled])
            sums = _by_group(values, plan.table.chains.group[labelled], plan.table.groups)
            strict[Measure(f"silhouette_{labelling}")] = chance[Measure(f"silhouette_{labelling}")] = sums
    probes: Mapping[str, Sequence[Sequence[Fold]]] = {}
    if plan.probe is not None:
        count_fit = _fit_counter(progress, f"probing, {name}", "fits", len(FOLDINGS) * plan.folds * len(plan.seeds))
        probes = fitted(vectors, plan.probe, plan.folds, plan.seeds, count_fit)
    return EncoderResult(strict, chance, probes)


def _recalls(
    plan: MeasurePlan, vectors: Vectors, name: str, progress: Progress
) -> tuple[dict[Measure, PerGroup], dict[Measure, PerGroup]]:
    chains, recalls = plan.table.chains, [measure for measure in plan.measures if measure.at is not None]
    if not recalls:
        return {}, {}
    total, label = queries(chains), StepLabel(f"ranking, {name}", "queries")
    progress(label, total, 0)
    protocol_ranks = ranks(vectors, chains, lambda completed: progress(label, total, completed))
    sides: tuple[dict[Measure, PerGroup], dict[Measure, PerGroup]] = {}, {}
    for measure in recalls:
        assert measure.at is not None
        ranked = protocol_ranks[measure.name]
        group = chains.group[ranked.query]
        for side, values in zip(sides, (ranked.hits(measure.at), ranked.by_chance(measure.at)), strict=True):
            side[measure] = _by_group(values, group, plan.table.groups)
    return sides


def _by_group(values: Floats, group: Ints, groups: int) -> PerGroup:
    above = np.bincount(group, values, minlength=groups).astype(np.float64)
    return PerGroup(above, np.bincount(group, minlength=groups).astype(np.float64))


def _fit_counter(progress: Progress, text: str, unit: str, total: int) -> Callable[[], None]:
    label, fits = StepLabel(text, unit), 0
    progress(label, total, fits)

    def count_fit() -> None:
        nonlocal fits
        fits += 1
        progress(label, total, fits)

    return count_fit
