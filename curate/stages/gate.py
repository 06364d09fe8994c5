"""The gate: every judge answers controls, blindly mixed into ordinary prompts, before a pool is paid for.

Prompts of controls are built as all others are, with passages of the pool beside the controls, and kept under a
replicate of their own. What the ledger holds of them is not asked again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

import polars as pl
from pydantic import Field

from curate import controls, judging
from curate.config import Json, Section
from curate.context import Context
from curate.controls import PAIR, Accuracy
from curate.corpus import TableCorpus
from curate.errors import DataError, UserError
from curate.judging import Pool
from curate.panel import sanity
from curate.pii.naming import Names
from curate.prompts import Rubric
from curate.review import drawing
from curate.stages import spending
from curate.stages.seats import AnySeat, PaidSeat, ReplaySeat, Table

REPLICATE = 1
"""Under which controls are kept."""


class Gate(Section):
    """By which controls judges are measured, and how good they must be."""

    positives: Path | None = Field(
        default=None, description="table of pairs that people graded: query_id, doc_id, grade; without it no gate"
    )
    floor: float = Field(default=controls.FLOOR, ge=0, le=1, description="least lower bound of balanced accuracy")
    least: int = Field(default=controls.LEAST, ge=1, description="answers of each class that a judge needs to pass")
    size: int = Field(default=2 * controls.LEAST, ge=1, description="controls of each class, at most")


class Panel(spending.Panel, Protocol):
    """What the settings of the judge stage say of it."""

    models: tuple[str, ...]
    gate: Gate
    allow_weak_judges: bool


@dataclass(frozen=True)
class Trial:
    """A panel before its controls."""

    controls: pl.DataFrame
    """query_id, doc_id, kind."""
    table: Table
    panel: list[AnySeat]

    def asked(self) -> list[AnySeat]:
        """Return the seats, those that cost with a label that tells them from those at the pool."""
        return [replace(seat, purpose="controls") if isinstance(seat, PaidSeat) else seat for seat in self.panel]

    def need_positives(self, known: int) -> None:
        """Raise DataError if none of the known pairs, which are so many, is a relevant one of this run."""
        if self.controls.filter(pl.col("kind") == "positive").is_empty():
            raise DataError(
                f"controls: found no relevant pair among {known:,} known ones whose query and document are in this "
                "run; give pairs of this run, graded S or A"
            )

    def measured(self, gate: Gate) -> dict[str, Accuracy]:
        """Return judge -> how it did, from what the ledger holds now."""
        return {seat.name: controls.measure(self.said(seat), gate.floor, gate.least) for seat in self.panel}

    def said(self, seat: AnySeat) -> pl.DataFrame:
        """Return the controls with what a judge said of them: query_id, doc_id, kind, grade."""
        rows = self.table.snapshot(seat).select(*PAIR, "grade")
        return self.controls.join(rows, on=PAIR, how="left", maintain_order="left")


def lay(
    known: pl.DataFrame,
    config: Panel,
    context: Context,
    table: Table,
    texts: Callable[[pl.DataFrame], Pool],
    rubric: Callable[[], Rubric],
) -> Trial:
    """Return a panel before controls drawn from `known`, pairs that people graded: query_id, doc_id, grade.

    `table` is the one of the pool, `texts` gives the texts of pairs. Judges that replay are not there: nobody can ask
    them of pairs that were not recorded.
    """
    pool = context.read("pool", "pool").select(*PAIR, "position")
    documents = [doc.doc_id for batch in TableCorpus(context.folder("diversify")).batches() for doc in batch]
    mine = known.filter(pl.col("doc_id").is_in(documents))
    drawn = controls.draw(mine, pool, documents, config.gate.size, context.seed)
    laid = replace(table, pool=texts(controls.among(drawn, pool, table.batch, context.seed)), replicate=REPLICATE)
    seats = [laid.seat(name, context, rubric) for name in config.models]
    return Trial(drawn, laid, [seat for seat in seats if not isinstance(seat, ReplaySeat)])


def known(path: Path, context: Context) -> pl.DataFrame:
    """Return the pairs in a file of known grades: query_id, doc_id, grade; DataError unless it is such a table."""
    return Names(context.folder("mask"), context.home).follow(drawing.known(path)).rename({"expected": "grade"})


def passed(tried: Trial | None, config: Panel, context: Context) -> dict[str, Accuracy] | None:
    """Have the panel answer the controls, and stop if a judge is too weak; return how it did."""
    if tried is None:
        return None
    tried.table.ledger.note(judging.noted(tried.table.pool))
    spending.rate(tried.table, tried.asked(), config, context)
    found = tried.measured(config.gate)
    for line in undiscerning(tried):
        context.tell(f"judge: {line}")
    stop_the_weak(found, config.gate, allowed=config.allow_weak_judges or context.consent.allow_weak_judges)
    return found


def undiscerning(tried: Trial) -> list[str]:
    """Return a sentence per judge that gives one grade to all controls."""
    grades = {seat.name: sanity.undiscerning(tried.said(seat)) for seat in tried.panel}
    return [
        f"{name} gives {grade} to every control, planted positive or negative: it does not tell them apart"
        for name, grade in grades.items()
        if grade
    ]


def stop_the_weak(found: Mapping[str, Accuracy], gate: Gate, *, allowed: bool) -> None:
    """Raise UserError with a line a judge unless all passed, or weak ones are allowed."""
    if allowed or not weak(found):
        return
    lines = "\n".join(f"  {name}: {line(each)}" for name, each in found.items())
    raise UserError(
        f"judges did not pass the gate (lower bound of balanced accuracy {gate.floor:g}, {gate.least} answers a "
        f"class):\n{lines}\ntake other judges, or go on with --allow-weak-judges"
    )


def weak(found: Mapping[str, Accuracy]) -> list[str]:
    """Return who did not pass, enough controls or not."""
    return [name for name, each in found.items() if each.state != "passed"]


def line(found: Accuracy) -> str:
    """Return how a judge did, as a clause."""
    whole = "not defined" if found.value is None else f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    classes = (("positives", found.positives), ("negatives", found.negatives))
    parts = [f"{round(each.value * each.answered)} of {each.answered} {name}" for name, each in classes if each]
    return f"{found.state}, balanced accuracy {whole}, right on {', '.join(parts) or 'nothing'}"


def facts(found: Mapping[str, Accuracy] | None, config: Panel) -> Json:
    """Return what the run's report keeps of the gate; None without controls."""
    if found is None:
        return {"allow_weak_judges": True} if config.allow_weak_judges else None
    return {"allow_weak_judges": config.allow_weak_judges, "judges": {name: asdict(a) for name, a in found.items()}}


def notes(found: Mapping[str, Accuracy] | None, config: Panel) -> Sequence[str]:
    """Return what a user must know of judges that did not pass, or were never measured though that was allowed."""
    if found is None:
        unseen = "allow_weak_judges is set and no controls are: nothing shows that these judges can judge"
        return [unseen] if config.allow_weak_judges else []
    return [f"{name} did not pass the gate: {line(found[name])}" for name in weak(found)]
