"""`curate run` and one command a stage."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curate.cli import completing
from curate.cli.tables import as_table

if TYPE_CHECKING:
    from curate.context import Consent
    from curate.exporters.hub import Upload
    from curate.run import Run

File = Annotated[
    str | None,
    typer.Option(
        "--pipeline", help="Pipeline file, or the name of a packaged one.", autocompletion=completing.pipelines
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--run", help="Run folder; without it runs/NAME, or the newest run.", autocompletion=completing.runs),
]
Assign = Annotated[
    list[str] | None,
    typer.Option("--set", help="section.key=value; may be repeated.", autocompletion=completing.settings),
]
Panel = Annotated[
    str | None,
    typer.Option("--models", help="The panel: names of judges, separated by commas.", autocompletion=completing.judges),
]
Retrievers = Annotated[
    str | None,
    typer.Option("--retrievers", help="Names, separated by commas: bm25,e5,use.", autocompletion=completing.retrievers),
]
Force = Annotated[bool, typer.Option("--force", help="Do it again though it is up to date.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop before the calls cost more than this.")]
Yes = Annotated[bool, typer.Option("--yes", help="Spend without a cap.")]
Offline = Annotated[bool, typer.Option("--offline", help="Send nothing; the ledger holds every answer.")]
AllowWeak = Annotated[
    bool, typer.Option("--allow-weak-judges", help="Go on with judges that did not pass their controls.")
]

HELP = {
    "ingest": "Read queries, corpus and qrels; merge exact duplicates.",
    "consensus": "Turn ratings into verdicts and measure agreement.",
    "resolve": "Write the final labels: the panel's, or experts' over them.",
    "report": "Write the run's report as one HTML file.",
}


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("run")(run)
    for name, text in HELP.items():
        app.command(name, help=text)(_plain(name))
        if name == "ingest":  # keep `--help` in the order of the pipeline
            for command in (mask, diversify, pool, judge):
                app.command(command.__name__)(command)
        if name == "resolve":
            app.command("sts")(sts)
            app.command("export")(export)


def run(
    pipeline: Annotated[
        str,
        typer.Argument(
            help="Pipeline file, or the name of a packaged one (demo).", autocompletion=completing.pipelines
        ),
    ],
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    allow_weak_judges: AllowWeak = False,
) -> None:
    """Run all stages of a pipeline; what is up to date is skipped."""
    from curate.context import Consent

    _go(None, pipeline, run, assign or [], force, Consent(max_cost, yes, allow_weak_judges=allow_weak_judges))


def mask(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    model: Annotated[
        str | None,
        typer.Option(help="A language model on this machine that looks first.", autocompletion=completing.models),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Ask it again what it refused or garbled.")] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    offline: Offline = False,
) -> None:
    """Replace personal data by typed placeholders."""
    from curate.context import Consent

    changes = [*(assign or []), *([] if model is None else [f"mask.model={model}"])]
    _go(["mask"], pipeline, run, changes, force or retry, Consent(max_cost, yes, retry, offline))


def diversify(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say how long it will take; do nothing.")] = False,
    sweep: Annotated[
        str | None, typer.Option(help="Say what thresholds would keep of a sample: t=0.7:0.9; do nothing.")
    ] = None,
) -> None:
    """Drop texts that are too similar to those already kept."""
    if plan or sweep is not None:
        work = open_run(pipeline, run, assign or [])
        rows = work.forecast() if sweep is None else work.sweep(sweep)
        typer.echo(as_table(rows, digits=1 if sweep is None else 3) if rows else "nothing is to be compared")
        return
    _go(["diversify"], pipeline, run, assign or [], force)


def pool(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    retrievers: Retrievers = None,
    depth: Annotated[int | None, typer.Option(help="Documents that each retriever gives a query.")] = None,
) -> None:
    """Choose every query's candidates from several rankings."""
    changes = listed("pool.retrievers", retrievers) + ([f"pool.depth={depth}"] if depth is not None else [])
    _go(["pool"], pipeline, run, [*(assign or []), *changes], force)


def judge(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    models: Panel = None,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again what was refused or unparsed.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Print calls, tokens and cost; send nothing.")] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Annotated[bool, typer.Option("--batch", help="Send in batches where a vendor has them.")] = False,
    cascade: Annotated[str | None, typer.Option(help="exact or positives: ask dear judges only what is open.")] = None,
    offline: Offline = False,
    record: Annotated[Path | None, typer.Option(help="Write the ratings to a file for `replay` judges.")] = None,
    allow_weak_judges: AllowWeak = False,
) -> None:
    """Have every judge of the panel grade every pair of the pool."""
    from curate.context import Consent

    changes = [*(assign or []), *listed("judge.models", models)]
    changes += [f"judge.cascade={cascade}"] if cascade is not None else []
    if plan:
        work = open_run(pipeline, run, changes)
        work.consent = Consent(retry=retry)
        rows = work.quote()
        typer.echo(as_table(rows) if rows else "nothing is left to send")
        return
    consent = Consent(max_cost, yes, retry, offline, batch, allow_weak_judges)
    folder = _go(["judge"], pipeline, run, changes, force or retry, consent)
    if record is not None:
        from curate.recording import record as write

        typer.echo(f"ratings: {write(folder, record):,} in {record}")


def sts(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    generator: Annotated[str | None, typer.Option(help="A language model, or `templates`.")] = None,
    panel: Annotated[str | None, typer.Option(help="Who confirms: names of models, separated by commas.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print calls, tokens and cost; send nothing.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again what was refused or unparsed.")] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    offline: Offline = False,
) -> None:
    """Make sentence pairs around synonyms: the same meaning, or another."""
    from curate.context import Consent

    changes = [*(assign or []), *listed("sts.panel", panel)]
    changes += [] if generator is None else [f"sts.generator={generator}"]
    if plan:
        work = open_run(pipeline, run, changes)
        work.consent = Consent(retry=retry)
        rows = work.quote_sts()
        typer.echo(as_table(rows, digits=4) if rows else "nothing is left to send")
        return
    _go(["sts"], pipeline, run, changes, force or retry, Consent(max_cost, yes, retry, offline))


def export(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    push: Annotated[str | None, typer.Option(help="Then send the format mteb to the hub as ORGANISATION/NAME.")] = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see what is pushed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --push would send; send nothing.")] = False,
) -> None:
    """Check the benchmark and write it in the formats asked for."""
    folder = _go(["export"], pipeline, run, assign or [], force)
    if push is not None:
        from curate.exporters import hub

        made = folder / "export" / "mteb"
        sent = (hub.planned if dry_run else hub.push)(made, push, private=not public)
        _uploaded(sent)


def _uploaded(sent: "Upload") -> None:
    for path, size in sent.files.items():
        typer.echo(f"{size:>12,}  {path}")
    whole = f"{'private' if sent.private else 'public'}, {len(sent.files)} files, {sum(sent.files.values()):,} bytes"
    typer.echo(f"sent: {sent.url}, {whole}" if sent.url else f"would send to {sent.repository}: {whole}")


def _plain(name: str) -> Callable[..., None]:
    def command(pipeline: File = None, run: Folder = None, assign: Assign = None, force: Force = False) -> None:
        _go([name], pipeline, run, assign or [], force)

    return command


def listed(key: str, names: str | None) -> list[str]:
    """Return the assignment of names, separated by commas, to a list of the pipeline; none for None."""
    return [] if names is None else [f"{key}=[{names}]"]


def _go(
    names: Sequence[str] | None,
    pipeline: str | None,
    folder: Path | None,
    assign: Sequence[str],
    force: bool,
    consent: "Consent | None" = None,
) -> Path:
    from curate.cli.progress import bars

    work = open_run(pipeline, folder, assign)
    if consent is not None:
        work.consent = consent
    with bars() as (work.progress, work.tell):
        work.execute(names, force=force)
    typer.echo(f"run folder: {work.folder}")
    last = (names or work.pipeline.head.stages)[-1]
    for label, place in (("benchmark", work.folder / "export"), ("report", work.folder / "report.html")):
        if last in ("export", "report") and place.exists():
            typer.echo(f"{label}: {place}")
    if last == "audit":
        typer.echo(f"report: {work.folder / 'audit.html'}")
    return work.folder


def open_run(pipeline: str | None, folder: Path | None, assign: Sequence[str] = ()) -> "Run":
    """Return the run that the common options mean; without any, the newest, and say which."""
    from curate.pipeline import Pipeline, find
    from curate.resources import packaged
    from curate.run import Run

    if pipeline is None:
        folder = run_folder(folder, "give --pipeline as well")
        pipeline = str(folder / "pipeline.yaml")
    path = find(pipeline)
    if str(path) != pipeline and not packaged(path):
        typer.echo(f"using {path} of the working directory", err=True)
    announce_presets()
    loaded = Pipeline.load(path, assign)
    return Run(folder or Path("runs") / loaded.head.name, loaded)


def run_folder(folder: Path | None, remedy: str = "give a run with --run") -> Path:
    """Return a run folder, without one the newest, which is said; UserError with the remedy if it is none."""
    from curate.errors import UserError
    from curate.status import newest

    if folder is None:
        folder = newest()
        typer.echo(f"working in {folder}", err=True)
    if not (folder / "pipeline.yaml").is_file():
        raise UserError(f"{folder}: not a run folder, for it has no pipeline.yaml; {remedy}")
    return folder


def announce_presets() -> None:
    """Say it if the working directory changes the presets."""
    from curate.providers.presets import OVERRIDES

    if OVERRIDES.is_file():
        typer.echo(f"using {OVERRIDES} of the working directory", err=True)
