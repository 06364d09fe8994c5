"""`curate pilot`: people grade a few pairs before judges are paid for all, and a panel and a rule are proposed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.runs import completing
from curate.runs.group import CommandGroup
from curate.runs.options import (
    AsJson,
    Assessors,
    Assign,
    Batch,
    File,
    Folder,
    Formats,
    MaxCost,
    Offline,
    Plan,
    Seed,
    Yes,
)
from curate.runs.running import allowed, open_run, print_plan
from curate.view.answers import answer

if TYPE_CHECKING:
    from collections.abc import Mapping

Candidates = Annotated[
    str | None,
    typer.Option(
        "--models",
        help="The candidates: names of two to eight judges, separated by commas; default: judge.models.",
        autocompletion=completing.judges,
    ),
]
Named = Annotated[str, typer.Option("--sample", help="Name of the pilot.")]

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Have people grade 100 to 200 pairs before the judges are paid, and propose the cheapest panel and rule that "
    "agrees with them. Sheets come back by `curate review import`, the page is `curate review serve`.",
)


def add_to(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="pilot")


@app.command("export")
def export(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    size: Annotated[int | None, typer.Option(help="Number of pairs, 100 or more; default: 200.")] = None,
    sample: Named = "pilot",
    assessors: Assessors = "",
    overlap: Annotated[
        float | None, typer.Option(help="Share of the pairs that a second person reads too; default: 50 pairs.")
    ] = None,
    formats: Formats = "csv",
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: the sample's own.")] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Draw pairs at random over all queries of the pool, before anything is judged, and write one file per assessor.

    Without --assessors the sheets of a pilot that was drawn before are written again.
    """
    from curate.ask import seating
    from curate.commands.pilot import sample as pilot
    from curate.review import Desk, Sample, paper
    from curate.runs.outputs import outside_runs

    outside_runs(out)
    work, kinds = open_run(pipeline, run, assign or []), paper.kinds(formats)
    if not assessors and size is None and (work.folder / "reviews" / sample / "design.json").is_file():
        drawn = Sample.find(work.folder, sample)
    else:
        head = work.pipeline.head
        options = pilot.PilotOptions(
            [name.strip() for name in assessors.split(",") if name.strip()],
            sample,
            pilot.SIZE if size is None else size,
            overlap,
            head.seed if seed is None else seed,
            head.language,
        )
        rubric = work.look("judge", seating.load_rubric)
        drawn = pilot.draw(work.folder, options, rubric)
    files = paper.hand_out(Desk(drawn), out or drawn.folder / "sheets", kinds)
    facts = drawn.design.facts
    result = {"sample": drawn.folder, "files": files, "pairs": len(drawn.rows), **facts}
    counts = f"{len(drawn.rows):,} pairs of {facts['queries']:,} of {facts['queries_in_pool']:,} queries"
    answer(result, [*map(str, files), counts], as_json=as_json)


@app.command("report")
def report(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    models: Candidates = None,
    sample: Named = "pilot",
    single: Annotated[
        bool, typer.Option("--single", help="Also propose one judge alone: no kappa, nothing contested.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Write the proposed panel and rule into the file of --pipeline.")
    ] = False,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Ask candidate judges about the pairs that people graded, compare rules of one to five, and propose the cheapest.

    What the ledger holds is not asked again, here or by `curate judge`.
    """
    from curate.commands.pilot import pilot
    from curate.commands.pilot.pilot_figures import pilot_lines
    from curate.pipeline import pipeline_edit
    from curate.view.progress import bars

    file = _target(pipeline) if accept else None
    work = open_run(pipeline, run, assign or [])
    work.consent = allowed(max_cost, yes, offline=offline, batch=batch)
    if models is None:
        candidates = list(getattr(work.pipeline.sections["judge"], "models", ()))
    else:
        candidates = [name.strip() for name in models.split(",") if name.strip()]
    order = pilot.PilotOrder(candidates, sample, single)
    if plan:
        print_plan(work, work.consent, lambda: pilot.planned(work, order), digits=4, as_json=as_json)
        return
    with bars() as (work.progress, work.tell):
        summary = pilot.compare(work, order)
    written: Mapping[str, object] = {"written": None}
    lines = list(pilot_lines(summary, accepted=accept))
    if file is not None:
        changes = pilot.changes(summary, work)
        changed = pipeline_edit.rewrite(file, changes)
        written = {"written": file}
        outcome = "written into it" if changed else "it says so already"
        lines.append(f"{file}: {outcome}:\n{pipeline_edit.lines(changes)}")
    answer({**summary, **written}, lines, as_json=as_json, warnings=summary["warnings"])


def _target(pipeline: str | None) -> Path:
    """Return the pipeline file to write a proposal into; ConfigError if it is missing or packaged."""
    from curate.core.errors import ConfigError
    from curate.pipeline.pipeline import find
    from curate.system.resources import packaged

    if pipeline is None:
        raise ConfigError("--accept: found no --pipeline, expected the file to write into; give --pipeline FILE")
    path = find(pipeline)
    if packaged(path) and str(path) != pipeline:
        raise ConfigError(f"--accept: {pipeline} is packaged and stays as it is; copy it, and give --pipeline FILE")
    return path
