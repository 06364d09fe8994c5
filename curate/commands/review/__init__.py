"""`curate review`: draw a sample for assessors to check, import their answers, and report the figures."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.runs.group import CommandGroup
from curate.runs.options import AsJson, Assessor, Assessors, Folder, Formats, Port, Seed
from curate.runs.running import open_run
from curate.view.answers import answer, notice
from curate.view.text import as_table, too_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from curate.review import Desk, Sample
    from curate.review.drawing import SampleOptions
    from curate.review.paper import Kind
    from curate.review.planning import SamplePlan
    from curate.runs.runner import Run

Contested = Annotated[
    bool,
    typer.Option(
        "--contested",
        help="Have people settle contested pairs: those of the retrievers' top tens first (all of these without "
        "--size), then the others by rank.",
    ),
]
Controls = Annotated[
    int | None, typer.Option(help="Number of random documents planted as controls; default: 2 % of the size.")
]
Known = Annotated[Path | None, typer.Option(help="Pairs of known grade to plant: query_id, doc_id, grade.")]
Margin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]M",
        help="Instead of --size: wanted half width of an interval, such as precision=0.02; may be repeated. Without a "
        "name it holds for the agreement, or for every figure of --target.",
    ),
]
Named = Annotated[str | None, typer.Option("--sample", help="Name of the sample; default: the newest of the run.")]
NewName = Annotated[
    str | None,
    typer.Option(
        "--sample", help="Name of the new sample; default: expert, or what is drawn: --of, accept, contested."
    ),
]
Of = Annotated[
    str,
    typer.Option(
        help="labels; audit, for the four cells of an audit of legacy labels; or a kind of benchmark such as sts, for "
        "its published items."
    ),
]
ForScores = Annotated[
    Path | None,
    typer.Option(
        "--for-scores",
        metavar="RESULTS",
        help="Folder of an evaluation: draw from the top tens of its models, so that `curate evaluate` can correct "
        "their scores.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder to write to; default: the sample's own.")]
Overlap = Annotated[float, typer.Option(help="Share of the rows that a second person reads too.")]
Size = Annotated[int | None, typer.Option(min=1, help="Number of pairs, or items, to check.")]
Target = Annotated[
    str | None,
    typer.Option(
        help="Figure that the sample is drawn for: both (precision and recall of the positives; the default), "
        "precision, recall, or agreement; or accept, for the threshold that consensus.accept asks for."
    ),
]
Widths = Annotated[bool, typer.Option("--plan", help="Print the intervals that the size will give; write nothing.")]

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Have experts check a sample of the labels, and estimate precision and recall of all labels from it.",
)


def add_to(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="review")


@app.command("export")
def export(
    run: Folder = None,
    size: Size = None,
    target: Target = None,
    margin: Margin = None,
    of: Of = "labels",
    contested: Contested = False,
    for_scores: ForScores = None,
    sample: NewName = None,
    assessors: Assessors = "assessor",
    overlap: Overlap = 0.0,
    controls: Controls = None,
    known: Known = None,
    formats: Formats = "csv",
    out: Out = None,
    seed: Seed = None,
    plan: Widths = False,
    as_json: AsJson = False,
) -> None:
    """Draw a stratified sample of judged pairs, or of a kind's items, and write one file per assessor.

    Without --size and --margin the sheets of a sample that was drawn before are written again.
    """
    from curate.commands.review import samples
    from curate.review import Desk, Sample, drawing, paper
    from curate.runs.outputs import outside_runs

    outside_runs(out)
    work, kinds, of = open_run(None, run), paper.kinds(formats), samples.of(of, for_scores)
    special = samples.chosen(of, target, margin, contested=contested)
    name = sample or special or ("expert" if of == "labels" else of)
    exists = (work.folder / "reviews" / name / "design.json").is_file()
    if size is None and not margin and target in (None, special) and exists:
        _hand_out(Desk(Sample.find(work.folder, name)), out, kinds, as_json=as_json)
        return
    order = drawing.SampleOptions(
        name=name,
        size=samples.size(work, size) if contested else size,
        target=None if special else target,
        margins=margin or (),
        assessors=[name.strip() for name in assessors.split(",") if name.strip()],
        overlap=overlap,
        controls=controls,
        known=known,
        seed=work.pipeline.head.seed if seed is None else seed,
        language=work.pipeline.head.language,
        of=of,
        results=for_scores,
    )
    _need(work, order)
    drawn = (
        samples.draw(work, order, special, plan=plan, as_json=as_json)
        if special
        else _draw(work, order, plan=plan, as_json=as_json)
    )
    if drawn is not None:
        _hand_out(Desk(drawn), out, kinds, as_json=as_json)


def _draw(work: "Run", order: "SampleOptions", *, plan: bool, as_json: bool) -> "Sample | None":
    """Draw a sample, or print its plan and return None."""
    from curate.commands.review import scores_sample
    from curate.review import drawing, items
    from curate.review.planning import purpose

    module = scores_sample if order.results else items if order.of_items else drawing
    if plan:
        design = drawing.plan(work.folder, order)[1] if module is drawing else module.plan(work.folder, order)
        answer(asdict(design), _widths(design, "items" if order.of_items else "pairs"), as_json=as_json)
        return None
    drawn: Sample = module.draw(work.folder, order)
    if order.aims and not order.of_items:
        typer.echo(f"drawn for: {purpose(order.aims)}", err=True)
    return drawn


def _need(work: "Run", order: "SampleOptions") -> None:
    """Raise UserError if the labels or items that the sample is drawn from are not up to date."""
    from curate.pipeline import stages
    from curate.review import items

    if not order.of_items:
        work.need_ancestors("resolve")
    elif (stage := str(items.chosen(order.of).stage)) in stages.KNOWN:  # a kind of others has a stage of others
        work.need(stage)


@app.command("import")
def take_back(
    files: Annotated[list[Path], typer.Argument(help="Filled-in files: CSV or xlsx.")],
    run: Folder = None,
    sample: Named = None,
    assessor: Assessor = None,
    keep_good_rows: Annotated[
        bool, typer.Option("--keep-good-rows", help="Import the correct rows of a file with errors.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read filled-in files; every problem is listed with its row, and a file with problems is not imported."""
    from curate.commands.review import samples
    from curate.review import paper

    review = _desk(run, sample)
    results = paper.take_back(review, files, assessor=assessor, keep_good_rows=keep_good_rows)
    for result in results:
        for problem in result.problems:
            notice(f"{result.file}, {problem}; held back")
    lines = [
        f"{result.file}: {result.assessor}: {result.answers:,} answers, {result.new:,} of them new"
        for result in results
    ]
    answer([asdict(result) for result in results], [*lines, *samples.next_steps(review.sample)], as_json=as_json)


@app.command("serve")
def serve(
    run: Folder = None,
    sample: Named = None,
    port: Port = 8765,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Let other machines reach the page.")] = False,
) -> None:
    """Show the sample as a web page on this machine; every answer is saved at once."""
    from curate.review.web import serve as serve_page

    serve_page(_desk(run, sample), host=host, port=port, allow_remote=allow_remote, tell=typer.echo)


@app.command("report")
def report(run: Folder = None, sample: Named = None, as_json: AsJson = False) -> None:
    """Print agreement, precision and recall as far as the sample was read: of the panel's and the published labels."""
    from curate.commands.review import samples
    from curate.core.errors import ConfigError
    from curate.review import proof, published, showing
    from curate.view import state

    review = _desk(run, sample)
    if review.sample.of_items or review.sample.of_some:
        (samples.report_items if review.sample.of_items else samples.report)(review, as_json=as_json)
        return
    if review.sample.of_pilot:
        raise ConfigError(
            f"{review.sample.folder}: a pilot, which proves nothing of labels; see `curate pilot report`, or name a "
            "review with --sample"
        )
    figures: dict[str, Any] = proof.prove(review)
    final = published.prove(review.sample.folder.parents[1])
    lines = [state.advice(figures), *proof.heading(figures), as_table(list(showing.lines(figures, final)), digits=3)]
    lines += [showing.note(final)] if final else []
    warnings = [f"alpha: {line}" for line in too_few(figures["alpha"]["queries"])] if figures["alpha"] else []
    answer({**figures, "published": final}, [*lines, *warnings], as_json=as_json, warnings=warnings)


@app.command("adjudicate")
def adjudicate(
    file: Annotated[Path | None, typer.Argument(help="The file with the final answers.")] = None,
    run: Folder = None,
    sample: Named = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write the disputed rows to; default: in the sample's folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows on which people differ from the labels or from each other, or read the final answers to them."""
    from curate.review import ADJUDICATED, paper
    from curate.runs.outputs import outside_runs

    review = _desk(run, sample)
    if file is None:
        outside_runs(out)
        path, rows = paper.dispute(review, out or review.sample.folder / "sheets" / f"{ADJUDICATED}.csv")
        answer({"file": path, "rows": rows}, [f"{path}: {rows:,} rows"], as_json=as_json)
        return
    results = paper.take_back(review, [file], assessor=ADJUDICATED)
    lines = (f"{result.file}: {result.answers:,} final answers, {result.new:,} of them new" for result in results)
    answer([asdict(result) for result in results], lines, as_json=as_json)


def _widths(planned: "SamplePlan", unit: str) -> "Iterator[str]":
    """Yield the printed plan: pairs or items (`unit`) drawn per stratum, and half widths of the expected intervals."""
    from curate.review.planning import purpose

    drawn, pairs = (sum(getattr(entry, field) for entry in planned.strata) for field in ("drawn", "size"))
    yield f"{drawn:,} of {pairs:,} {unit}; half widths are those of {planned.level:.0%} intervals"
    if planned.aims:
        yield f"drawn for: {purpose(planned.aims)}"
    yield as_table(planned.rows(), digits=4)
    yield as_table(planned.widths(), digits=4)
    yield from planned.notes


def _hand_out(review: "Desk", out: Path | None, kinds: "Sequence[Kind]", *, as_json: bool) -> None:
    from curate.review import paper

    files = paper.hand_out(review, out or review.sample.folder / "sheets", kinds)
    answer({"sample": review.sample.folder, "files": files}, map(str, files), as_json=as_json)


def _desk(run: Path | None, sample: str | None) -> "Desk":
    from curate.pipeline.folder import newest
    from curate.review import Desk, Sample

    folder = run or newest()
    chosen = Sample.find(folder, sample)
    if run is None or sample is None:
        notice(f"working in {chosen.folder}")
    return Desk(chosen)
