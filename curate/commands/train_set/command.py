"""`curate train-set`: graded candidates as training data, without leaks of a test set."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from curate.core.errors import UserError
from curate.runs.command import RUN, Names, argument, option, setting
from curate.runs.options import OnPipeline, Plannable
from curate.view.answers import Result
from curate.view.text import as_table, caveats, leaking, too_few

if TYPE_CHECKING:
    from curate.runs.runner import Run

UNCHECKED = "NOT CHECKED FOR LEAKS: name the test set with --test"


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

    def result(self) -> Result[Any]:
        """Return the figures of the training set; with `plan`, the cost of judging."""
        from curate.runs.running import all_stages, written
        from curate.system.files import read_json

        size = () if self.depth is None else (f"pool.size={self.depth}",)
        work = self.open_run_on("train", self.source, size)
        if "train_set" not in work.pipeline.head.stages:
            raise UserError(f"{work.folder}: no run of a train set; name a folder or a task, or give --run")
        if estimate := all_stages(self, work, force=self.force):
            return estimate
        summary = read_json(work.folder / "train_set" / "train_set.json")
        warnings = caveats(
            summary["heuristic"], summary["queries"]["before"] if summary["mined"][-1]["pairs"] else None
        )
        warnings += [UNCHECKED] if summary["leaks"] is None else []
        return Result(summary, _lines(summary, work), warnings, event={**written(work, None), "data": summary})


def _lines(summary: Mapping[str, Any], work: "Run") -> Iterator[str]:
    """Yield the main figures, and the folder of the triples."""
    if summary["heuristic"]:
        yield "THE JUDGES ARE HEURISTICS: this shows the machinery, and nothing should be trained on it"
    queries = dict(summary["queries"])
    after, before = queries.pop("after"), queries.pop("before")
    yield f"{after:,} of {before:,} queries, {summary['positives']:,} positives, {summary['negatives']:,} negatives"
    yield from (f"left out, {reason}: {count:,}" for reason, count in queries.items())
    if summary["leaks"] is None:
        yield UNCHECKED
    else:
        yield leaking(summary["leaks"])
    if summary["mined"][-1]["pairs"]:
        yield "\nMined negatives (candidates without a label) that the judge found relevant"
        columns = ("positions", "pairs", "relevant", "share", "low", "high")
        yield as_table([{name: band[name] for name in columns} for band in summary["mined"]], digits=3)
        yield from too_few(before)
    yield f"triples: {work.folder / 'train_set' / 'triples'}"
