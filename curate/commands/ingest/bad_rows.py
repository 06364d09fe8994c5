"""Invalid rows: they stop the run, with a list of ten problems at a time, or are dropped with a reason."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl

from curate.commands.ingest import Config
from curate.core.errors import DataError, TableError, TableFault
from curate.system.files import Gathered
from curate.tables.readers import Problem, Source, Table
from curate.tables.readers.items import plain

LISTED = 10
"""Maximum number of problems of a file, or of drop reasons of a table, in one message."""


@dataclass
class BadRows:
    """Collects the problems of rows; each drops its row or stops the run, according to the settings."""

    config: Config
    read: Counter[Table] = field(default_factory=Counter)
    """Table -> number of rows read, valid or not, without rows that the settings exclude."""
    dropped: Gathered = field(default_factory=partial(Gathered, "dropped"))
    faults: list[TableFault] = field(default_factory=list)

    def note(
        self,
        table: Table,
        source: Source,
        problem: Problem,
        name: str = "",
        reason: str = "",
        columns: Sequence[str] = (),
    ) -> None:
        """Drop a row if `on_error` is `drop`, else collect its problem.

        `name` is the key of the row, if it has one; `columns` are the names of which one is that of the wrong cell.
        """
        if self.config.on_error == "drop":
            key = name if name and plain(name) else f"{source.name}:{problem.line}"
            self.drop(table, key, reason or problem.got)
            return
        header = source.header() or () if columns else ()
        column = next((name for name in columns if name in header), problem.column)
        problem = replace(problem, column=column, remedy=f"{problem.remedy}, or set ingest.on_error: drop")
        self.faults.append(problem.fault(source.location))
        if len(self.faults) == LISTED:
            self.stop()

    def drop(self, table: Table, name: str, reason: str) -> None:
        """Record a row in the table `dropped`."""
        self.dropped.append({"table": table, "id": name, "stage": "ingest", "reason": reason})

    def stop(self) -> None:
        """Raise TableError with the collected problems, if there are any."""
        if self.faults:
            raise TableError(self.faults, [["--set", "ingest.on_error=drop"]])

    def reasons(self, table: Table) -> str:
        """Return a clause with the number of dropped rows of a table, by reason; empty if none was dropped."""
        counts = Counter(self.dropped.table().filter(pl.col("table") == table)["reason"].to_list())
        clauses = [f"{count:,} x {reason}" for reason, count in counts.most_common(LISTED)]
        if len(counts) > LISTED:
            clauses.append(f"{counts.total() - sum(count for _, count in counts.most_common(LISTED)):,} x others")
        return f"{counts.total():,} dropped ({', '.join(clauses)})" if counts else ""

    def stop_if_most(self, table: Table) -> None:
        """Raise DataError if there are problems, or if a larger share of a table was dropped than `ingest.max_drop`."""
        self.stop()
        rows = int((self.dropped.table()["table"] == table).sum())
        if rows > self.config.max_drop * self.read[table]:
            raise DataError(
                f"ingest: of {self.read[table]:,} rows of the {table} {self.reasons(table)}, expected at most the "
                f"share of ingest.max_drop, {self.config.max_drop:g}; correct the files, or set it to 1 if that is on "
                "purpose"
            )
