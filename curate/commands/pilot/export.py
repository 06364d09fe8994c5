"""`curate pilot export`: pairs of the pool that people grade before judges are paid, to choose a panel and a rule.

A systematic sample over all queries: every pair has the same probability, so shares and kappas need no weights. Pilots
of only a few queries choose no better than the default (CALIBRATION, decision 1).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from curate.ask import seating
from curate.core.config import Json
from curate.core.errors import ConfigError, DataError
from curate.core.figures import Record, figure
from curate.core.sampling import generator, shuffled
from curate.panel.voting import PAIR
from curate.review import Desk, paper
from curate.review.drawing import SampleOptions, SampleQuestion, default_overlap, freeze, placed, with_texts
from curate.review.sample import PILOT, Sample, Stratum
from curate.runs.command import Names, option, setting
from curate.runs.options import OnPipeline
from curate.runs.outputs import outside_runs
from curate.runs.runner import Run
from curate.stats.vote_rules import LEAST
from curate.system.files import read_table
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.state import TWICE

SIZE = 200


class PilotDrawn(Record, schema_name="drawn"):
    """The pilot that was drawn, and the files to hand out."""

    sample: Path = figure("folder of the sample")
    files: tuple[Path, ...] = figure("annotation sheets and guide")
    pairs: int = figure("pairs that were drawn")
    of: Literal["pilot"] = figure("purpose of the sample")
    queries: int = figure("queries of the drawn pairs")
    queries_in_pool: int = figure("queries of all pooled pairs")


class PilotExportCommand(OnPipeline):
    """Write the sheets of a pilot.

    Pairs are drawn at random over all queries of the pool, before anything is judged; one file per assessor. Without
    --assessors the sheets of a pilot that was drawn before are written again.
    """

    words = "pilot export"
    examples = ("pilot export --assessors anna,ben", "pilot export --assessors anna --size 150 --format xlsx")

    size: int | None = option("Number of pairs, 100 or more; default: 200.", None)
    sample: str = option("Name of the pilot.", "pilot", metavar="NAME")
    assessors: Names = option("Names of the people who read, separated by commas.", (), metavar="NAMES")
    format: str = option("File format.", "csv", metavar="csv|xlsx|csv,xlsx")
    out: Path | None = option("Folder to write to; default: the sample's own.", None, metavar="FOLDER")
    overlap: float | None = setting(
        "Share of the pairs that a second person reads too; default: 50 pairs, or 10 %.", None
    )
    seed: int | None = setting("Seed of the random sample; default: the pipeline's.", None, ge=0)

    def result(self) -> Result[PilotDrawn]:
        """Return the sample's folder, its files, and counts of pairs and queries."""
        outside_runs(self.out)
        run, kinds = self.open_run(), paper.kinds(self.format)
        is_drawn = (run.folder / "reviews" / self.sample / "design.json").is_file()
        if not self.assessors and self.size is None and is_drawn:
            drawn = Sample.find(run.folder, self.sample)
        else:
            drawn = draw(run, self)
        files = paper.hand_out(Desk(drawn), self.out or drawn.folder / "sheets", kinds)
        self.notify(paper.readers(Desk(drawn)))
        counts: Mapping[str, Any] = drawn.design.facts
        figures = PilotDrawn(drawn.folder, tuple(files), len(drawn.rows), **counts)
        return Result(figures, [*map(str, files), RecordWords("pilot/pilot")("drawn", figures)])


def draw(run: Run, command: PilotExportCommand) -> Sample:
    """Draw a pilot from the pool of a run and freeze it in `reviews/NAME`; DataError if the pool is too small.

    People grade on the scale of the judges' rubric. No judge need have been asked. ConfigError for a size, assessors or
    overlap that are too small.
    """
    size = SIZE if command.size is None else command.size
    _refuse(command, size)
    folder, rubric = run.folder / "reviews" / command.sample, run.look("judge", seating.load_rubric)
    scale, head = rubric.scale, run.pipeline.head
    Sample.refuse(folder)
    if not scale.relevant:
        raise ConfigError(
            f"judge.rubric: {rubric.name} is nominal, so no document is relevant by it and no rule makes labels of its "
            "grades; give a rubric that has relevant_from"
        )
    pool = read_table(run.folder / "pool", "pool").select(PAIR)
    if len(pool) < LEAST:
        raise DataError(
            f"{run.folder}: found {len(pool)} pairs in the pool, expected {LEAST} or more; deepen pool.depth"
        )
    seed = head.seed if command.seed is None else command.seed
    rows = spread(pool, min(size, len(pool)), seed)
    options = SampleOptions(
        command.sample,
        len(rows),
        assessors=command.assessors,
        overlap=_overlap(command, len(rows)),
        seed=seed,
        language=head.language,
    )
    rows = rows.with_columns(stratum=pl.lit("pool"), probability=pl.lit(len(rows) / len(pool)))
    facts: dict[str, Json] = {
        "of": PILOT,
        "queries": rows["query_id"].n_unique(),
        "queries_in_pool": pool["query_id"].n_unique(),
    }
    question, strata = SampleQuestion.of_grades(scale, rubric.all_meanings), [Stratum("pool", len(pool), len(rows))]
    return freeze(folder, question, options, strata, placed(with_texts(run.folder, rows), options), facts)


def _refuse(command: PilotExportCommand, size: int) -> None:
    if size < LEAST:
        raise ConfigError(f"--size: found {size}, expected {LEAST} or more; {SIZE} are advised")
    if len(command.assessors) < 2:
        raise ConfigError(
            f"--assessors: found {', '.join(command.assessors) or 'no name'}, expected two or more, for {TWICE} pairs "
            "are read twice; who is alone reads them again under a second name, such as --assessors wang,wang-later"
        )
    _overlap(command, size)


def _overlap(command: PilotExportCommand, size: int) -> float:
    """Return the share of `size` pairs that two people read; ConfigError if those are fewer than `TWICE`."""
    overlap = default_overlap(size) if command.overlap is None else command.overlap
    if round(overlap * size) < TWICE:
        raise ConfigError(
            f"--overlap: found {overlap:g}, by which {round(overlap * size)} of {size} pairs are read twice, "
            f"expected {TWICE} or more; give {TWICE / size:.2g}, or leave it out"
        )
    return overlap


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
