"""`curate check leaks`: overlap of a training set with a test set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson, Assign
from curate.runs.running import assigned
from curate.view.answers import answer
from curate.view.text import as_table


def leaks(
    train: Annotated[Path, typer.Argument(help="Run folder, or a folder in BEIR or MTEB layout.")],
    test: Annotated[Path, typer.Argument(help="The same for the test set.")],
    encoder: Annotated[
        str | None, typer.Option(help="Encoder that compares texts; the thresholds are calibrated for it.")
    ] = None,
    t: Annotated[
        float | None, typer.Option("--t", help="Similarity above which two queries are near-duplicates.")
    ] = None,
    assign: Assign = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the table of all leaks to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find training queries and positives that resemble a test set's; exit code 1 if there are any."""
    from curate.commands.check.leaks import check
    from curate.core.errors import CheckFailed
    from curate.view.progress import bars
    from curate.view.text import leaking

    settings = {"leaks.encoder": encoder, "leaks.queries": t}
    with bars() as (progress, _):
        figures: dict[str, Any] = check(train, test, [*assigned(settings), *(assign or [])], out, progress)
    lines = [
        f"{figures['train_queries']:,} training queries, {figures['test_queries']:,} test queries",
        leaking(figures),
    ]
    lines += [as_table(figures["nearest"], digits=3)] if figures["nearest"] else []
    leaking_rows = figures["leaking_queries"] or figures["leaking_pairs"]
    message = f"{train} leaks into {test}; `curate train-set` removes such queries and pairs"
    answer(figures, lines, as_json=as_json, failed=CheckFailed(message) if leaking_rows else None)
