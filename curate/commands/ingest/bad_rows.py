"""Rows that cannot be used: they stop the run, ten problems at a time, or are dropped, each with its reason."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from curate.commands.ingest import Config
from curate.core.errors import DataError
from curate.system.files import Gathered
from curate.tables.readers import Problem, Source, Table
from curate.tables.readers.items import plain

LISTED = 10
"""Problems of one file, or reasons of one table, that are shown together."""


@dataclass
class BadRows:
    """What was wrong in the rows that were read, and what became of them."""

    config: Config
    read: Counter[Table] = field(default_factory=Counter)
    """Rows that were to be used, good or bad."""
    dropped: Gathered = field(default_factory=partial(Gathered, "dropped"))
    problems: list[str] = field(default_factory=list)

    def note(self, table: Table, source: Source, problem: Problem, name: str = "", reason: str = "") -> None:
        """Drop a row where the settings say so, else note why the run stops; `name` is the key of the row."""
        if self.config.on_error == "drop":
            key = name if name and plain(name) else f"{source.name}:{problem.line}"
            self.drop(table, key, reason or problem.found)
            return
        self.problems.append(problem.sentence(source.place))
        if len(self.problems) == LISTED:
            self.stop()

    def drop(self, table: Table, name: str, reason: str) -> None:
        """List a row as dropped."""
        self.dropped.append({"table": table, "id": name, "stage": "ingest", "reason": reason})

    def stop(self) -> None:
        """Raise DataError if any row is to stop the run."""
        if self.problems:
            raise DataError("\n".join(self.problems))

    def reasons(self, table: Table) -> str:
        """Return how many rows of a table were dropped, by reason, as a clause; empty if none was."""
        counts = Counter(self.dropped.table().filter(pl.col("table") == table)["reason"].to_list())
        clauses = [f"{count:,} x {reason}" for reason, count in counts.most_common(LISTED)]
        if len(counts) > LISTED:
            clauses.append(f"{counts.total() - sum(count for _, count in counts.most_common(LISTED)):,} x others")
        return f"{counts.total():,} dropped ({', '.join(clauses)})" if counts else ""

    def stop_if_most(self, table: Table) -> None:
        """Raise DataError if a row is to stop the run, or more of a table was dropped than `ingest.max_drop`."""
        self.stop()
        rows = int((self.dropped.table()["table"] == table).sum())
        if rows > self.config.max_drop * self.read[table]:
            raise DataError(
                f"ingest: of {self.read[table]:,} rows of the {table} {self.reasons(table)}, expected at most the "
                f"share of ingest.max_drop, {self.config.max_drop:g}; correct the files, or set it to 1 if that is on "
                "purpose"
            )
