"""`curate check circular`: self-preference of the judges of a run."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from curate.runs.options import AsJson, Folder
from curate.runs.running import open_run
from curate.view.answers import answer
from curate.view.text import as_table, caveats, ranged

Figures = Mapping[str, Any]


def circular(
    run: Folder = None,
    fourth: Annotated[
        str | None,
        typer.Option(help="Judge with grades for this pool that takes each judge's place; default: it is left out."),
    ] = None,
    other: Annotated[
        list[str] | None,
        typer.Option(help="Judge of neither panel, whose change is subtracted; may be repeated; default: the panel."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how much a ranking by each judge's grades gains by the judge being on the panel; nothing is sent."""
    from curate.commands.check.circular import CircularityOptions, check
    from curate.view.progress import bars

    work = open_run(None, run)
    with bars() as (work.progress, work.tell):
        figures: Figures = check(work, CircularityOptions(fourth, other or ()))
    warnings = [
        *figures["warnings"],
        *caveats(figures, min((judge["queries"] for judge in figures["judges"]), default=None)),
    ]
    answer(figures, _text(figures, warnings), as_json=as_json, warnings=warnings)


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
