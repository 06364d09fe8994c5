"""`curate check mask`: people read a sample of the masked texts, or decide on what the residual scan lists."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.cli import check_residual
from curate.cli.running import Folder, run_folder
from curate.cli.tables import as_table

if TYPE_CHECKING:
    from curate.checks.mask import MaskResult

Figures = Mapping[str, Any]


def add_to(app: typer.Typer) -> None:
    """Add the command to those of `curate check`."""
    app.command("mask")(mask)


def mask(
    files: Annotated[list[Path] | None, typer.Argument(help="Sheets that came back: CSV or xlsx.")] = None,
    run: Folder = None,
    size: Annotated[int | None, typer.Option(min=1, help="Texts to read; without it 1 % of all, at least 100.")] = None,
    most: Annotated[int, typer.Option(min=1, help="At most so many, where 1 % is more.")] = 2_000,
    assessors: Annotated[str, typer.Option(help="Who reads, separated by commas; texts are shared out.")] = "assessor",
    assessor: Annotated[str | None, typer.Option(help="Whose the files are, if they do not say.")] = None,
    formats: Annotated[str, typer.Option("--format", help="csv, xlsx, or csv,xlsx.")] = "csv",
    sample: Annotated[int | None, typer.Option(help="Number of a sample; without it the newest.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Draw another sample, though there is one.")] = False,
    seed: Annotated[int | None, typer.Option(help="Instead of the pipeline's.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show the sample as a web page on this machine.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of that page; 0 takes a free one.")] = 8765,
    residual: Annotated[
        bool, typer.Option("--residual", help="List the places that may have been missed, and decide on them.")
    ] = False,
    mask_places: Annotated[str, typer.Option("--mask", help="Numbers of that list to mask: 1,4-6.")] = "",
    accept_places: Annotated[str, typer.Option("--accept", help="Numbers of that list that hold none.")] = "",
    mask_all: Annotated[
        list[str] | None, typer.Option(metavar="REASON", help="Mask all open places of a reason.")
    ] = None,
    accept_all: Annotated[
        list[str] | None, typer.Option(metavar="REASON", help="Accept all open places of a reason.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who decides; without it the name of the account.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Draw masked texts for people to read, or list what may have been missed, and take what they say."""
    if residual or mask_places or accept_places or mask_all or accept_all:
        numbers, reasons = (mask_places, accept_places), (mask_all or [], accept_all or [])
        check_residual.residual(run_folder(run), numbers, reasons, by, as_json=as_json)
        return
    from curate.checks import mask as checks
    from curate.checks.mask_sample import Wish
    from curate.review import paper
    from curate.review.web import serve as serve_page

    folder, kinds = run_folder(run), paper.kinds(formats)
    if files:
        done = checks.take_back(folder, files, sample, assessor)
    else:
        people = [name.strip() for name in assessors.split(",") if name.strip()]
        desk = checks.desk(folder, Wish(size, most, people, seed), sample, new=new)
        if serve:
            serve_page(desk, port=port, tell=typer.echo)
            return
        done = checks.exchange(desk, folder, kinds)
    for result in done.taken:
        for problem in result.problems:
            typer.echo(f"{result.file}, {problem}; held back", err=True)
    typer.echo(json.dumps(done.figures, ensure_ascii=False, indent=1) if as_json else "\n".join(_lines(done)))


def _lines(done: "MaskResult") -> Iterator[str]:
    from curate.checks.mask_sample import MASKED

    figures: Figures = done.figures
    for path in done.sheets:
        yield f"sheet: {path}"
    if done.long:
        yield f"{done.long:,} texts are longer than a cell of a spreadsheet shows; read them with --serve"
    for taken in done.taken:
        yield f"{taken.file}: {taken.assessor}: {taken.answers:,} answers, {taken.new:,} of them new"
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
    yield f"texts in which personal data is left: {_said(figures['leak'])}"
    if any(row["stratum"].endswith(MASKED) for row in figures["strata"]):
        yield f"texts in which something else was masked, of all: {_said(figures['changed'])}"
        yield f"the same, of those in which anything was masked: {_said(figures['changed_of_masked'])}"
    if figures["faulty"]:
        yield "not clean: " + ", ".join(f"{row} ({answer})" for row, answer in figures["faulty"].items())
    if figures["contradictions"]:
        yield "called changed, but nothing was masked there: " + ", ".join(figures["contradictions"])


def _said(figure: Figures | None) -> str:
    """Return a figure in words: `0 of 100: at most 3.7 % at 95 %`."""
    if figure is None:
        return "not defined until a text of every stratum is read"
    return f"{figure['hits']:,} of {figure['read']:,} read: {_share(figure)} at 95 %"


def _share(figure: Figures | None) -> str:
    if figure is None:
        return "not read"
    if not figure["hits"]:
        return f"at most {100 * figure['high']:.1f} %"
    return f"{100 * figure['value']:.1f} % ({100 * figure['low']:.1f} to {100 * figure['high']:.1f})"
