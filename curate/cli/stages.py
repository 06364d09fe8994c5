"""`curate run` and one command a stage."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.cli import completing
from curate.cli.running import (
    AllowWeak,
    Assign,
    File,
    Folder,
    Force,
    Language,
    MaxCost,
    Offline,
    Panel,
    Retrievers,
    Yes,
    allowed,
    assigned,
    go,
    listed,
    open_run,
    print_plan,
)
from curate.cli.tables import as_table

if TYPE_CHECKING:
    from curate.exporters.hub import Upload

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
    language: Language = None,
    force: Force = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    allow_weak_judges: AllowWeak = False,
) -> None:
    """Run all stages of a pipeline; what is up to date is skipped."""
    changes = [*(assign or []), *assigned({"language": language})]
    go(None, pipeline, run, changes, force, allowed(max_cost, yes, allow_weak_judges=allow_weak_judges))


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
    changes = [*(assign or []), *([] if model is None else [f"mask.model={model}"])]
    go(["mask"], pipeline, run, changes, force or retry, allowed(max_cost, yes, retry=retry, offline=offline))


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
    go(["diversify"], pipeline, run, assign or [], force)


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
    go(["pool"], pipeline, run, [*(assign or []), *changes], force)


def judge(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    language: Language = None,
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
    changes = [*(assign or []), *assigned({"language": language}), *listed("judge.models", models)]
    changes += [f"judge.cascade={cascade}"] if cascade is not None else []
    if plan:
        work = open_run(pipeline, run, changes)
        print_plan(work, allowed(max_cost, yes, retry=retry), work.quote, digits=2)
        return
    spend = allowed(max_cost, yes, retry=retry, offline=offline, batch=batch, allow_weak_judges=allow_weak_judges)
    folder = go(["judge"], pipeline, run, changes, force or retry, spend)
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
    changes = [*(assign or []), *listed("sts.panel", panel)]
    changes += [] if generator is None else [f"sts.generator={generator}"]
    if plan:
        work = open_run(pipeline, run, changes)
        print_plan(work, allowed(max_cost, yes, retry=retry), work.quote_sts, digits=4)
        return
    go(["sts"], pipeline, run, changes, force or retry, allowed(max_cost, yes, retry=retry, offline=offline))


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
    folder = go(["export"], pipeline, run, assign or [], force)
    if push is not None:
        from curate.exporters import hub

        made = folder / "export" / "mteb"
        sent = (hub.planned if dry_run else hub.push)(made, push, private=not public, secrets=_secrets(folder))
        _uploaded(sent)


def _secrets(folder: Path) -> dict[str, str]:
    """Return the environment variables that the judges of a run may have read, and what they hold."""
    import os

    from curate.pipeline import Pipeline
    from curate.providers.presets import variables

    head = Pipeline.load(folder / "pipeline.yaml").head
    families: Any = {"judges": head.judges, "encoders": head.encoders, "retrievers": head.retrievers}
    held = {name: os.environ.get(name, "").strip() for name in {*variables(families), "CURATE_PII_KEY"}}
    return {name: value for name, value in held.items() if value}


def _uploaded(sent: "Upload") -> None:
    for path, size in sent.files.items():
        typer.echo(f"{size:>12,}  {path}")
    whole = f"{'private' if sent.private else 'public'}, {len(sent.files)} files, {sum(sent.files.values()):,} bytes"
    typer.echo(f"sent: {sent.url}, {whole}" if sent.url else f"would send to {sent.repository}: {whole}")


def _plain(name: str) -> Callable[..., None]:
    def command(pipeline: File = None, run: Folder = None, assign: Assign = None, force: Force = False) -> None:
        go([name], pipeline, run, assign or [], force)

    return command
