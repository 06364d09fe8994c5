"""Pilot sample: pairs of the pool that people grade before judges are paid, to choose a panel and a rule.

A systematic sample over all queries: every pair has the same probability, so shares and kappas need no weights. Pilots
of only a few queries choose no better than the default (CALIBRATION, decision 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.records import TABLES
from curate.core.sampling import generator, shuffled
from curate.core.scale import FIVE
from curate.llm.prompts import Rubric
from curate.panel.voting import PAIR
from curate.review.drawing import SampleOptions, placed, with_texts
from curate.review.sample import PILOT, Design, Sample, Stratum
from curate.stats.vote_rules import LEAST
from curate.system.files import read_table

SIZE = 200
TWICE = 50
"""Fewest pairs that two people read: their kappa is the ceiling of every rule's."""


@dataclass(frozen=True)
class PilotOptions:
    """Options of a pilot's draw; ConfigError for a size, assessors or overlap that are too small."""

    assessors: Sequence[str]
    name: str = PILOT
    size: int = SIZE
    overlap: float | None = None
    """Share of the pairs that a second person reads too; None: `TWICE` pairs."""
    seed: int = 0
    language: str = "zh"

    def __post_init__(self) -> None:
        if self.size < LEAST:
            raise ConfigError(f"--size: found {self.size}, expected {LEAST} or more; {SIZE} are advised")
        if len(self.assessors) < 2:
            raise ConfigError(
                f"--assessors: found {', '.join(self.assessors) or 'no name'}, expected two or more, for {TWICE} pairs "
                "are read twice; who is alone reads them again under a second name, such as --assessors wang,wang-later"
            )
        self.order(self.size)

    def order(self, size: int) -> SampleOptions:
        """Return the options of a sample of `size` pairs; ConfigError if fewer than `TWICE` are read twice."""
        overlap = min(TWICE / size, 1.0) if self.overlap is None else self.overlap
        if round(overlap * size) < TWICE:
            raise ConfigError(
                f"--overlap: found {overlap:g}, by which {round(overlap * size)} of {size} pairs are read twice, "
                f"expected {TWICE} or more; give {TWICE / size:.2g}, or leave it out"
            )
        return SampleOptions(
            self.name, size, assessors=self.assessors, overlap=overlap, seed=self.seed, language=self.language
        )


def draw(run: Path, options: PilotOptions, rubric: Rubric) -> Sample:
    """Draw a pilot from the pool of a run and freeze it in `reviews/NAME`; DataError if the pool is too small.

    People grade on the scale of the judges' rubric. No judge need have been asked.
    """
    folder, scale = run / "reviews" / options.name, rubric.scale
    Sample.refuse(folder)
    if not scale.relevant:
        raise ConfigError(
            f"judge.rubric: {rubric.name} is nominal, so no document is relevant by it and no rule makes labels of its "
            "grades; give a rubric that has relevant_from"
        )
    pool = read_table(run / "pool", "pool").select(PAIR)
    if len(pool) < LEAST:
        raise DataError(f"{run}: found {len(pool)} pairs in the pool, expected {LEAST} or more; deepen pool.depth")
    rows = spread(pool, min(options.size, len(pool)), options.seed)
    order = options.order(len(rows))
    rows = rows.with_columns(
        stratum=pl.lit("pool"),
        probability=pl.lit(len(rows) / len(pool)),
        expected=pl.lit(None, pl.String),
        verdict=pl.lit(None, pl.String),
        votes=pl.lit([], TABLES["survey"]["votes"]),
    )
    facts: dict[str, Json] = {
        "of": PILOT,
        "queries": rows["query_id"].n_unique(),
        "queries_in_pool": pool["query_id"].n_unique(),
    }
    scale_fields = {} if scale == FIVE else {"scale": scale.to_json(), "meanings": rubric.all_meanings}
    design = Design(
        options.name,
        "relevance",
        options.language,
        options.seed,
        tuple(options.assessors),
        [Stratum("pool", len(pool), len(rows))],
        order.overlap,
        facts,
        **scale_fields,  # type: ignore[arg-type]  # two fields of two types
    )
    sample = Sample(folder, design, placed(with_texts(run, rows), order))
    sample.freeze()
    return sample


def spread(pool: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """Return a systematic sample of a pool: every step-th pair from a random start, query by query.

    Queries, and pairs of a query, are in random order. A query with n pairs gets n * size / pool, rounded up or down.
    """
    rows = pool.sort(PAIR)
    names = rows["query_id"].unique().sort().to_list()
    position = {name: number for number, name in enumerate(shuffled(names, seed, "pilot", "queries"))}
    queries = rows["query_id"].to_list()
    mixed = sorted(shuffled(range(len(rows)), seed, "pilot", "pairs"), key=lambda row: position[queries[row]])
    step = len(rows) / size
    start = generator(seed, "pilot", "start").random() * step
    return rows[sorted(mixed[int(start + number * step)] for number in range(size))]
