"""`curate run` and one command per stage."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.cli import making
from curate.pipeline import stages
from curate.runs import completing
from curate.runs.options import (
    AllowWeak,
    Assign,
    Batch,
    File,
    Folder,
    Force,
    Language,
    MaxCost,
    Offline,
    Panel,
    Plan,
    PlanAsJson,
    Retrievers,
    Retry,
    Yes,
)
from curate.runs.running import allowed, assigned, go, listed, open_run, print_plan
from curate.view import output_mode
from curate.view.answers import answer, only_plans
from curate.view.output_mode import reporting
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.core.config import Json

HELP = {
    "ingest": "Read queries, corpus and qrels; merge exact duplicates.",
    "consensus": "Turn ratings into verdicts and measure agreement.",
    "report": "Write the run's report as one HTML file.",
}


def add_to(app: typer.Typer) -> None:
    """Add `run` and the commands of stages to the program, in the order of the pipeline."""
    app.command("run")(reporting(run))
    own = {each.__name__: each for each in (mask, diversify, pool, judge, resolve, export)}
    for name in stages.KNOWN:
        if name in stages.KIND_COMMANDS:
            making.add_to(app, name)
        elif name in own:
            app.command(name)(reporting(own[name]))
        elif name in HELP:
            app.command(name, help=HELP[name])(reporting(_plain(name)))


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
    batch: Batch = False,
    allow_weak_judges: AllowWeak = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what all stages would ask of models, and the cost; send nothing.")
    ] = False,
    as_json: PlanAsJson = False,
) -> None:
    """Run all stages of a pipeline; stages that are up to date are skipped."""
    changes = [*(assign or []), *assigned({"language": language})]
    if plan:
        from curate.commands.run.command import print_run_plan

        print_run_plan(pipeline, run, changes, allowed(max_cost, batch=batch), as_json=as_json)
        return
    only_plans(as_json)
    spend = allowed(max_cost, yes, batch=batch, allow_weak_judges=allow_weak_judges)
    go(None, pipeline, run, changes, force, spend)


def mask(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="Language model on this machine that marks personal data before the rules do.",
            autocompletion=completing.models,
        ),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask the model again about texts that it refused or answered unreadably.")
    ] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    offline: Offline = False,
) -> None:
    """Replace personal data by typed placeholders."""
    changes = [*(assign or []), *([] if model is None else [f"mask.model={model}"])]
    spend = allowed(max_cost, yes, retry=retry, offline=offline, batch=batch)
    go(["mask"], pipeline, run, changes, force or retry, spend)


def diversify(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    plan: Annotated[bool, typer.Option("--plan", help="Print how long it will take; do nothing.")] = False,
    sweep: Annotated[
        str | None,
        typer.Option(help="Print how many texts of a sample thresholds keep, such as t=0.7:0.9; do nothing."),
    ] = None,
    as_json: PlanAsJson = False,
) -> None:
    """Drop copies of texts that are kept; or thin texts by a cosine."""
    if plan or sweep is not None:
        from curate.commands.diversify.forecast import forecast, swept
        from curate.retrieval.similarity.diversity import thresholds

        work = open_run(pipeline, run, assign or [])
        look = forecast if sweep is None else partial(swept, ts=thresholds(sweep))
        rows = work.look("diversify", look)
        shown = rows if sweep is None else [_sampled(row) for row in rows]
        table = as_table(shown, digits=1 if sweep is None else 3) if rows else "nothing is to be compared"
        answer(rows, [table], as_json=as_json)
        return
    only_plans(as_json)
    go(["diversify"], pipeline, run, assign or [], force)


def _sampled(row: "Mapping[str, Json]") -> dict[str, "Json"]:
    """Return a row of `diversify --sweep` for printing: texts retained and dropped; headings have the sample size."""
    cells: dict[str, Json] = {"t": row["t"]}
    for name in ("queries", "corpus"):
        cells[f"{name} of {row[f'{name}_sampled']:,}"] = row[f"{name}_kept"]
        cells[f"{name} dropped"] = row[f"{name}_dropped"]
    return cells


def pool(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    retrievers: Retrievers = None,
    depth: Annotated[int | None, typer.Option(help="Documents that each retriever returns per query.")] = None,
) -> None:
    """Pool the candidates of each query from the rankings of several retrievers."""
    changes = listed("pool.retrievers", retrievers) + ([f"pool.depth={depth}"] if depth is not None else [])
    go(["pool"], pipeline, run, [*(assign or []), *changes], force)


def judge(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    language: Language = None,
    force: Force = False,
    models: Panel = None,
    retry: Retry = False,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    cascade: Annotated[
        str | None,
        typer.Option(help="exact or positives: ask expensive judges only about pairs that are still undecided."),
    ] = None,
    offline: Offline = False,
    record: Annotated[Path | None, typer.Option(help="Write the ratings to a file that `replay` judges read.")] = None,
    allow_weak_judges: AllowWeak = False,
    as_json: PlanAsJson = False,
) -> None:
    """Have every judge of the panel grade every pair of the pool."""
    changes = [*(assign or []), *assigned({"language": language}), *listed("judge.models", models)]
    changes += [f"judge.cascade={cascade}"] if cascade is not None else []
    if plan:
        from curate.ask.quote import quote

        work = open_run(pipeline, run, changes)
        print_plan(
            work, allowed(max_cost, yes, retry=retry, batch=batch), lambda: work.look("judge", quote), 2, as_json
        )
        work.remember_plan()
        return
    only_plans(as_json)
    spend = allowed(max_cost, yes, retry=retry, offline=offline, batch=batch, allow_weak_judges=allow_weak_judges)
    folder = go(["judge"], pipeline, run, changes, force or retry, spend)
    if record is not None:
        from curate.ask.judges.replay import record as write

        count = write(folder, record)
        output_mode.put({"ratings": count, "record": str(record)}, f"ratings: {count:,} in {record}")


def resolve(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    plan: Plan = False,
    retry: Retry = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    offline: Offline = False,
    as_json: PlanAsJson = False,
) -> None:
    """Write the final labels: those of the panel, of experts where they checked a pair, or of what consensus adds."""
    if plan:
        from curate.commands.resolve.stage import planned

        work = open_run(pipeline, run, assign or [])
        spend = allowed(max_cost, yes, retry=retry, batch=batch)
        print_plan(work, spend, lambda: work.look("resolve", planned), 4, as_json)
        return
    only_plans(as_json)
    spend = allowed(max_cost, yes, retry=retry, offline=offline, batch=batch)
    go(["resolve"], pipeline, run, assign or [], force or retry, spend)


def export(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    push: Annotated[
        str | None, typer.Option(help="Upload the format mteb to the Hugging Face hub as ORGANISATION/NAME.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Make the upload public; default: private.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what --push would upload; send nothing.")] = False,
) -> None:
    """Check the benchmark and write it in the formats of the pipeline."""
    folder = go(["export"], pipeline, run, assign or [], force)
    if push is not None:
        from curate.commands.export import push as hub

        made = folder / "export" / "mteb"
        sent = (hub.planned if dry_run else hub.push)(made, push, private=not public, secrets=_secrets(folder))
        lines = [f"{size:>12,}  {path}" for path, size in sent.files.items()]
        sums = f"{'private' if sent.private else 'public'}, {len(sent.files)} files, {sum(sent.files.values()):,} bytes"
        lines.append(f"sent: {sent.url}, {sums}" if sent.url else f"would send to {sent.repository}: {sums}")
        output_mode.put({"upload": asdict(sent)}, "\n".join(lines))


def _secrets(folder: Path) -> dict[str, str]:
    """Return name -> value of the environment variables with keys that a run may have used, if set.

    These are the key variables of judges, encoders and retrievers, and CURATE_PII_KEY.
    """
    import os

    from curate.llm.providers.presets import variables
    from curate.pipeline.pipeline import Pipeline

    head = Pipeline.load(folder / "pipeline.yaml").head
    families: Any = {"judges": head.judges, "encoders": head.encoders, "retrievers": head.retrievers}
    held = {name: os.environ.get(name, "").strip() for name in {*variables(families), "CURATE_PII_KEY"}}
    return {name: value for name, value in held.items() if value}


def _plain(name: str) -> Callable[..., None]:
    def command(pipeline: File = None, run: Folder = None, assign: Assign = None, force: Force = False) -> None:
        go([name], pipeline, run, assign or [], force)

    return command
