"""Half widths of the counts that an audit corrects, by the quarters of `--target fp` (before) and by seven strata.

Every seed draws a sample, people answer it without error, and `curate.review.audit_correction` gives the false
negatives and the false positives per query. A count's half width is the mean over the seeds; its coverage is the share
of seeds whose 95 % interval holds the truth.

- MedQuAD: the questions with several answers. One answer is the label, all are relevant; every tenth question has a
  wrong label besides. The pool is the top 100 of BM25. *Replayed* judges repeat the truth, *erring* ones have made
  errors.
- zh: 30 questions of patients with 20 answers each. *Replayed*: the verdicts of three recorded readers, and people
  answer as most of them do. *Erring*: with made errors of the judges.
- Made: 200 new queries with 100 pairs per seed, more of them relevant at the top, in some queries far more than in
  others; judges err.

The truth of real sets is that of their own queries; the intervals are for new queries of the same kind, so they should
hold it in more than 95 %. The truth of the made set is that of its population.

Run: python -m benchmarks.audit_design --data FOLDER [--seeds 300] [--write]
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import mean

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.harness import parser, publish, table
from benchmarks.pool import bm25
from curate.core.protocols import quiet
from curate.core.records import Query
from curate.core.scale import FIVE
from curate.panel import audit_design, sampling_design
from curate.panel.voting import PAIR, unanimous
from curate.retrieval import ranking
from curate.review import audit_correction
from curate.testing.contracts import ListCorpus

SIZES = (300, 1_000)
DEPTH = 100
JUDGES = ("one", "two", "three")
LABELS = "SABCD"
TRIVIAL = 0.2
"""Chance that a judge calls a document of the first ranks a C where it is not relevant."""
MISSED, FALSE_ALARM = 0.10, 0.01
"""Chances of a judge's made error, for relevant and other pairs; the same chances hold for errors of all judges."""
Grades = npt.NDArray[np.int64]
"""Index in `LABELS`, shape (judges, pairs)."""


@dataclass(frozen=True)
class Audited:
    """Judged pairs with labels, and the truth about them."""

    queries: list[str]
    pairs: pl.DataFrame
    """query_id, doc_id, rank by BM25 (null below its depth), labelled, relevant."""
    grades: Grades

    @cached_property
    def frames(self) -> dict[str, pl.DataFrame]:
        """Return design -> pairs with their strata, and whether they are relevant."""
        votes = [
            self.pairs.select(*PAIR, judge=pl.lit(judge), grade=pl.Series([LABELS[code] for code in codes]))
            for judge, codes in zip(JUDGES, self.grades, strict=True)
        ]
        verdicts, labels = unanimous(pl.concat(votes), JUDGES, FIVE), self.pairs.filter("labelled")
        hit = pl.struct(retriever=pl.lit("bm25"), rank=pl.col("rank"), score=pl.lit(None, pl.Float64))
        pool = self.pairs.select(*PAIR, hits=pl.concat_list(hit))
        designs = {
            "before": audit_design.cells(verdicts, labels),
            "after": audit_design.strata(verdicts, labels, pool, ["bm25"], FIVE),
        }
        truth = self.pairs.select(*PAIR, "relevant")
        return {name: strata.join(truth, on=PAIR, maintain_order="left") for name, strata in designs.items()}

    def truth(self) -> tuple[float, float]:
        """Return false negatives and false positives per query."""
        missed = self.pairs.filter(pl.col("relevant") & ~pl.col("labelled")).height
        return missed / len(self.queries), self.pairs.filter(~pl.col("relevant") & pl.col("labelled")).height / len(
            self.queries
        )


@dataclass(frozen=True)
class Interval:
    """The interval of a count in one seed."""

    half: float
    holds: bool


def audit(
    pairs: pl.DataFrame, queries: list[str], design: str, size: int, truth: tuple[float, float], seed: int
) -> tuple[Interval, Interval] | None:
    """Return the intervals of false negatives and false positives from one sample; None if one is not defined."""
    sizes, target = sampling_design.counts(pairs), audit_design.FP if design == "before" else None
    drawn = audit_design.allocate(sizes, sampling_design.guesses(sizes), size, target)
    answers = sampling_design.draw(pairs, drawn, seed)
    corrected = audit_correction.correct(pairs, answers, queries)
    counts = (corrected.false_negatives, corrected.false_positives)
    if not all(counts):
        return None
    first, second = (
        Interval((count.high - count.low) / 2, count.low - 1e-9 <= value <= count.high + 1e-9)
        for count, value in zip(counts, truth, strict=True)
        if count
    )
    return first, second


def erring(grades: Grades, relevant: npt.NDArray[np.bool_], random: np.random.Generator) -> Grades:
    """Return grades with made errors: of all judges on the same pairs, and of each judge alone."""
    chance = np.where(relevant, MISSED, FALSE_ALARM)
    swapped = np.where(grades <= LABELS.index("A"), LABELS.index("D"), LABELS.index("S"))
    wrong = (random.random(relevant.shape) < chance) | (random.random(grades.shape) < chance)
    return np.where(wrong, swapped, grades)


def replayed(relevant: npt.NDArray[np.bool_], rank: npt.NDArray[np.float64], random: np.random.Generator) -> Grades:
    """Return the grades of judges who know the truth: S or D, and C for some other pairs of the first ranks."""
    trivial = random.random((len(JUDGES), len(relevant))) < TRIVIAL * np.exp(-rank / 20)
    return np.where(relevant, LABELS.index("S"), np.where(trivial, LABELS.index("C"), LABELS.index("D")))


def rankings(queries: Mapping[str, str], documents: Mapping[str, str]) -> pl.DataFrame:
    """Return query_id, doc_id and rank of the first `DEPTH` documents by BM25."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [Query(name, text) for name, text in queries.items()]
        blocks = ranking.ask(bm25(Path(folder)), ListCorpus(documents), asked, DEPTH, quiet)
        hits = pl.concat([ranking.frame("bm25", block, best, DEPTH) for block, best in blocks])
        return hits.select(*PAIR, pl.col("rank").cast(pl.Int32))


def texts(path: Path) -> dict[str, str]:
    """Return id -> title and text of a JSONL file."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["_id"]: f"{row.get('title', '')} {row['text']}".strip() for row in rows}


def qrels(path: Path) -> pl.DataFrame:
    """Return query_id and doc_id of a qrels file."""
    lines = pl.read_csv(path, separator="\t", infer_schema=False)
    return lines.select(query_id=lines.columns[0], doc_id=lines.columns[1])


def medquad(folder: Path, made_errors: bool) -> Audited:
    """Return the questions with several answers."""
    random = np.random.default_rng(1)
    answers = qrels(folder / "qrels.tsv").filter(pl.len().over("query_id") > 1)
    names = answers["query_id"].unique(maintain_order=True).to_list()
    asked = texts(folder / "queries.jsonl")
    pairs = rankings({name: asked[name] for name in names}, texts(folder / "corpus.jsonl")).sort(PAIR)
    relevant = pairs.join(answers.with_columns(relevant=True), on=PAIR, how="left", maintain_order="left")["relevant"]
    first = answers.unique("query_id", keep="first").with_columns(labelled=True)
    labels = pairs.join(first, on=PAIR, how="left", maintain_order="left")["labelled"].fill_null(value=False)
    is_relevant = relevant.fill_null(value=False).to_numpy()
    wrong = pl.Series(random.random(len(pairs)) < 0.1 / DEPTH) & ~pl.Series(is_relevant)
    pairs = pairs.with_columns(labelled=labels | wrong, relevant=pl.Series(is_relevant))
    grades = replayed(is_relevant, pairs["rank"].to_numpy().astype(float), random)
    return Audited(names, pairs, erring(grades, is_relevant, random) if made_errors else grades)


def recorded(folder: Path, made_errors: bool) -> Audited:
    """Return the 600 pairs that three readers graded."""
    ratings = pl.read_csv(folder / "ratings.tsv", separator="\t").sort(*PAIR, "assessor")
    table_of_grades = ratings.pivot("assessor", index=PAIR, values="grade").sort(PAIR)
    columns = [name for name in table_of_grades.columns if name not in PAIR]
    grades = np.array([[LABELS.index(grade) for grade in table_of_grades[name]] for name in columns])
    relevant = (grades <= LABELS.index("A")).sum(axis=0) >= 2
    labels = qrels(folder / "qrels_legacy.tsv").with_columns(labelled=True)
    ranks = rankings(texts(folder / "queries.jsonl"), texts(folder / "corpus.jsonl"))
    pairs = table_of_grades.select(PAIR).join(labels, on=PAIR, how="left", maintain_order="left")
    pairs = pairs.join(ranks, on=PAIR, how="left", maintain_order="left").with_columns(
        pl.col("labelled").fill_null(value=False), relevant=pl.Series(relevant)
    )
    random = np.random.default_rng(2)
    return Audited(sorted(set(pairs["query_id"])), pairs, erring(grades, relevant, random) if made_errors else grades)


MADE = {"relevant": 0.03, "queries": 200, "unlabelled": 0.8, "mislabelled": 0.002}
"""Mean share of relevant pairs, queries, and chances of a relevant pair without and of another pair with a label."""


def made(seed: int) -> Audited:
    """Return a fresh draw of the made population; its judges err."""
    random = np.random.default_rng([3, seed])
    queries = int(MADE["queries"])
    rank = np.tile(np.arange(1, DEPTH + 1), queries)
    slope = np.exp(-rank / 30.0)
    rate = slope / np.exp(-np.arange(1, DEPTH + 1) / 30.0).mean() * MADE["relevant"]
    # a factor per query with mean 1, at most 2: no rate exceeds 1
    relevant = random.random(len(rank)) < rate * np.repeat(2 * random.beta(1, 1, queries), DEPTH)
    labelled = random.random(len(rank)) < np.where(relevant, 1 - MADE["unlabelled"], MADE["mislabelled"])
    names = [f"q{number:03}" for number in range(queries)]
    pairs = pl.DataFrame(
        {
            "query_id": np.repeat(names, DEPTH),
            "doc_id": [f"d{number:03}" for number in rank],
            "rank": pl.Series(rank, dtype=pl.Int32),
            "labelled": labelled,
            "relevant": relevant,
        }
    )
    return Audited(names, pairs, erring(replayed(relevant, rank.astype(float), random), relevant, random))


def population() -> tuple[float, float]:
    """Return false negatives and false positives per query of the made population."""
    share = MADE["relevant"]
    return DEPTH * share * MADE["unlabelled"], DEPTH * (1 - share) * MADE["mislabelled"]


def measured(sets: Callable[[int], Audited], truth: tuple[float, float] | None, seeds: int) -> Iterator[list[str]]:
    """Yield a row per sample size: size, and for both counts half widths before and after, and coverage."""
    intervals: dict[tuple[str, int], list[tuple[Interval, Interval]]] = {}
    undefined = 0
    for seed in range(seeds):
        audited = sets(seed)
        for design, pairs in audited.frames.items():
            for size in SIZES:
                result = audit(pairs, audited.queries, design, size, truth or audited.truth(), seed)
                undefined += result is None
                intervals.setdefault((design, size), []).extend([result] if result else [])
    assert not undefined, "every stratum is drawn"
    for size in SIZES:
        cells = [f"{size:,}"]
        for count in (0, 1):
            before, after = ([pair[count] for pair in intervals[design, size]] for design in ("before", "after"))
            halves = [f"{mean(one.half for one in design):.2f}" for design in (before, after)]
            coverage = [f"{mean(one.holds for one in design):.3f}" for design in (before, after)]
            cells += [" → ".join(halves), " → ".join(coverage)]
        yield cells


def main() -> None:
    """Measure every set, and print or write the table."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="with medquad_legacy_en and panel")
    options.add_argument("--seeds", type=int, default=300)
    chosen = options.parse_args()
    rows = []
    for name, read in (
        ("MedQuAD", partial(medquad, chosen.data / "medquad_legacy_en")),
        ("zh", partial(recorded, chosen.data / "panel")),
    ):
        for kind in ("replayed", "erring"):
            audited = read(kind == "erring")
            lines = measured(lambda _seed, audited=audited: audited, None, chosen.seeds)
            rows += [[f"{name} {kind}", *line] for line in lines]
    rows += [["made, erring", *line] for line in measured(made, population(), chosen.seeds)]
    heads = ["set", "answers", "FN ±", "coverage", "FP ±", "coverage"]
    publish("audit_design", table(heads, rows), chosen.write)


if __name__ == "__main__":
    main()
