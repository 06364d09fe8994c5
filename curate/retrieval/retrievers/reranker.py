"""Reranking: the best documents of another retriever, ordered by a cross-encoder or by a server's `/rerank`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self

import httpx
from pydantic import Field, model_validator

from curate.core.config import Json, digest
from curate.core.errors import DataError, ProviderError, RunFailed
from curate.core.progress import StepLabel
from curate.core.protocols import Corpus, Kit, Progress, Retriever
from curate.core.records import Hit, Query
from curate.retrieval import ranking
from curate.retrieval.retrievers.bm25 import DIGITS
from curate.retrieval.stored_model import ModelConfig, StoredModel
from curate.system import http
from curate.system.egress import Egress, forwarded
from curate.system.files import read_json, write_json

_NO_MATTER = {"key_env", "batch_size", "local", "timeout_s", "attempts", "device", "trust_remote_code"}
"""Settings that scores do not depend on, left out of the identity."""


class Config(ModelConfig):
    """Which documents are ranked again, and by what: a cross-encoder (`model`), or a server (`url`)."""

    over: str = Field(min_length=1)
    """Retriever whose documents are ranked again; it need not be one of the pool's."""
    depth: int = Field(default=100, ge=1)
    """Number of its documents of a query that are ranked again."""
    model: str = ""
    """Cross-encoder: name on the hub, or a folder. With `url`, the name that the server expects, if it does."""
    url: str | None = Field(default=None, pattern=http.ADDRESS, repr=False)
    """Whole address of the server's method, for example https://api.jina.ai/v1/rerank."""
    api: Literal["cohere", "tei"] = "cohere"
    """Form of requests: as of Cohere, Jina and vLLM, or as of text-embeddings-inference."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; None for a server without keys."""
    local: bool = False
    """The user declares that the server at `url` keeps what it is sent; without it every address is remote."""
    timeout_s: float = Field(default=60.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    """Attempts per request before its error is raised."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if not self.model and self.url is None:
            raise ValueError("expected model (a cross-encoder), or url (a server)")
        return self


class Reranker:
    """Retriever that returns the best documents of another one in the order of a reranker's scores."""

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config = name, config
        self.inner: Retriever = kit.retriever(config.over)
        self._place = f"retrievers.{name}"
        self.score: Callable[[str, Sequence[str]], list[float]]
        """Function of (query, texts) that returns one score per text; higher is more relevant."""
        if config.url is None:
            stored = StoredModel(self._place, config)
            self.score, revision = _CrossEncoder(stored).score, stored.revision()
        else:
            self.score, revision = (
                _Server(self._place, config, config.url).score,
                digest(config.model_dump(exclude=_NO_MATTER | {"over", "depth"})),
            )
        self.identity: Json = {
            "kind": "reranker",
            "revision": revision,
            "over": self.inner.identity,
            "depth": config.depth,
        }
        self._kept = kit.cache / "rerank" / digest(revision)[:16]

    @property
    def egress(self) -> Egress:
        """Return whether texts stay in this process."""
        return "local" if self.config.url is None else "remote"

    @property
    def address(self) -> str | None:
        """Return the address that texts are sent to."""
        return self.config.url

    def beyond(self, who: str) -> str | None:
        """Return why texts may leave the user's control; None if `local` is set and there is no proxy."""
        return None if self.config.url is None else forwarded(who, self.config.url, local=self.config.local)

    @property
    def facts(self) -> Mapping[str, Json]:
        """Return what the last search of the other retriever reported of itself."""
        return getattr(self.inner, "facts", {})

    @property
    def notes(self) -> Sequence[str]:
        """Return the notes of the last search of the other retriever."""
        return getattr(self.inner, "notes", ())

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield the best `config.depth` documents of the other retriever, the best `depth` of them by score.

        Ties are in the order of document ids. Scores of a query are kept on disk, so an interrupted search is resumed.
        """
        candidates = list[list[str]]()
        for block, hits in ranking.ask(self.inner, corpus, queries, self.config.depth, progress):
            table = ranking.frame(self.name, block, hits, self.config.depth)
            by_query = dict(table.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
            candidates += [by_query.get(query.query_id, []) for query in block]
        texts = _texts(corpus, {doc_id for of_query in candidates for doc_id in of_query})
        label = StepLabel(f"reranking, {self.name}", "queries")
        progress(label, len(queries), 0)
        for number, (query, doc_ids) in enumerate(zip(queries, candidates, strict=True), start=1):
            scores = self.scores(query.text, [texts[doc_id] for doc_id in doc_ids])
            best = sorted(zip(doc_ids, scores, strict=True), key=lambda scored: (-scored[1], scored[0]))
            yield [Hit(doc_id, rank, score) for rank, (doc_id, score) in enumerate(best[:depth], start=1)]
            progress(label, len(queries), number)

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one rounded score per text: those kept on disk, else those of the model or server, which are kept."""
        if not texts:
            return []
        file = self._kept / f"{digest([query, *texts])}.json"
        try:
            stored = read_json(file) if file.is_file() else {}
        except DataError:  # cut short by a full disk
            stored = {}
        scores = stored.get("scores", [])
        if len(scores) != len(texts):
            scores = [round(score, DIGITS) for score in self.score(query, texts)]
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, {"scores": scores})
        return list(scores)


def _texts(corpus: Corpus, doc_ids: set[str]) -> dict[str, str]:
    """Return id -> text with title, of these documents."""
    return {doc.doc_id: doc.shown() for batch in corpus.batches() for doc in batch if doc.doc_id in doc_ids}


class _CrossEncoder:
    """Scores by a model of sentence-transformers' class CrossEncoder, before the sigmoid, which would make ties."""

    def __init__(self, stored: StoredModel) -> None:
        self._stored = stored

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text; ConfigError for a model with several, RunFailed for NaN and infinity."""
        import torch

        pairs = [(query, text) for text in texts]
        scores = self._model.predict(
            pairs,
            batch_size=self._stored.config.batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        if scores.ndim != 1:
            raise self._stored.wrong("model", f"it gives {scores.shape[1]} scores of a pair, expected one")
        values = [float(score) for score in scores]
        if not all(map(math.isfinite, values)):
            raise RunFailed(f"{self._stored.place}: the model gives scores that are NaN or infinite")
        return values

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - of a library that is optional
        config = self._stored.config
        limit = {} if config.max_length is None else {"max_length": config.max_length}
        return self._stored.load("CrossEncoder", config.device, **limit)


class _Server:
    """Scores by requests to a server's `/rerank`, of at most `batch_size` texts each."""

    def __init__(self, section: str, config: Config, url: str) -> None:
        self._section, self._config, self._url = section, config, url

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text; ProviderError if the server fails or does not score every text once."""
        config, scores = self._config, list[float]()
        key = http.key(self._section, config.key_env)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(headers=headers, timeout=config.timeout_s) as client:
            for start in range(0, len(texts), config.batch_size):
                batch = texts[start : start + config.batch_size]
                scores += http.again(config.attempts)(self._post, client, query, batch)
        return scores

    def _post(self, client: httpx.Client, query: str, texts: Sequence[str]) -> list[float]:
        config = self._config
        body: dict[str, Json] = {"query": query, "texts" if config.api == "tei" else "documents": list(texts)}
        if config.model:
            body["model"] = config.model
        # `from None`: a foreign error can carry the key or a text into a traceback.
        try:
            response = client.post(self._url, json=body)
        except httpx.HTTPError as error:
            raise http.silent(self._section, self._url, error, type(error).__name__) from None
        if response.status_code != httpx.codes.OK:
            remedies = "url, api, model and key"
            raise http.refused(
                self._section, self._url, response.status_code, response.headers, config.key_env, remedies
            )
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, count: int) -> list[float]:
        """Return the scores in the order of the texts; ProviderError unless each text has exactly one finite score."""
        try:
            reply = response.json()
            rows = reply if self._config.api == "tei" else reply["results"]
            name = "score" if self._config.api == "tei" else "relevance_score"
            score_by_index = {row["index"]: row[name] for row in rows}
            complete = len(rows) == count and sorted(score_by_index) == list(range(count))
        except (ValueError, KeyError, TypeError):
            complete, score_by_index = False, {}
        if not (complete and all(map(_is_score, score_by_index.values()))):
            raise ProviderError(
                f"{self._section}: the reply of {self._url} does not hold one score for each of {count} texts; check "
                "url and api"
            )
        return [float(score_by_index[index]) for index in range(count)]


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
