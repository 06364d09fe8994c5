"""`curate ledger`: show figures of the ledger (record of every model reply), export, merge and check it."""

from collections.abc import Mapping
from pathlib import Path

from curate.core.errors import CheckFailed
from curate.core.scale import FIVE
from curate.ledger.exchange import export, import_
from curate.ledger.rows import Kept
from curate.ledger.stats import JudgeTotals, stats
from curate.runs.command import Command, argument
from curate.runs.ledger_check import LedgerFault, check
from curate.runs.running import opened
from curate.view.answers import Result
from curate.view.record_words import RecordWords


class LedgerStatsCommand(Command):
    """Print calls and cost.

    Calls, ratings, tokens and cost of every judge and rubric.
    """

    words = "ledger stats"
    examples = ("ledger stats", "ledger stats --json")

    def result(self) -> Result[list[JudgeTotals]]:
        """Return a row per judge and rubric."""
        with opened() as ledger:
            rows = stats(ledger)
        return Result(rows, ["\n\n".join(_paragraph(row) for row in rows) or "nothing yet"])


class LedgerExportCommand(Command):
    """Write the ledger as Parquet files."""

    words = "ledger export"
    examples = ("ledger export backup", "ledger export backup --json")
    answers = "How many rows of each table were written."

    folder: Path = argument("Folder to write to.")

    def result(self) -> Result[Mapping[Kept, int]]:
        """Return table -> rows written."""
        with opened() as ledger:
            return _counts("written", export(ledger, self.folder))


class LedgerImportCommand(Command):
    """Merge the export of another ledger.

    Rows that are here already stay as they are.
    """

    words = "ledger import"
    examples = ("ledger import backup", "ledger import backup --json")
    answers = "How many rows of each table were new."

    folder: Path = argument("A folder that `curate ledger export` wrote.")

    def result(self) -> Result[Mapping[Kept, int]]:
        """Return table -> rows that are new."""
        with opened(new=True) as ledger:
            return _counts("new", import_(ledger, self.folder))


class LedgerCheckCommand(Command):
    """Find contradicting rows.

    Exit code 1 if there are any.
    """

    words = "ledger check"
    examples = ("ledger check", "ledger check --json")

    def result(self) -> Result[list[LedgerFault]]:
        """Return a row per kind of mistake."""
        with opened() as ledger:
            mistakes = check(ledger)
        lines = [str(mistake) for mistake in mistakes] or ["nothing is wrong"]
        failed = CheckFailed(f"{len(mistakes)} kinds of mistakes in the ledger") if mistakes else None
        return Result(mistakes, lines, failed=failed)


def _counts(word: str, rows: Mapping[Kept, int]) -> Result[Mapping[Kept, int]]:
    return Result(rows, (f"{name}: {count:,} {word}" for name, count in rows.items()))


def _paragraph(row: JudgeTotals) -> str:
    """Return a printed paragraph on the calls, ratings, tokens and cost of a judge with a rubric."""
    say = RecordWords("ledger/ledger", empty="unknown")
    scale = "" if row.scale == FIVE.described() else say("scale", scale=row.scale or "a scale that cannot be read")
    keys = ["judge", "ratings", *(["rubric", "calls", "cost", "tokens", "models"] if row.calls else [])]
    lost = say("lost", row) if row.lost_calls else ""
    models = ", ".join(row.models) or "none named"
    return "\n".join(say(key, row, scale=scale, lost=lost, cost=_cost(row, say), models=models) for key in keys)


def _cost(row: JudgeTotals, say: RecordWords) -> str:
    """Return the cost per currency, with `and unknown` if the cost of some reply is unknown."""
    costs = row.costs.items()
    amounts = [say("amount", amount=amount, currency=code or "(currency unknown)") for code, amount in costs]
    return " and ".join([*amounts, *(["unknown"] if row.cost is None else [])]) or say("total", row)
