"""`curate check mask`: sheets for a sample of masked texts, or decisions on residual PII."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from curate.commands.check import check_residual
from curate.commands.check import mask as checks
from curate.commands.check.mask import ErrorRate, MaskedStratum, MaskFigures, MaskResult
from curate.commands.check.mask_sample import MASKED, Wish
from curate.commands.check.residual import ResidualFigures
from curate.core.errors import ConfigError
from curate.review import paper
from curate.runs.command import Names, argument, option, setting
from curate.runs.options import OnRun
from curate.view import output_mode
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table


class CheckMaskCommand(OnRun):
    """Measure the masking.

    People read a sample of the masked texts, or decide on places that masking may have missed.
    """

    words = "check mask"
    examples = ("check mask --size 100 --assessors anna,ben", "check mask --residual")

    files: tuple[Path, ...] = argument("Filled-in sheets to read: CSV or xlsx.", (), metavar="[FILES]...")
    size: int | None = option("Texts to read; default: 1 % of all, at least 100.", None, ge=1)
    assessors: Names = option("Names of the people who read, separated by commas.", ("assessor",), metavar="NAMES")
    assessor: str | None = option("Who filled in the files, if the files do not name a person.", None, metavar="NAME")
    format: str = option("File format.", "csv", metavar="csv|xlsx|csv,xlsx")
    sample: int | None = option("Number of the sample; default: the newest.", None)
    new: bool = option("Draw another sample even if there is one.", False)
    serve: bool = option("Show the sample as a web page on this machine.", False)
    residual: bool = option("List places that masking may have missed; decide on them.", False)
    mask: str = option("Numbers of listed places to mask.", "", metavar="1,4-6")
    accept: str = option("Numbers of listed places that hold no personal data.", "", metavar="1,4-6")
    mask_all: Names = option("Mask all open places of a reason.", (), metavar="REASON")
    accept_pattern: tuple[str, ...] = option(
        "Accept all open places of a listed pattern, such as 'PMID 99999999'; may be repeated.", (), metavar="PATTERN"
    )
    by: str | None = setting("Who decides; default: the name of the account.", None)
    most: int = setting("Upper limit of the default size.", 2_000, ge=1)
    port: int = option("Port of the web page; 0 takes a free one.", 8765, ge=0, le=65535)
    seed: int | None = setting("Seed of the random sample; default: the pipeline's.", None, ge=0)

    def result(self) -> Result[MaskFigures | ResidualFigures]:
        """Return the figures of the sample as far as it was read; or the places that masking may have missed."""
        if self._decides():
            numbers = (self.mask, self.accept)
            return check_residual.residual(self.folder(), numbers, self.mask_all, self.accept_pattern, self.by)
        from curate.web import serve

        folder, kinds = self.folder(), paper.kinds(self.format)
        if self.files:
            result = checks.take_back(folder, self.files, self.sample, self.assessor)
        else:
            wish = Wish(self.size, self.most, list(self.assessors), self.seed)
            answers = checks.desk(folder, wish, self.sample, new=self.new)
            if self.serve and output_mode.json():
                raise ConfigError("found --serve and --json, expected one of them; the page shows what it saves")
            if self.serve:
                serve(answers, port=self.port, tell=typer.echo)
                nothing: Result[Any] = Result(None)
                return nothing
            result = checks.exchange(answers, folder, kinds)
        notices = [
            f"{problem.fault(sheet.file).finding}; held back" for sheet in result.taken for problem in sheet.problems
        ]
        for line in notices:
            self.notify(line)
        return Result(result.figures, _lines(result), notices)

    def afterwards(self) -> None:
        """Ask about every open place, if the places were listed on a terminal."""
        lists = self.residual and not (self.mask or self.accept or self.mask_all or self.accept_pattern)
        if lists and not output_mode.json() and sys.stdin.isatty() and sys.stdout.isatty():
            check_residual.ask(self.folder(), self.by)

    def _decides(self) -> bool:
        return bool(self.residual or self.mask or self.accept or self.mask_all or self.accept_pattern)


def _lines(result: MaskResult) -> Iterator[str]:
    say, figures = RecordWords("check/mask"), result.figures
    yield from (say("sheet", sheet=path) for path in figures.sheets)
    if figures.longer_than_a_cell:
        yield say("longer", figures)
    for sheet in result.taken:
        yield say("taken", file=sheet.file, assessor=sheet.assessor, counts=sheet.counts)
    yield say("read", figures)
    if figures.outdated:
        yield say("outdated")
    if not figures.read:
        yield say("unread")
        return
    yield as_table([_row(stratum, say) for stratum in figures.strata])
    yield say("leak", rate=_rate(figures.leak, say))
    if any(stratum.stratum.endswith(MASKED) for stratum in figures.strata):
        yield say("changed", rate=_rate(figures.changed, say))
        yield say("changed_of_masked", rate=_rate(figures.changed_of_masked, say))
    if figures.faulty:
        yield say("faulty", rows=", ".join(f"{row} ({answer})" for row, answer in figures.faulty.items()))
    if figures.contradictions:
        yield say("contradictions", rows=", ".join(figures.contradictions))


def _row(stratum: MaskedStratum, say: RecordWords) -> dict[str, str]:
    leak = _share(stratum.leak, say) if stratum.leak else say("not_read")
    return say.cells("stratum", stratum, leak=leak, changed=stratum.changed and _share(stratum.changed, say))


def _rate(rate: ErrorRate | None, say: RecordWords) -> str:
    return say("rate", rate, share=_share(rate, say)) if rate else say("no_rate")


def _share(rate: ErrorRate, say: RecordWords) -> str:
    return say("share" if rate.hits else "bound", rate)
