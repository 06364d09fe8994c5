"""`curate check mask`: sheets for a sample of masked texts, or decisions on residual PII."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from curate.commands.check import check_residual
from curate.core.errors import ConfigError
from curate.runs.command import Names, argument, option, setting
from curate.runs.options import OnRun
from curate.view import output_mode
from curate.view.answers import Result
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.commands.check.mask import MaskResult

Figures = Mapping[str, Any]


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
    accept_all: Names = option("Accept all open places of a reason.", (), metavar="REASON")
    by: str | None = setting("Who decides; default: the name of the account.", None)
    most: int = setting("Upper limit of the default size.", 2_000, ge=1)
    port: int = option("Port of the web page; 0 takes a free one.", 8765, ge=0, le=65535)
    seed: int | None = setting("Seed of the random sample; default: the pipeline's.", None, ge=0)

    def result(self) -> Result[Any]:
        """Return the figures of the sample as far as it was read; or the places that masking may have missed."""
        if self._decides():
            numbers, reasons = (self.mask, self.accept), (self.mask_all, self.accept_all)
            return check_residual.residual(self.folder(), numbers, reasons, self.by)
        from curate.commands.check import mask as checks
        from curate.commands.check.mask_sample import Wish
        from curate.review import paper
        from curate.review.web import serve

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
                return Result(None)
            result = checks.exchange(answers, folder, kinds)
        notices = [f"{sheet.file}, {problem}; held back" for sheet in result.taken for problem in sheet.problems]
        for line in notices:
            self.notify(line)
        figures = {**result.figures, "sheets": result.sheets, "longer_than_a_cell": result.long}
        return Result(figures, _lines(result), notices)

    def afterwards(self) -> None:
        """Ask about every open place, if the places were listed on a terminal."""
        lists = self.residual and not (self.mask or self.accept or self.mask_all or self.accept_all)
        if lists and not output_mode.json() and sys.stdin.isatty() and sys.stdout.isatty():
            check_residual.ask(self.folder(), self.by)

    def _decides(self) -> bool:
        return bool(self.residual or self.mask or self.accept or self.mask_all or self.accept_all)


def _lines(result: "MaskResult") -> Iterator[str]:
    from curate.commands.check.mask_sample import MASKED

    figures: Figures = result.figures
    for path in result.sheets:
        yield f"sheet: {path}"
    if result.long:
        yield f"{result.long:,} texts are longer than a cell of a spreadsheet shows; read them with --serve"
    for sheet in result.taken:
        yield f"{sheet.file}: {sheet.assessor}: {sheet.answers:,} answers, {sheet.new:,} of them new"
    yield f"sample {figures['sample']}: {figures['read']:,} of {figures['rows']:,} texts read"
    if figures["outdated"]:
        yield "the stage `mask` gives other texts by now: this is about those that were drawn; --new draws again"
    if not figures["read"]:
        yield "fill in the sheets, then: curate check mask SHEET"
        return
    yield as_table(
        [
            {
                "stratum": row["stratum"],
                "texts": row["texts"],
                "read": row["read"],
                "personal data left": _share(row["leak"]),
                "wrongly masked": "-" if row["changed"] is None else _share(row["changed"]),
            }
            for row in figures["strata"]
        ]
    )
    yield f"texts in which personal data is left: {_interval(figures['leak'])}"
    if any(row["stratum"].endswith(MASKED) for row in figures["strata"]):
        yield f"texts in which something else was masked, of all: {_interval(figures['changed'])}"
        yield f"the same, of those in which anything was masked: {_interval(figures['changed_of_masked'])}"
    if figures["faulty"]:
        yield "not clean: " + ", ".join(f"{row} ({answer})" for row, answer in figures["faulty"].items())
    if figures["contradictions"]:
        yield "called changed, but nothing was masked there: " + ", ".join(figures["contradictions"])


def _interval(figure: Figures | None) -> str:
    """Return an error rate in words, such as `0 of 100 read: at most 3.7 % at 95 %`."""
    if figure is None:
        return "not defined until a text of every stratum is read"
    return f"{figure['hits']:,} of {figure['read']:,} read: {_share(figure)} at 95 %"


def _share(figure: Figures | None) -> str:
    if figure is None:
        return "not read"
    if not figure["hits"]:
        return f"at most {100 * figure['high']:.1f} %"
    return f"{100 * figure['value']:.1f} % ({100 * figure['low']:.1f} to {100 * figure['high']:.1f})"
