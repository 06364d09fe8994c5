"""Hold back training queries to choose the best step: groups stay whole, so that no dev document was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

from curate.commands.train import DevSplit
from curate.commands.train.triples import TrainTriples
from curate.core.errors import DataError
from curate.core.sampling import shuffled


@dataclass(frozen=True)
class DevQueries:
    """Numbers of queries that train, and of those that choose the step."""

    train: Sequence[int]
    dev: Sequence[int]
    documents: Sequence[int]
    """Documents that dev queries search: their positives and negatives first."""


def grouped(triples: TrainTriples) -> list[list[int]]:
    """Return the queries that share a positive or a `group`, directly or through others; in order."""
    parent = list(range(len(triples.queries)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[object, int] = {}
    for query, positives in enumerate(triples.positives):
        named = [triples.groups[query]] if triples.groups[query] else []
        for key in (*positives, *named):
            parent[root(query)] = root(first.setdefault(key, query))
    found: dict[int, list[int]] = {}
    for query in range(len(parent)):
        found.setdefault(root(query), []).append(query)
    return list(found.values())


def held_back(triples: TrainTriples, settings: DevSplit, seed: int) -> DevQueries:
    """Return the dev queries, drawn by seed until the share is reached; DataError if groups leave nothing to train."""
    groups = grouped(triples)
    wanted = max(settings.share * len(triples.queries), 2)
    dev: list[int] = []
    for group in shuffled(groups, seed, "dev"):
        if len(dev) >= wanted:
            break
        if len(dev) + len(group) <= max(2 * wanted, wanted + 2):  # a group of most queries cannot be held back
            dev += group
    train = sorted({*range(len(triples.queries))} - {*dev})
    if not dev or len(train) < 2:
        raise DataError(
            f"{triples.place}: {len(triples.queries):,} queries are {len(groups):,} groups that share positives, too "
            "few to hold some back; give more queries, or queries with documents of their own"
        )
    return DevQueries(train, sorted(dev), _searched(triples, dev, settings.documents, seed))


def _searched(triples: TrainTriples, dev: Sequence[int], number: int, seed: int) -> list[int]:
    own = {doc for query in dev for doc in (*triples.positives[query], *triples.negatives[query])}
    others = [doc for doc in range(len(triples.documents)) if doc not in own]
    more = shuffled(others, seed, "dev documents")[: max(number - len(own), 0)]
    return sorted(own | {*more})
