"""Read-only view of a run folder: tables as frames, states of stages, cost, agreement; no lock is taken."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from curate.api.cost_plan import CostPlan
from curate.api.tables import MissingTable, StageTable, located, remedy
from curate.ask.billing import PlanRow
from curate.commands.agree.result import AgreementResult, of_run
from curate.core.errors import UserError, suggestion
from curate.pipeline import stages
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.folder import newest, table_paths
from curate.pipeline.mark import Mark
from curate.pipeline.stage import Context
from curate.runs import opening, status
from curate.runs import opening as named
from curate.runs.runner import Run
from curate.system.files import frame
from curate.view import html

PathLike = str | os.PathLike[str]
STATUS: dict[str, Any] = {
    "stage": pl.String,
    "state": pl.String,
    "rows_in": pl.Int64,
    "rows_out": pl.Int64,
    "dropped": pl.Int64,
    "seconds": pl.Float64,
    "cost": pl.Float64,
    "currency": pl.String,
    "judged": pl.Float64,
    "notes": pl.List(pl.String),
}
SHOWN = ("stage", "state", "rows_in", "rows_out", "dropped", "seconds", "cost", "currency")


@dataclass(frozen=True, repr=False)
class RunView:
    """A run folder, opened read-only.

    Tables are polars frames, with the columns and types of the reference. They are read again at every access, so they
    include what a stage has written in the meantime. A table whose stage has not run raises MissingTable, a UserError
    that names the command to type.
    """

    folder: Path

    queries = StageTable("ingest")
    """Queries: query_id, text, source; of the last stage that wrote them, so masked once `mask` has run."""
    corpus = StageTable("ingest")
    """Documents: doc_id, title, text, source; of the last stage that wrote them. Use `scan("corpus")` if many."""
    qrels = StageTable("ingest")
    """Labels: query_id, doc_id, score; the original labels, or once `resolve` has run the published ones. The original
    ones are always `table("diversify/qrels")`."""
    labels = StageTable("resolve", "resolve/qrels")
    """Published labels: query_id, doc_id, score 1; a row per relevant pair. Graded labels are in the export."""
    verdicts = StageTable("consensus")
    """Verdicts: query_id, doc_id, verdict, votes (judge, grade), policy; a row per judged pair."""
    contested = StageTable("consensus")
    """Contested verdicts, on which the judges disagree; columns of `verdicts`."""
    incomplete = StageTable("consensus")
    """Incomplete verdicts, which lack the rating of a judge; columns of `verdicts`."""
    overrides = StageTable("resolve")
    """Verdicts of the panel that assessors changed: query_id, doc_id, panel, verdict, grades, assessors."""
    rankings = StageTable("pool")
    """Rankings: query_id, retriever, doc_id, rank from 1, score."""
    pool = StageTable("pool")
    """Pool, the pairs to judge: query_id, doc_id, position, hits (retriever, rank, score)."""
    ratings = StageTable("judge")
    """Ratings: query_id, doc_id, judge, grade, status and more; a row per judge and pair."""
    samples = StageTable("judge")
    """Random sample of pairs that a cascade lets every judge rate: query_id, doc_id; empty without a cascade."""
    spans = StageTable("mask")
    """Masked personal data: table, id, field, start, end (in code points of the raw text), kind, recogniser."""
    residual = StageTable("mask")
    """Possible residual PII in masked texts: table, id, field, start, end, reason."""
    altered = StageTable("mask")
    """Texts much shortened by masking, or made equal to another: table, id, lost (share of characters), equal_to."""
    aliases = StageTable("ingest")
    """Ids that were merged into an exact duplicate, or renamed: table, old_id, kept_id."""
    classes = StageTable("ingest")
    """Classes of exact duplicates: table, id, class."""
    pairs = StageTable("sts")
    """Sentence pairs: sentence1, sentence2, label 0 or 1, kind, split and more."""
    sentences = StageTable("sts")
    """Sentences written for the pairs, with the answers of the panel."""
    classified = StageTable("label")
    """Labelled texts: text, label, label_id, split, group, verdict, votes and more."""
    paraphrases = StageTable("paraphrase")
    """Pairs of a query and a sentence: sentence1, sentence2, label 0 or 1, kind, split (or null), votes and more."""
    originals = StageTable("paraphrase")
    """Verdicts on original queries and their paraphrases: query_id, pair_id, verdict, votes."""
    gradients = StageTable("gradient")
    """Series of texts of decreasing similarity: item_id, kind, level, source, destination, pair_id, votes and more."""
    edited = StageTable("gradient")
    """All proposed edits of texts, with the answers of the panel."""
    compared = StageTable("audit")
    """Pairs of an audit, with original label and verdict: query_id, doc_id, legacy, verdict, kind, same_as, votes."""
    audited = StageTable("audit")
    """Counts of an audit per query: labels, confirmed, false_positives, false_negatives and more."""

    def __post_init__(self) -> None:
        named.run_folder(self.folder, "give the folder of a run, such as runs/demo", tell=_silent)

    @property
    def name(self) -> str:
        """Return the name of the benchmark, from the settings of the run."""
        return self._run().pipeline.head.name

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of the run, as plain values."""
        return dict(self._run().pipeline.frozen)

    @property
    def tables(self) -> list[str]:
        """Return the names of the existing tables, as `stage/table`, in the order of the stages."""
        paths = (path for path in table_paths(self.folder) if path.suffix == ".parquet")
        return [f"{path.parent.name}/{path.stem}" for path in paths]

    def table(self, name: str) -> pl.DataFrame:
        """Return a table, given as `TABLE` (of the last stage that wrote it) or `STAGE/TABLE`; MissingTable without."""
        return pl.read_parquet(located(self.folder, name))

    def scan(self, name: str) -> pl.LazyFrame:
        """Return a table, named as for `table`, as a lazy frame, to filter a corpus larger than memory."""
        return pl.scan_parquet(located(self.folder, name))

    def dropped(self, stage: str | None = None) -> pl.DataFrame:
        """Return the rows dropped by one stage or by all: table, id, stage, reason, nearest_id, similarity.

        Exact duplicates that were merged are in `aliases` instead. MissingTable if the stage has not run; UserError for
        an unknown stage.
        """
        if stage is not None and stage not in stages.KNOWN:
            raise UserError(f"dropped: no stage {stage!r}; {suggestion(stage, stages.KNOWN)}")
        stage_tables = [name for name in self.tables if name.partition("/")[2] == "dropped"]
        if stage is None:
            return pl.concat([frame("dropped"), *map(self.table, stage_tables)])
        if f"{stage}/dropped" in stage_tables:
            return self.table(f"{stage}/dropped")
        if Mark.read(self.folder / stage) is not None:
            return frame("dropped")  # of a stage that drops nothing
        raise MissingTable(f"{self.folder}: {remedy(self.folder, stage)}")

    def status(self) -> pl.DataFrame:
        """Return one row per stage of the pipeline, as `curate status` prints it.

        `state` is done, partial, stale, missing or unchecked. `seconds` are wall-clock time. `cost` is in `currency`,
        null if a price is unknown. `judged` is the share of ratings that exist, as long as judging is not done.
        """
        rows = [[getattr(row, name) for name in STATUS] for row in status.status_rows(self._run())]
        return pl.DataFrame(rows, schema=STATUS, orient="row")

    @property
    def spent(self) -> dict[str, float]:
        """Return currency -> amount paid for language models in this run so far; empty if nothing was paid.

        Calls without a known price are not included: their `cost` in `status` is None.
        """
        return status.spent(status.status_rows(self._run()))

    def agreement(
        self, truth: PathLike | None = None, run_files: Sequence[PathLike] = (), seed: int | None = None
    ) -> AgreementResult:
        """Return the agreement of the judges with 95 % intervals, and a comparison of all consensus rules.

        The figures are those of `curate agree --json`. `truth` is a file of assessors' grades (query_id, doc_id,
        grade), `run_files` are rankings of further systems, `seed` is that of the bootstrap, by default the pipeline's.
        MissingTable if the run is not judged.
        """
        located(self.folder, "ratings", "judge")
        return of_run(self._run(), Path(truth) if truth else None, [Path(run_file) for run_file in run_files], seed)

    def plan(self) -> CostPlan:
        """Return the remaining requests and cost of judging, as `curate judge --plan` does; nothing is sent.

        UserError if a stage before judging is not up to date.
        """
        from curate.ask.quote import quote

        def ask(config: JudgeConfig, context: Context) -> list[PlanRow]:
            if not isinstance(context.ledger, Path) or context.ledger.exists():
                return quote(config, context)
            with tempfile.TemporaryDirectory() as empty:  # to look for ratings would make a ledger
                return quote(config, replace(context, ledger=Path(empty) / context.ledger.name))

        return CostPlan(self._run().look("judge", ask))

    @property
    def report_path(self) -> Path:
        """Return the path of the HTML report, or of that of an audit; MissingTable if it is not written yet."""
        return self._existing("audit.html" if (self.folder / "audit.html").exists() else "report.html", "report")

    @property
    def export_path(self) -> Path:
        """Return the folder of the exported benchmark, with one folder per format; MissingTable before the export."""
        return self._existing("export", "export")

    def _existing(self, name: str, stage: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise MissingTable(f"{path}: is not there, for {remedy(self.folder, stage)}")
        return path

    def _run(self) -> Run:
        return opening.opened(None, self.folder, detect=False, tell=_silent)

    def __repr__(self) -> str:
        ran = [name for name in stages.KNOWN if Mark.read(self.folder / name) is not None]
        return f"RunView({str(self.folder)!r}, stages that have run: {', '.join(ran) or 'none'})"

    def _repr_html_(self) -> str:
        rows = self.status().select(SHOWN).with_columns(pl.col("seconds").round(1)).to_dicts()
        outputs = [path for path in (self.folder / "report.html", self.folder / "export") if path.exists()]
        return html.block(f"Run {self.folder}", html.table(rows, digits=1), html.lines([str(path) for path in outputs]))


def open(path: PathLike | None = None) -> RunView:  # noqa: A001 - it is `curate.open`
    """Return a read-only view of a run folder, by default of the newest one in `./runs`.

    UserError if there is no such folder. A command may work in it at the same time: no lock is taken, and nothing is
    written.
    """
    folder = newest() if path is None else Path(path).expanduser()
    if not folder.is_dir():
        run_names = [path.parent.name for path in folder.parent.glob("*/pipeline.yaml")]
        raise UserError(f"{folder}: no such folder, expected a run; {suggestion(folder.name, run_names)}")
    return RunView(folder)


def _silent(_line: str) -> None:
    """Ignore a notice."""
