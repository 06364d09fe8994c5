"""`curate ledger`: show figures of the ledger (record of every model reply), export, merge and check it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from curate.core.errors import CheckFailed
from curate.runs.command import Command, argument
from curate.runs.ledger_check import LedgerFault, check
from curate.runs.running import opened
from curate.view.answers import Result

if TYPE_CHECKING:
    from curate.core.config import Json
    from curate.ledger.tables import Kept

TOKENS = ("prompt", "cached", "written", "output", "reasoning")


class LedgerStatsCommand(Command):
    """Print calls and cost.

    Calls, ratings, tokens and cost of every judge and rubric.
    """

    words = "ledger stats"
    examples = ("ledger stats", "ledger stats --json")

    def result(self) -> Result[Any]:
        """Return a row per judge and rubric."""
        from curate.ledger.stats import stats

        with opened() as ledger:
            rows = stats(ledger)
        return Result(rows, ["\n\n".join(_paragraph(row) for row in rows) or "nothing yet"])


class LedgerExportCommand(Command):
    """Write the ledger as Parquet files."""

    words = "ledger export"
    examples = ("ledger export backup", "ledger export backup --json")

    folder: Path = argument("Folder to write to.")

    def result(self) -> Result[Any]:
        """Return table -> rows written."""
        from curate.ledger.exchange import export

        with opened() as ledger:
            return _counts("written", export(ledger, self.folder))


class LedgerImportCommand(Command):
    """Merge the export of another ledger.

    Rows that are here already stay as they are.
    """

    words = "ledger import"
    examples = ("ledger import backup", "ledger import backup --json")

    folder: Path = argument("A folder that `curate ledger export` wrote.")

    def result(self) -> Result[Any]:
        """Return table -> rows that are new."""
        from curate.ledger.exchange import import_

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


def _counts(word: str, rows: Mapping["Kept", int]) -> Result[Any]:
    return Result(rows, (f"{name}: {count:,} {word}" for name, count in rows.items()))


def _paragraph(row: Mapping[str, "Json"]) -> str:
    """Return a printed paragraph on the calls, ratings, tokens and cost of a judge with a rubric."""
    from curate.core.scale import FIVE

    tokens = ", ".join(f"{kind} {_figure(row[f'{kind}_tokens'])}" for kind in TOKENS)
    scale = "" if row["scale"] == FIVE.described() else f" on {row['scale'] or 'a scale that cannot be read'}"
    lines = [
        f"judge {str(row['judge'])[:12]}: {row['identity'] or 'unknown'}",
        f"  ratings{scale}: "
        + ", ".join(f"{_figure(row[status])} {status}" for status in ("rated", "refused", "unparsed", "failed")),
    ]
    if row["calls"]:
        models = row["models"]
        lines += [
            f"  rubric {str(row['rubric'])[:12]}, from {row['first']} to {row['last']}",
            f"  calls: {_figure(row['calls'])}, without a reply {_figure(row['failed_calls'])}"
            + (f"; tries that may be paid, answer lost: {_figure(row['lost_calls'])}" if row["lost_calls"] else ""),
            f"  cost: {_cost(row)}",
            f"  tokens: {tokens}",
            f"  models: {', '.join(map(str, models)) if isinstance(models, list) and models else 'none named'}",
        ]
    return "\n".join(lines)


def _cost(row: Mapping[str, "Json"]) -> str:
    """Return the cost per currency, with `and unknown` if the cost of some reply is unknown."""
    costs = cast("Mapping[str, float]", row["costs"])
    amounts = [f"{amount:,.4f} {currency or '(currency unknown)'}" for currency, amount in costs.items()]
    return " and ".join([*amounts, *(["unknown"] if row["cost"] is None else [])]) or _figure(row["cost"])


def _figure(figure: "Json") -> str:
    return "unknown" if figure is None else f"{figure:,.4f}" if isinstance(figure, float) else f"{figure:,}"
