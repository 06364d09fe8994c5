"""Index of a run for its page: every judged pair as one row of a table in memory, every text in a mapped file.

Built once from the tables of the stages and kept in `RUN/.view`, keyed by the done-marks of the stages; it can be
deleted at any time.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from curate.core.config import digest
from curate.core.errors import DataError
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel.voting import PAIR, by_policy
from curate.pipeline import facts
from curate.pipeline.folder import run_id
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import home
from curate.review.desk import desks, settled
from curate.system.files import (
    frame,
    read_json,
    read_meanings,
    read_positives,
    read_scale,
    read_table,
    replacing,
    there,
    write_json,
)

VERSION = 2
FOLDER = ".view"
READ = ("ingest", "mask", FILTERED, "pool", "judge", "consensus", "resolve", "audit")
"""Stages whose tables are shown."""
_KEYS = {"query": pl.Int32, "doc": pl.Int32}
_SECRET = ("verdict", "published", "overruled_by", "gap")


@dataclass(frozen=True)
class RunIndex:
    """The queries, documents and pairs of a run.

    `pairs` has one row per pair of the pool, sorted by query and position: `query` and `doc` (rows of `queries` and
    `docs`), `position`, `verdict` (None before consensus), `published` (1 relevant, 0 not relevant, None without a
    label), `overruled_by` (policy by which the label is not the panel's; None for the panel's), `original` (whether
    the original labels call it relevant), `masked`, `gap` (steps between the best and the lowest grade; None on a
    scale without order), and per retriever `rank:NAME` and per judge `grade:NAME` (a label, or a status without
    one). `people` is the final grade of assessors.
    """

    run: Path
    name: str
    language: str
    scale: Scale
    meanings: Mapping[str, Mapping[str, str]]
    retrievers: Sequence[str]
    judges: Sequence[str]
    depth: int
    """Number of documents of a retriever that the pool can hold."""
    queries: pl.DataFrame
    """`query_id`, `text`, `synthetic`, `masked`."""
    docs: pl.DataFrame
    """`doc_id`, `title`, `text`; mapped from a file."""
    pairs: pl.DataFrame
    hidden: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_KEYS))
    """Pairs of samples that assessors still read: their grades and labels are in no column of `pairs`."""

    @cached_property
    def query_rows(self) -> dict[str, int]:
        """Return query id -> row in `queries`."""
        return {name: row for row, name in enumerate(self.queries["query_id"])}

    def doc_row(self, doc_id: str) -> int | None:
        """Return the row of a document in `docs`; None if there is none."""
        row = self.docs["doc_id"].index_of(doc_id)
        return None if row is None else int(row)

    def pool(self, query: int) -> pl.DataFrame:
        """Return the pairs of a query, by position."""
        return self.pairs.filter(pl.col("query") == query)


def marks(run: Path) -> str:
    """Return a digest that changes when a stage is done anew."""
    held = []
    for stage in READ:
        path = run / stage / "stage.json"
        held.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
    return digest([VERSION, *held])


def answers_mark(run: Path) -> str:
    """Return a digest that changes when a sample is drawn or an assessor answers."""
    files = sorted((run / "reviews").glob("*/answers/*")) + sorted((run / "reviews").glob("*/design.json"))
    return digest([[path.as_posix(), (held := path.stat()).st_mtime_ns, held.st_size] for path in files])


def cache_of(run: Path) -> Path:
    """Return the folder of a run's index: in the run, or in the home folder if the run is read-only."""
    return run / FOLDER if os.access(run, os.W_OK) else home() / "view" / (run_id(run) or run.resolve().name)


def opened(run: Path) -> RunIndex:
    """Return the index of a run, from its cache if that has the one of today's tables; else it is made and kept there.

    DataError if the run has no queries yet, or if its tables change while they are read.
    """
    cache = cache_of(run)
    key = marks(run)
    index = _kept(run, cache, key)
    if index is None:
        _make(run, cache, key)
        if marks(run) != key:
            raise DataError(f"{run}: its tables changed while they were read; load the page again")
        index = _kept(run, cache, key)
        if index is None:
            raise DataError(f"{cache}: found no index after it was written, expected one; check the disk")
    return blind(index)


def _kept(run: Path, cache: Path, key: str) -> RunIndex | None:
    """Return the index in a folder; None if there is none of this key, or if it is damaged."""
    try:
        head = read_json(cache / "index.json")
        if head["key"] != key:
            return None
        tables = {name: _mapped(cache / f"{name}.arrow", head["sizes"][name]) for name in ("queries", "docs", "pairs")}
        return RunIndex(
            run,
            head["name"],
            head["language"],
            Scale.from_json(head["scale"]),
            head["meanings"],
            head["retrievers"],
            head["judges"],
            head["depth"],
            **tables,
        )
    except (DataError, OSError, KeyError, TypeError, ValueError, pa.ArrowException, pl.exceptions.PolarsError):
        return None


def _mapped(path: Path, size: int) -> pl.DataFrame:
    """Return a table that is mapped from an Arrow file, not read into memory; ValueError if its size is another."""
    if path.stat().st_size != size:
        raise ValueError(f"{path}: found another size than was written, expected {size:,}")
    with pa.memory_map(str(path)) as source:
        table = pl.from_arrow(pa.ipc.open_file(source).read_all())
    assert isinstance(table, pl.DataFrame)
    return table


def _make(run: Path, cache: Path, key: str) -> None:
    """Write the index of a run."""
    stage = next((name for name in (FILTERED, "mask", "ingest") if there(run / name, "queries")), None)
    if stage is None:
        raise DataError(f"{run}: found no queries, expected those of `curate ingest`; run it first")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    cache.chmod(0o700)
    settings = Pipeline.load(run / "pipeline.yaml")
    masked = read_table(run / "mask", "spans").select("table", "id").unique() if there(run / "mask", "spans") else None
    queries, docs = _texts(run / stage, masked)
    pairs, retrievers, judges = _pairs(run, queries, docs, masked)
    tables = {"queries": queries, "docs": docs, "pairs": pairs}
    sizes = {}
    for name, table in tables.items():
        with replacing(cache / f"{name}.arrow") as temporary:
            arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
            with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, arrow.schema) as writer:
                writer.write_table(arrow)
            sizes[name] = temporary.stat().st_size
    write_json(
        cache / "index.json",
        {
            "key": key,
            "name": settings.head.name,
            "language": settings.head.language,
            "scale": read_scale(run / "judge").to_json(),
            "meanings": read_meanings(run / "judge"),
            "retrievers": retrievers,
            "judges": judges,
            "depth": int(pairs.select(pl.max_horizontal(pl.col("^rank:.*$").max())).item() or 0) if retrievers else 0,
            "sizes": sizes,
        },
    )


def _texts(folder: Path, spans: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the queries, with whether a model wrote them and whether personal data is masked in them, and the docs."""
    queries = read_table(folder, "queries")
    synthetic = facts.marked(queries)["query_id"]
    queries = queries.select(
        "query_id",
        "text",
        synthetic=pl.col("query_id").is_in(synthetic.implode()),
        masked=pl.col("query_id").is_in(_masked(spans, "queries").implode()),
    )
    return queries, read_table(folder, "corpus").select("doc_id", "title", "text")


def _masked(spans: pl.DataFrame | None, table: str) -> pl.Series:
    """Return the ids of the texts of a table in which personal data is masked."""
    if spans is None:
        return pl.Series("id", [], dtype=pl.String)
    return spans.filter(pl.col("table") == table)["id"]


def _pairs(
    run: Path, queries: pl.DataFrame, docs: pl.DataFrame, spans: pl.DataFrame | None
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Return the table `pairs`, and the names of retrievers and judges."""
    pool = read_table(run / "pool", "pool") if there(run / "pool", "pool") else frame("pool")
    hits = pool.select("query_id", "doc_id", "hits").explode("hits", empty_as_null=True).unnest("hits")
    retrievers = sorted(hits["retriever"].drop_nulls().unique())
    pairs = pool.select("query_id", "doc_id", "position").join(
        _wide(hits.select(*PAIR, name="retriever", value="rank"), "rank", retrievers, pl.Int32), on=PAIR, how="left"
    )
    ratings = read_table(run / "judge", "ratings") if there(run / "judge", "ratings") else frame("ratings")
    grade_or_status = pl.when(pl.col("status") == "rated").then("grade").otherwise("status")
    first = ratings.filter(pl.col("replicate") == 0).select(*PAIR, name="judge", value=grade_or_status)
    judges = sorted(first["name"].unique())
    pairs = pairs.join(_wide(first, "grade", judges, pl.String), on=PAIR, how="left")
    pairs = pairs.join(_labels(run), on=PAIR, how="left").join(_originals(run), on=PAIR, how="left")
    scale = read_scale(run / "judge")
    grades = [pl.col(f"grade:{judge}") for judge in judges]
    pairs = pairs.with_columns(pl.col("original").fill_null(value=False), gap=_gap(scale, grades))
    masked_docs, masked_queries = _masked(spans, "corpus"), _masked(spans, "queries")
    pairs = pairs.with_columns(
        masked=pl.col("doc_id").is_in(masked_docs.implode()) | pl.col("query_id").is_in(masked_queries.implode())
    )
    rows = [queries.select("query_id").with_row_index("query"), docs.select("doc_id").with_row_index("doc")]
    for names, key in zip(rows, PAIR, strict=True):
        pairs = pairs.join(names, on=key, how="inner")
    keys = [pl.col(name).cast(kind) for name, kind in _KEYS.items()]
    return pairs.select(*keys, pl.exclude(*PAIR, *_KEYS)).sort("query", "position"), retrievers, judges


def _wide(rows: pl.DataFrame, kind: str, names: Sequence[str], of_values: Any) -> pl.DataFrame:  # noqa: ANN401 - polars
    """Return a row per pair with a column `KIND:NAME` per name, from rows of name and value."""
    return rows.group_by(PAIR).agg(
        **{f"{kind}:{name}": pl.col("value").filter(pl.col("name") == name).first().cast(of_values) for name in names}
    )


def _labels(run: Path) -> pl.DataFrame:
    """Return verdict, published label, and policy by which it is not the panel's, of every judged pair."""
    stage = run / facts.label_stage(run)
    if not there(stage, "verdicts"):
        return pl.DataFrame(
            schema={**dict.fromkeys((*PAIR, "verdict", "overruled_by"), pl.String), "published": pl.Int8}
        )
    overruled_by = pl.when(~by_policy()).then("policy")
    verdicts = read_table(stage, "verdicts").select(*PAIR, "verdict", overruled_by=overruled_by)
    labels = {"relevant": 1, "not relevant": 0}
    return verdicts.with_columns(published=pl.col("verdict").replace_strict(labels, default=None, return_dtype=pl.Int8))


def _originals(run: Path) -> pl.DataFrame:
    """Return the pairs that the original labels call relevant."""
    stage = next((name for name in (FILTERED, "ingest") if there(run / name, "qrels")), None)
    positives = read_positives(read_table(run / stage, "qrels"), run / "ingest") if stage else frame("qrels")
    return positives.select(*PAIR).unique().with_columns(original=pl.lit(value=True))


def _gap(scale: Scale, grades: Sequence[pl.Expr]) -> pl.Expr:
    """Return the steps between the best and the lowest grade of a pair; null without an order, and without grades."""
    if scale.order != "ordinal" or not grades:
        return pl.lit(None, dtype=pl.Int8)
    step_of = {label: number for number, label in enumerate(scale.labels)}
    steps = [grade.replace_strict(step_of, default=None, return_dtype=pl.Int8) for grade in grades]
    return pl.max_horizontal(steps) - pl.min_horizontal(steps)


# What assessors must not see: the judges' grades of a pair whose final answer is still to come.


def blind(index: RunIndex) -> RunIndex:
    """Return the index without grades and labels of the pairs in samples that are still read.

    `people` is assessors' final grade of the others, from the random samples of all judged pairs.
    """
    hidden, on = _unanswered(index), list(_KEYS)
    final = _keyed(index, settled(index.run).select(*PAIR, people="grade")).join(hidden, on=on, how="anti")
    if final.is_empty():  # a join would copy what is mapped
        pairs = index.pairs.with_columns(people=pl.lit(None, dtype=pl.String))
    else:
        pairs = index.pairs.join(final, on=on, how="left", maintain_order="left")
    if not hidden.is_empty():
        secret = [name for name in pairs.columns if name.startswith("grade:") or name in _SECRET]
        marked = pairs.join(hidden.with_columns(hidden=True), on=on, how="left", maintain_order="left")
        open_pair = pl.when("hidden")
        pairs = marked.with_columns(open_pair.then(None).otherwise(pl.col(name)).alias(name) for name in secret)
        pairs = pairs.drop("hidden")
    return replace(index, pairs=pairs, hidden=hidden)


def _keyed(index: RunIndex, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return pairs with the rows of their query and document in place of the ids; those not in the run are left out."""
    for (key, kind), name, table in zip(_KEYS.items(), PAIR, (index.queries, index.docs), strict=True):
        ids = (
            table.select(name).with_row_index(key).cast({key: kind})
            if len(pairs)
            else pl.DataFrame(schema={key: kind, name: pl.String})
        )
        pairs = pairs.join(ids, on=name, how="inner")
    return pairs.select(*_KEYS, pl.exclude(*PAIR, *_KEYS))


def _unanswered(index: RunIndex) -> pl.DataFrame:
    """Return the pairs that a reader has not answered, or on which readers differ before adjudication."""
    samples = [answers for answers in desks(index.run) if answers.sample.design.form == "relevance"]
    pairs = [tuple(row["ids"]) for answers in samples for row in answers.open_rows()]
    return _keyed(index, pl.DataFrame(pairs, schema=dict.fromkeys(PAIR, pl.String), orient="row").unique())
