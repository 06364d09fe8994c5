"""Error rates of masking (missed PII, wrongly masked text), estimated from a sample that people read.

Answers are appended to the folder of the sample, as in reviews. The figures are also written to `checks/mask.json`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curate.commands.check.mask_sample import MASKED, Wish, long, opened, state
from curate.core.config import Json
from curate.pipeline.facts import MADE_FROM, made_from
from curate.pipeline.stage import Context, home
from curate.review import Desk, paper
from curate.review.paper import FileResult, Kind
from curate.runs.checks import CHECKS
from curate.stats import sample_estimates
from curate.stats.sample_estimates import StratumCounts

LEAK, CHANGED = frozenset({"leak", "both"}), frozenset({"changed", "both"})
"""Answers that report missed PII, and those that report wrongly masked text."""


@dataclass(frozen=True)
class MaskResult:
    """Figures of a check, and the sheets that were written or read."""

    figures: dict[str, Json]
    sheets: Sequence[Path] = ()
    """Annotation sheets to fill in."""
    taken: Sequence[FileResult] = ()
    """Results of importing filled-in sheets."""
    long: int = 0
    """Number of texts longer than a spreadsheet cell."""


def desk(run: Path, wish: Wish, number: int | None = None, *, new: bool = False) -> Desk:
    """Return the sample chosen as by `mask_sample.opened`, which may draw one, with the answers to it."""
    return Desk(opened(run, wish, number, new=new))


def exchange(sample_answers: Desk, run: Path, kinds: Sequence[Kind]) -> MaskResult:
    """Write the annotation sheets of a sample, unless all exist (they may be filled in); return figures and paths."""
    out = sample_answers.sample.folder / "sheets"
    sheets = [out / f"{person}.{kind}" for person in sample_answers.assessors for kind in kinds]
    if not all(path.is_file() for path in sheets):
        paper.hand_out(sample_answers, out, kinds)
    return MaskResult(check(run, sample_answers), sheets, long=long(sample_answers.sample))


def take_back(run: Path, files: Sequence[Path], number: int | None = None, assessor: str | None = None) -> MaskResult:
    """Import the answers in filled-in sheets, except rows with a problem, and return the figures."""
    answers = Desk(opened(run, Wish(), number, returning=True))
    results = paper.take_back(answers, files, assessor, keep_good_rows=True)
    return MaskResult(check(run, answers), taken=results)


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


def check(run: Path, sample_answers: Desk) -> dict[str, Json]:
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
    changed = [row for row, answer in answers.items() if answer in CHANGED]
    result: dict[str, Json] = {
        MADE_FROM: made_from(Context(run=run, out=run, home=home()), "mask"),
        "sample": int(sample_answers.sample.folder.name),
        "outdated": design.facts["tables"] != state(run),
        "rows": len(stratum_by_row),
        "read": len(answers),
        "texts": sum(stratum.texts for stratum in strata),
        **shares(strata),
        "strata": [
            {
                "stratum": stratum.stratum,
                "texts": stratum.texts,
                "read": len(stratum.answers),
                "leak": _figure([stratum], LEAK),
                "changed": _figure([stratum], CHANGED) if stratum.masked else None,
            }
            for stratum in strata
        ],
        "faulty": {row: answer for row, answer in answers.items() if answer != "clean"},
        "contradictions": [row for row in changed if not stratum_by_row[row].endswith(MASKED)],
    }
    CHECKS["mask"].write(run, result)
    return result


def shares(strata: Sequence[Read]) -> dict[str, Json]:
    """Return the shares of texts with masking errors, each with its 95 % interval, as `sample_estimates.share`.

    `leak`: share of all texts in which PII was missed. `changed_of_masked`: share of wrongly masked texts among those
    with masked spans. `changed`: the same share among all texts, `changed_of_masked` times the share of texts with
    masked spans. A figure is None if one of its strata has texts but no answer.
    """
    masked = [stratum for stratum in strata if stratum.masked]
    of_masked = _figure(masked, CHANGED)
    masked_share = sum(stratum.texts for stratum in masked) / sum(stratum.texts for stratum in strata)
    return {
        "leak": _figure(strata, LEAK),
        "changed": of_masked
        and {**of_masked, **{name: round(masked_share * of_masked[name], 6) for name in ("value", "low", "high")}},
        "changed_of_masked": of_masked,
    }


def _figure(strata: Sequence[Read], fault: frozenset[str]) -> dict[str, float] | None:
    """Return the share of texts with an answer in `fault`, with interval, `hits` and `read`.

    None if a stratum with texts has no answer.
    """
    counted = [
        StratumCounts(stratum.texts, len(stratum.answers), sum(answer in fault for answer in stratum.answers))
        for stratum in strata
    ]
    estimate = sample_estimates.share(counted)
    if estimate is None:
        return None
    return {**estimate.bounds(6), "hits": int(sum(stratum.hits for stratum in counted)), "read": estimate.answered}
