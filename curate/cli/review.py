"""`curate review`: a sample for people to check, out and back, and what it proves."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from curate.cli.group import CommandGroup
from curate.cli.running import Folder, open_run
from curate.cli.tables import as_table, too_few

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curate.review import Desk
    from curate.review.paper import Kind

Target = Annotated[
    str | None,
    typer.Option(
        help="What the pairs are drawn for: both (precision and recall of the positives; the default), precision, "
        "recall, or agreement."
    ),
]
Margin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]M",
        help="Instead of a size: half width of the interval that is wanted, such as precision=0.02; may be "
        "repeated. Without a name it is that of the agreement, or of every figure of --target.",
    ),
]
Plan = Annotated[bool, typer.Option("--plan", help="Say what interval the size will give; nothing is written.")]


Named = Annotated[str | None, typer.Option("--sample", help="Name of the sample; without it the newest of the run.")]
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Have people check a sample of the labels, and say what it proves."
)


def add_to(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="review")


@app.command("export")
def export(
    run: Folder = None,
    size: Annotated[int | None, typer.Option(min=1, help="Pairs to check.")] = None,
    target: Target = None,
    margin: Margin = None,
    of: Annotated[str, typer.Option(help="labels, or audit: the four cells of an audit of legacy labels.")] = "labels",
    sample: Annotated[str | None, typer.Option(help="Name of the new sample; without it expert, or audit.")] = None,
    assessors: Annotated[str, typer.Option(help="Who reads, separated by commas.")] = "assessor",
    overlap: Annotated[float, typer.Option(help="Share of the rows that a second person reads too.")] = 0.0,
    controls: Annotated[int | None, typer.Option(help="Random documents planted; 2 % of the size if not said.")] = None,
    known: Annotated[Path | None, typer.Option(help="Pairs of known grade to plant: query_id, doc_id, grade.")] = None,
    formats: Annotated[str, typer.Option("--format", help="csv, xlsx, or csv,xlsx.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="Folder of the files; without it the sample's own.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the pipeline's.")] = None,
    plan: Plan = False,
) -> None:
    """Draw a stratified sample of the judged pairs and write one file per assessor.

    Without --size and --margin the sheets of a sample that was drawn before are written again.
    """
    from curate.review import Desk, Sample, drawing, paper
    from curate.review.aims import purpose

    work, kinds = open_run(None, run), paper.kinds(formats)
    name = sample or ("audit" if of == "audit" else "expert")
    if size is None and not margin and target is None and (work.folder / "reviews" / name / "design.json").is_file():
        _hand_out(Desk(Sample.find(work.folder, name)), out, kinds)
        return
    work.need_ancestors("resolve")
    order = drawing.SampleOptions(
        name=name,
        size=size,
        target=target,
        margins=margin or (),
        assessors=[name.strip() for name in assessors.split(",") if name.strip()],
        overlap=overlap,
        controls=controls,
        known=known,
        seed=work.pipeline.head.seed if seed is None else seed,
        language=work.pipeline.head.language,
        of=cast("Literal['labels', 'audit']", of),  # checked by the order
    )
    if plan:
        _, planned = drawing.plan(work.folder, order)
        drawn, pairs = (sum(getattr(each, field) for each in planned.strata) for field in ("drawn", "size"))
        typer.echo(f"{drawn:,} of {pairs:,} pairs; half widths are those of {planned.level:.0%} intervals")
        if planned.aims:
            typer.echo(f"drawn for: {purpose(planned.aims)}")
        typer.echo(as_table(planned.rows(), digits=4))
        typer.echo(as_table(planned.widths(), digits=4))
        return
    frozen = drawing.draw(work.folder, order)
    if order.aims:
        typer.echo(f"drawn for: {purpose(order.aims)}", err=True)
    _hand_out(Desk(frozen), out, kinds)


@app.command("import")
def take_back(
    files: Annotated[list[Path], typer.Argument(help="Files that came back: CSV or xlsx.")],
    run: Folder = None,
    sample: Named = None,
    assessor: Annotated[str | None, typer.Option(help="Whose they are, if the files do not say.")] = None,
    keep_good_rows: Annotated[
        bool, typer.Option("--keep-good-rows", help="Take what is right of a file with errors.")
    ] = False,
) -> None:
    """Read files that came back; every problem is listed with its row, and a file with problems is not taken."""
    from curate.review import paper

    for taken in paper.take_back(_desk(run, sample), files, assessor=assessor, keep_good_rows=keep_good_rows):
        typer.echo(f"{taken.file}: {taken.assessor}: {taken.answers:,} answers, {taken.new:,} of them new")
        for problem in taken.problems:
            typer.echo(f"{taken.file}, {problem}; held back", err=True)


@app.command("serve")
def serve(
    run: Folder = None,
    sample: Named = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Let other machines reach the page.")] = False,
) -> None:
    """Show the sample as a web page on this machine; every answer is saved as it is given."""
    from curate.review.web import serve as serve_page

    serve_page(_desk(run, sample), host=host, port=port, allow_remote=allow_remote, tell=typer.echo)


@app.command("report")
def report(run: Folder = None, sample: Named = None, as_json: Json = False) -> None:
    """Print what the sample proves, as far as it was read: of the panel's labels, and of those that are published."""
    from curate.review import proof, published, showing

    desk = _desk(run, sample)
    figures: dict[str, Any] = proof.prove(desk)
    final = published.prove(desk.sample.folder.parents[1])
    if as_json:
        typer.echo(json.dumps({**figures, "published": final}, ensure_ascii=False, indent=1))
        return
    typer.echo("\n".join(proof.heading(figures)))
    typer.echo(as_table(list(showing.lines(figures, final)), digits=3))
    if final:
        typer.echo(showing.note(final))
    for line in too_few(figures["alpha"]["queries"]) if figures["alpha"] else ():
        typer.echo(f"alpha: {line}")


@app.command("adjudicate")
def adjudicate(
    file: Annotated[Path | None, typer.Argument(help="The file of final answers that came back.")] = None,
    run: Folder = None,
    sample: Named = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the rows that need a final answer.")] = None,
) -> None:
    """Write the rows on which people differ from the panel or each other, or read the final answers to them."""
    from curate.review import ADJUDICATED, paper

    desk = _desk(run, sample)
    if file is None:
        path, rows = paper.dispute(desk, out or desk.sample.folder / "sheets" / f"{ADJUDICATED}.csv")
        typer.echo(f"{path}: {rows:,} rows")
        return
    for taken in paper.take_back(desk, [file], assessor=ADJUDICATED):
        typer.echo(f"{taken.file}: {taken.answers:,} final answers, {taken.new:,} of them new")


def _hand_out(desk: "Desk", out: Path | None, kinds: "Sequence[Kind]") -> None:
    from curate.review import paper

    for path in paper.hand_out(desk, out or desk.sample.folder / "sheets", kinds):
        typer.echo(str(path))


def _desk(run: Path | None, sample: str | None) -> "Desk":
    from curate.review import Desk, Sample
    from curate.runs.status import newest

    folder = run or newest()
    chosen = Sample.find(folder, sample)
    if run is None or sample is None:
        typer.echo(f"working in {chosen.folder}", err=True)
    return Desk(chosen)
