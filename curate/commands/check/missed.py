"""Relevant documents that a pool lacks, estimated from graded random pairs or by capture-recapture.

The pairs outside the pool form two strata of known size: documents that a retriever returned but that were not pooled,
and the rest of the corpus. Graded pairs count as a random sample of their stratum, so a file must contain a simple
random sample of one stratum or of both. The random documents that a review plants as controls are such a sample.
Capture-recapture instead uses which retriever found which relevant document.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.errors import DataError
from curate.core.figures import Figure, Record, figure
from curate.core.records import FILTERED
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.pii.pseudonyms import IdNames
from curate.pipeline.stage import home
from curate.review.desk import graded_desks
from curate.review.drawing import known
from curate.stats import sample_estimates as survey
from curate.stats.bootstrap import divided, measured
from curate.stats.sample_estimates import StratumCounts
from curate.stats.tally import Floats
from curate.system.corpus import TableCorpus
from curate.system.files import read_scale

RETRIEVED, REST = "retrieved, not pooled", "not retrieved"


class BelowCutStratum(Record, schema_name="stratum"):
    """Estimate for one stratum of the pairs outside the pool."""

    stratum: str = figure("whether a retriever returned the pairs")
    pairs: int = figure("pairs of the stratum")
    graded: int = figure("pairs that were graded")
    relevant: int = figure("graded pairs that are relevant")
    total: Figure = figure("relevant pairs of the stratum; not defined without a graded pair", digits=0)


class Below(Record, schema_name="sample"):
    """Estimates from one sample of pairs outside the pool."""

    source: str = figure("file of the grades, or the review")
    strata: tuple[BelowCutStratum, ...] = figure("a row per stratum")
    recall: Figure = figure("share of all relevant pairs that is in the pool")  # where every stratum was sampled


def estimates(
    run: Path, files: Sequence[Path], pool: pl.DataFrame, rankings: pl.DataFrame, qrels: pl.DataFrame
) -> list[Below]:
    """Return the estimates by each file of grades, then by the random controls of each review of the run."""
    retrieved = rankings.select(PAIR).unique()
    queries = pool["query_id"].unique()
    everything = len(queries) * len(TableCorpus(run / FILTERED))
    union = len(pl.concat([retrieved, pool.select(PAIR)]).unique())
    sizes = {RETRIEVED: union - len(pool), REST: everything - union}
    inside = StratumCounts(len(pool), len(pool), len(qrels))
    results, scale = [], read_scale(run / "judge")
    for source, graded in (*_ranked_files(run, files, pool, scale), *_reviews(run, pool)):
        in_strata = graded.join(retrieved.with_columns(known=True), on=PAIR, how="left")
        strata = [
            StratumCounts(size, len(rows), int(rows["grade"].is_in(list(scale.relevant)).sum()))
            for name, size in sizes.items()
            for rows in [in_strata.filter(pl.col("known").is_not_null() == (name == RETRIEVED))]
        ]
        stratum_rows = tuple(
            BelowCutStratum(
                name, counts.size, counts.answered, int(counts.hits), _figure(survey.share([counts]), counts.size)
            )
            for name, counts in zip(sizes, strata, strict=True)
        )
        results.append(Below(source, stratum_rows, _figure(survey.recall([inside], strata))))
    return results


def _figure(estimate: survey.Estimate | None, factor: int = 1) -> Figure:
    if estimate is None:
        return Figure(None)
    return Figure(*(round(factor * bound, 6) for bound in (estimate.value, estimate.low, estimate.high)))


def _ranked_files(
    run: Path, files: Sequence[Path], pool: pl.DataFrame, scale: Scale
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield name and graded pairs of every file; DataError for a pair that is repeated, pooled, or not of the run."""
    documents = pl.scan_parquet(run / FILTERED / "corpus.parquet").select("doc_id").collect()["doc_id"]
    for path in files:
        rows = IdNames(run / "mask", home()).follow(known(path, scale)).rename({"expected": "grade"})
        strange = ~(pl.col("query_id").is_in(pool["query_id"].implode()) & pl.col("doc_id").is_in(documents.implode()))
        _refuse_pairs(path, rows.filter(rows.select(PAIR).is_duplicated()), "stand there twice", "give each pair once")
        _refuse_pairs(path, rows.filter(strange), "are not of this run", "give queries and documents of the run")
        _refuse_pairs(path, rows.join(pool, on=PAIR, how="semi"), "are in the pool", "give pairs from below the cut")
        yield path.name, rows


def _refuse_pairs(path: Path, wrong: pl.DataFrame, what: str, remedy: str) -> None:
    if len(wrong):
        first = " ".join(wrong.select(PAIR).row(0))
        raise DataError(f"{path}: found {len(wrong)} pairs that {what}, the first is {first!r}; {remedy}")


def _reviews(run: Path, pool: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield name and graded random controls of every review that has only random controls."""
    for answers in graded_desks(run):
        design, facts = answers.sample.design, answers.sample.design.facts
        if not facts.get("random") or facts["random"] != facts["controls"]:
            continue
        rows = [(*row["ids"], grade) for row, _, grade in answers.answered() if grade and row["expected"] is not None]
        graded = pl.DataFrame(rows, dict.fromkeys((*PAIR, "grade"), pl.String), orient="row")
        # the pool may have grown since the sample was drawn: what came into it is no longer below
        outside = graded.join(pool, on=PAIR, how="anti")
        if len(outside):
            yield f"reviews/{design.name}", outside


# Capture-recapture estimate of the relevant documents that no retriever found.

Caught = npt.NDArray[np.bool_]
"""Whether a retriever found a relevant document, shape (documents, retrievers)."""


class Capture(Record):
    """Capture-recapture figures, over all queries, for relevant documents that no retriever found."""

    retrievers: tuple[str, ...] = figure("names of the retrievers")
    found: int = figure("relevant documents that one retriever found at least")
    by: tuple[int, ...] = figure("found by one, by two, ...")
    missed: Figure = figure("relevant pairs that no retriever found, at least", digits=0)
    share: Figure = figure("share of all relevant pairs that was found, at most")
    chao: float | None = figure("Chao's (1987) estimate of the missed", digits=0)
    pairs: tuple[tuple[str, str, Figure], ...] = figure(
        "two retrievers and Chapman's estimate of all relevant pairs, a figure"
    )


def missed(alone: Floats, twice: Floats) -> Floats:
    """Return a lower bound on the relevant documents that no retriever found: the sum over pairs of z_j z_k / (f2 + 1).

    `alone` (z) counts the documents that only this retriever found, shape (..., retrievers); `twice` (f2) counts those
    found by exactly two retrievers, shape (...).
    """
    products = (alone.sum(axis=-1) ** 2 - (alone**2).sum(axis=-1)) / 2
    return np.asarray(products / (twice + 1))


def chapman(first: Floats, second: Floats, both: Floats) -> Floats:
    """Return Chapman's estimate (1951) of all relevant documents by two retrievers: (n1 + 1) (n2 + 1) / (n12 + 1) - 1.

    n1 and n2 are the numbers that each found, n12 that both found. Unbiased if the retrievers are independent and
    n1 + n2 is at least the true number; else a little too low.
    """
    return np.asarray((first + 1) * (second + 1) / (both + 1) - 1)


def chao(once: float, twice: float, nets: int) -> float:
    """Return Chao's lower bound (1987) on relevant documents found by none of m retrievers, bias-corrected.

    (m - 1) / m f1 (f1 - 1) / (2 (f2 + 1)), where f1 (`once`) and f2 (`twice`) count those found by exactly one and two;
    m is `nets`. It assumes retrievers of equal recall; otherwise it can exceed the true number.
    """
    return (nets - 1) / nets * once * max(once - 1, 0) / (2 * (twice + 1))


def capture(caught: Caught, queries: Sequence[str], retrievers: Sequence[str], seed: int) -> Capture | None:
    """Return the capture-recapture figures; None for fewer than two retrievers, or if nothing was found.

    `caught` has one row per relevant query-document pair, whose query is in `queries`; rows without a retriever are
    ignored. Intervals resample queries.
    """
    count = len(retrievers)
    times = caught.sum(axis=1)
    if count < 2 or not times.any():
        return None
    pairs = list(combinations(range(count), 2))
    alone = caught & (times == 1)[:, None]
    both = np.stack([caught[:, j] & caught[:, k] for j, k in pairs], axis=1)
    columns = np.column_stack([times > 0, times == 2, alone, caught, both]).astype(np.float64)
    _, query_index = np.unique(np.asarray(queries), return_inverse=True)
    sums = np.zeros((int(query_index.max()) + 1, columns.shape[1]))
    np.add.at(sums, query_index, columns)
    figures = measured(sums, lambda query_sums: _figures(query_sums, pairs, count), seed)
    by = tuple(int((times == n).sum()) for n in range(1, count + 1))
    return Capture(
        retrievers=tuple(retrievers),
        found=int((times > 0).sum()),
        by=by,
        missed=figures[0],
        share=figures[1],
        chao=round(chao(by[0], by[1], count), 2),
        pairs=tuple((retrievers[j], retrievers[k], figure) for (j, k), figure in zip(pairs, figures[2:], strict=True)),
    )


def _figures(sums: Floats, pairs: Sequence[tuple[int, int]], count: int) -> Floats:
    """Return the lower bound, the share found, and Chapman's estimates, from the sums that `capture` computes."""
    caught, twice, alone = sums[..., 0], sums[..., 1], sums[..., 2 : 2 + count]
    by_net, both = sums[..., 2 + count : 2 + 2 * count], sums[..., 2 + 2 * count :]
    least = missed(alone, twice)
    estimates = [chapman(by_net[..., j], by_net[..., k], both[..., n]) for n, (j, k) in enumerate(pairs)]
    return np.stack([least, divided(caught, caught + least), *estimates], axis=-1)
