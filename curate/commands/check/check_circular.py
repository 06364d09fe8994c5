"""`curate check circular`: self-preference of the judges of a run."""

import shlex
from collections.abc import Iterator
from itertools import chain

from curate.commands.check.circular import Circularity, check
from curate.commands.check.circularity import LEAST, SelfFavour
from curate.runs.command import Names, option
from curate.runs.options import OnRun
from curate.runs.runner import Run
from curate.runs.status import NextStep, step_lines
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, caveats


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

    def result(self) -> Result[Circularity]:
        """Return the effect of every judge."""
        run = self.open_run()
        figures = check(run, self.fourth, self.other)
        queries = min((judge.queries for judge in figures.judges), default=None)
        warnings = [*figures.warnings, *caveats(figures.heuristic, queries)]
        return Result(figures, chain(_text(figures, warnings), _next(run)), warnings)


def _range(judge: SelfFavour, say: RecordWords) -> dict[str, str]:
    """Return the cell of an effect of which only bounds are known."""
    return {} if judge.effect.value is not None else {"effect": say("between", judge.effect)}


def _next(run: Run) -> list[str]:
    """Return the step that puts the figures onto the card of an export; empty if there is none, or it has them."""
    state, _ = run.states().get("export", ("missing", None))
    if state != "stale":
        return []
    return step_lines([NextStep(f"curate export --run {shlex.quote(str(run.folder))}", "its card takes these figures")])


def _text(figures: Circularity, warnings: list[str]) -> Iterator[str]:
    say = RecordWords("check/circular")
    instead = say("replaced" if figures.fourth else "left_out", figures)
    yield say("head", figures, instead=instead)
    rows = [say.cells("judge", judge, instead=instead) | _range(judge, say) for judge in figures.judges]
    yield as_table(rows) if rows else say("no_judge")
    yield say("means", least=LEAST)
    yield from warnings
