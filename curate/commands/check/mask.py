"""Error rates of masking (missed PII, wrongly masked text), estimated from a sample that people read.

Answers are appended to the folder of the sample, as in reviews. The figures are also written to `checks/mask.json`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from curate.commands.check.mask_sample import MASKED, Wish, long, opened, state
from curate.core.figures import Record, figure
from curate.pipeline.facts import made_from
from curate.pipeline.stage import Context, home
from curate.review import Desk, paper
from curate.review.paper import FileResult, Kind
from curate.runs.checks import CHECKS
from curate.stats import sample_estimates
from curate.stats.sample_estimates import StratumCounts

LEAK, CHANGED = frozenset({"leak", "both"}), frozenset({"changed", "both"})
"""Answers that report missed PII, and those that report wrongly masked text."""


class ErrorRate(Record, schema_name="counted"):
    """Share of texts with an error of masking."""

    value: float | None = figure("share of the texts", digits=1, percent=True)
    low: float | None = figure("lower bound of the 95 % interval", digits=1, percent=True)
    high: float | None = figure("upper bound", digits=1, percent=True)
    hits: int = figure("texts read with the error")
    read: int = figure("texts read")


class MaskedStratum(Record, schema_name="stratum"):
    """Error rates of one stratum."""

    stratum: str = figure("table, and whether anything was masked")
    texts: int = figure("texts of the stratum")
    read: int = figure("texts read")
    leak: ErrorRate | None = figure("texts in which personal data is left")
    changed: ErrorRate | None = figure("texts in which something else was masked; null where nothing was masked")


class MaskFigures(Record, schema_name="sample"):
    """What people say of a sample of the masked texts; with --residual the places that masking may have missed."""

    made_from: str | None = figure(
        "identifies the tables that it saw, so that the figures are not shown as those of others"
    )
    sample: int = figure("its number")
    outdated: bool = figure("whether the stage `mask` gives other texts by now")
    rows: int = figure("texts of the sample")
    read: int = figure("texts that were read")
    texts: int = figure("texts that the sample was drawn from")
    leak: ErrorRate | None = figure("texts in which personal data is left")
    changed: ErrorRate | None = figure("texts in which something else was masked")
    changed_of_masked: ErrorRate | None = figure(
        "texts in which something else was masked, of those with a masked span"
    )
    strata: tuple[MaskedStratum, ...] = figure("a row per stratum")
    faulty: Mapping[str, str] = figure("row -> the error that assessors found in it")
    contradictions: tuple[str, ...] = figure("rows that are called changed though nothing was masked")
    sheets: tuple[Path, ...] = figure("files to fill in", default=())
    longer_than_a_cell: int = figure("texts that a spreadsheet does not show whole", default=0)


@dataclass(frozen=True)
class MaskResult:
    """Figures of a check, and the sheets that were read."""

    figures: MaskFigures
    taken: Sequence[FileResult] = ()


def desk(run: Path, wish: Wish, number: int | None = None, *, new: bool = False) -> Desk:
    """Return the sample chosen as by `mask_sample.opened`, which may draw one, with the answers to it."""
    return Desk(opened(run, wish, number, new=new))


def exchange(sample_answers: Desk, run: Path, kinds: Sequence[Kind]) -> MaskResult:
    """Write the annotation sheets of a sample, unless all exist (they may be filled in); return figures and paths."""
    out = sample_answers.sample.folder / "sheets"
    sheets = [out / f"{person}.{kind}" for person in sample_answers.assessors for kind in kinds]
    if not all(path.is_file() for path in sheets):
        paper.hand_out(sample_answers, out, kinds)
    figures = check(run, sample_answers)
    return MaskResult(replace(figures, sheets=tuple(sheets), longer_than_a_cell=long(sample_answers.sample)))


def take_back(run: Path, files: Sequence[Path], number: int | None = None, assessor: str | None = None) -> MaskResult:
    """Import the answers in filled-in sheets, except rows with a problem, and return the figures."""
    answers = Desk(opened(run, Wish(), number, returning=True))
    results = paper.take_back(answers, files, assessor, keep_good_rows=True)
    return MaskResult(check(run, answers), results)


@dataclass(frozen=True)
class Read:
    """Answers to the texts of one stratum."""

    stratum: str
    texts: int
    answers: Sequence[str]

    @property
    def masked(self) -> bool:
        """Return whether the texts of the stratum contain masked spans."""
        return self.stratum.endswith(MASKED)


def check(run: Path, sample_answers: Desk) -> MaskFigures:
    """Return the figures of a run's masking from the answers so far, and write them to `checks/mask.json`."""
    design = sample_answers.sample.design
    rows = list(sample_answers.answered())
    answers = {row["row_id"]: settled for row, _, settled in rows if settled}
    stratum_by_row = {row["row_id"]: row["stratum"] for row, _, _ in rows}
    strata = [
        Read(
            stratum.name,
            stratum.size,
            [answers[row] for row, name in stratum_by_row.items() if name == stratum.name and row in answers],
        )
        for stratum in design.strata
    ]
    changed, rates = [row for row, answer in answers.items() if answer in CHANGED], shares(strata)
    figures = MaskFigures(
        made_from=made_from(Context(run=run, out=run, home=home()), "mask"),
        sample=int(sample_answers.sample.folder.name),
        outdated=design.facts["tables"] != state(run),
        rows=len(stratum_by_row),
        read=len(answers),
        texts=sum(stratum.texts for stratum in strata),
        leak=rates["leak"],
        changed=rates["changed"],
        changed_of_masked=rates["changed_of_masked"],
        strata=tuple(
            MaskedStratum(
                stratum=stratum.stratum,
                texts=stratum.texts,
                read=len(stratum.answers),
                leak=_rate([stratum], LEAK),
                changed=_rate([stratum], CHANGED) if stratum.masked else None,
            )
            for stratum in strata
        ),
        faulty={row: answer for row, answer in answers.items() if answer != "clean"},
        contradictions=tuple(row for row in changed if not stratum_by_row[row].endswith(MASKED)),
    )
    of_call = {"sheets", "longer_than_a_cell"}
    CHECKS["mask"].write(run, {name: cell for name, cell in figures.to_json().items() if name not in of_call})
    return figures


def shares(strata: Sequence[Read]) -> dict[str, ErrorRate | None]:
    """Return the shares of texts with masking errors, each with its 95 % interval, as `sample_estimates.share`.

    `leak`: share of all texts in which PII was missed. `changed_of_masked`: share of wrongly masked texts among those
    with masked spans. `changed`: the same share among all texts, `changed_of_masked` times the share of texts with
    masked spans. A figure is None if one of its strata has texts but no answer.
    """
    masked = [stratum for stratum in strata if stratum.masked]
    masked_share = sum(stratum.texts for stratum in masked) / sum(stratum.texts for stratum in strata)
    return {
        "leak": _rate(strata, LEAK),
        "changed": _rate(masked, CHANGED, masked_share),
        "changed_of_masked": _rate(masked, CHANGED),
    }


def _rate(strata: Sequence[Read], fault: frozenset[str], factor: float = 1) -> ErrorRate | None:
    """Return the share of texts with an answer in `fault`, times `factor`; None if one of the strata lacks answers."""
    counted = [
        StratumCounts(stratum.texts, len(stratum.answers), sum(answer in fault for answer in stratum.answers))
        for stratum in strata
    ]
    estimate = sample_estimates.share(counted)
    if estimate is None:
        return None
    value, low, high = (round(factor * bound, 6) for bound in estimate.bounds(6).values())
    return ErrorRate(value, low, high, int(sum(stratum.hits for stratum in counted)), estimate.answered)
