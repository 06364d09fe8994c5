"""Integrity checks in front of every export, all at once."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import polars as pl

from curate.core.config import text_digest
from curate.core.errors import DataError
from curate.core.protocols import Benchmark
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import sentence

_KEYS = ["query_id", "doc_id"]


def check(benchmark: Benchmark) -> None:
    """Raise a DataError that lists every problem of a benchmark; return if there is none."""
    found = problems(benchmark)
    if found:
        lines = "\n".join(f"- {line}" for line in found)
        raise DataError(f"benchmark {benchmark.name!r}: nothing was exported, because\n{lines}")


def problems(benchmark: Benchmark) -> list[str]:
    """Return one sentence per kind of problem, with counts and example ids and no text of a query or document.

    Checked: ids that are empty, given twice or hold white space; empty texts; the same text under several ids, unless
    the benchmark keeps duplicates (documents as shown to a judge: title and text); query ids that are document ids
    too; qrels and candidates that name unknown ids, hold a pair twice, hold another score than they may, or contradict
    the verdict (a contested or incomplete pair, or one that was never judged); queries without a positive. The corpus
    is read once, in batches; memory is one id and one 64-character digest a document.
    """
    queries = _scan(benchmark.queries.select("query_id", "text").iter_rows())
    documents = _scan((item.doc_id, item.shown()) for item in chain.from_iterable(benchmark.corpus.batches()))
    positives = benchmark.qrels.filter(pl.col("score") > 0)
    without = benchmark.queries.join(positives, on="query_id", how="anti", maintain_order="left")
    known = {"query_id": queries.ids, "doc_id": documents.ids}
    both = [key for key in queries.ids if key in documents.ids]
    return [
        *_texts("queries", queries, benchmark.duplicates),
        *_texts("corpus", documents, benchmark.duplicates),
        *sentence("queries", both, "ids are document ids too", "export with prefixed ids"),
        *_pairs("qrels", benchmark.qrels, known, [1]),
        *_against("qrels", benchmark.qrels, benchmark.verdicts),
        *_pairs("candidates", benchmark.candidates, known, [0, 1]),
        *_against("candidates", benchmark.candidates, benchmark.verdicts),
        *sentence("queries", without["query_id"].to_list(), "queries have no positive in the qrels", "leave them out"),
        *([] if benchmark.graded is None else _pairs("graded", benchmark.graded, known, benchmark.scale.gains)),
        *(line for kind in kinds() if kind.present(benchmark) for line in kind.problems(benchmark)),
    ]


@dataclass
class _Scan:
    """What one pass over (id, text) shows; `ids` keeps their order."""

    ids: dict[str, None] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)


def _scan(rows: Iterable[tuple[str, str]]) -> _Scan:
    found, first = _Scan(), dict[str, str]()
    for key, text in rows:
        if key in found.ids:
            found.repeated.append(key)
        found.ids[key] = None
        if not key or any(char.isspace() or not char.isprintable() for char in key):
            found.malformed.append(key)
        if not text.strip():
            found.empty.append(key)
        elif (other := first.setdefault(text_digest(text), key)) != key:
            found.same.append(f"{other} = {key}")
    return found


def _texts(table: str, found: _Scan, duplicates: Literal["merge", "keep"]) -> Iterator[str]:
    yield from sentence(
        table, found.malformed, "ids are empty or hold white space or control characters", "rename them"
    )
    yield from sentence(table, found.repeated, "ids stand there twice", "give every row an id of its own")
    yield from sentence(table, found.empty, "texts are empty", "drop them")
    if duplicates == "merge":
        yield from sentence(table, found.same, "texts stand there again under another id", "merge them")


def _pairs(
    table: str, pairs: pl.DataFrame, known: Mapping[str, Container[str]], scores: Sequence[int]
) -> Iterator[str]:
    """Yield what is wrong with the ids and scores of a table of query_id, doc_id, score."""
    for column, kind in (("query_id", "query"), ("doc_id", "document")):
        unknown = [key for key in pairs[column].unique(maintain_order=True) if key not in known[column]]
        yield from sentence(
            table, unknown, f"{kind} ids are unknown", f"add the missing {kind} texts or drop the pairs"
        )
    twice = pairs.filter(pl.struct(_KEYS).is_duplicated()).unique(_KEYS, maintain_order=True)
    yield from sentence(table, _names(twice), "pairs stand there twice", "keep one row per pair")
    odd = pairs.filter(~pl.col("score").is_in(scores).fill_null(value=False))
    allowed = " or ".join(map(str, scores))
    yield from sentence(table, _names(odd), f"scores are not {allowed}", "labels are binary; grades stand apart")


def _against(table: str, pairs: pl.DataFrame, verdicts: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence on the pairs whose label is not what the panel decided, counted by verdict."""
    decided = verdicts.select(*_KEYS, "verdict").unique(_KEYS, maintain_order=True)
    expected = pl.when(pl.col("score") > 0).then(pl.lit("relevant")).otherwise(pl.lit("not relevant"))
    wrong = (
        pairs.join(decided, on=_KEYS, how="left", maintain_order="left")
        .with_columns(pl.col("verdict").fill_null("never judged"))
        .filter(pl.col("verdict") != expected)
    )
    kinds = ", ".join(f"{verdict} {count}" for verdict, count in sorted(Counter(wrong["verdict"]).items()))
    remedy = "label only pairs that the panel decided so"
    yield from sentence(table, _names(wrong), f"pairs contradict their verdict ({kinds})", remedy)


def _names(pairs: pl.DataFrame) -> list[str]:
    return [f"{query} {document}" for query, document in pairs.select(_KEYS).iter_rows()]
