"""A sample on paper: a sheet per person to hand out, with the guide beside it, and the sheets that come back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from curate.core.errors import ConfigError, DataError, UserError, suggestion
from curate.review import desk as answers
from curate.review.desk import ADJUDICATED, Answer, Desk
from curate.review.forms import html
from curate.review.proof import disagreements
from curate.review.sample import Sample
from curate.review.sheets import Returned, SheetEntry, SheetProblem, check, read, signed_by, to_csv, to_xlsx
from curate.system import resources
from curate.system.files import replacing, write_text

Kind = Literal["csv", "xlsx"]
_WRITERS = {"csv": to_csv, "xlsx": to_xlsx}


@dataclass(frozen=True)
class FileResult:
    """What was taken from a file."""

    file: Path
    assessor: str
    answers: int
    """Rows with an answer or a note that have no problem."""
    new: int
    """Those that say something that was not said before."""
    problems: Sequence[SheetProblem]
    """Why other rows were held back."""


def hand_out(desk: Desk, out: Path, kinds: Sequence[Kind] = ("csv",)) -> list[Path]:
    """Write one sheet per assessor, and the guide; returns the paths of all files.

    UserError if a file is there with other content, for an assessor may have filled it in.
    """
    form = desk.sample.form
    sheets = {
        out / f"{person}.{kind}": _WRITERS[kind](form, person, {row.row_id: row.texts for row in desk.rows(person)})
        for person in desk.assessors
        for kind in kinds
    }
    _write(sheets)
    write_text(out / "GUIDE.html", guide(desk.sample))
    return [*sheets, out / "GUIDE.html"]


def _write(sheets: Mapping[Path, bytes]) -> None:
    filled = [path for path, content in sheets.items() if path.exists() and path.read_bytes() != content]
    if filled:
        names = ", ".join(map(str, filled))
        raise UserError(f"{names}: there already, and perhaps filled in; choose another --out, or move it away")
    for path, content in sheets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            beside.write_bytes(content)


def kinds(names: str) -> list[Kind]:
    """Return the kinds of sheets in a list such as `csv,xlsx`; ConfigError for another one."""
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in _WRITERS:
            raise ConfigError(f"--format: {name!r}: {suggestion(name, _WRITERS)}")
    return cast("list[Kind]", chosen)


def guide(sample: Sample) -> str:
    """Return the guide for assessors as a page that needs nothing else."""
    from jinja2 import Environment

    page = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True).from_string(
        resources.template("review/guide.html.j2")
    )
    form = sample.form
    return page.render(language=form.language, title=form.title, body=html(sample.guide))


def dispute(desk: Desk, path: Path) -> tuple[Path, int]:
    """Write a sheet of the rows that need a final answer, with what people and panel said; returns path and rows.

    UserError if the file is there with other content, for the adjudicator may have filled it in.
    """
    rows = disagreements(desk)
    said = {
        row.row_id: "; ".join(
            [
                *(f"{who}: {grade}" for who, grade in row.said.items()),
                *([f"{'published' if row.of_items else 'panel'}: {row.verdict}"] if row.verdict else ()),
            ]
        )
        for row in rows
    }
    texts = {row.row_id: desk.sample.rows[row.row_id].texts for row in rows}
    _write({path: to_csv(desk.sample.form, ADJUDICATED, texts, said)})
    return path, len(rows)


def take_back(
    desk: Desk, files: Sequence[Path], assessor: str | None = None, *, keep_good_rows: bool = False
) -> list[FileResult]:
    """Record what the sheets of a sample say; returns one result per file.

    Whose sheet it is stands in its column; `assessor` says it where that is gone. DataError with one line per
    problem in all files, and then nothing was taken from any; with `keep_good_rows` only the rows that have a problem
    are held back, and they are in the results. Two files in which one person says different things of a row are refused
    in either case: one by one, the later counts.
    """
    found: list[tuple[Path, str, Returned]] = []
    refused: list[str] = []
    for file in files:
        try:
            found.append((file, *_returned(desk, file, assessor)))
        except DataError as error:
            refused.append(str(error))
    refused += _contradictions(found)
    if not keep_good_rows:
        bad = [f"{file}, {problem}" for file, _, returned in found for problem in returned.problems]
        hint = "nothing was imported; mend these rows, or import the others with --keep-good-rows"
        refused += [*bad, hint] if bad and not refused else bad
    if refused:
        raise DataError("\n".join(refused))
    return [_record(desk, file, person, returned) for file, person, returned in found]


def _returned(desk: Desk, file: Path, assessor: str | None) -> tuple[str, Returned]:
    form = desk.sample.form
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}), expected a sheet; check the path") from error
    sheet = read(content, str(file), form)
    person = assessor or signed_by(sheet, (*desk.assessors, ADJUDICATED))
    if person is None:
        raise DataError(
            f"{file}: found no name of an assessor, expected one in the column {form.headers['assessor']!r}; "
            f"name who filled it in with --assessor ({suggestion(file.stem, desk.assessors)})"
        )
    rows: Mapping[str, tuple[str, ...]] = {row.row_id: row.texts for row in desk.rows(person)}
    others = desk.sample.rows.keys() - rows.keys()
    return person, check(sheet, form, rows, person, others)


def _contradictions(found: Sequence[tuple[Path, str, Returned]]) -> Iterator[str]:
    """Yield one line per row of which one person says something else in another file."""
    said: dict[tuple[str, str], tuple[Path, SheetEntry]] = {}
    for file, person, returned in found:
        for entry in returned.answers:
            other, before = said.setdefault((person, entry.row_id), (file, entry))
            if entry.answer != before.answer:
                yield (
                    f"{file}, row {entry.row} ({entry.row_id}): found {entry.answer or 'no answer'}, expected "
                    f"{before.answer or 'no answer'} as in {other}, row {before.row}; take the files back "
                    "one by one, the one that counts last"
                )


def _record(desk: Desk, file: Path, person: str, returned: Returned) -> FileResult:
    """Record what a file says that it did not say before: taken back again it changes no newer answer."""
    said = desk.said(person)
    past = answers.history(desk.sample.folder, person)
    earlier = {answer.row_id: answer for answer in past if answer.source == file.name}
    given = []
    for entry in returned.answers:
        before = said.get(entry.row_id, Answer(entry.row_id, None))
        taken = earlier.get(entry.row_id)
        if not taken or entry.answer not in (None, taken.answer) or entry.note not in ("", taken.note):
            word, note = entry.answer or before.answer, entry.note or before.note  # an empty cell takes nothing back
            given.append(Answer(entry.row_id, word, note, source=file.name))
    return FileResult(file, person, len(returned.answers), desk.record(person, given), returned.problems)
