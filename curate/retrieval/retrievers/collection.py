"""A Qdrant collection by the official client: opening, inspection, search, and mapping of the client's errors."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import Field, model_validator

from curate.core.config import Json, Section, kind_of
from curate.core.errors import ConfigError, DataError, ProviderError, suggestion
from curate.core.protocols import Vectors
from curate.system import http
from curate.system import http as retries
from curate.system.extras import needed

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

Answer = TypeVar("Answer")
DIGITS = 6
"""Scores are float32 sums; they are rounded to this many digits before they are compared."""
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
    """The parts of its configuration that change a ranking."""


class Collection:
    """An open collection; ProviderError where its server fails, ConfigError and DataError where it is another one."""

    def __init__(self, section: str, config: Config, client: "QdrantClient") -> None:
        self._place, self._config, self._client = section, config, client
        self._address = config.url or str(config.path)

    def about(self) -> About:
        """Return its size and configuration; ConfigError if it cannot be searched as the settings ask."""
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
        """Return the settings of the vector to search by."""
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
        """Return for each row the `limit` nearest points as document id and score, in no order; ids may recur."""
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
        """Return the result of a call; errors of the client, which may hold the key or texts, are not chained."""
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
    """Open a collection and close it again; `section` is that of the settings.

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
