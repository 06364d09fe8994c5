"""Train-test overlap of any two run folders, or folders that `ingest` can read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

import polars as pl
from pydantic import Field, JsonValue

from curate.core import config
from curate.core.config import Section, Settings
from curate.core.figures import Record, figure
from curate.core.protocols import PaidProgress, quiet
from curate.pipeline.stage import Context, home
from curate.runs import leaks as splits
from curate.runs.leaks import COMPARED, Leaks, compare, counts
from curate.runs.outputs import free_place
from curate.system.files import write_json, write_table

NAMED = 20
"""Maximum number of leaks in the result, the most similar first; the table has all."""


class LeakOptions(Section):
    """Settings of the comparison."""

    leaks: Leaks = Leaks()
    encoders: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)


class Leak(Record):
    """A query of the training set that resembles one of the test set, or a document of both."""

    query_id: str = figure("query of the training set")
    doc_id: str | None = figure("its positive, if `kind` is document")
    test_query_id: str = figure("query of the test set")
    test_doc_id: str | None = figure("its positive, if `kind` is document")
    kind: Literal["query", "document"] = figure("part that resembles the test set")
    similarity: float | None = figure("similarity of the queries")
    overlap: float | None = figure("share of common words of the queries")
    doc_similarity: float | None = figure("similarity of the documents")
    doc_overlap: float | None = figure("share of common words of the documents")


class LeaksFigures(Record, schema_name="leaks"):
    """Training queries and positives that resemble a test set's; an error if there are any."""

    train_queries: int = figure("queries of the training set")
    test_queries: int = figure("queries of the test set")
    encoder: str = figure("encoder that compares texts")
    queries: float = figure("similarity above which two queries are near-duplicates")
    documents: float = figure("similarity above which two documents are near-duplicates")
    overlap: float = figure("share of common words above which texts are near-duplicates")
    related: float = figure("similarity of queries whose positives are compared")
    leaking_queries: int = figure("queries that are near-duplicates of a test query")
    leaking_pairs: int = figure("positives that are near-duplicates, of queries near to a test query")
    shared_pairs: int = figure("more positives that are documents of the test set too")
    nearest: tuple[Leak, ...] = figure("the nearest 20")


def check(
    train: Path, test: Path, assignments: Sequence[str] = (), out: Path | None = None, progress: PaidProgress = quiet
) -> LeaksFigures:
    """Return the counts of leaks from `test` into `train`, the thresholds, and the nearest leaks.

    The table `leaks` is written into `out`, if given. `assignments` change thresholds, such as `leaks.queries=0.9`, or
    define an encoder: `encoders.NAME={kind: dense, ..}`.
    """
    options = config.check(LeakOptions, config.override({}, assignments), "--set")
    rule = options.leaks
    definitions = cast("Mapping[str, Mapping[str, Settings]]", {"encoders": options.encoders})
    if out is not None:
        free_place(out, [COMPARED])
    context = Context(run=train, out=train, home=home(), definitions=definitions, progress=progress)
    train_split, test_split = splits.read(train), splits.read(test)
    leaks = compare(train_split, test_split, rule, context)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_table(out, "leaks", leaks)
        compared = {"train": splits.digests(train), "test": splits.digests(test)}
        write_json(out / COMPARED, {**compared, **counts(leaks)})
    nearest = leaks.filter("removed").sort("similarity", "query_id", descending=[True, False]).head(NAMED)
    return LeaksFigures(
        train_queries=len(train_split.queries),
        test_queries=len(test_split.queries),
        **rule.model_dump() | counts(leaks),
        nearest=tuple(Leak(**leak) for leak in nearest.select(pl.exclude("removed")).iter_rows(named=True)),
    )
