"""`curate diff`: reasons why labels of two versions of a benchmark differ, and the effect on system scores."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from curate.commands.diff.changes import LabelEffects
from curate.commands.diff.diff import DiffFigures, diff, need_form, write
from curate.runs.command import argument, option
from curate.runs.options import WithRunFiles
from curate.runs.outputs import free_place
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, too_few

SIDE = "A run folder, or an export."


class DiffCommand(WithRunFiles):
    """Compare two versions.

    Every label that differs, why, and what that does to systems.
    """

    words = "diff"
    examples = ("diff runs/demo runs/demo-v2", "diff v1/export v2/export --out changes.csv")

    before: Path = argument(SIDE, complete="runs")
    after: Path = argument(SIDE, complete="runs")
    out: Path | None = option("File for every changed label with its reason: .csv or .parquet.", None, metavar="FILE")

    def result(self) -> Result[DiffFigures]:
        """Return the figures of the comparison; with `out`, write every changed label."""
        if self.out is not None:
            free_place(need_form(self.out), file=True)
        figures, table = diff(self.before, self.after, self.run_file, self.subset, self.split)
        if self.out is not None:
            write(table, self.out)
            figures = replace(figures, file=str(self.out))
        return Result(figures, _text(figures), too_few(figures.effects.queries["both"]) if figures.effects else [])


def _text(figures: DiffFigures) -> Iterator[str]:
    say = RecordWords("diff/diff")
    yield say("versions", figures)
    yield say("pairs", figures.pairs)
    for text_kind, ids_by_change in figures.texts.items():
        if counts := ", ".join(
            say(change, count=len(ids), ids=", ".join([*ids[:3], *(["..."] if len(ids) > 3 else [])]))
            for change, ids in ids_by_change.items()
            if ids
        ):
            yield f"{text_kind}: {counts}"
    yield from _labels(figures, say)
    yield from _effects(figures.effects, say)
    if figures.file is not None:
        yield say("file", figures)
    elif figures.changed or (figures.gains and figures.gains.changed):
        yield say("no_file")


def _labels(figures: DiffFigures, say: RecordWords) -> Iterator[str]:
    if not figures.changed:
        yield say("no_document" if figures.kinds else "no_label")
    else:
        yield say("labels", figures)
        unjudged = say("unjudged")
        yield as_table(
            [
                say.cells("move", move, before=move.before or unjudged, after=move.after or unjudged)
                for move in figures.moves
            ]
        )
        yield as_table([say.cells("reason", reason) for reason in figures.reasons])
    if figures.gains and figures.gains.changed:
        yield say("gains", figures.gains)
        yield as_table([say.cells("gain_move", move) for move in figures.gains.moves])
        yield as_table([say.cells("gain_reason", reason) for reason in figures.gains.reasons])
    if figures.kinds:
        yield say("kinds")
        yield as_table([say.cells("kind", table) for table in figures.kinds])
    if figures.other_votes:
        yield say("other_votes", figures)


def _effects(effects: LabelEffects | None, say: RecordWords) -> Iterator[str]:
    if effects is None:
        yield say("no_ranking")
        return
    yield say("queries", **effects.queries)
    yield as_table([say.cells("system", system) for system in effects.systems])
    yield say("no_tau" if effects.tau.value is None else "tau", effects)
