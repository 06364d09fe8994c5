"""`curate check circular`: what each judge of a run gains by judging itself."""

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
        found: Figures = check(work, CircularityOptions(fourth, other or ()))
    said = [*found["warnings"], *caveats(found, _queries(found))]
    answer(found, _text(found, said), as_json=as_json, warnings=said)


def _queries(found: Figures) -> int | None:
    """Return the fewest queries that a judge was scored on; None where none was."""
    return min((each["queries"] for each in found["judges"]), default=None)


def _text(found: Figures, said: list[str]) -> Iterator[str]:
    from curate.commands.check.circular import means

    instead = f"with {found['fourth']} in its place" if found["fourth"] else "without it"
    yield f"each judge's grades as a ranking, under labels of its panel (`{found['policy']}`) and {instead}"
    rows = [
        {
            "judge": each["judge"],
            "family": each["family"],
            "queries": each["queries"],
            "own panel": each["within"],
            instead: each["without"],
            "effect": ranged(each["effect"]),
            "ranks": f"{each['ranks']:+d}",
            "warned": "yes" if each["warned"] else "no",
        }
        for each in found["judges"]
    ]
    yield as_table(rows, digits=3) if rows else "no judge is scored under both"
    yield means()
    yield from said
