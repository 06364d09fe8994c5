"""`curate train-set`: graded candidates as training data, without leaks of a test set."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.runs import completing
from curate.runs.options import (
    AsJson,
    Assign,
    Batch,
    File,
    Folder,
    Force,
    Language,
    MaxCost,
    Plan,
    Queries,
    Retrievers,
    Source,
    Yes,
)
from curate.runs.running import allowed, assigned, carry_out, listed, of_source, open_run
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table, caveats, leaking, too_few

if TYPE_CHECKING:
    from curate.runs.runner import Run

UNCHECKED = "NOT CHECKED FOR LEAKS: name the test set with --test"


@reporting
def train_set(
    source: Source = None,
    test: Annotated[
        str | None,
        typer.Option(help="Run folder or export of the test set; `none` skips the check for leaks."),
    ] = None,
    retrievers: Retrievers = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Candidates per query that are graded.")] = None,
    judge: Annotated[
        str | None, typer.Option(help="Judge that grades the candidates.", autocompletion=completing.judges)
    ] = None,
    queries: Queries = None,
    language: Language = None,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Have one judge grade what retrievers return; write positives and hard negatives for training."""
    from curate.core.errors import UserError
    from curate.system.files import read_json

    changes = listed("pool.retrievers", retrievers) + listed("judge.models", judge)
    options = {
        "train_set.test": test, "pool.depth": depth, "pool.size": depth, "ingest.sample": queries, "language": language
    }  # fmt: skip
    changes += assigned(options)
    if source is not None:
        changes = of_source("train", source) + changes
        pipeline = pipeline or "train-set"
    work = open_run(pipeline, run, [*changes, *(assign or [])])
    if "train_set" not in work.pipeline.head.stages:
        raise UserError(f"{work.folder}: no run of a train set; name a folder or a task, or give --run")
    if not carry_out(work, allowed(max_cost, yes, batch=batch), plan=plan, force=force, as_json=as_json):
        return
    summary = read_json(work.folder / "train_set" / "train_set.json")
    warnings = caveats(summary, summary["queries"]["before"] if summary["mined"][-1]["pairs"] else None)
    warnings += [UNCHECKED] if summary["leaks"] is None else []
    answer(summary, _lines(summary, work), as_json=as_json, warnings=warnings)


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
