"""`curate extend`: judge the unjudged documents that later systems retrieve, and write version 2 of a benchmark."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs import completing
from curate.runs.options import AsJson, Batch, MaxCost, Offline, Plan, Yes
from curate.runs.running import allowed, open_run, print_plan, run_folder
from curate.view.answers import answer
from curate.view.text import as_table


def extend(
    run: Annotated[Path, typer.Argument(help="Run folder of the earlier version.", autocompletion=completing.runs)],
    run_file: Annotated[
        list[Path] | None, typer.Option("--run-file", help="A TREC run or mteb's predictions; may be repeated.")
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option("--encoder", help="An encoder that searches the corpus; may be repeated.")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Documents of each system that are judged.")] = 10,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the new version; default: the run's, with -v2 behind.")
    ] = None,
    subset: Annotated[str | None, typer.Option(help="Subset of an mteb file that has several.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of an mteb file that has several.")] = None,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Judge the documents that later systems rank high and nobody has judged, and write the next version of a run.

    Panel, rubric, prompt and settings are the run's own; what the ledger holds is not asked again. The run itself
    stays as it is. A version that was refused or stopped goes on with the same command.
    """
    from curate.commands.extend import version
    from curate.view.progress import bars

    order = version.ExtendOrder(run_file or (), encoder or (), depth, out, subset, split)
    work = open_run(None, run_folder(run), detect=False)
    work.consent = allowed(max_cost, yes, offline=offline, batch=batch)
    if plan:
        print_plan(work, work.consent, lambda: version.planned(work, order), digits=4, as_json=as_json)
        return
    with bars() as (work.progress, work.tell):
        folder, facts = version.extend(work, order)
    growth = {"run_folder": folder, **facts}
    answer(growth, _lines(folder, facts), as_json=as_json, warnings=facts["warnings"])


def _lines(folder: Path, facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"version {facts['version']}: {folder}"
    yield f"{facts['holes']:,} documents of the added systems were not judged before, and are now:"
    verdicts = ("relevant", "not relevant", "contested", "incomplete", "not positive")
    yield as_table(
        [
            {"system": name, "documents": counts["holes"], **{word: counts[word] for word in verdicts if facts[word]}}
            for name, counts in facts["systems"].items()
        ]
    )
    yield f"queries that have a relevant document since: {facts['queries_won']:,}"
    yield f"labels of earlier pairs that changed: {facts['changed']:,}"
    for warning in facts["warnings"]:
        yield f"not judged alike: {warning}"
