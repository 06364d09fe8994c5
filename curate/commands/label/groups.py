"""Groups of texts that one split must hold together (named in the input, or near-duplicates), and the split by them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import polars as pl

from curate.core.sampling import shuffled
from curate.retrieval.similarity.leaks import DOCUMENT_RUN, QUERY_RUN, form, overlapping

RUNS = {"queries": QUERY_RUN, "corpus": DOCUMENT_RUN}


def grouped(rows: pl.DataFrame, near: float) -> pl.DataFrame:
    """Return the rows with `group`, the first item of those that belong together; `own` is not kept."""
    ids = rows["item_id"].to_list()
    pairs = [*_named(rows["own"].to_list()), *_alike(rows, near)]
    roots = _joined(len(ids), pairs)
    return rows.with_columns(group=pl.Series([ids[root] for root in roots], dtype=pl.String)).drop("own")


def _named(groups: Sequence[str | None]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    return [(first.setdefault(group, at), at) for at, group in enumerate(groups) if group is not None]


def _alike(rows: pl.DataFrame, near: float) -> list[tuple[int, int]]:
    """Return the places of pairs of texts that have that share of their runs of characters in common."""
    forms = [form(text) for text in rows["text"]]
    run = max(RUNS[side] for side in rows["side"].unique()) if forms else QUERY_RUN
    one, other, _ = overlapping(forms, forms, near, run)
    return [(left, right) for left, right in zip(one.tolist(), other.tolist(), strict=True) if left < right]


def _joined(size: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first of those that pairs join, for each place."""
    roots = list(range(size))

    def root(at: int) -> int:
        while roots[at] != at:
            roots[at] = at = roots[roots[at]]
        return at

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        roots[high] = low
    return [root(at) for at in range(size)]


def draw(rows: pl.DataFrame, share: float, seed: int, purpose: str) -> frozenset[str]:
    """Return whole groups, by seed, that hold about this share of the texts of every class, and at most one more."""
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for group, label in rows.select("group", "label").iter_rows():
        held[group][label] += 1
    room = {label: ceil(share * count) for label, count in Counter(rows["label"]).items()}
    taken: list[str] = []
    for group in shuffled(sorted(held), seed, "label", purpose):
        if _fits(held[group], room):
            taken.append(group)
            room = {label: left - held[group][label] for label, left in room.items()}
    return frozenset(taken)


def _fits(group: Mapping[str, int], room: Mapping[str, int]) -> bool:
    return all(count <= room[label] for label, count in group.items())
