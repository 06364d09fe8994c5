"""`curate audit`: compare the original labels of a data set with a panel's verdicts, and repair them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.commands.audit.stage import AuditFigures
from curate.core.records import AUDITED
from curate.panel import judge_dependence
from curate.review.audit_correction import FIGURES
from curate.runs.command import RUN, Names, argument, option
from curate.runs.opening import need_audit, scored
from curate.runs.options import OnPipeline, Plannable
from curate.runs.running import all_stages, written
from curate.system.files import read_json
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, caveats, too_few
from curate.view.words import strings


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

    def result(self) -> Result[AuditFigures]:
        """Return the figures of the audit; with `plan`, the cost of judging."""
        work = need_audit(self.open_run_on("audit", self.source, tuple(scored(self.score))))
        if estimate := all_stages(self, work, force=self.force):
            return estimate
        figures = AuditFigures.from_json(read_json(work.folder / "audit" / "audit.json"))
        warnings = [*(figures.dependence.warnings or ()), *caveats(figures.heuristic, figures.queries)]
        event = {**written(work, None), "data": figures.to_json()}
        return Result(figures, _text(figures, work.folder), warnings, event=event)


def _text(figures: AuditFigures, folder: Path) -> Iterator[str]:
    """Yield the printed lines: main figures, and paths of the written files."""
    say = RecordWords("audit/audit")
    yield say("head", figures, judges=", ".join(figures.panel))
    if figures.relevant_from:
        yield say("relevant_from", figures)
    if figures.heuristic:
        yield say("heuristic")
    yield from (say("warning", warning=warning) for warning in figures.dependence.warnings or ())
    if len(figures.panel) > 1:
        yield judge_dependence.worth(figures.dependence, strings("en")["dependence"])
    yield as_table([say.cells("measure", figures.measures[name], name=name.replace("_", " ")) for name in AUDITED])
    for sample in figures.corrected:
        estimates = ((name, getattr(sample, name)) for name in FIGURES if not sample.outdated)
        if rows := [
            say.cells("corrected", estimate, name=name.replace("_", " ")) for name, estimate in estimates if estimate
        ]:
            yield as_table(rows)
        if sample.worst_case:
            bounds = ((name, getattr(sample.worst_case, name)) for name in FIGURES)
            yield say("worst_case")
            yield as_table([say.cells("bounds", pair, name=name.replace("_", " ")) for name, pair in bounds if pair])
    if effects := [_system(system, figures.systems.recall_depth) for system in figures.systems.systems]:
        yield as_table(effects, digits=3)
    yield from too_few(figures.queries)
    yield from (say("added", figures.patch), say("removed", figures.patch))
    yield from (say("file", name=name, folder=folder) for name in ("patch.tsv", "qrels.tsv", "mteb"))
    yield say("report", folder=folder)


def _system(system: Mapping[str, Any], depth: int) -> dict[str, object]:
    heads = {"ndcg": "nDCG@10", f"recall_at_{depth}": f"recall@{depth}", "rank": "rank"}
    cells = {f"{head} {side}": system[f"{key}_{side}"] for key, head in heads.items() for side in ("old", "new")}
    return {"system": system["system"], **cells, "circular": "yes" if system["circular"] else "no"}
