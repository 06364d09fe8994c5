"""`curate train-set`: graded candidates as training data, without leaks of a test set."""

from collections.abc import Iterator
from pathlib import Path

from curate.commands.train_set.stage import NAME, TrainSetFigures
from curate.core.errors import UserError
from curate.runs.command import RUN, Names, argument, option, setting
from curate.runs.options import OnPipeline, Plannable
from curate.runs.running import all_stages, written
from curate.system.files import read_json
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, caveats, too_few


class TrainSetCommand(OnPipeline, Plannable):
    """Build training data.

    One judge grades what retrievers return; positives and hard negatives are written.
    """

    words = "train-set"
    examples = ("train-set my-set --test runs/demo --judge qwen --plan", "train-set my-set --test none --max-cost 5")

    source: str | None = argument("Folder in BEIR or MTEB layout, or name of an MTEB task; default: the run's.", None)
    test: str | None = option(
        "Run folder or export of the test set; `none` skips the check for leaks.",
        None,
        key="train_set.test",
        metavar="FOLDER|none",
    )
    judge: Names = option(
        "Judge that grades the candidates.", (), key="judge.models", complete="judges", metavar="NAME"
    )
    queries: int | None = option("Size of a random sample of queries; default: all.", None, key="ingest.sample", ge=1)
    force: bool = option("Run again even if up to date.", False, group=RUN)
    retrievers: Names = option(
        "Names of retrievers, separated by commas: bm25,e5,use.",
        (),
        key="pool.retrievers",
        complete="retrievers",
        metavar="NAMES",
    )
    depth: int | None = option("Candidates per query that are graded.", None, key="pool.depth", ge=1)
    language: str | None = setting("Language of the texts, such as zh; default: detected.", None, key="language")

    def result(self) -> Result[TrainSetFigures]:
        """Return the figures of the training set; with `plan`, the cost of judging."""
        size = () if self.depth is None else (f"pool.size={self.depth}",)
        work = self.open_run_on("train", self.source, size)
        if "train_set" not in work.pipeline.head.stages:
            raise UserError(f"{work.folder}: no run of a train set; name a folder or a task, or give --run")
        if estimate := all_stages(self, work, force=self.force):
            return estimate
        figures = TrainSetFigures.from_json(read_json(work.folder / "train_set" / NAME))
        warnings = caveats(figures.heuristic, figures.queries["before"] if figures.mined[-1].pairs else None)
        say = RecordWords("train_set/train_set")
        warnings += [say("unchecked")] if figures.leaks is None else []
        return Result(
            figures,
            _text(figures, work.folder, say),
            warnings,
            event={**written(work, None), "data": figures.to_json()},
        )


def _text(figures: TrainSetFigures, run: Path, say: RecordWords) -> Iterator[str]:
    """Yield the main figures, and the folder of the triples."""
    if figures.heuristic:
        yield say("heuristic")
    before, after = figures.queries["before"], figures.queries["after"]
    yield say("head", figures, before=before, after=after)
    for reason, count in figures.queries.items():
        if reason not in ("before", "after"):
            yield say("left_out", reason=reason, count=count)
    yield say("leaks", figures.leaks) if figures.leaks else say("unchecked")
    if figures.mined[-1].pairs:
        yield say("mined")
        yield as_table([say.cells("band", band) for band in figures.mined])
        yield from too_few(before)
    yield say("triples", folder=str(run / "train_set" / "triples"))
