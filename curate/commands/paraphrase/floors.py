"""What needs no meaning, measured on the pairs: how far overlap, length or the words of a sentence give the label away.

Average precision, .5 by chance where half of the pairs are positive. A model that is not above the best of these has
shown nothing on the set.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from curate.commands.paraphrase.pairs import CandidatePair
from curate.core.config import text_digest
from curate.stats.replicated import average_precision
from curate.stats.shortcuts import alike_in_length, grams

FOLDS = 5
Marks = Sequence[frozenset[str]]


def overlap_alone(pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of the overlap of characters; None without both labels."""
    return _precision([each.overlap for each in pairs], pairs)


def floors(pairs: Sequence[CandidatePair]) -> dict[str, float | None]:
    """Return the average precision of every shortcut, None where it is not defined.

    `overlap` of characters; `length`, how alike it is; `sentence2`, the words of the second sentence alone; `edits`,
    the words that stand in one sentence of the pair only. Words vote by naive Bayes, learnt on the pairs of other
    queries.
    """
    one, two = (grams([getattr(each, name) for each in pairs]) for name in ("sentence1", "sentence2"))
    changed = [
        frozenset(f"+{gram}" for gram in b - a) | {f"-{gram}" for gram in a - b} for a, b in zip(one, two, strict=True)
    ]
    return {
        "overlap": overlap_alone(pairs),
        "length": _precision([alike_in_length(each.sentence1, each.sentence2) for each in pairs], pairs),
        "sentence2": _learnt(two, pairs),
        "edits": _learnt(changed, pairs),
    }


def _precision(scores: Sequence[float], pairs: Sequence[CandidatePair]) -> float | None:
    labels = [each.label for each in pairs]
    if len(set(labels)) < 2:
        return None
    found = average_precision(np.array(scores, dtype=np.float64), np.array(labels, dtype=np.float64))
    return round(float(found(np.ones((1, len(pairs))))[0]), 4)


def _learnt(marks: Marks, pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of what marks tell, each fifth of the queries scored by what the others teach."""
    if len({each.query_id for each in pairs}) < FOLDS or len({each.label for each in pairs}) < 2:
        return None
    fold = [int(text_digest(each.query_id)[:8], 16) % FOLDS for each in pairs]
    rules = {
        held: _bayes(
            [(mark, each.label) for at, (mark, each) in enumerate(zip(marks, pairs, strict=True)) if fold[at] != held]
        )
        for held in set(fold)
    }
    return _precision([rules[at](mark) for at, mark in zip(fold, marks, strict=True)], pairs)


def _bayes(taught: Sequence[tuple[frozenset[str], int]]) -> Callable[[frozenset[str]], float]:
    """Return the log odds of label 1 by the marks that are there: naive Bayes with Laplace's one more of each."""
    sizes = Counter(label for _, label in taught)
    there: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for marks, label in taught:
        for mark in marks:
            there[mark][label] += 1
    odds = {
        mark: math.log((counts[1] + 1) / (sizes[1] + 2)) - math.log((counts[0] + 1) / (sizes[0] + 2))
        for mark, counts in there.items()
    }
    return lambda marks: round(sum(sorted(odds.get(mark, 0.0) for mark in marks)), 9)
