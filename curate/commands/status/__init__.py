"""`curate status` and `curate show`: states of a run's stages, and its tables; nothing is written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.runs import completing
from curate.runs.options import AsJson, File, Folder
from curate.runs.running import open_run
from curate.view.answers import answer
from curate.view.text import as_table

if TYPE_CHECKING:
    import polars as pl


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
    answer(rows, [as_table(columns), *told(rows)], as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Print the schema and the first rows of a run's table, or the figures of a JSON file such as agreement."""
    from curate.pipeline.folder import newest, readable, table_path
    from curate.system.files import read_json

    path = readable(table_path(run or newest(), table))
    if path.suffix == ".json":
        import yaml

        figures = read_json(path)
        text = yaml.safe_dump(figures, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100)
        answer({"path": path, "figures": figures}, [str(path), text.rstrip()], as_json=as_json)
        return
    import polars as pl

    lazy = pl.scan_parquet(path)
    count, head = lazy.select(pl.len()).collect().item(), lazy.head(rows).collect()
    columns = [{"name": name, "type": str(kind)} for name, kind in head.schema.items()]
    lines = _table(path, count, columns, head)
    answer({"path": path, "rows": count, "columns": columns, "head": head.to_dicts()}, lines, as_json=as_json)


def _table(path: Path, count: int, columns: Sequence[Mapping[str, str]], head: "pl.DataFrame") -> Iterator[str]:
    import polars as pl

    yield f"{path}: {count:,} rows"
    yield from (f"  {column['name']}: {column['type']}" for column in columns)
    with pl.Config(
        tbl_rows=len(head), tbl_cols=-1, fmt_str_lengths=60, tbl_width_chars=160, tbl_hide_dataframe_shape=True
    ):
        yield str(head)
