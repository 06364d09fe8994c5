"""`curate check leaks`: whether a training set knows the test set."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.cli.running import Assign
from curate.cli.tables import as_table


def add_to(app: typer.Typer) -> None:
    """Add the command to those of `curate check`."""
    app.command("leaks")(leaks)


def leaks(
    train: Annotated[Path, typer.Argument(help="Run folder, or a folder in BEIR or MTEB layout.")],
    test: Annotated[Path, typer.Argument(help="The same of the test set.")],
    encoder: Annotated[str | None, typer.Option(help="What compares texts; thresholds belong to it.")] = None,
    t: Annotated[float | None, typer.Option("--t", help="Similarity above which two queries are alike.")] = None,
    assign: Assign = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the table of all leaks.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Find training queries and positives that resemble a test set's; exit code 1 if there are any."""
    from curate.checks.leaks import check
    from curate.cli.progress import bars
    from curate.cli.train_set import leaking
    from curate.core.errors import RunFailed

    given = {"leaks.encoder": encoder, "leaks.queries": t}
    changes = [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]
    with bars() as (progress, _):
        found: dict[str, Any] = check(train, test, [*changes, *(assign or [])], out, progress)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        typer.echo(f"{found['train_queries']:,} training queries, {found['test_queries']:,} test queries")
        typer.echo(leaking(found))
        if found["nearest"]:
            typer.echo(as_table(found["nearest"], digits=3))
    if found["leaking_queries"] or found["leaking_pairs"]:
        raise RunFailed(f"{train} leaks into {test}; `curate train-set` removes such queries and pairs")
