"""`curate check mask`: sheets for a sample of masked texts, or decisions on residual PII."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.commands.check import check_residual
from curate.runs.options import AsJson, Assessor, Assessors, Folder, Formats, Port, Seed
from curate.runs.running import run_folder
from curate.view.answers import answer, notice
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.commands.check.mask import MaskResult

Figures = Mapping[str, Any]

AcceptAll = Annotated[list[str] | None, typer.Option(metavar="REASON", help="Accept all open places of a reason.")]
AcceptPlaces = Annotated[
    str, typer.Option("--accept", help="Numbers of listed places that hold no personal data: 1,4-6.")
]
By = Annotated[str | None, typer.Option(help="Who decides; default: the name of the account.")]
MaskAll = Annotated[list[str] | None, typer.Option(metavar="REASON", help="Mask all open places of a reason.")]
MaskPlaces = Annotated[str, typer.Option("--mask", help="Numbers of listed places to mask: 1,4-6.")]
Most = Annotated[int, typer.Option(min=1, help="Upper limit of the default size.")]
New = Annotated[bool, typer.Option("--new", help="Draw another sample even if there is one.")]
Number = Annotated[int | None, typer.Option(help="Number of the sample; default: the newest.")]
Residual = Annotated[bool, typer.Option("--residual", help="List places that masking may have missed; decide on them.")]
Serve = Annotated[bool, typer.Option("--serve", help="Show the sample as a web page on this machine.")]
Sheets = Annotated[list[Path] | None, typer.Argument(help="Filled-in sheets to read: CSV or xlsx.")]
Size = Annotated[int | None, typer.Option(min=1, help="Texts to read; default: 1 % of all, at least 100.")]


def mask(
    files: Sheets = None,
    run: Folder = None,
    size: Size = None,
    most: Most = 2_000,
    assessors: Assessors = "assessor",
    assessor: Assessor = None,
    formats: Formats = "csv",
    sample: Number = None,
    new: New = False,
    seed: Seed = None,
    serve: Serve = False,
    port: Port = 8765,
    residual: Residual = False,
    mask_places: MaskPlaces = "",
    accept_places: AcceptPlaces = "",
    mask_all: MaskAll = None,
    accept_all: AcceptAll = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Have people read a sample of the masked texts, or decide on places that masking may have missed."""
    if residual or mask_places or accept_places or mask_all or accept_all:
        numbers, reasons = (mask_places, accept_places), (mask_all or [], accept_all or [])
        check_residual.residual(run_folder(run), numbers, reasons, by, as_json=as_json)
        return
    from curate.commands.check import mask as checks
    from curate.commands.check.mask_sample import Wish
    from curate.core.errors import ConfigError
    from curate.review import paper
    from curate.review.web import serve as serve_page

    folder, kinds = run_folder(run), paper.kinds(formats)
    if files:
        result = checks.take_back(folder, files, sample, assessor)
    else:
        people = [name.strip() for name in assessors.split(",") if name.strip()]
        answers = checks.desk(folder, Wish(size, most, people, seed), sample, new=new)
        if serve and as_json:
            raise ConfigError("found --serve and --json, expected one of them; the page shows what it saves")
        if serve:
            serve_page(answers, port=port, tell=typer.echo)
            return
        result = checks.exchange(answers, folder, kinds)
    for sheet in result.taken:
        for problem in sheet.problems:
            notice(f"{sheet.file}, {problem}; held back")
    figures = {**result.figures, "sheets": result.sheets, "longer_than_a_cell": result.long}
    answer(figures, _lines(result), as_json=as_json)


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
