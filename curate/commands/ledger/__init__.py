"""`curate ledger`: show figures of the ledger (record of every model reply), export, merge and check it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from curate.runs.group import CommandGroup
from curate.runs.options import AsJson
from curate.runs.running import opened
from curate.view.answers import answer

if TYPE_CHECKING:
    from curate.core.config import Json
    from curate.ledger.tables import Kept

TOKENS = ("prompt", "cached", "written", "output", "reasoning")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    commands = typer.Typer(
        cls=CommandGroup, no_args_is_help=True, help="Show, copy, merge and check the ledger of all runs."
    )
    commands.command("stats")(stats)
    commands.command("export")(export)
    commands.command("import")(import_)
    commands.command("check")(check)
    app.add_typer(commands, name="ledger")


def stats(as_json: AsJson = False) -> None:
    """Print calls, ratings, tokens and cost of every judge and rubric."""
    from curate.ledger.stats import stats as figures

    with opened() as ledger:
        rows = figures(ledger)
    answer(rows, ["\n\n".join(_paragraph(row) for row in rows) or "nothing yet"], as_json=as_json)


def export(folder: Annotated[Path, typer.Argument(help="Folder to write to.")], as_json: AsJson = False) -> None:
    """Write the ledger as Parquet files."""
    from curate.ledger.exchange import export as write

    with opened() as ledger:
        _counts("written", write(ledger, folder), as_json=as_json)


def import_(
    folder: Annotated[Path, typer.Argument(help="A folder that `curate ledger export` wrote.")], as_json: AsJson = False
) -> None:
    """Merge the export of another ledger; rows that are here already stay as they are."""
    from curate.ledger.exchange import import_ as read

    with opened(new=True) as ledger:
        _counts("new", read(ledger, folder), as_json=as_json)


def check(as_json: AsJson = False) -> None:
    """Find rows that contradict one another; exit code 1 if there are any."""
    from curate.core.errors import CheckFailed
    from curate.runs.ledger_check import check as findings

    with opened() as ledger:
        mistakes = findings(ledger)
    failed = CheckFailed(f"{len(mistakes)} kinds of mistakes in the ledger") if mistakes else None
    lines = [str(mistake) for mistake in mistakes] or ["nothing is wrong"]
    answer([asdict(mistake) for mistake in mistakes], lines, as_json=as_json, failed=failed)


def _counts(word: str, rows: Mapping["Kept", int], *, as_json: bool) -> None:
    answer(rows, (f"{name}: {count:,} {word}" for name, count in rows.items()), as_json=as_json)


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
