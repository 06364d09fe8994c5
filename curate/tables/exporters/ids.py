"""Published ids of queries and documents: original, prefixed (if a query and a document share an id) or new."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import polars as pl

from curate.core.protocols import Benchmark
from curate.system.corpus import RenamedCorpus
from curate.tables.kinds import kinds

KEY = "export.ids.tsv"

COLUMNS = ("table", "old_id", "new_id")
_SIDES = {"query_id": "queries", "doc_id": "corpus"}
_LETTERS = {"queries": "q", "corpus": "d"}
_OF_PAIRS = ("pair_id", "alternate_id")
"""Columns with ids derived from query and document ids; new ids replace these too."""


@dataclass(frozen=True)
class PublishedIds:
    """Polars expressions that turn the ids of a run into published ids, by column name."""

    new: Mapping[str, pl.Expr] = field(default_factory=dict)
    key: pl.DataFrame | None = None
    """The columns `COLUMNS`, one row per query and document of the run; None if the original ids are published."""
    prefixed: bool = False

    @classmethod
    def by(cls, key: pl.DataFrame) -> "PublishedIds":
        """Return the published ids defined by a key table (table, old_id, new_id)."""
        sides = {name: key.filter(pl.col("table") == table) for name, table in _SIDES.items()}
        return cls({name: pl.col(name).replace(side["old_id"], side["new_id"]) for name, side in sides.items()}, key)

    def of(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Return a table of the run with the columns of ids in `new` replaced by published ids."""
        return pairs.with_columns(**{name: expression for name, expression in self.new.items() if name in pairs})


AS_THEY_ARE = PublishedIds()
PREFIXED = PublishedIds({"query_id": "q-" + pl.col("query_id"), "doc_id": "d-" + pl.col("doc_id")}, prefixed=True)


def numbered(earlier: pl.DataFrame, table: str, ids: pl.Series) -> pl.DataFrame:
    """Return the key (table, old_id, new_id) of a table's ids.

    Ids in `earlier` keep their number, so versions are comparable.
    """
    retained = earlier.filter(pl.col("table") == table)
    fresh = pl.DataFrame({"old_id": ids.filter(~ids.is_in(retained["old_id"].implode()))})
    number = (pl.int_range(pl.len()) + retained.height + 1).cast(pl.String).str.zfill(6)
    return pl.concat([retained, fresh.select(pl.lit(table).alias("table"), "old_id", new_id=_LETTERS[table] + number)])


def published(benchmark: Benchmark, ids: PublishedIds) -> tuple[Benchmark, PublishedIds, pl.DataFrame | None]:
    """Return the benchmark with published ids, these ids, and the prefix map.

    The map is None unless ids were prefixed.
    """
    if ids.key is None:
        benchmark, met = prefixed(benchmark)
        return benchmark, ids if met is None else PREFIXED, met
    documents = dict(ids.key.filter(pl.col("table") == "corpus")["old_id", "new_id"].iter_rows())
    renamed = _renamed(benchmark, ids, RenamedCorpus(benchmark.corpus, names=documents))
    columns = {name: [column for column in _OF_PAIRS if column in table] for name, table in renamed.tables.items()}
    pairs = {pair_id for name, held in columns.items() for column in held for pair_id in renamed.tables[name][column]}
    new = {old: f"p{number:06}" for number, old in enumerate(sorted(pairs - {None}), 1)}
    tables = {name: table.with_columns(pl.col(columns[name]).replace(new)) for name, table in renamed.tables.items()}
    return replace(renamed, tables=tables), ids, None


def of_passages(passages: pl.DataFrame, ids: PublishedIds) -> pl.DataFrame:
    """Return the passages of the documents that were cut, `doc_id` and `parent_id` under published ids.

    Where ids are new, a document is named by a number of its own, that of its first passage.
    """
    cut = passages.filter(pl.col("doc_id") != pl.col("parent_id"))
    if ids.key is not None:
        number = pl.col("doc_id").str.strip_prefix(_LETTERS["corpus"])
        return ids.of(cut).with_columns(parent_id="t" + number.min().over("parent_id"))
    return ids.of(cut).with_columns(parent_id="d-" + pl.col("parent_id") if ids.prefixed else pl.col("parent_id"))


def prefixed(benchmark: Benchmark) -> tuple[Benchmark, pl.DataFrame | None]:
    """Return the benchmark with ids prefixed by `q-` and `d-`, and their map, if a query and a document share an id.

    Otherwise return the unchanged benchmark and None. The map has the columns table (queries or corpus), old_id and
    new_id, queries first, each in the order of its table.
    """
    queries = benchmark.queries["query_id"].to_list()
    documents = [document.doc_id for document in chain.from_iterable(benchmark.corpus.batches())]
    if set(queries).isdisjoint(documents):
        return benchmark, None
    rows = [("queries", key, f"q-{key}") for key in queries] + [("corpus", key, f"d-{key}") for key in documents]
    renamed = _renamed(benchmark, PREFIXED, RenamedCorpus(benchmark.corpus, "d-"))
    return renamed, pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _renamed(benchmark: Benchmark, ids: PublishedIds, corpus: RenamedCorpus) -> Benchmark:
    """Return the benchmark and the tables of its kinds under `ids`."""
    held = benchmark.tables
    return replace(
        benchmark,
        corpus=corpus,
        queries=ids.of(benchmark.queries),
        qrels=ids.of(benchmark.qrels),
        candidates=ids.of(benchmark.candidates),
        verdicts=ids.of(benchmark.verdicts),
        graded=None if benchmark.graded is None else ids.of(benchmark.graded),
        tables={kind.table: kind.renamed(held[kind.table], ids.new) for kind in kinds() if kind.table in held},
    )
