"""Audits of original labels and evaluations of models, from Python, and their results."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curate.api.cost_plan import consenting
from curate.api.run_view import PathLike, RunView
from curate.api.running import Tell
from curate.commands.audit.command import AuditCommand
from curate.commands.audit.stage import AuditFigures
from curate.commands.evaluate.command import EvaluateCommand
from curate.commands.evaluate.figures import EvaluationFigures
from curate.core.protocols import PaidProgress, quiet
from curate.runs.command import Settings, assignments, silent
from curate.view import html
from curate.view.record_words import DASH, RecordWords


@dataclass(frozen=True, repr=False)
class AuditResult:
    """Result of an audit of a set's original labels by a panel."""

    run: RunView
    """The run of the audit; its tables include `compared`, `audited` and `verdicts`."""
    figures: AuditFigures
    """All figures, as `curate audit --json` prints them."""

    @property
    def frame(self) -> pl.DataFrame:
        """Return one row per measure, a count per query: measure, mean, 95 % interval of it (low, high), median."""
        from curate.core.records import AUDITED

        rows = [
            (name, counts.mean, counts.low, counts.high, counts.spread.median)
            for name in AUDITED
            for counts in [self.figures.measures[name]]
        ]
        return pl.DataFrame(rows, schema=["measure", "mean", "low", "high", "median"], orient="row", strict=False)

    def __repr__(self) -> str:
        return f"AuditResult({self._sentence()})"

    def _sentence(self) -> str:
        figures = self.figures
        return f"{figures.queries:,} queries, {figures.pairs:,} pairs judged by {', '.join(figures.panel)}"

    def _repr_html_(self) -> str:
        warned = ["The judges are heuristics: these means are no evidence about the labels."]
        notes = [*(warned if self.figures.heuristic else ()), str(self.run.report_path)]
        return html.block(f"Audit: {self._sentence()}", html.table(self.frame.to_dicts()), html.lines(notes))


@dataclass(frozen=True, repr=False)
class EvaluationResult:
    """Scores of models on a benchmark."""

    figures: EvaluationFigures
    """All figures, as `curate evaluate --json` prints them."""

    @property
    def folder(self) -> Path:
        """Return the folder of the written tables and charts."""
        return Path(self.figures.folder)

    @property
    def notes(self) -> list[str]:
        """Return caveats on the figures, one sentence each."""
        return list(self.figures.notes)

    @property
    def frame(self) -> pl.DataFrame:
        """Return one row per task and scored model: task, model, measure, score (0 to 1), circular.

        `circular` is whether the model took part in building the benchmark, so that its score is biased.
        """
        circular = {model.model: model.circular for model in self.figures.models}
        rows = [
            (task.name, row.model, task.measure, row.main, circular[row.model])
            for task in self.figures.tasks
            for row in task.scores
        ]
        return pl.DataFrame(rows, schema=["task", "model", "measure", "score", "circular"], orient="row")

    def __repr__(self) -> str:
        return f"EvaluationResult({len(self.figures.models)} models, {len(self.figures.tasks)} tasks)"

    def _repr_html_(self) -> str:
        from curate.commands.evaluate.page import overview

        rows = overview(self.figures, RecordWords("evaluate/evaluate", empty=DASH), bold="*")
        return html.block("Scores, points of 100", html.table(rows), html.lines(self.notes))


@consenting()
def audit(
    source: PathLike | None = None,
    *,
    models: Sequence[str] = (),
    retrievers: Sequence[str] = (),
    depth: int | None = None,
    queries: int | None = None,
    relevant_from: int | None = None,
    language: str | None = None,
    score: Sequence[PathLike] = (),
    pipeline: PathLike | None = None,
    run: PathLike | None = None,
    settings: Settings | None = None,
    force: bool = False,
    max_cost: str | float | None = None,
    yes: bool = False,
    batch: bool = False,
    progress: PaidProgress | None = None,
    tell: Tell | None = None,
) -> AuditResult:
    """Audit the original labels of a data set: grade retrieved pairs with a panel, compare, and write a repaired set.

    `source` is a folder in BEIR or MTEB layout, or a task of mteb; without one, the stages of the audit in `run` that
    are out of date run again. `models` is the panel. `depth` is the number of documents that each of the `retrievers`
    returns per query, `queries` the size of a random sample of queries, `relevant_from` the lowest relevant score of
    the original labels. `score` are rankings of systems, scored by original and new labels. All other arguments are as
    for `run`: without `max_cost` or `yes` no language model is called, and ConsentNeeded has the cost estimate.
    """
    command = AuditCommand(
        source=None if source is None else os.fspath(source),
        models=models,
        retrievers=retrievers,
        depth=depth,
        queries=queries,
        relevant_from=relevant_from,
        language=language,
        score=tuple(map(Path, score)),
        pipeline=None if pipeline is None else os.fspath(pipeline),
        run=None if run is None else Path(run),
        settings=assignments(settings),
        force=force,
        max_cost=max_cost,
        yes=yes,
        batch=batch,
        progress=progress or quiet,
        tell=tell or silent,
    )
    result = command.result()
    return AuditResult(RunView(Path((result.event or {})["run_folder"])), result.data)


@consenting()
def evaluate(
    run: RunView | PathLike,
    models: Sequence[str] = (),
    *,
    legacy: Sequence[str] = (),
    baselines: bool = True,
    device: str | None = None,
    out: PathLike | None = None,
    tell: Callable[[str], None] | None = None,
    floors: bool = True,
    **options: Any,  # noqa: ANN401
) -> EvaluationResult:
    """Score models on a benchmark with mteb, and test which differences between them are significant.

    `run` is an opened run, a run folder, an export or the folder of one task. `models` are bm25, encoders, folders or
    names of models. BM25 and the offline encoders are scored, too, unless `baselines` is false. `legacy` are folders or
    mteb tasks whose system ranking is compared. `floors` adds trivial baselines, such as ranking by length. Tables and
    charts are written to `out`, by default the folder `evaluation` of the run. `options` are further options of
    `curate evaluate`, such as `against`. Needs the extra `eval`. The figures are those of `curate evaluate --json`.
    """
    command = EvaluateCommand(
        folder=run.folder if isinstance(run, RunView) else Path(run),
        models=models,
        legacy=legacy,
        baselines=baselines,
        device=device,
        out=None if out is None else Path(out),
        tell=tell or silent,
        floors=floors,
        **options,
    )
    return EvaluationResult(command())
