"""Relevant documents below the cut of a pool, estimated from pairs that were drawn there at random and graded.

What is outside of the pool has two strata of known size: documents that some retriever gave, but that were not chosen,
and all the others of the corpus. Rows are sorted into them and taken as a random sample of their stratum, so a
file must hold a plain random sample of one or of both. Random documents that were planted into a review as controls
are one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curate.core.errors import DataError
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.pii.pseudonyms import IdNames
from curate.pipeline.stage import home
from curate.review.desk import graded_desks
from curate.review.drawing import known
from curate.stats import sample_estimates as survey
from curate.stats.bootstrap import Figure
from curate.stats.sample_estimates import StratumCounts
from curate.system.corpus import TableCorpus
from curate.system.files import read_scale

RETRIEVED, REST = "retrieved, not pooled", "not retrieved"


@dataclass(frozen=True)
class BelowCutStratum:
    """One part of what is outside of the pool."""

    stratum: str
    pairs: int
    graded: int
    relevant: int
    """Of the graded ones."""
    total: Figure
    """Relevant pairs in the whole stratum; None without a graded one."""


@dataclass(frozen=True)
class Below:
    """What one sample says of the relevant documents outside of the pool."""

    source: str
    strata: tuple[BelowCutStratum, ...]
    recall: Figure
    """Share of all relevant pairs that is in the pool; None unless every stratum with pairs was sampled."""


def estimates(
    run: Path, files: Sequence[Path], pool: pl.DataFrame, rankings: pl.DataFrame, qrels: pl.DataFrame
) -> list[Below]:
    """Return what each file of grades, and the random documents of each reviewed sample of a run say."""
    retrieved = rankings.select(PAIR).unique()
    queries = pool["query_id"].unique()
    everything = len(queries) * len(TableCorpus(run / "diversify"))
    union = len(pl.concat([retrieved, pool.select(PAIR)]).unique())
    sizes = {RETRIEVED: union - len(pool), REST: everything - union}
    inside = StratumCounts(len(pool), len(pool), len(qrels))
    found, scale = [], read_scale(run / "judge")
    for source, graded in (*_files(run, files, pool, scale), *_reviews(run, pool)):
        placed = graded.join(retrieved.with_columns(known=True), on=PAIR, how="left")
        strata = [
            StratumCounts(size, len(rows), int(rows["grade"].is_in(list(scale.relevant)).sum()))
            for name, size in sizes.items()
            for rows in [placed.filter(pl.col("known").is_not_null() == (name == RETRIEVED))]
        ]
        named = tuple(
            BelowCutStratum(name, part.size, part.answered, int(part.hits), _figure(survey.share([part]), part.size))
            for name, part in zip(sizes, strata, strict=True)
        )
        found.append(Below(source, named, _figure(survey.recall([inside], strata))))
    return found


def _figure(estimate: survey.Estimate | None, times: int = 1) -> Figure:
    if estimate is None:
        return Figure(None)
    return Figure(*(round(times * each, 6) for each in (estimate.value, estimate.low, estimate.high)))


def _files(run: Path, files: Sequence[Path], pool: pl.DataFrame, scale: Scale) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield name and rows of every file; DataError if a pair stands twice, is in the pool, or not of the run."""
    documents = pl.scan_parquet(run / "diversify" / "corpus.parquet").select("doc_id").collect()["doc_id"]
    for path in files:
        rows = IdNames(run / "mask", home()).follow(known(path, scale)).rename({"expected": "grade"})
        strange = ~(pl.col("query_id").is_in(pool["query_id"].implode()) & pl.col("doc_id").is_in(documents.implode()))
        _refuse(path, rows.filter(rows.select(PAIR).is_duplicated()), "stand there twice", "give each pair once")
        _refuse(path, rows.filter(strange), "are not of this run", "give queries and documents of the run")
        _refuse(path, rows.join(pool, on=PAIR, how="semi"), "are in the pool", "give pairs from below the cut")
        yield path.name, rows


def _refuse(path: Path, wrong: pl.DataFrame, what: str, remedy: str) -> None:
    if len(wrong):
        first = " ".join(wrong.select(PAIR).row(0))
        raise DataError(f"{path}: found {len(wrong)} pairs that {what}, the first is {first!r}; {remedy}")


def _reviews(run: Path, pool: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield name and grades of the random documents in every review of pairs, where its design counts them alone."""
    for desk in graded_desks(run):
        design, facts = desk.sample.design, desk.sample.design.facts
        if not facts.get("random") or facts["random"] != facts["controls"]:
            continue
        rows = [(*row["ids"], grade) for row, _, grade in desk.answered() if grade and row["expected"] is not None]
        graded = pl.DataFrame(rows, dict.fromkeys((*PAIR, "grade"), pl.String), orient="row")
        # the pool may have grown since the sample was drawn: what came into it is no longer below
        outside = graded.join(pool, on=PAIR, how="anti")
        if len(outside):
            yield f"reviews/{design.name}", outside
