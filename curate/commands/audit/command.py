"""`curate audit`: compare the original labels of a data set with a panel's verdicts, and repair them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.runs.options import (
    AsJson,
    Assign,
    Batch,
    Depth,
    File,
    Folder,
    Force,
    Language,
    MaxCost,
    Panel,
    Plan,
    Queries,
    Retrievers,
    Source,
    Yes,
)
from curate.runs.running import allowed, assigned, carry_out, listed, of_source, open_run
from curate.view.answers import answer
from curate.view.output_mode import reporting
from curate.view.text import as_table, caveats, too_few

if TYPE_CHECKING:
    from curate.runs.runner import Run


@reporting
def audit(
    source: Source = None,
    retrievers: Retrievers = None,
    depth: Depth = None,
    models: Panel = None,
    queries: Queries = None,
    runs: Annotated[
        list[Path] | None, typer.Option("--score", help="Run file to score by old and new labels; may be repeated.")
    ] = None,
    relevant_from: Annotated[
        int | None,
        typer.Option(min=1, help="Lowest score of the set's qrels that means relevant, where they have several."),
    ] = None,
    language: Language = None,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Have a panel grade what retrievers return, compare it with a set's labels, and write a repaired set."""
    from curate.runs.opening import need_audit, scored
    from curate.system.files import read_json

    changes = listed("pool.retrievers", retrievers) + listed("judge.models", models)
    settings = {
        "pool.depth": depth,
        "ingest.sample": queries,
        "ingest.relevant_from": relevant_from,
        "language": language,
    }
    changes += [*assigned(settings), *scored(runs or [])]
    if source is not None:
        changes = of_source("audit", source) + changes
        pipeline = pipeline or "audit"
    work = open_run(pipeline, run, [*changes, *(assign or [])])
    if not carry_out(need_audit(work), allowed(max_cost, yes, batch=batch), plan=plan, force=force, as_json=as_json):
        return
    figures = read_json(work.folder / "audit" / "audit.json")
    warnings = [*figures["dependence"]["warnings"], *caveats(figures, figures["queries"])]
    answer(figures, _lines(figures, work), as_json=as_json, warnings=warnings)


def _lines(figures: dict[str, Any], work: "Run") -> Iterator[str]:
    """Yield the printed lines: main figures, and paths of the written files."""
    yield f"{figures['queries']:,} queries, {figures['pairs']:,} pairs judged by {', '.join(figures['panel'])}"
    if relevant_from := figures.get("relevant_from"):
        yield f"labels of {relevant_from} and above count as relevant; the repaired labels keep the scores of the set"
    if figures["heuristic"]:
        yield "THE JUDGES ARE HEURISTICS: these means show the machinery and are no evidence about the labels"
    yield from _panel(figures)
    for table in _tables(figures):
        yield as_table(table, digits=3)
    yield from too_few(figures["queries"])
    patch = figures["patch"]
    for name in ("added", "removed"):
        yield f"labels {name}: {patch[name]:,}, of which {patch[f'{name}_copies']:,} by equal text alone"
    for name in ("patch.tsv", "qrels.tsv", "mteb"):
        yield f"{name}: {work.folder / 'audit' / name}"
    yield f"report: {work.folder / 'audit.html'}"


def _panel(figures: dict[str, Any]) -> Iterator[str]:
    """Yield warnings on dependent judges, and the effective number of judges of a panel."""
    from curate.panel import judge_dependence
    from curate.view.words import strings

    yield from (f"WARNING: {warning}" for warning in figures["dependence"]["warnings"])
    if len(figures["panel"]) > 1:
        yield judge_dependence.worth(figures["dependence"], strings("en")["dependence"])


def _tables(figures: dict[str, Any]) -> Iterator[list[dict[str, object]]]:
    """Yield the main tables of audit.json: means, corrected means, systems."""
    from curate.core.records import AUDITED

    measured = ((name.replace("_", " "), figures["measures"][name]) for name in AUDITED)
    yield [
        {
            "a query": name,
            **{key: measure[key] for key in ("mean", "low", "high")},
            "median": measure["spread"]["median"],
        }
        for name, measure in measured
    ]
    for sample in figures["corrected"]:
        estimates = (
            (name, sample.get(name)) for name in ("false_negatives", "false_positives", "positives", "precision")
        )
        rows = [{"corrected": name.replace("_", " "), **estimate} for name, estimate in estimates if estimate]
        if rows:
            yield rows
    depth = figures["systems"]["recall_depth"]
    heads = {"ndcg": "nDCG@10", f"recall_at_{depth}": f"recall@{depth}", "rank": "rank"}
    columns = {f"{head} {side}": f"{key}_{side}" for key, head in heads.items() for side in ("old", "new")}
    if systems := figures["systems"]["systems"]:
        yield [
            {
                "system": system["system"],
                **{head: system[key] for head, key in columns.items()},
                "circular": "yes" if system["circular"] else "no",
            }
            for system in systems
        ]
