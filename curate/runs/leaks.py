"""Splits (train or test) to check for leaks between them, read from a run or from any source of `ingest`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import polars as pl
from pydantic import Field

from curate.ask import build
from curate.core.config import Json, Section
from curate.core.errors import DataError
from curate.core.protocols import Encoder
from curate.core.records import FILTERED, Document, Role
from curate.pipeline.stage import Context
from curate.retrieval.similarity import leaks
from curate.retrieval.similarity.leaks import LeakSplit, SplitTexts, form
from curate.system.corpus import TableCorpus
from curate.system.files import read_table, sha256
from curate.tables.readers import Problem, Row, Source, Table
from curate.tables.readers.items import Item, LabelledPair, Names, check_header, item, needed_columns, pair
from curate.tables.readers.settings import Input, sources

COMPARED = "leaks.json"
"""File with the digests of the compared tables and the counts of leaks, in the folder of the table of leaks."""

LABELS = ("train_set", "resolve", "consensus")
"""Stages of a run that write qrels; the first that has run has the final ones."""

Thing = TypeVar("Thing", Item, LabelledPair)


@dataclass(frozen=True)
class Split:
    """Training or test split: queries (query_id, text), positives (query_id, doc_id), documents (doc_id, text)."""

    queries: pl.DataFrame
    positives: pl.DataFrame
    documents: pl.DataFrame

    def side(self, encoder: Encoder) -> LeakSplit:
        """Return the split with the vectors of its queries and documents by `encoder`."""
        return LeakSplit(
            _texts(self.queries, encoder, "query"), _texts(self.documents, encoder, "document"), self.positives
        )


def read(path: Path) -> Split:
    """Return the split in a run folder (its final labels), in a folder in BEIR or MTEB layout, or of an mteb task.

    Of a run that made a training set, only the queries of that set. DataError if there is no split.
    """
    return _of_run(path) if _is_run(path) else _of_folder(path)


def digests(path: Path) -> dict[str, Json]:
    """Return table -> digest of its file, for the tables that the split at `path` is read from."""
    if _is_run(path):
        tables = (f"{FILTERED}/queries", f"{FILTERED}/corpus", f"{_labels_stage(path)}/qrels")
        return {name: sha256(path / f"{name}.parquet") for name in tables}
    return sources(Input(source=str(path))).digests()


def _is_run(path: Path) -> bool:
    if not path.is_dir() and len(path.parts) > 1:
        raise DataError(f"{path}: no such folder; give a run folder, or one in BEIR or MTEB layout, as exports are")
    return (path / "pipeline.yaml").is_file()


def _labels_stage(run: Path) -> str:
    last_stage = next((stage for stage in LABELS if (run / stage / "qrels.parquet").is_file()), None)
    if last_stage is None:
        raise DataError(f"{run}: found no labels, expected qrels of {' or '.join(LABELS)}; finish that run first")
    return last_stage


def _of_run(run: Path) -> Split:
    stage = _labels_stage(run)
    labels = read_table(run / stage, "qrels").filter(pl.col("score") > 0).select("query_id", "doc_id")
    queries = read_table(run / FILTERED, "queries").select("query_id", "text")
    if stage == "train_set":
        queries = queries.join(labels, on="query_id", how="semi", maintain_order="left")
    return split(queries, labels, chain.from_iterable(TableCorpus(run / FILTERED).batches()))


def _of_folder(folder: Path) -> Split:
    settings = Input(source=str(folder))
    files = sources(settings)
    labelled = _read(files.tables["qrels"], "qrels", settings, pair)
    pairs = [(label.query_id, label.doc_id) for label in labelled if label.score > 0]
    elsewhere = {label.query_id for label in _read(files.other_qrels, "qrels", settings, pair)}
    left_out = elsewhere - {query_id for query_id, _ in pairs}
    items = _read(files.tables["queries"], "queries", settings, item)
    queries = [(query.id, query.text) for query in items if not query.empty() and query.id not in left_out]
    items = _read(files.tables["corpus"], "corpus", settings, item)
    documents = (Document(document.id, document.title, document.text) for document in items)
    return split(
        pl.DataFrame(queries, {"query_id": pl.String, "text": pl.String}, orient="row"),
        pl.DataFrame(pairs, {"query_id": pl.String, "doc_id": pl.String}, orient="row"),
        documents,
    )


def _read(
    group: Iterable[Source],
    table: Table,
    settings: Input,
    convert: Callable[[Row | Problem, Names], Thing | Problem],
) -> Iterator[Thing]:
    """Yield the queries, documents or pairs of some sources; DataError at the first row that cannot be used."""
    names = settings.names(table)
    for source in group:
        check_header(source, table, names)
        for row in source.rows(needed_columns(names)):
            thing = convert(row, names)
            if isinstance(thing, Problem):
                raise thing.error(source.location)
            yield thing


def split(queries: pl.DataFrame, pairs: pl.DataFrame, documents: Iterator[Document]) -> Split:
    """Return the split of `queries`, with the `pairs` (positives) whose query and document both exist.

    Only documents of positives are retained.
    """
    wanted_ids = set(pairs["doc_id"])
    texts = [(doc.doc_id, doc.shown()) for doc in documents if doc.doc_id in wanted_ids]
    available = pl.DataFrame(texts, {"doc_id": pl.String, "text": pl.String}, orient="row")
    complete = pairs.unique().join(queries, on="query_id", how="semi").join(available, on="doc_id", how="semi")
    return Split(queries, complete.sort("query_id", "doc_id"), available)


def _texts(table: pl.DataFrame, encoder: Encoder, role: Role) -> SplitTexts:
    ids, texts = (table.to_series(column).to_list() for column in (0, 1))
    return SplitTexts(ids, [form(text) for text in texts], encoder.encode(texts, role))


class Leaks(Section):
    """Thresholds of near-duplicates; they hold for one encoder, the defaults for USE."""

    encoder: str = "use"
    queries: float = Field(default=0.85, ge=-1, le=1, description="similarity above which a training query is removed")
    documents: float = Field(default=0.9, ge=-1, le=1, description="similarity above which documents are alike")
    overlap: float = Field(
        default=0.6, gt=0, le=1, description="share of runs of signs in common from which on texts are alike too"
    )
    related: float = Field(
        default=0.7, ge=-1, le=1, description="similarity of two queries above which they may share no positive"
    )

    def rule(self) -> leaks.Rule:
        """Return the thresholds."""
        return leaks.Rule(**self.model_dump(exclude={"encoder"}))


def compare(train: Split, test: Split, rule: Leaks, context: Context) -> pl.DataFrame:
    """Return the `leaks` table: queries and documents of `train` that are near-duplicates of those of `test`."""
    encoder = build.encoder(context, rule.encoder)
    return leaks.find(train.side(encoder), test.side(encoder), rule.rule())


def counts(leaking: pl.DataFrame) -> dict[str, int]:
    """Return the number of leaking queries, of leaking pairs, and of pairs that share a document but are retained."""
    document, removed = pl.col("kind") == "document", pl.col("removed")
    return {
        "leaking_queries": leaking.filter(~document).height,
        "leaking_pairs": leaking.filter(document & removed).height,
        "shared_pairs": leaking.filter(document & ~removed).height,
    }
