"""Options that several commands share, as base classes of commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from curate.runs.command import RUN, SPENDING, Assignments, Command, option, setting
from curate.tables.readers.encoding import BOUNDS, OWN, Bounds
from curate.view.answers import Result
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.ask.billing import PlanRow
    from curate.pipeline.stage import Consent
    from curate.runs.runner import Run


PACKAGED = {"audit": "audit", "train": "train-set"}
"""Kind of a run on a source -> its packaged pipeline."""


class OnRun(Command):
    """A command about a run."""

    run: Path | None = option(
        "Run folder; default: runs/NAME, or the newest run.", None, complete="runs", metavar="FOLDER", group=RUN
    )

    def folder(self, remedy: str = "give a run with --run") -> Path:
        """Return the run folder, by default the newest, with a notice; UserError, ending in `remedy`, if invalid."""
        from curate.runs import opening

        return opening.run_folder(self.run, remedy, tell=self.notify)

    def open_run(self) -> "Run":
        """Return the run, ready for its progress to be shown."""
        from curate.runs import opening

        return self._reporting(opening.opened(None, self.run, tell=self.notify))

    def _reporting(self, work: "Run") -> "Run":
        work.progress, work.tell = self.progress, self.tell
        return work


class OnPipelineFile(OnRun):
    """A command about a run, or about a pipeline that has none yet."""

    pipeline: str | None = option(
        "Pipeline file, or the name of a packaged one.", None, complete="pipelines", metavar="FILE", group=RUN
    )


class OnPipeline(OnPipelineFile):
    """A command about a run, whose settings may be changed."""

    settings: Assignments = option(
        "Change a setting; may be repeated.",
        (),
        flag="--set",
        complete="settings",
        metavar="SECTION.KEY=VALUE",
        group=RUN,
    )

    def open_run(self, *, detect: bool = True) -> "Run":
        """Return the run; with `detect`, the language of a pipeline that names none is detected, with a notice."""
        from curate.runs import opening

        changes = [*self.assignments(), *self.settings]
        return self._reporting(opening.opened(self.pipeline, self.run, changes, detect=detect, tell=self.notify))

    def open_run_on(self, kind: str, source: str | None, changes: Sequence[str] = ()) -> "Run":
        """Return the run of a packaged pipeline on a source, named `KIND-SOURCE`; without a source, an earlier run."""
        from curate.runs import opening

        changes, pipeline = [*changes, *self.assignments(), *self.settings], self.pipeline
        if source is not None:
            changes, pipeline = [*opening.of_source(kind, source), *changes], pipeline or PACKAGED[kind]
        return self._reporting(opening.opened(pipeline, self.run, changes, tell=self.notify))


class WithRunFiles(Command):
    """A command that reads rankings of other systems."""

    run_file: tuple[Path, ...] = option("A TREC run or mteb's predictions; may be repeated.", (), metavar="FILE")
    subset: str | None = setting("Subset of an mteb file that has several.", None)
    split: str | None = setting("Split of an mteb file that has several.", None)


class Spending(Command):
    """A command that may call models at a cost."""

    max_cost: str | float | None = option(
        "Stop before the calls cost more than this.", None, metavar="50|50USD", group=SPENDING
    )
    yes: bool = option("Spend without a cap.", False, group=SPENDING)
    batch: bool = option(
        "Send through batch APIs, at about half the price, where a vendor has one.", False, group=SPENDING
    )

    _consent: "Consent | None" = PrivateAttr(None)

    def consent(self) -> "Consent":
        """Return what the options allow to spend and to send; ConfigError for an invalid amount.

        The first call gives a notice if the working directory changes the presets of the models.
        """
        from curate.llm.providers.presets import told_presets
        from curate.runs import opening

        if self._consent is None:
            told_presets(self.notify)
            names = ("batch", "retry", "offline", "allow_weak_judges")
            self._consent = opening.consent(
                self.max_cost, self.yes, **{name: getattr(self, name) for name in names if hasattr(self, name)}
            )
        return self._consent

    def paid(self) -> str:
        """Return a line with what the command has paid; empty if it has asked no model."""
        return self._consent.budget.said() if self._consent else ""


class Plannable(Spending):
    """A command that may call models at a cost, which `--plan` estimates."""

    plan: bool = option("Print calls, tokens and cost; send nothing.", False, group=SPENDING)

    def cost_estimate(self, rows: "Sequence[PlanRow]") -> Result[Any]:
        """Return rows of calls and cost, the last one their total, as the result."""
        table = as_table([row.printed() for row in rows], digits=2) if rows else "nothing is left to send"
        return Result(rows, [table])

    @classmethod
    def answer(cls) -> Any:  # noqa: ANN401
        """Return the type of the data, which is that of the plan with `plan`."""
        from curate.ask.billing import PlanRow  # needs all of `pipeline`, which most commands load later or never

        return super().answer() | list[PlanRow]


class LedgerFirst(Spending):
    """A command that asks models about items, some of which the ledger may hold."""

    offline: bool = option("Send nothing; take every answer from the ledger.", False, group=SPENDING)


class AskingModels(LedgerFirst):
    """A command that asks models about items, and can ask again about those without an answer."""

    retry: bool = option("Ask again where a model refused or its answer could not be parsed.", False, group=SPENDING)


class OnTable(Command):
    """A command that reads a table of its own, within bounds."""

    max_record: int = setting("Maximum bytes of a line, an element of a list or a cell.", BOUNDS.record, ge=1)
    max_ratio: int = setting("Maximum ratio of unpacked to packed size, from 64 MB on.", BOUNDS.ratio, ge=1)
    max_rows: int = setting("Maximum number of rows.", BOUNDS.rows, ge=1)
    max_columns: int = setting("Maximum number of columns.", BOUNDS.columns, ge=1)
    max_depth: int = setting("Maximum levels of lists and objects in a JSON record.", BOUNDS.depth, ge=1, le=900)

    @property
    def bounds(self) -> Bounds:
        """Return the bounds of the table."""
        return Bounds(self.max_record, self.max_ratio, self.max_rows, self.max_columns, self.max_depth, OWN.setting)
