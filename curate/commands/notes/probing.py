"""How well a linear probe reads the label from vectors: AUROC on texts of groups that it was not fitted on.

Logistic regression of scikit-learn, C = 1, on unit vectors. Random folds stand beside: texts of one group then lie on
both sides, and what the probe gains by that is the leak.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.stats.auroc import macro_auroc, mean_of_defined
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
