"""Checks before every export: the integrity of the benchmark, and its metadata for mteb."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import polars as pl

from curate.commands.export import Config
from curate.core.config import text_digest
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.protocols import Benchmark
from curate.tables.exporters.task_metadata import block, licence_problem, missing
from curate.tables.kinds import kinds
from curate.tables.kinds.benchmark_kind import sentence

_KEYS = ["query_id", "doc_id"]


def check(benchmark: Benchmark) -> None:
    """Raise DataError with a list of all problems of a benchmark, if there are any."""
    sentences = problems(benchmark)
    if sentences:
        lines = "\n".join(f"- {line}" for line in sentences)
        raise DataError(f"benchmark {benchmark.name!r}: nothing was exported, because\n{lines}")


def problems(benchmark: Benchmark) -> list[str]:
    """Return one sentence per kind of problem, with counts and example ids and no text of a query or document.

    Checked: ids that are empty, repeated, or contain white space; empty texts; equal texts (title and text) with
    several ids, unless the benchmark keeps duplicates; query ids that are also document ids; qrels and candidates with
    unknown ids, repeated pairs, invalid scores, or a score that contradicts the verdict (contested, incomplete, or
    never judged); queries without a positive. The corpus is read once, in batches; memory is one id and one
    64-character digest per document.
    """
    queries = _scan(benchmark.queries.select("query_id", "text").iter_rows())
    documents = _scan(
        (document.doc_id, document.shown()) for document in chain.from_iterable(benchmark.corpus.batches())
    )
    positives = benchmark.qrels.filter(pl.col("score") > 0)
    without_positive = benchmark.queries.join(positives, on="query_id", how="anti", maintain_order="left")
    ids_by_column = {"query_id": queries.ids, "doc_id": documents.ids}
    both = [key for key in queries.ids if key in documents.ids]
    return [
        *_texts("queries", queries, benchmark.duplicates),
        *_texts("corpus", documents, benchmark.duplicates),
        *sentence("queries", both, "ids are document ids too", "export with prefixed ids"),
        *_pairs("qrels", benchmark.qrels, ids_by_column, [1]),
        *_contradictions("qrels", benchmark.qrels, benchmark.verdicts),
        *_pairs("candidates", benchmark.candidates, ids_by_column, [0, 1]),
        *_contradictions("candidates", benchmark.candidates, benchmark.verdicts),
        *sentence(
            "queries", without_positive["query_id"].to_list(), "queries have no positive in the qrels", "leave them out"
        ),
        *([] if benchmark.graded is None else _pairs("graded", benchmark.graded, ids_by_column, benchmark.scale.gains)),
        *(line for kind in kinds() if kind.present(benchmark) for line in kind.problems(benchmark)),
    ]


@dataclass
class _Scan:
    """All ids in order, and those with problems, from one pass over (id, text)."""

    ids: dict[str, None] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)


def _scan(rows: Iterable[tuple[str, str]]) -> _Scan:
    scan, first_by_digest = _Scan(), dict[str, str]()
    for key, text in rows:
        if key in scan.ids:
            scan.repeated.append(key)
        scan.ids[key] = None
        if not key or any(char.isspace() or not char.isprintable() for char in key):
            scan.malformed.append(key)
        if not text.strip():
            scan.empty.append(key)
        elif (same_as := first_by_digest.setdefault(text_digest(text), key)) != key:
            scan.same.append(f"{same_as} = {key}")
    return scan


def _texts(table: str, scan: _Scan, duplicates: Literal["merge", "keep"]) -> Iterator[str]:
    yield from sentence(table, scan.malformed, "ids are empty or hold white space or control characters", "rename them")
    yield from sentence(table, scan.repeated, "ids stand there twice", "give every row an id of its own")
    yield from sentence(table, scan.empty, "texts are empty", "drop them")
    if duplicates == "merge":
        yield from sentence(table, scan.same, "texts stand there again under another id", "merge them")


def _pairs(
    table: str, pairs: pl.DataFrame, ids_by_column: Mapping[str, Container[str]], scores: Sequence[int]
) -> Iterator[str]:
    """Yield the problems with ids and scores in a table of query_id, doc_id, score."""
    for column, kind in (("query_id", "query"), ("doc_id", "document")):
        unknown = [key for key in pairs[column].unique(maintain_order=True) if key not in ids_by_column[column]]
        yield from sentence(
            table, unknown, f"{kind} ids are unknown", f"add the missing {kind} texts or drop the pairs"
        )
    duplicated = pairs.filter(pl.struct(_KEYS).is_duplicated()).unique(_KEYS, maintain_order=True)
    yield from sentence(table, _names(duplicated), "pairs stand there twice", "keep one row per pair")
    invalid = pairs.filter(~pl.col("score").is_in(scores).fill_null(value=False))
    allowed = " or ".join(map(str, scores))
    yield from sentence(table, _names(invalid), f"scores are not {allowed}", "labels are binary; grades stand apart")


def _contradictions(table: str, pairs: pl.DataFrame, verdicts: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence on the pairs whose score contradicts their verdict, with counts by verdict."""
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


# Metadata for mteb: settings of unknown tasks are refused, and missing fields noted.


def refuse_filling(config: Config) -> None:
    """Raise ConfigError for metadata of an unknown task."""
    names = [kind.name for kind in kinds()]
    for name in config.mteb.tasks:
        if name not in names:
            raise ConfigError(f"export.mteb.tasks.{name}: unknown task; {suggestion(name, names)}")


def lacking(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return task -> missing metadata settings, without which mteb's `is_filled()` is False."""
    present = [kind for kind in kinds() if kind.present(benchmark)]
    return {kind.name: missing(block(kind.name, kind.mteb.type, benchmark.facts)) for kind in present}


def filling_notes(config: Config, benchmark: Benchmark) -> list[str]:
    """Return one sentence per set of missing metadata settings; [] without the format mteb."""
    if "mteb" not in config.formats:
        return []
    by_settings: dict[tuple[str, ...], list[str]] = {}
    for task, names in lacking(benchmark).items():
        by_settings.setdefault(tuple(names), []).append(task)
    wrong = licence_problem(config.license)
    return [
        *([wrong] if wrong else []),
        *(
            f"metadata for mteb is not complete ({', '.join(tasks)}): set {', '.join(names)}"
            for names, tasks in by_settings.items()
            if names
        ),
    ]
