"""Dense retrieval from an existing Qdrant collection, which is sent vectors but never texts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import Field, model_validator

from curate.core.config import Json, Section, digest, kind_of
from curate.core.errors import AccessError, ConfigError, DataError, ProviderError, suggestion
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Kit, Progress, Vectors
from curate.core.records import Hit, Query
from curate.system import http
from curate.system import http as retries
from curate.system.egress import Egress, forwarded
from curate.system.extras import needed

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

Answer = TypeVar("Answer")
DIGITS = 6
"""Decimal places to which scores, float32 sums, are rounded before they are compared."""
_MARK = "meta.json"
"""File that the client writes into a folder of its embedded mode."""


class Config(Section):
    """Settings of a collection, its address, and searches."""

    collection: str = Field(min_length=1)
    """Its name, or an alias."""
    encoder: str
    """The encoder that the collection was made with: it turns queries into vectors, no document is encoded."""
    url: str | None = Field(default=None, pattern=http.ADDRESS, repr=False)
    """Address of the server, for example http://localhost:6333; without a port it is 6333."""
    local: bool = False
    """The user declares that the server at `url` keeps what it is sent; without it every address is remote."""
    path: Path | None = None
    """Instead of a server the folder of the client's embedded mode, which no other process may have open."""
    id_field: str | None = None
    """Payload field that holds a document's id, for example `metadata.doc_id`; None is the point's own id. Several
    points may hold one document: the best counts."""
    vector: str | None = None
    """Name of the vector to search by, where points have named vectors."""
    key_env: str | None = None
    """Name of the environment variable that holds the API key; None for a server without keys."""
    exact: bool = True
    """Compare every point; false asks the index (HNSW), which is faster on millions of points and may miss some."""
    most: int = Field(default=10_000, ge=1)
    """Points that are read for a query at most, while documents of the corpus are missing or tied at the end."""
    batch_size: int = Field(default=32, ge=1)
    """Queries of one request."""
    timeout_s: int = Field(default=60, ge=1)
    """Seconds for one request."""
    attempts: int = Field(default=5, ge=1)
    """Attempts per request before its error is raised."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("expected either url or path")
        return self


@dataclass(frozen=True)
class About:
    """Size and configuration of a collection."""

    points: int
    dim: int
    settings: Mapping[str, Json]
    """Parts of the collection's configuration that rankings depend on."""


class Collection:
    """An open collection; methods raise ProviderError if the server fails, ConfigError or DataError if unsuitable."""

    def __init__(self, section: str, config: Config, client: "QdrantClient") -> None:
        self._place, self._config, self._client = section, config, client
        self._address = config.url or str(config.path)

    def about(self) -> About:
        """Return size and configuration of the collection; ConfigError if it cannot be searched with the settings."""
        name, client = self._config.collection, self._client
        names = [collection.name for collection in self._ask(client.get_collections).collections]
        names += [alias.alias_name for alias in self._ask(client.get_aliases).aliases]
        if name not in names:
            raise ConfigError(f"{self._place}.collection: no {name!r} at {self._address}; {suggestion(name, names)}")
        collection_config = self._ask(partial(client.get_collection, name)).config
        vector = self._vector(collection_config.params.vectors)
        settings = {"vector": vector.model_dump(mode="json", include={"size", "distance", "datatype"})}
        if not self._config.exact:
            settings["index"] = {
                "all": collection_config.hnsw_config.model_dump(mode="json", exclude_none=True),
                "vector": vector.model_dump(mode="json", include={"hnsw_config", "quantization_config"}),
                "quantization": collection_config.quantization_config
                and collection_config.quantization_config.model_dump(mode="json"),
            }
        points = self._ask(partial(client.count, name, exact=True)).count
        return About(points, vector.size, settings)

    def _vector(self, vectors: Any) -> Any:  # noqa: ANN401 - types of a package that may not be there
        """Return the collection's settings of the vector to search by; ConfigError if missing or unsuitable."""
        by_name = vectors if isinstance(vectors, dict) else {"": vectors} if vectors else {}
        vector = by_name.get(self._config.vector or "")
        if vector is None:
            names = [name for name in by_name if name]
            remedy = f"known: {', '.join(sorted(names))}" if names else "leave it out: points have one vector, unnamed"
            raise ConfigError(f"{self._place}.vector: found {self._config.vector!r}; {remedy}")
        if vector.distance.value not in ("Cosine", "Dot") or vector.multivector_config is not None:
            kind = "several vectors per point" if vector.multivector_config is not None else vector.distance.value
            raise ConfigError(f"{self._place}.collection: compares by {kind}, expected one vector by Cosine or Dot")
        return vector

    def nearest(self, vectors: Vectors, limit: int) -> list[list[tuple[str, float]]]:
        """Return, per query vector, (document id, score) of the `limit` nearest points, unsorted; ids may recur."""
        from qdrant_client import models

        field, config = self._config.id_field, self._config
        params = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))
        request = partial(
            models.QueryRequest,
            using=config.vector,
            limit=limit,
            with_payload=[field] if field else False,
            params=params if config.exact and config.url else None,  # embedded, every search is exact
        )
        requests = [request(query=row) for row in vectors.tolist()]
        replies = self._ask(partial(self._client.query_batch_points, config.collection, requests))
        points = [[(self._id(point), round(point.score, DIGITS)) for point in reply.points] for reply in replies]
        if len(points) != len(vectors) or not all(math.isfinite(score) for of_query in points for _, score in of_query):
            raise self._strange()
        return points

    def _id(self, point: Any) -> str:  # noqa: ANN401
        """Return the id of a point's document."""
        field = self._config.id_field
        document_id: object = point.payload if field else point.id
        for key in field.split(".") if field else ():
            document_id = document_id.get(key) if isinstance(document_id, dict) else None
        if not isinstance(document_id, str | int) or isinstance(document_id, bool):
            raise DataError(
                f"{self._place}.id_field: point {point.id} of {self._config.collection} holds {kind_of(document_id)} "
                f"in {field!r}, expected the id of its document; name the payload field that holds it"
            )
        return str(document_id)

    def _ask(self, call: Callable[[], Answer]) -> Answer:
        answer: Answer = retries.again(self._config.attempts)(self._once, call)
        return answer

    def _once(self, call: Callable[[], Answer]) -> Answer:
        """Return the result of a call to the client; its errors, which may contain key or texts, are not chained."""
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        refused = partial(
            http.refused, self._place, self._address, variable=self._config.key_env, settings="url and key"
        )
        try:
            return call()
        except UnexpectedResponse as error:
            raise refused(status=error.status_code or 0, headers=error.headers) from None
        except QdrantException as error:  # for 429 with a Retry-After alone
            wait = {"retry-after": str(getattr(error, "retry_after_s", ""))}
            raise refused(status=429, headers=wait) from None
        except ResponseHandlingException as error:
            if isinstance(error.source, ValueError):
                raise self._strange() from None
            what = type(error.source).__name__
            raise http.silent(self._place, self._address, error.source, what) from None
        except (ValueError, AssertionError):  # no JSON; JSON without a result
            raise self._strange() from None

    def _strange(self) -> ProviderError:
        return ProviderError(
            f"{self._place}: the reply of {self._address} is none of a Qdrant server's; check url", fatal=True
        )


@contextmanager
def opened(section: str, config: Config) -> Iterator[Collection]:
    """Yield an open collection, which is closed afterwards; `section` is the path of the settings, for messages.

    MissingExtra without the package, ConfigError without the key, DataError for a folder that cannot be opened.
    """
    client = _client(section, config)
    try:
        yield Collection(section, config, client)
    finally:
        client.close()


def _client(section: str, config: Config) -> "QdrantClient":
    with needed("the retriever qdrant"):
        from qdrant_client import QdrantClient
    if config.url:
        key = http.key(section, config.key_env)
        headers = {"api-key": key} if key else {}
        # its check of versions is a request in a thread of its own, which prints
        return QdrantClient(url=config.url, headers=headers, timeout=config.timeout_s, check_compatibility=False)
    assert config.path is not None
    if not (config.path / _MARK).is_file():  # the client would make a new one
        raise DataError(f"{section}.path: {config.path} is no folder of Qdrant's embedded mode; give the one it wrote")
    try:
        return QdrantClient(path=str(config.path))
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{section}.path: {config.path} cannot be opened ({why}); close it elsewhere") from error


# Dense retrieval from an existing Qdrant collection, which gets vectors and never texts.

SLACK = 20
"""Number of points read beyond the depth, so that ties at its end seldom need a second request."""
POINTS = 50_000
"""Maximum number of points in one reply, about 50 MB in the client, unless one query needs more."""

Points = list[tuple[str, float]]
"""(Document id, score) of the points read for a query; an id may recur."""


class Qdrant:
    """Retriever by the scores of documents' points in a Qdrant collection.

    Points that are not in the corpus are skipped and counted.
    """

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._named = name, config, kit.named
        self._place = f"retrievers.{name}"
        self._encoder = kit.encoder(config.encoder)
        self.facts: dict[str, Json] = {}
        self.notes: list[str] = []
        if config.url is not None:
            kit.may_reach(self._place, (config.url,))
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
        """Return `local` for a folder, `remote` for a server, unless the settings declare it local (see `beyond`)."""
        return "remote" if self.config.url else "local"

    @property
    def address(self) -> str | None:
        """Return the address that vectors are sent to; None for a folder."""
        return self.config.url

    def beyond(self, who: str) -> str | None:
        """Return why vectors of texts may leave the user's control; None if the settings declare the server local."""
        return forwarded(who, self.config.url, local=self.config.local)

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's best `depth` documents of the corpus, by rounded score, ties by document id.

        The search sets `facts` and `notes`, with parameters and missing documents.
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
    """Reader of points, until no further one can change a query's best `depth` documents, or until `most` are read."""

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
        """Number of queries for which reading stopped at `most` points, too early."""

    def read(self, vectors: Vectors) -> list[Points]:
        """Return the nearest points of each query, as many as are needed for its `depth` best documents."""
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
        """Return whether further points cannot change the best documents, even if tied with the last point read."""
        if len(points) < limit:
            return True
        last = min(score for _, score in points)
        sure = {doc_id for doc_id, score in points if score > last} & self._here
        return len(sure) >= self._depth or self._here <= {doc_id for doc_id, _ in points}


class _Tally:
    """Converter of points to ranked lists, which counts points outside of the corpus and lists that are too short."""

    def __init__(self, corpus_ids: Set[str], depth: int) -> None:
        self.here, self._depth = corpus_ids, depth
        self.wanted = min(depth, len(corpus_ids))
        self.hits = self.outside = self.short = 0

    def ranked(self, points: Points) -> list[Hit]:
        """Return a query's best documents of the corpus; a document's score is that of its best point."""
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
