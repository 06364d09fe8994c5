"""`curate check circular`: self-preference of the judges of a run."""

from collections.abc import Iterator

from curate.commands.check.circular import Circularity, check
from curate.commands.check.circularity import LEAST, SelfFavour
from curate.runs.command import Names, option
from curate.runs.options import OnRun
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
        figures = check(self.open_run(), self.fourth, self.other)
        queries = min((judge.queries for judge in figures.judges), default=None)
        warnings = [*figures.warnings, *caveats(figures.heuristic, queries)]
        return Result(figures, _text(figures, warnings), warnings)


def _range(judge: SelfFavour, say: RecordWords) -> dict[str, str]:
    """Return the cell of an effect of which only bounds are known."""
    return {} if judge.effect.value is not None else {"effect": say("between", judge.effect)}


def _text(figures: Circularity, warnings: list[str]) -> Iterator[str]:
    say = RecordWords("check/circular")
    instead = say("replaced" if figures.fourth else "left_out", figures)
    yield say("head", figures, instead=instead)
    rows = [say.cells("judge", judge, instead=instead) | _range(judge, say) for judge in figures.judges]
    yield as_table(rows) if rows else say("no_judge")
    yield say("means", least=LEAST)
    yield from warnings
