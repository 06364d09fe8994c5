"""`curate status` and `curate show`: look at a run without changing it."""

from typing import Annotated

import typer

from curate.cli import completing
from curate.cli.options import AsJson, File, Folder
from curate.cli.running import open_run
from curate.cli.tables import as_table, print_figures


def status(
    pipeline: File = None,
    run: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Print state, rows, seconds and cost of each stage, and the progress of judging."""
    from curate.llm.exchange_rates import shown
    from curate.runs.status import BELOW, status_rows, told

    rows = status_rows(open_run(pipeline, run))
    costs = [shown(row["cost"], None) if isinstance(row["cost"], float) else None for row in rows]
    table = [{**row, "cost": cost} for row, cost in zip(rows, costs, strict=True)]
    columns = [{name: row[name] for name in row if name not in BELOW} for row in table]
    print_figures(rows, [as_table(columns), *told(rows)], as_json=as_json)


def show(
    table: Annotated[
        str,
        typer.Argument(
            help="Name of a table, or stage/table: pool, verdicts, mask/queries, agreement.",
            autocompletion=completing.tables,
        ),
    ],
    run: Folder = None,
    rows: Annotated[int, typer.Option(min=0, help="Number of rows.")] = 10,
) -> None:
    """Print the schema and the first rows of a run's table, or the figures of a JSON file such as agreement."""
    import polars as pl
    import yaml

    from curate.runs.tables import newest, readable, table_path
    from curate.system.files import read_json

    path = readable(table_path(run or newest(), table))
    if path.suffix == ".json":
        figures = yaml.safe_dump(
            read_json(path), allow_unicode=True, sort_keys=False, default_flow_style=None, width=100
        )
        typer.echo(f"{path}\n{figures}", nl=False)
        return
    lazy = pl.scan_parquet(path)
    typer.echo(f"{path}: {lazy.select(pl.len()).collect().item():,} rows")
    for column, kind in lazy.collect_schema().items():
        typer.echo(f"  {column}: {kind}")
    with pl.Config(tbl_rows=rows, tbl_cols=-1, fmt_str_lengths=60, tbl_width_chars=160, tbl_hide_dataframe_shape=True):
        typer.echo(str(lazy.head(rows).collect()))
