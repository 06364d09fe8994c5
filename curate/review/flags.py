"""What assessors flagged in a sample: rows that they cannot judge, and personal data that masking missed.

Flags are lines of `flags.jsonl` in the sample's folder, which is only appended to. A flag of personal data is open
until the lead settles it; that of a row that no assessor could judge, until its assessor answers or it is adjudicated.
"""

import shlex
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from curate.core.errors import ConfigError, DataError, NotFound, UserError, suggestion
from curate.core.records import FILTERED
from curate.review.desk import ADJUDICATED, FLAGS, Desk, desks
from curate.review.drawing import outdated
from curate.system.files import append_lines, read_lines

Reason = Literal["query", "text", "field", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Why a row cannot be judged: the query or the text is unclear, it is not the assessor's field, or another reason."""
Settlement = Literal["harmless", "masked"]
CANNOT, PERSONAL = "cannot_judge", "personal_data"


@dataclass(frozen=True)
class Flag:
    """A flag of one assessor on one row."""

    row_id: str
    person: str
    flag: str
    """`cannot_judge` or `personal_data`."""
    reason: str = ""
    """One of `REASONS`, of a row that cannot be judged."""
    to: str = ""
    """Assessor who reads the row instead, because it is not of the own field; empty if there is none."""
    at: str = ""
    """Time in UTC, ISO 8601."""
    settled: str = ""
    """How the lead settled it: `harmless` or `masked`; empty while it is open."""


def of(desk: Desk) -> list[Flag]:
    """Return the flags of a sample, the last of each assessor, row and kind, oldest first."""
    file, flags = desk.sample.folder / FLAGS, dict[tuple[str, str, str], Flag]()
    for line, record in read_lines(file):
        try:
            flag = Flag(**record)
        except TypeError as error:
            raise DataError(f"{file}:{line}: found a damaged line, expected a flag; take the line out") from error
        if flag.person:
            flags.pop((flag.row_id, flag.person, flag.flag), None)
            flags[flag.row_id, flag.person, flag.flag] = flag
            continue
        for key in [key for key in flags if key[0] == flag.row_id and key[2] == flag.flag]:
            flags[key] = replace(flags[key], settled=flag.settled)
    return [flag for flag in flags.values() if flag.settled != _TAKEN_BACK]


_TAKEN_BACK = "taken back"


def open_flags(desk: Desk) -> list[Flag]:
    """Return the flags that are not dealt with: see the module."""
    answers = {person: desk.said(person) for person in desk.people()}

    def is_open(flag: Flag) -> bool:
        if flag.flag == PERSONAL:
            return not flag.settled
        answers_to_row = [answers[person].get(flag.row_id) for person in (flag.person, flag.to, ADJUDICATED) if person]
        return not any(answer and answer.answer for answer in answers_to_row)

    return [flag for flag in of(desk) if is_open(flag)]


def raise_flag(desk: Desk, person: str, row_id: str, flag: str, reason: str = "") -> None:
    """Store a flag; ConfigError for another person's row, an unknown flag, or an unknown reason."""
    if row_id not in {row.row_id for row in desk.rows(person)}:
        raise ConfigError(f"row {row_id!r} is not among those of {person!r}")
    if flag not in (CANNOT, PERSONAL):
        raise ConfigError(f"{flag!r} is no flag; {suggestion(flag, (CANNOT, PERSONAL))}")
    if flag == CANNOT and reason not in REASONS:
        raise ConfigError(f"{reason!r} is no reason; {suggestion(reason, REASONS)}")
    to = _other_reader(desk, row_id) if flag == CANNOT and reason == "field" else ""
    _append(desk, Flag(row_id, person, flag, reason if flag == CANNOT else "", to))


def _other_reader(desk: Desk, row_id: str) -> str:
    """Return the assessor with the fewest rows who has not been given a row yet; empty if there is none."""
    free = [name for name in desk.assessors if row_id not in {row.row_id for row in desk.rows(name)}]
    return min(free, key=lambda name: len(desk.rows(name)), default="")


def take_back(desk: Desk, person: str, row_id: str) -> None:
    """Withdraw an assessor's flag that a row cannot be judged."""
    _append(desk, Flag(row_id, person, CANNOT, settled=_TAKEN_BACK))


def settle(desk: Desk, row_id: str, how: Settlement) -> int:
    """Settle the flags of personal data on a row; return their number.

    NotFound without an open flag on it. UserError for `masked` while the run has the row's texts as they were flagged.
    """
    flags = [flag for flag in open_flags(desk) if flag.flag == PERSONAL and flag.row_id == row_id]
    if not flags:
        others = [flag.row_id for flag in open_flags(desk) if flag.flag == PERSONAL]
        raise NotFound(f"--settle {row_id}: found no open flag of personal data on it; {suggestion(row_id, others)}")
    run = desk.sample.folder.parent.parent
    if (
        how == "masked"
        and not desk.sample.of_items
        and _pair(desk, row_id) not in outdated(desk.sample, run / FILTERED)
    ):
        raise UserError(
            f"--settle {row_id} --as masked: found its texts unchanged in {run}, expected the personal data masked; "
            "mask it by mask.words or mask.patterns and run the pipeline again"
        )
    _append(desk, Flag(row_id, "", PERSONAL, settled=how))
    return len(flags)


def personal(run: Path) -> list[tuple[str, Flag]]:
    """Return (name of the sample, flag) of all open flags of personal data in the samples of a run."""
    return [
        (desk.sample.design.name, flag) for desk in desks(run) for flag in open_flags(desk) if flag.flag == PERSONAL
    ]


def personal_rows(run: Path) -> list[tuple[str, str]]:
    """Return (name of the sample, row) of all rows of a run with an open flag of personal data, without repetition."""
    return list(dict.fromkeys((sample, flag.row_id) for sample, flag in personal(run)))


def stop(who: str, run: Path) -> None:
    """Raise UserError while personal data that an assessor flagged is not settled; `who` names the recipient."""
    if rows := personal_rows(run):
        raise UserError(
            f"{who}: found personal data that assessors flagged in {len(rows):,} rows, expected none open; look at "
            f"each and settle it: {listing(run, rows[0][0])}"
        )


def listing(run: Path, sample: str) -> str:
    """Return the command that lists the open flags of a sample."""
    return f"curate review flags --run {shlex.quote(str(run))} --sample {shlex.quote(sample)}"


def _pair(desk: Desk, row_id: str) -> tuple[str, str]:
    query_id, doc_id = desk.sample.survey.row(by_predicate=pl.col("row_id") == row_id, named=True)["ids"]
    return query_id, doc_id


def _append(desk: Desk, flag: Flag) -> None:
    record = {**asdict(flag), "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
    line = {name: field for name, field in record.items() if field or name == "person"}
    append_lines(desk.sample.folder / FLAGS, [line])
