"""`curate status` and `curate show`: states of a run's stages, and its tables; nothing is written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.runs.command import argument, option
from curate.runs.options import OnPipelineFile, OnRun
from curate.view.answers import Result, plain
from curate.view.text import as_table

if TYPE_CHECKING:
    import polars as pl


LONGEST = 60
"""Characters of a value that `show` prints; `--json` has all."""


class StatusCommand(OnPipelineFile):
    """Show progress and cost.

    One row per stage: state, rows, seconds and cost.
    """

    words = "status"
    examples = ("status", "status --run runs/demo --json")

    def result(self) -> Result[Any]:
        """Return a row per stage."""
        from curate.llm.exchange_rates import shown
        from curate.runs.opening import opened
        from curate.runs.status import BELOW, status_rows, told

        rows = status_rows(opened(self.pipeline, self.run, tell=self.notify))
        costs = [shown(row["cost"], None) if isinstance(row["cost"], float) else None for row in rows]
        table = [{**row, "cost": cost} for row, cost in zip(rows, costs, strict=True)]
        columns = [{name: row[name] for name in row if name not in BELOW} for row in table]
        return Result(rows, [as_table(columns), *told(rows)])


class ShowCommand(OnRun):
    """Print a table of a run.

    Of a JSON file, such as agreement, the figures.
    """

    words = "show"
    examples = ("show verdicts", "show mask/queries --rows 20")

    table: str = argument(
        "Name of a table, or stage/table: pool, verdicts, mask/queries, agreement.", complete="tables"
    )
    rows: int = option("Number of rows.", 10, ge=0)

    def result(self) -> Result[Any]:
        """Return path, number of rows, columns and the first rows; of a JSON file, path and figures."""
        from curate.pipeline.folder import newest, readable, table_path
        from curate.system.files import read_json

        path = readable(table_path(self.run or newest(), self.table))
        if path.suffix == ".json":
            import yaml

            figures = read_json(path)
            text = yaml.safe_dump(figures, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100)
            return Result({"path": path, "figures": figures}, [str(path), text.rstrip()])
        import polars as pl

        lazy = pl.scan_parquet(path)
        count, head = lazy.select(pl.len()).collect().item(), lazy.head(self.rows).collect()
        columns = [{"name": name, "type": str(kind)} for name, kind in head.schema.items()]
        lines = _table(path, count, columns, head)
        return Result({"path": path, "rows": count, "columns": columns, "head": head.to_dicts()}, lines)


def _table(path: Path, count: int, columns: Sequence[Mapping[str, str]], head: "pl.DataFrame") -> Iterator[str]:
    yield f"{path}: {count:,} rows"
    yield as_table([{"column": column["name"], "type": column["type"]} for column in columns])
    if len(head):
        rows = [{name: _cell(value) for name, value in row.items()} for row in head.to_dicts()]
        yield f"\n{as_table(rows, text_columns=len(rows[0]))}"


def _cell(value: object) -> str:
    """Return a value on one line, a long one cut."""
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
