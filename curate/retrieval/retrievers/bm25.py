"""BM25 on words (by jieba), character bigrams or English stems: tokenisation, index on disk, search."""

import logging
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field, model_validator

from curate.core.config import Json, Section, digest
from curate.core.errors import DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Corpus, Hits, Kit, Progress
from curate.core.records import Query
from curate.retrieval.ranking import Numbers, Scores, best_first
from curate.system.egress import Egress
from curate.system.files import digests, read_json, write_json
from curate.system.processes import cores, spread

if TYPE_CHECKING:
    import jieba

Cut = Callable[[str], list[str]]
Kind = Literal["words", "bigrams", "english"]
TokenNumbers = npt.NDArray[np.int32]
Batch = tuple[list[str], TokenNumbers, TokenNumbers]
"""Tokens of some texts: (distinct tokens in order of occurrence, index of every token in these, tokens per text)."""


def cutter(kind: Kind, cache: Path) -> Cut:
    """Return the function that tokenises a text; `cache` is the folder for jieba's dictionary."""
    if kind == "english":
        return english()
    return bigrams if kind == "bigrams" else words(cache)


def words(cache: Path) -> Cut:
    """Return a function that splits a text into words by jieba's search mode, in NFKC and lower case."""
    tokenizer = _tokenizer()
    if not tokenizer.initialized:
        cache.mkdir(parents=True, exist_ok=True)
        tokenizer.tmp_dir = str(cache)  # jieba's default is a file in the shared temporary folder

    def cut(text: str) -> list[str]:
        plain = unicodedata.normalize("NFKC", text).lower()
        return [word for word in tokenizer.lcut_for_search(plain) if any(map(str.isalnum, word))]

    return cut


@once
def _tokenizer() -> "jieba.Tokenizer":
    """Return the tokenizer, which is created once per process, as reading its dictionary takes a second."""
    import jieba

    jieba.setLogLevel(logging.CRITICAL)  # it logs, and goes on, if its cache cannot be written
    return jieba.Tokenizer()


def bigrams(text: str) -> list[str]:
    """Return the character bigrams of a text, in NFKC and lower case, without those with punctuation or spaces."""
    plain = unicodedata.normalize("NFKC", text).lower()
    pairs = (plain[start : start + 2] for start in range(len(plain) - 1))
    return [pair for pair in pairs if all(map(str.isalnum, pair))]


_ENGLISH = re.compile(r"[^\W_]+(?:(?:['’.]|(?<=\d),(?=\d))[^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\Z")


def english() -> Cut:
    """Return a function that splits a text as Lucene's English analyser does, in NFKC and lower case.

    Words without possessive 's and without Lucene's 33 stop words, as stems by Porter (1980). Runs of Chinese
    characters, which have no spaces, become bigrams.
    """
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stemmer, stop_words = Stemmer.Stemmer("porter"), frozenset(STOPWORDS_EN)

    def cut(text: str) -> list[str]:
        plain = unicodedata.normalize("NFKC", text).lower()
        words = (_POSSESSIVE.sub("", word) for word in _ENGLISH.findall(plain))
        latin = [word for word in words if word not in stop_words]
        if plain.isascii():
            return list(stemmer.stemWords(latin))
        parts = (bigrams(word) if _HAN.search(word) else [stemmer.stemWord(word)] for word in latin)
        return [part for parts_of_word in parts for part in parts_of_word]

    return cut


_HAN = re.compile("[\u3400-\u9fff]")


def cut_all(kind: Kind, cache: Path, batches: Iterable[Sequence[str]], processes: int) -> Iterator[Batch]:
    """Yield the tokens of each batch of texts, in order, by so many processes; with one, no other is started."""
    batches_in_order = spread(partial(_cutting, kind, cache), ((None, texts) for texts in batches), processes)
    return (batch for _, batch in batches_in_order)


def _cutting(kind: Kind, cache: Path) -> Callable[[Sequence[str]], Batch]:
    return partial(_cut_batch, cutter(kind, cache))


def _cut_batch(cut: Cut, texts: Sequence[str]) -> Batch:
    vocabulary: dict[str, int] = {}
    tokens = [[vocabulary.setdefault(token, len(vocabulary)) for token in cut(text)] for text in texts]
    counts = np.array([len(token) for token in tokens], dtype=np.int32)
    numbers = np.fromiter((number for token in tokens for number in token), np.int32, counts.sum())
    return list(vocabulary), numbers, counts


# The index of BM25 on disk: built once for a corpus and its settings, checked, and mapped into memory.

if TYPE_CHECKING:
    import bm25s

SPREAD = 5_000
"""Number of documents from which several processes tokenise; they take two seconds to start."""
MARK = ".digests.json"
IDS = "ids.parquet"


@dataclass(frozen=True)
class Index:
    """BM25 index: document ids, and the scores of tokens in documents; `bm25` is None if no document has a token."""

    ids: list[str]
    bm25: "bm25s.BM25 | None"

    def scores(self, tokens: list[str]) -> npt.NDArray[np.float32]:
        """Return the score of every document for a query's tokens, in the order of `ids`."""
        if self.bm25 is None:
            return np.zeros(len(self.ids), dtype=np.float32)
        scores: npt.NDArray[np.float32] = self.bm25.get_scores_from_ids(self.bm25.get_tokens_ids(tokens))
        return scores


def index(
    folder: Path,
    identity: Json,
    corpus: Corpus,
    kind: Kind,
    weights: Mapping[str, float],
    progress: Progress,
    name: str,
) -> Index:
    """Return the index of a corpus: from `folder` if it is there and undamaged, else built and stored there.

    Its subfolder is named by digests of `identity` (settings and versions) and of the corpus. `weights` are k1 and b.
    `name` is the retriever's, for progress.
    """
    index_folder = folder / "bm25" / digest([identity, corpus.digest])
    if not _is_complete(index_folder):
        shutil.rmtree(index_folder, ignore_errors=True)
        tokens = _cut(corpus, kind, folder, progress, StepLabel(f"indexing documents, {name}", "documents"))
        if not tokens.vocab:  # bm25s cannot index nothing
            return Index(tokens.doc_ids, None)
        with waiting(progress, StepLabel(f"writing the index, {name}")):
            import bm25s

            scorer = bm25s.BM25(**weights, csc_backend="scipy")  # the same index in two thirds of the memory
            scorer.index(tokens, create_empty_token=False, show_progress=False)
            _keep(Index(tokens.doc_ids, scorer), index_folder)
    return _load(index_folder)


def _is_complete(folder: Path) -> bool:
    try:
        return read_json(folder / MARK) == digests(folder)
    except (OSError, DataError):
        return False


def _load(folder: Path) -> Index:
    import bm25s

    loaded = bm25s.BM25.load(folder, mmap=True)
    for name in ("data", "indices", "indptr"):  # plain arrays over the mapped files: slices of them cost less
        loaded.scores[name] = np.asarray(loaded.scores[name])
    return Index(pl.read_parquet(folder / IDS)["doc_id"].to_list(), loaded)


def _keep(built: Index, folder: Path) -> None:
    """Write an index to a hidden folder and rename it, unless another process has written the same index meanwhile."""
    import pyarrow.parquet as pq

    hidden_folder = folder.with_name(f".{folder.name}.{os.getpid()}")
    assert built.bm25 is not None
    try:
        built.bm25.save(hidden_folder, show_progress=False)
        pq.write_table(
            pl.DataFrame({"doc_id": built.ids}).to_arrow(), hidden_folder / IDS
        )  # says "disk full" as OSError
        write_json(hidden_folder / MARK, digests(hidden_folder))
        try:
            hidden_folder.rename(folder)
        except OSError:
            if not _is_complete(folder):
                raise
    finally:
        shutil.rmtree(hidden_folder, ignore_errors=True)


def _cut(corpus: Corpus, kind: Kind, cache: Path, progress: Progress, label: str) -> "_Tokens":
    """Return the tokens of all documents of a corpus, on all cores if there are many."""
    ids: list[str] = []
    vocabulary: dict[str, int] = {}
    tokens, counts = [np.empty(0, np.int32)], [np.empty(0, np.int32)]

    def texts() -> Iterator[list[str]]:
        for batch in corpus.batches():
            ids.extend(doc.doc_id for doc in batch)
            yield [doc.shown() for doc in batch]

    total, completed = len(corpus), 0
    progress(label, total, 0)
    for words, numbers, lengths in cut_all(kind, cache, texts(), cores() if total >= SPREAD else 1):
        # in the order in which tokens come, not in that of processes
        token_numbers = np.array([vocabulary.setdefault(word, len(vocabulary)) for word in words], dtype=np.int32)
        tokens.append(token_numbers[numbers])
        counts.append(lengths)
        completed += len(lengths)
        progress(label, total, completed)
    return _Tokens(np.concatenate(tokens), np.cumsum(np.concatenate(counts)), vocabulary, ids)


class _Tokens:
    """Tokens of all documents in the interface that bm25s expects, stored as int32 to save memory."""

    def __init__(
        self, tokens: TokenNumbers, ends: npt.NDArray[np.int64], vocab: Mapping[str, int], doc_ids: list[str]
    ) -> None:
        self.vocab, self.ids, self._tokens, self._ends, self.doc_ids = vocab, self, tokens, ends, doc_ids

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[list[int]]:
        start = 0
        for end in self._ends.tolist():
            yield self._tokens[start:end].tolist()
            start = end


# BM25 over jieba words or character bigrams.

DIGITS = 6
"""Decimal places to which scores, float32 sums, are rounded before they are compared."""
BLOCK = 100
"""Number of queries per block of hits."""


class Config(Section):
    """Settings of tokens and weights."""

    tokens: Kind = "words"
    """Words by jieba (its search mode, which also gives the parts of long words), character bigrams, or English stems
    without stop words, as by Lucene's analyser."""
    k1: float = Field(default=1.5, ge=0)
    """Saturation of repeated tokens; by default 0.9 for English, as published baselines have it."""
    b: float = Field(default=0.75, ge=0, le=1)
    """Normalisation by length; by default 0.4 for English."""

    @model_validator(mode="before")
    @classmethod
    def _of_published_baselines(cls, settings: Any) -> Any:  # noqa: ANN401 - unchecked yet
        if isinstance(settings, dict) and settings.get("tokens") == "english":
            return {"k1": 0.9, "b": 0.4, **settings}
        return settings


_CUTTERS: Mapping[Kind, str] = {"words": "jieba", "bigrams": "jieba", "english": "PyStemmer"}
"""Package on whose version tokens depend; that of bigrams is there for indexes of earlier versions."""


class Bm25:
    """Retriever by BM25 (Lucene's variant, by bm25s); a document without any token of the query is not retrieved."""

    egress: ClassVar[Egress] = "local"

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self.config, self._cache = name, config, kit.cache
        packages = {package: version(package) for package in ("bm25s", _CUTTERS[config.tokens])}
        self.identity: Json = {"kind": "bm25", **config.model_dump(), **packages}

    def opened(self, corpus: Corpus, progress: Progress) -> tuple[Index, Cut, Numbers]:
        """Return the index, the tokeniser of queries, and every document's position among the sorted ids, for ties."""
        weights = {"k1": self.config.k1, "b": self.config.b}
        bm25_index = index(self._cache, self.identity, corpus, self.config.tokens, weights, progress, self.name)
        tie_order = pl.Series(bm25_index.ids, dtype=pl.String).rank("ordinal").to_numpy().astype(np.int64)
        return bm25_index, cutter(self.config.tokens, self._cache), tie_order

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[Hits]:
        """Yield each query's best `depth` documents with a score above 0, ties by document id."""
        bm25_index, cutting, tie_order = self.opened(corpus, progress)
        label = StepLabel(f"searching, {self.name}", "queries")
        progress(label, len(queries), 0)
        for start in range(0, len(queries), BLOCK):
            block = queries[start : start + BLOCK]
            best = [best_scores(tie_order, bm25_index.scores(cutting(query.text)), depth) for query in block]
            rows, scores = (np.concatenate(arrays) for arrays in zip(*best, strict=True))
            yield Hits(bm25_index.ids, rows, scores, np.array([len(rows_of_query) for rows_of_query, _ in best]))
            progress(label, len(queries), start + len(block))


def best_scores(tie_order: Numbers, scores: npt.NDArray[np.float32], depth: int) -> tuple[Numbers, Scores]:
    """Return (rows, rounded scores) of the best `depth` documents with a rounded score above 0, ties by `tie_order`."""
    floor = 0.0
    if len(scores) > depth:  # two scores that rounding makes equal or swaps differ by 1e-6 at most
        floor = float(np.partition(scores, len(scores) - depth)[len(scores) - depth]) - 2 * 10.0**-DIGITS
    rows: Numbers = np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
    rounded: Scores = scores[rows].astype(np.float64).round(DIGITS)
    best = best_first(tie_order[rows], rounded, depth)
    return rows[best], rounded[best]
