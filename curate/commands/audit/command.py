"""`curate audit`: compare the original labels of a data set with a panel's verdicts, and repair them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.runs.command import RUN, Names, argument, option
from curate.runs.options import OnPipeline, Plannable
from curate.view.answers import Result
from curate.view.text import as_table, caveats, too_few

if TYPE_CHECKING:
    from curate.runs.runner import Run


class AuditCommand(OnPipeline, Plannable):
    """Find label errors in a dataset.

    A panel grades what retrievers return; the original labels are compared, and a repaired set is written.
    """

    words = "audit"
    examples = ("audit CmedqaRetrieval --models gpt,qwen,deepseek --plan", "audit my-set --queries 100 --max-cost 20")

    source: str | None = argument("Folder in BEIR or MTEB layout, or name of an MTEB task; default: the run's.", None)
    models: Names = option(
        "The panel: names of judges, separated by commas.", (), key="judge.models", complete="judges", metavar="NAMES"
    )
    retrievers: Names = option(
        "Names of retrievers, separated by commas: bm25,e5,use.",
        (),
        key="pool.retrievers",
        complete="retrievers",
        metavar="NAMES",
    )
    depth: int | None = option("Documents that each retriever returns per query.", None, key="pool.depth", ge=1)
    queries: int | None = option("Size of a random sample of queries; default: all.", None, key="ingest.sample", ge=1)
    score: tuple[Path, ...] = option("Run file to score by old and new labels; may be repeated.", (), metavar="FILE")
    force: bool = option("Run again even if up to date.", False, group=RUN)
    relevant_from: int | None = option(
        "Lowest score of the set's qrels that means relevant, where they have several.",
        None,
        key="ingest.relevant_from",
        ge=1,
    )
    language: str | None = option("Language of the texts, such as zh; default: detected.", None, key="language")

    def result(self) -> Result[Any]:
        """Return the figures of the audit; with `plan`, the cost of judging."""
        from curate.runs.opening import need_audit, scored
        from curate.runs.running import all_stages, written
        from curate.system.files import read_json

        work = need_audit(self.open_run_on("audit", self.source, tuple(scored(self.score))))
        if estimate := all_stages(self, work, force=self.force):
            return estimate
        figures = read_json(work.folder / "audit" / "audit.json")
        warnings = [*figures["dependence"]["warnings"], *caveats(figures["heuristic"], figures["queries"])]
        return Result(figures, _lines(figures, work), warnings, event={**written(work, None), "data": figures})


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
        yield judge_dependence.worth(
            judge_dependence.Dependence.from_json(figures["dependence"]), strings("en")["dependence"]
        )


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
