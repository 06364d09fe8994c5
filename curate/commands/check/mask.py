"""How much personal data is left after masking, and how much else was masked, as people say who read a sample.

Answers are appended beside the sample, as those of reviews are. The figures are also written to `checks/mask.json`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curate.commands.check.mask_sample import MASKED, Wish, long, opened, state
from curate.core.config import Json
from curate.pipeline.freshness import MADE_FROM, made_from
from curate.pipeline.stage import Context, home
from curate.review import Desk, paper
from curate.review.paper import FileResult, Kind
from curate.stats import sample_estimates
from curate.stats.sample_estimates import StratumCounts
from curate.system.files import write_json

LEAK, CHANGED = frozenset({"leak", "both"}), frozenset({"changed", "both"})
"""Answers that say so."""


@dataclass(frozen=True)
class MaskResult:
    """What a check did."""

    figures: dict[str, Json]
    sheets: Sequence[Path] = ()
    """Files to fill in."""
    taken: Sequence[FileResult] = ()
    """What came back."""
    long: int = 0
    """Texts that are longer than a cell of a spreadsheet."""


def desk(run: Path, wish: Wish, number: int | None = None, *, new: bool = False) -> Desk:
    """Return the sample that is meant, drawn if need be, with the answers to it."""
    return Desk(opened(run, wish, number, new=new))


def exchange(desk: Desk, run: Path, kinds: Sequence[Kind]) -> MaskResult:
    """Hand out the sheets of a sample, unless they are there already and perhaps filled in; say what is known."""
    out = desk.sample.folder / "sheets"
    there = [out / f"{person}.{kind}" for person in desk.assessors for kind in kinds]
    if not all(path.is_file() for path in there):
        paper.hand_out(desk, out, kinds)
    return MaskResult(check(run, desk), there, long=long(desk.sample))


def take_back(run: Path, files: Sequence[Path], number: int | None = None, assessor: str | None = None) -> MaskResult:
    """Take the answers of sheets that came back, without rows that have a problem, and say what is known."""
    back = Desk(opened(run, Wish(), number, returning=True))
    taken = paper.take_back(back, files, assessor, keep_good_rows=True)
    return MaskResult(check(run, back), taken=taken)


@dataclass(frozen=True)
class Read:
    """What people said of the texts of one stratum."""

    stratum: str
    texts: int
    answers: Sequence[str]

    @property
    def masked(self) -> bool:
        """Say whether something was masked in its texts."""
        return self.stratum.endswith(MASKED)


def check(run: Path, desk: Desk) -> dict[str, Json]:
    """Return what a sample says of a run's masked texts as far as it was read, and write it to `checks/mask.json`."""
    design = desk.sample.design
    rows = list(desk.answered())
    said = {row["row_id"]: settled for row, _, settled in rows if settled}
    strata = {row["row_id"]: row["stratum"] for row, _, _ in rows}
    parts = [
        Read(each.name, each.size, [said[row] for row, name in strata.items() if name == each.name and row in said])
        for each in design.strata
    ]
    changed = [row for row, answer in said.items() if answer in CHANGED]
    result: dict[str, Json] = {
        MADE_FROM: made_from(Context(run=run, out=run, home=home()), "mask"),
        "sample": int(desk.sample.folder.name),
        "outdated": design.facts["tables"] != state(run),
        "rows": len(strata),
        "read": len(said),
        "texts": sum(part.texts for part in parts),
        **shares(parts),
        "strata": [_row(part) for part in parts],
        "faulty": {row: answer for row, answer in said.items() if answer != "clean"},
        "contradictions": [row for row in changed if not strata[row].endswith(MASKED)],
    }
    write_json(run / "checks" / "mask.json", result)
    return result


def shares(parts: Sequence[Read]) -> dict[str, Json]:
    """Return the shares of texts with a fault, each with its 95 % interval as `curate.stats.sample_estimates` has it.

    `leak`: share of all texts in which personal data is left. `changed_of_masked`: share of the texts in which
    something was masked, in which that was something else. `changed`: the same of all texts; where nothing was masked
    nothing was changed, so it is the former times the share of masked texts. None where a stratum has texts and no
    answer.
    """
    masked = [part for part in parts if part.masked]
    of_masked = _figure(masked, CHANGED)
    times = sum(part.texts for part in masked) / sum(part.texts for part in parts)
    return {
        "leak": _figure(parts, LEAK),
        "changed": of_masked
        and {**of_masked, **{name: round(times * of_masked[name], 6) for name in ("value", "low", "high")}},
        "changed_of_masked": of_masked,
    }


def _figure(parts: Sequence[Read], fault: frozenset[str]) -> dict[str, float] | None:
    """Return a share with its interval, and how many of how many answers are hits."""
    counted = [
        StratumCounts(part.texts, len(part.answers), sum(answer in fault for answer in part.answers)) for part in parts
    ]
    found = sample_estimates.share(counted)
    if found is None:
        return None
    return {**found.bounds(6), "hits": int(sum(part.hits for part in counted)), "read": found.answered}


def _row(part: Read) -> dict[str, Json]:
    row: dict[str, Json] = {"stratum": part.stratum, "texts": part.texts, "read": len(part.answers)}
    return {**row, "leak": _figure([part], LEAK), "changed": _figure([part], CHANGED) if part.masked else None}
