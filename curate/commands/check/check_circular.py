"""`curate check circular`: self-preference of the judges of a run."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.runs.command import Names, option
from curate.runs.options import OnRun
from curate.view.answers import Result
from curate.view.text import as_table, caveats, ranged

Figures = Mapping[str, Any]


class CheckCircularCommand(OnRun):
    """Measure self-preference of judges.

    How much a ranking by each judge's grades gains by the judge being on the panel; nothing is sent.
    """

    words = "check circular"
    examples = ("check circular", "check circular --run runs/demo --fourth gpt")

    fourth: str | None = option(
        "Judge with grades for this pool that takes each judge's place; default: it is left out.", None, metavar="JUDGE"
    )
    other: Names = option(
        "Judge of neither panel, whose change is subtracted; default: the panel.", (), metavar="JUDGES"
    )

    def result(self) -> Result[Any]:
        """Return the effect of every judge."""
        from curate.commands.check.circular import CircularityOptions, check

        figures: Figures = check(self.open_run(), CircularityOptions(self.fourth, self.other))
        queries = min((judge["queries"] for judge in figures["judges"]), default=None)
        warnings = [*figures["warnings"], *caveats(figures["heuristic"], queries)]
        return Result(figures, _text(figures, warnings), warnings)


def _text(figures: Figures, warnings: list[str]) -> Iterator[str]:
    from curate.commands.check.circular import means

    instead = f"with {figures['fourth']} in its place" if figures["fourth"] else "without it"
    yield f"each judge's grades as a ranking, under labels of its panel (`{figures['policy']}`) and {instead}"
    rows = [
        {
            "judge": judge["judge"],
            "family": judge["family"],
            "queries": judge["queries"],
            "own panel": judge["within"],
            instead: judge["without"],
            "effect": ranged(judge["effect"]),
            "ranks": f"{judge['ranks']:+d}",
            "warned": "yes" if judge["warned"] else "no",
        }
        for judge in figures["judges"]
    ]
    yield as_table(rows, digits=3) if rows else "no judge is scored under both"
    yield means()
    yield from warnings
