"""Neighbours of queries among the queries: retrievers of different families propose them in turn.

Negatives that one encoder has mined are the pairs which it takes to be alike, so it would score too low on them, and
every other one too well (KINDS: mined by one encoder alone, that encoder scores below the overlap of characters).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from curate.ask import build
from curate.commands.paraphrase import Config, RankWindow
from curate.core.config import Json, check, digest
from curate.core.errors import ConfigError
from curate.core.protocols import Progress, Retriever
from curate.core.records import Document, Query
from curate.core.sampling import generator
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.retrieval import ranking

FEWEST = 2
"""Families of retrievers that take turns, at least."""
FOREIGN = ("qdrant", "runfile")
"""Kinds of retrievers that know a collection of their own, and cannot search the queries."""
BLOCK = 500


class QueryCorpus:
    """Queries as documents, in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = [Document(query_id, "", text) for query_id, text in texts.items()]
        self.digest = digest([[query_id, text] for query_id, text in texts.items()])

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield them in order."""
        documents = iter(self._documents)
        while batch := list(islice(documents, BLOCK)):
            yield batch


@dataclass(frozen=True)
class Neighbour:
    """A query that was drawn beside another."""

    query_id: str
    other: str
    retriever: str
    rank: int
    """Among the other queries, from 1."""


Lists = Mapping[str, Mapping[str, Sequence[str]]]
"""Retriever -> query -> other queries, best first."""


def chosen(config: Config, context: Context) -> list[Retriever]:
    """Return the retrievers that take turns; ConfigError unless they are of different families, two at least."""
    names = config.retrievers or check(PoolConfig, context.settings.get("pool") or {}, "pool").retrievers
    found: dict[str, Retriever] = {}
    for name in names:
        made = build.retriever(context, name)
        kin = family(made.identity)
        if config.retrievers and (kin in FOREIGN or kin in found):
            why = "cannot search the queries" if kin in FOREIGN else f"is of the family of {found[kin].name} ({kin})"
            raise ConfigError(f"paraphrase.retrievers: {name} {why}; name another, such as bm25, e5 or use")
        if kin not in FOREIGN and (config.retrievers or len(found) < FEWEST):
            found.setdefault(kin, made)
    if len(found) < FEWEST:
        there = ", ".join(each.name for each in found.values()) or "none"
        raise ConfigError(
            f"paraphrase.retrievers: found {there} of {', '.join(names)} that can search the queries, and negatives of "
            "one family alone are unfair to it; name two families, such as [bm25, use]"
        )
    return list(found.values())


def family(identity: Json) -> str:
    """Return the encoder of a dense retriever, else its kind."""
    said: Any = identity
    return str(said.get("encoder") or said.get("kind") or digest(identity)) if isinstance(said, Mapping) else str(said)


def nearest(
    retriever: Retriever, texts: Mapping[str, str], asked: Mapping[str, str], depth: int, progress: Progress
) -> dict[str, list[str]]:
    """Return id -> the ids of the `depth` nearest of `texts`, best first; a text is no neighbour of its own id."""
    queries = [Query(*each) for each in asked.items()]
    found: dict[str, list[str]] = {}
    for some, hits in ranking.ask(retriever, QueryCorpus(texts), queries, depth + 1, progress):
        ids = [hits.ids[row] for row in hits.rows.tolist()]
        start = 0
        for query, count in zip(some, hits.counts.tolist(), strict=True):
            best = [each for each in ids[start : start + count] if each != query.query_id]
            found[query.query_id], start = best[:depth], start + count
    return found


def draw(
    lists: Lists,
    sources: Sequence[str],
    side: Mapping[str, str],
    window: RankWindow,
    number: int,
    seed: int,
) -> list[Neighbour]:
    """Return `number` neighbours per source at most, the retrievers taking turns, each by chance from its window.

    A neighbour is on its source's `side` (query -> split); no two queries meet twice.
    """
    names, met, drawn = list(lists), set[frozenset[str]](), list[Neighbour]()
    for at, source in enumerate(sources):
        for turn in range(number):
            name = names[(at + turn) % len(names)]
            ranked = list(enumerate(lists[name].get(source, ()), start=1))[window.first - 1 : window.last]
            free = [
                (rank, other)
                for rank, other in ranked
                if side.get(other) == side[source] and frozenset((source, other)) not in met
            ]
            if free:
                rank, other = generator(seed, "neighbour", source, turn).choice(free)
                met.add(frozenset((source, other)))
                drawn.append(Neighbour(source, other, name, rank))
    return drawn
