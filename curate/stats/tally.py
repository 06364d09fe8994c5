"""Tallies of ratings: checked matrices of codes, their distinct patterns, and sums to compute agreement from."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

from curate.core.errors import DataError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.ArrayLike | Sequence[Sequence[int | None]]
Column = npt.ArrayLike | Sequence[int | None]

_TABLE = "ratings: found texts or rows of unequal length, expected a matrix of whole numbers; give grades as codes"

DENSE = 1 << 22
"""Limit of keys used as indexes of an array; keys above it are renumbered first."""


@dataclass(frozen=True)
class Stacked:
    """Sums in arrays, stacked along their first axis by cluster or bootstrap sample."""

    def __len__(self) -> int:
        """Return the number of entries in the first axis."""
        return len(getattr(self, fields(self)[0].name))

    def weighted(self, weights: Floats) -> Self:
        """Return the weighted sums over the first axis, with weights[..., i] for entry i."""
        return type(self)(*(np.asarray(np.tensordot(weights, getattr(self, f.name), axes=1)) for f in fields(self)))


@dataclass(frozen=True)
class Sums(Stacked):
    """Sums over items from which agreement is computed; leading axes hold clusters or bootstrap samples.

    For an item with r ratings, r_c of them in category c, each field sums the term given below.
    """

    rated: Floats
    """1 for an item with a rating; shape (...)."""
    paired: Floats
    """1 for an item with two or more ratings (a paired item); shape (...)."""
    share: Floats
    """r_c / r over rated items; shape (..., categories)."""
    counts: Floats
    """r_c over paired items; shape (..., categories)."""
    pairs: Floats
    """r_c (r_d - [c = d]) / (r (r - 1)) over paired items; shape (..., categories, categories)."""
    coincidence: Floats
    """r_c (r_d - [c = d]) / (r - 1) over paired items, Krippendorff's matrix; shape (..., categories, categories)."""


@dataclass(frozen=True)
class Tally:
    """The distinct patterns of ratings, and the index of each item's pattern."""

    patterns: Ints
    """Number of ratings in each category, one row per distinct pattern; shape (patterns, categories)."""
    which: Ints
    """Row of each item in `patterns`; shape (items,)."""
    weight: Ints | None = None
    """Number of items represented by each entry of `which`; None for 1 each."""

    def times(self) -> Ints:
        """Return the number of items of each pattern."""
        return np.bincount(self.which, self.weight, minlength=len(self.patterns)).astype(np.int64)

    def table(self) -> Floats:
        """Return the number of ratings in each category per item; shape (items, categories), stored in column order."""
        which = self.which if self.weight is None else np.repeat(self.which, self.weight)
        return self.patterns.T.astype(np.float64)[:, which].T

    def sums(self) -> Sums:
        """Return the sums over all items, without leading axes."""
        return _features(self.patterns).weighted(self.times().astype(np.float64))

    def by_cluster(self, clusters: npt.ArrayLike) -> Sums:
        """Return the sums of every cluster, stacked in the sorted order of the labels.

        `clusters` has one label per item.
        """
        pattern_sums, (labels, row) = _features(self.patterns), _labels(clusters, len(self.which))
        if not labels:
            return pattern_sums
        key, where = np.unique(row * len(self.patterns) + self.which, return_inverse=True)
        times = np.bincount(where, self.weight)
        row, pattern = np.divmod(key, len(self.patterns))
        start = np.searchsorted(row, np.arange(labels))

        def added(field: Floats) -> Floats:
            weight = times.reshape(-1, *[1] * (field.ndim - 1))
            return np.asarray(np.add.reduceat(weight * field[pattern], start, axis=0), dtype=np.float64)

        return Sums(*(added(getattr(pattern_sums, f.name)) for f in fields(pattern_sums)))


@dataclass(frozen=True)
class Crosstab(Stacked):
    """Contingency table of two raters' codes, for items rated by both: the first in rows, the second in columns."""

    table: Floats
    """Shape (..., categories, categories); leading axes hold clusters or bootstrap samples."""


def distinct(codes: Codes, categories: int) -> tuple[Ints, Ints]:
    """Return the distinct rows of a matrix of codes (items x raters), and the index of each item's row.

    DataError names the first code outside the scale.
    """
    matrix = _integer_codes(codes, 2)
    _check_codes(matrix, categories)
    first, which = _distinct(matrix + 1, categories + 1)
    return matrix[first], which


@dataclass(frozen=True)
class Compressed:
    """A matrix of codes in which the equal items of each cluster are merged into one row."""

    codes: Ints
    """Shape (rows, raters)."""
    clusters: Ints
    """Number of each row's cluster, from 0, in the sorted order of the labels; shape (rows,)."""
    times: Ints
    """Number of items of each row; shape (rows,)."""


def compress(codes: Codes, categories: int, clusters: npt.ArrayLike | None = None) -> Compressed:
    """Return the distinct rows of a matrix of codes (items x raters) within each cluster; without labels, one cluster.

    A million items of three raters become at most a few hundred rows per cluster. DataError names the first code
    outside the scale.
    """
    patterns, which = distinct(codes, categories)
    _, row = (1, np.zeros_like(which)) if clusters is None else _labels(clusters, len(which))
    key = row * len(patterns) + which
    if len(key) and (int(row.max()) + 1) * len(patterns) <= DENSE:
        times = np.bincount(key)
        kinds = np.flatnonzero(times)
        times = times[kinds]
    else:
        kinds, times = np.unique(key, return_counts=True)
    row, pattern = np.divmod(kinds, max(len(patterns), 1))
    return Compressed(patterns[pattern], row.astype(np.int64), times.astype(np.int64))


def tally(codes: Codes, categories: int, weight: Ints | None = None) -> Tally:
    """Return the tally of a matrix of codes, items x raters; DataError names the first code outside the scale.

    `weight` is the number of items of each row; 1 if None.
    """
    patterns, which = distinct(codes, categories)
    rows = np.stack([(patterns == code).sum(axis=1) for code in range(categories)], axis=1).astype(np.int64)
    first, merged = _distinct(rows, patterns.shape[1] + 1)
    return Tally(rows[first], merged[which], weight)


def crosstab(
    first: Column,
    second: Column,
    categories: int,
    clusters: npt.ArrayLike | None = None,
    weight: Ints | None = None,
) -> Crosstab:
    """Return the contingency table of two raters' codes; with cluster labels, one table per cluster, stacked.

    Items without a code by both raters are omitted. `weight` is the number of items of each code.
    """
    one, two = _integer_codes(first, 1), _integer_codes(second, 1)
    _same_length(len(two), len(one), "codes of the second rater")
    codes = np.stack([one, two], axis=1)
    _check_codes(codes, categories)
    labels, row = (1, np.zeros(len(codes), dtype=np.int64)) if clusters is None else _labels(clusters, len(codes))
    both = (codes >= 0).all(axis=1)
    key = (row[both] * categories + codes[both, 0]) * categories + codes[both, 1]
    counted = np.bincount(key, None if weight is None else weight[both], minlength=labels * categories**2)
    table = counted.reshape(labels, categories, categories)
    return Crosstab(table.astype(np.float64) if clusters is not None else table[0].astype(np.float64))


def _features(patterns: Ints) -> Sums:
    """Return `Sums` with one entry per pattern: the terms of a single item with that pattern."""
    total = patterns.sum(axis=1)
    paired = total >= 2
    # ratings in the second category that a rating in the first is paired with: not with itself
    partners = patterns[:, None, :] - np.eye(patterns.shape[1], dtype=np.int64)
    product = (patterns[:, :, None] * partners).astype(np.float64)
    # items with fewer than two ratings have no pairs, and product is 0: 2 avoids dividing by 0
    divisor = np.maximum(total, 2)[:, None, None]
    return Sums(
        rated=(total >= 1).astype(np.float64),
        paired=paired.astype(np.float64),
        share=patterns / np.maximum(total, 1)[:, None],
        counts=(patterns * paired[:, None]).astype(np.float64),
        pairs=product / (divisor * (divisor - 1)),
        coincidence=product / (divisor - 1),
    )


def _distinct(matrix: Ints, base: int) -> tuple[Ints, Ints]:
    """Return the index of one row per distinct row, and every row's number among the distinct rows.

    The entries of the matrix are whole numbers from 0 to `base` - 1.
    """
    key, span = np.zeros(len(matrix), dtype=np.int64), 1
    for column in matrix.T:
        if span * base > DENSE:
            key, span = _renumbered(key, span)
        key, span = key * base + column, span * base
    key, span = _renumbered(key, span)
    first = np.empty(span, dtype=np.int64)
    first[key] = np.arange(len(key))
    return first, key


def _renumbered(key: Ints, span: int) -> tuple[Ints, int]:
    """Return the keys (below `span`) renumbered without gaps in the same order, and the number of distinct keys."""
    if span > max(DENSE, 8 * len(key)):
        kinds, number = np.unique(key, return_inverse=True)
        return number.astype(np.int64), len(kinds)
    seen = np.zeros(span, dtype=np.bool_)
    seen[key] = True
    return (np.cumsum(seen) - 1)[key], int(seen.sum())


def _labels(clusters: npt.ArrayLike, items: int) -> tuple[int, Ints]:
    """Return the number of clusters, and the number of each item's cluster in the sorted order of the labels."""
    raw = np.asarray(clusters)
    _same_length(raw.size, items, "cluster labels")
    if raw.dtype.kind in "iu" and items and raw.min() >= 0 and raw.max() < DENSE:
        row, count = _renumbered(raw.astype(np.int64), int(raw.max()) + 1)
        return count, row
    labels, row = np.unique(raw, return_inverse=True)
    return len(labels), row.astype(np.int64)


def _integer_codes(values: Codes | Column, dimensions: int) -> Ints:
    """Return the codes as integers, -1 for None and NaN; DataError for any other value that is not a whole number."""
    try:
        raw = np.asarray(values)
        numbers = raw if raw.dtype.kind in "biu" else np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(_TABLE) from error
    if raw.dtype.kind not in "biufO":
        raise DataError(_TABLE)
    if numbers.ndim != dimensions:
        raise DataError(f"ratings: found {numbers.ndim} axes, expected {dimensions}; give one row per item")
    if numbers.dtype.kind != "f":
        return numbers.astype(np.int64)
    filled = np.where(np.isnan(numbers), -1.0, numbers)
    odd = np.argwhere(~np.isfinite(filled) | (filled != np.floor(filled)))
    if len(odd):
        raise DataError(
            f"ratings, {_cell_name(odd[0])}: found {filled[tuple(odd[0])]}, expected a whole number; correct it"
        )
    return filled.astype(np.int64)


def _check_codes(matrix: Ints, categories: int) -> None:
    """Raise DataError at the first code that is neither on the scale nor -1."""
    if categories < 1:
        raise DataError(f"ratings: found a scale of {categories} categories, expected at least one; give its length")
    wrong = (matrix < -1) | (matrix >= categories)
    if wrong.any():
        index = np.argwhere(wrong)[0]
        raise DataError(
            f"ratings, {_cell_name(index)}: found {matrix[tuple(index)]}, expected a code from 0 to {categories - 1}, "
            "or -1 for a missing rating; correct it or give a longer scale"
        )


def _cell_name(index: npt.NDArray[np.intp]) -> str:
    return ", ".join(f"{word} {number}" for word, number in zip(("row", "column"), index.tolist(), strict=False))


def _same_length(count: int, expected: int, what: str) -> None:
    if count != expected:
        raise DataError(f"ratings: found {count} {what}, expected {expected}; give one per item")
