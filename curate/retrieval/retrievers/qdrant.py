"""Dense retrieval from an existing Qdrant collection, which gets vectors and never texts."""

from collections.abc import Callable, Iterator, Sequence, Set

from curate.core.config import Json, digest
from curate.core.errors import AccessError, ConfigError, DataError, ProviderError
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Kit, Progress, Vectors
from curate.core.records import Hit, Query
from curate.retrieval.retrievers.collection import About, Collection, Config, opened
from curate.system.egress import Egress, forwarded

SLACK = 20
"""Points read beyond the depth, so that most ties at its end need no second request."""
POINTS = 50_000
"""Maximum points of one reply, unless one query needs more: some 50 MB in the client."""

Points = list[tuple[str, float]]
"""Document ids and scores of the points read for a query; an id may recur."""


class Qdrant:
    """Rank documents by the scores of their points in a collection; other points are skipped and counted."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._named = name, config, kit.named
        self._place = f"retrievers.{name}"
        self._encoder = kit.encoder(config.encoder)
        self.facts: dict[str, Json] = {}
        self.notes: list[str] = []
        about = self._look()
        self.identity: Json = {
            "kind": "qdrant",
            "collection": config.collection,
            "at": digest(config.url or str(config.path))[:16],  # an address may be confidential
            "points": about.points,
            **about.settings,
            **config.model_dump(include={"id_field", "vector", "exact", "most"}),
            "encoder": self._encoder.name,
            "revision": self._encoder.revision,
        }

    def _look(self) -> About:
        try:
            with opened(self._place, self.config) as collection:
                return collection.about()
        except AccessError:
            raise
        except ProviderError as error:  # as a file that is not there: what was pooled before stands, unchecked
            raise DataError(f"{error}{'' if error.fatal else '; start the server, or mend url'}") from None

    @property
    def egress(self) -> Egress:
        """Return `local` for a folder; of a server see `beyond`."""
        return "remote" if self.config.url else "local"

    def beyond(self, who: str) -> str | None:
        """Return why vectors of texts may leave; None if the user says that they stay."""
        return forwarded(who, self.config.url, local=self.config.local)

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's best `depth` documents of the corpus, by rounded score, ties by document id.

        Afterwards `facts` and `notes` hold parameters and missing documents.
        """
        if not queries:
            return
        corpus_ids = {document.doc_id for batch in corpus.batches() for document in batch}
        vectors, tally = self._encoder.encode([query.text for query in queries], "query"), _Tally(corpus_ids, depth)
        with opened(self._place, self.config) as collection:
            about = collection.about()
            if vectors.shape[1] != about.dim:
                raise ConfigError(
                    f"{self._place}.encoder: {self.config.encoder} gives vectors of length {vectors.shape[1]}, "
                    f"expected {about.dim}; name the encoder that {self.config.collection} was made with"
                )
            reading = _Reading(collection, about.points, corpus_ids, depth, max(self.config.most, depth), self._named)
            label = StepLabel(f"searching, {self.name}", "queries")
            progress(label, len(queries), 0)
            for start in range(0, len(queries), self.config.batch_size):
                yield from map(tally.ranked, reading.read(vectors[start : start + self.config.batch_size]))
                progress(label, len(queries), min(start + self.config.batch_size, len(queries)))
        self._tell(tally, about, reading.cut)

    def _tell(self, tally: "_Tally", about: About, cut: int) -> None:
        name, documents = self.config.collection, len(tally.here)
        if tally.outside and documents and not tally.hits:
            raise DataError(
                f"{self._place}: found {tally.outside:,} documents in {name}, none of them of the corpus "
                f"({documents:,}); check that id_field names what holds their ids, and that the "
                "collection is of this corpus"
            )
        exact = self.config.exact or self.config.path is not None
        self.facts = {
            "collection": name,
            "points": about.points,
            "search": "exact" if exact else "approximate (HNSW)",
            "hits_outside_the_corpus": tally.outside,
            "queries_with_fewer": tally.short,
            "queries_cut": cut,
        }
        conditions = {
            "what an approximate search finds may change with the index; `exact: true` compares every point": not exact,
            f"hits that are no documents of the corpus, left out: {tally.outside:,}": tally.outside,
            f"queries with fewer than {tally.wanted:,} documents: {tally.short:,}": tally.short,
            f"queries with more to read after {self.config.most:,} points: {cut:,}; raise `most`": cut,
        }
        self.notes = [f"{self._place}: {sentence}" for sentence, holds in conditions.items() if holds]


class _Reading:
    """Read points until no further one can change a query's best `depth` documents, or `most` are read."""

    def __init__(
        self,
        collection: Collection,
        points: int,
        corpus_ids: Set[str],
        depth: int,
        most: int,
        document_id: Callable[[str], str],
    ) -> None:
        self._collection, self._here, self._depth, self._named = collection, corpus_ids, depth, document_id
        self._last = max(1, min(most, points))
        self._whole = self._last >= points
        self._first = min(self._last, depth * points // max(len(corpus_ids), 1) + SLACK)
        self.cut = 0
        """Queries with further points to read."""

    def read(self, vectors: Vectors) -> list[Points]:
        """Return the points read for each query."""
        points_by_row: list[Points] = [[] for _ in vectors]
        waiting, limit = list(range(len(vectors))), self._first
        while waiting:
            size = max(1, POINTS // limit)
            for rows in (waiting[start : start + size] for start in range(0, len(waiting), size)):
                for row, points in zip(rows, self._collection.nearest(vectors[rows], limit), strict=True):
                    points_by_row[row] = [(self._named(doc_id), score) for doc_id, score in points]
            waiting = [row for row in waiting if not self._enough(points_by_row[row], limit)]
            if limit == self._last:
                break
            limit = min(2 * limit, self._last)
        self.cut += 0 if self._whole else len(waiting)
        return points_by_row

    def _enough(self, points: Points, limit: int) -> bool:
        """Return whether no point beyond these can change the best, not even one tied with the last of them."""
        if len(points) < limit:
            return True
        last = min(score for _, score in points)
        sure = {doc_id for doc_id, score in points if score > last} & self._here
        return len(sure) >= self._depth or self._here <= {doc_id for doc_id, _ in points}


class _Tally:
    """Make ranked lists of points, and count missing documents."""

    def __init__(self, corpus_ids: Set[str], depth: int) -> None:
        self.here, self._depth = corpus_ids, depth
        self.wanted = min(depth, len(corpus_ids))
        self.hits = self.outside = self.short = 0

    def ranked(self, points: Points) -> list[Hit]:
        """Return the best documents of the corpus; a document's score is that of its best point."""
        best: dict[str, float] = {}
        for doc_id, score in points:
            best[doc_id] = max(score, best.get(doc_id, score))
        order = sorted(best, key=lambda doc_id: (-best[doc_id], doc_id))
        hits = [doc_id for doc_id in order if doc_id in self.here][: self._depth]
        ahead = order.index(hits[-1]) + 1 if len(hits) == self.wanted and hits else len(order)
        self.hits += len(hits)
        self.outside += ahead - len(hits)
        self.short += len(hits) < self.wanted
        return [Hit(doc_id, rank, best[doc_id]) for rank, doc_id in enumerate(hits, start=1)]
