"""`curate status` and `curate show`: states of a run's stages, and its tables; nothing is written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import yaml

from curate.core.figures import Record, figure
from curate.llm.exchange_rates import shown
from curate.pipeline.folder import newest, readable, table_path, table_paths
from curate.runs.command import argument, option
from curate.runs.options import OnPipelineFile, OnRun
from curate.system.files import read_json
from curate.view.answers import Result, plain
from curate.view.record_words import RecordWords
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.runs.status import StageStatus

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
        from curate.runs.opening import opened  # takes as long as all that `curate show` needs
        from curate.runs.status import status_rows

        rows = status_rows(opened(self.pipeline, self.run, tell=self.notify))
        return Result(rows, _stages(rows))

    @classmethod
    def answer(cls) -> Any:  # noqa: ANN401
        """Return the type of the rows."""
        from curate.runs.status import StageStatus

        return list[StageStatus]


def _stages(rows: "Sequence[StageStatus]") -> Iterator[str]:
    """Yield the table of stages, then lines on unfinished judging, on costs in several currencies, and the notes."""
    from curate.pipeline.facts import further_paid

    say = RecordWords("status/status")
    yield as_table(
        [say.cells("stage", row, cost=shown(row.cost, None) if isinstance(row.cost, float) else None) for row in rows]
    )
    for row in rows:
        judging = [say("judged", row)] if row.judged is not None else []
        if row.paid:
            amounts = (shown(amount, currency) for currency, amount in row.paid.items())
            judging.append(say("paid", amounts=" and ".join(amounts)))
        if judging:
            yield say("judging", row, judging=", ".join(judging))
        yield from (say("note", row, note=note) for note in row.notes)
    yield from further_paid(next((row.further for row in rows if row.further), {}))


class TableColumn(Record, schema_name="column"):
    """A column of a table."""

    name: str = figure("name of the column")
    type: str = figure("data type, a name of polars")


class TableHead(Record, schema_name="table"):
    """The columns and first rows of a table, or the figures of a JSON file of the run."""

    path: Path = figure("file of the table")
    rows: int = figure("rows of the whole table")
    columns: tuple[TableColumn, ...] = figure("columns in the order of the table")
    head: tuple[Mapping[str, Any], ...] = figure("the first rows, column -> value; dates as ISO 8601")


class FileFigures(Record, schema_name="figures"):
    """The figures of a JSON file of a run."""

    path: Path = figure("path of the file; the run folder for the list of its tables, stage/table each")
    figures: Any = figure("content of the file")


class ShowCommand(OnRun):
    """Print a table of a run.

    Of a JSON file, such as agreement, the figures.
    """

    words = "show"
    examples = ("show verdicts", "show mask/queries --rows 20")

    table: str | None = argument(
        "Name of a table, or stage/table: pool, verdicts, mask/queries, agreement; default: their list.",
        None,
        complete="tables",
    )
    rows: int = option("Number of rows.", 10, ge=0)

    def result(self) -> Result[TableHead | FileFigures]:
        """Return path, number of rows, columns and the first rows; of a JSON file, path and figures.

        Without a name, the names of all tables.
        """
        run = self.run or newest()
        if self.table is None:
            names = [f"{path.parent.name}/{path.stem}" for path in table_paths(run)]
            return Result(FileFigures(run, names), names)
        path = readable(table_path(run, self.table))
        if path.suffix == ".json":
            figures = read_json(path)
            text = yaml.safe_dump(figures, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100)
            return Result(FileFigures(path, figures), [str(path), text.rstrip()])
        lazy = pl.scan_parquet(path)
        count, head = lazy.select(pl.len()).collect().item(), lazy.head(self.rows).collect()
        columns = tuple(TableColumn(name, str(kind)) for name, kind in head.schema.items())
        table = TableHead(path, count, columns, tuple(head.to_dicts()))
        return Result(table, _table(table))


def _table(table: TableHead) -> Iterator[str]:
    say = RecordWords("status/status")
    yield say("table", table)
    yield as_table([say.cells("column", column) for column in table.columns])
    if table.head:
        rows = [{name: _cell(value) for name, value in row.items()} for row in table.head]
        yield f"\n{as_table(rows, text_columns=len(rows[0]))}"


def _cell(value: object) -> str:
    """Return a value on one line, a long one cut."""
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
