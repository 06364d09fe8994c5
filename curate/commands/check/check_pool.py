"""`curate check pool`: contribution of the retrievers of a run, and relevant documents outside its pool."""

from collections.abc import Iterator
from pathlib import Path

from curate.commands.check.missed import Capture
from curate.commands.check.pool import PoolFigures, check
from curate.runs.command import option
from curate.runs.options import OnRun, WithRunFiles
from curate.runs.rankings import Covered
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import HEURISTIC, as_table, caveats, too_few

NAMED = 20
"""Maximum number of unsaturated queries listed; `--json` has all."""


class CheckPoolCommand(OnRun, WithRunFiles):
    """Measure the pool.

    What each retriever alone contributes, what the pool misses, and how far a run file is judged.
    """

    words = "check pool"
    examples = ("check pool", "check pool --run runs/demo --run-file system.trec")

    below: tuple[Path, ...] = option(
        "Graded random pairs from below the pool: query_id, doc_id, grade; may be repeated.", (), metavar="FILE"
    )
    depth: int | None = option(
        "Count the top N of each retriever as its own; default: the depth of the pool.", None, ge=1
    )

    def result(self) -> Result[PoolFigures]:
        """Return the figures of the pool."""
        folder = self.folder()
        figures = check(
            folder,
            self.run_file,
            subset=self.subset,
            split=self.split,
            below=self.below,
            depth=self.depth,
            progress=self.progress,
        )
        return Result(figures, _text(figures, folder), caveats(figures.heuristic, figures.queries))


def _text(figures: PoolFigures, run: Path) -> Iterator[str]:
    say = RecordWords("check/pool")
    yield say("head", figures)
    yield from too_few(figures.queries)
    if figures.heuristic:
        yield HEURISTIC
    yield say("leave_one_out", figures)
    yield as_table([say.cells("left_out", retriever) for retriever in figures.leave_one_out])
    if figures.depth.low == 0:
        yield say("no_depth")
    if figures.beyond_depth:
        yield say("beyond_depth", figures)
    yield as_table(
        [say.cells("change", retriever, change) for retriever in figures.leave_one_out for change in retriever.changes]
    )
    yield say("by_position")
    yield as_table([say.cells("band", band) for band in figures.by_position])
    yield say("capture")
    yield from _capture(figures, figures.capture, say) if figures.capture else [say("no_capture")]
    if figures.below:
        yield say("below")
        yield as_table([say.cells("stratum", sample, stratum) for sample in figures.below for stratum in sample.strata])
        yield from (say("recall", sample) for sample in figures.below)
    else:
        yield say("no_sample")
    yield from _saturation(figures, run, say)
    yield say("systems")
    yield as_table([_system(system, say) for system in figures.systems])


def _capture(figures: PoolFigures, capture: Capture, say: RecordWords) -> Iterator[str]:
    times = ", ".join(say("found_by", pairs=pairs, times=times) for times, pairs in enumerate(capture.by, start=1))
    yield say("found", capture, times=times)
    yield say("missed", capture)
    if figures.beyond_depth:
        yield say("in_pool", figures)
    yield say("lower_bound", capture)
    yield from (say("chapman", first=first, second=second, total=total) for first, second, total in capture.pairs)


def _saturation(figures: PoolFigures, run: Path, say: RecordWords) -> Iterator[str]:
    yield say("saturation", queries=len(figures.unsaturated))
    if figures.whole_corpus_in_the_pool:
        yield say("exhausted", figures)
    if figures.deepen:
        yield as_table([say.cells("unsaturated", query) for query in figures.unsaturated[:NAMED]])
        if len(figures.unsaturated) > NAMED:
            yield say("more_unsaturated", queries=len(figures.unsaturated) - NAMED)
        yield say("deepen", figures.deepen, run=run)


def _system(system: Covered, say: RecordWords) -> dict[str, str]:
    cells = say.cells("system", system)
    for coverage in system.depths:
        cells |= say.cells("coverage", coverage)
    return cells
