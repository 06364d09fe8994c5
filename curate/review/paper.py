"""Annotation sheets of a sample: write one per assessor with the guide, and import the filled-in ones."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from curate.core.errors import ConfigError, TableError, TableFault, UserError, suggestion
from curate.core.figures import Record, figure
from curate.review import desk as answers
from curate.review import flags
from curate.review.desk import ADJUDICATED, Answer, Desk
from curate.review.forms import html
from curate.review.proof import disagreements
from curate.review.sample import Sample
from curate.review.sheets import Returned, SheetEntry, SheetProblem, check, read, signed_by, to_csv, to_xlsx
from curate.system import resources
from curate.system.files import replacing, write_text

Kind = Literal["csv", "xlsx"]
_WRITERS = {"csv": to_csv, "xlsx": to_xlsx}


class FileResult(Record, schema_name="returned"):
    """What was taken from each file."""

    file: Path = figure("the filled-in file")
    assessor: str = figure("assessor who filled it in")
    answers: int = figure("rows with an answer or a note that have no problem")
    new: int = figure("answers that differ from the stored ones")
    problems: Sequence[SheetProblem] = figure("problems of the rows that were not imported")
    chosen: int = figure("rows with one of the form's answers", default=0)
    cannot_judge: int = figure("rows marked as impossible to judge", default=0)
    personal_data: int = figure("rows marked as holding personal data", default=0)
    empty: int = figure("rows with neither answer nor note", default=0)

    @property
    def counts(self) -> str:
        """Return the rows of the file by what they hold, and the number of new answers."""
        notes_only = self.answers - self.chosen - self.cannot_judge - self.personal_data
        others = [
            (self.cannot_judge, "cannot judge"),
            (self.personal_data, "personal data"),
            (notes_only, "with a note only"),
            (self.empty, "empty"),
        ]
        told = [f"{self.chosen:,} answers", *(f"{rows:,} {what}" for rows, what in others if rows)]
        return f"{', '.join(told)}; {self.new:,} new"


def hand_out(review: Desk, out: Path, kinds: Sequence[Kind] = ("csv",)) -> list[Path]:
    """Write one sheet per assessor and file format, and the guide; return the paths of all files.

    UserError if a file exists with other content, since an assessor may have filled it in.
    """
    form = review.sample.form
    sheets = {
        out / f"{person}.{kind}": _WRITERS[kind](form, person, {row.row_id: row.texts for row in review.rows(person)})
        for person in review.assessors
        for kind in kinds
    }
    _write(sheets, "choose another --out, or move it away")
    write_text(out / "GUIDE.html", guide(review.sample))
    return [*sheets, out / "GUIDE.html"]


def readers(review: Desk) -> str:
    """Return a sentence with the number of rows of each assessor, and of the rows that two assessors read."""
    people = ", ".join(f"{person} {len(review.rows(person)):,}" for person in review.assessors)
    if len(review.assessors) < 2:
        return f"rows to read: {people}"
    twice = int((review.sample.survey["assessors"].list.len() > 1).sum())
    by_two = "both" if len(review.assessors) == 2 else "two people"
    return f"rows to read: {people}, {twice:,} by {by_two}; each fills in one file"


def _write(sheets: Mapping[Path, bytes], remedy: str) -> None:
    """Write sheets; UserError, ending in `remedy`, if a file exists with other content."""
    filled = [path for path, content in sheets.items() if path.exists() and path.read_bytes() != content]
    if filled:
        names = ", ".join(map(str, filled))
        raise UserError(f"{names}: there already, and perhaps filled in; {remedy}")
    for path, content in sheets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(content)


def kinds(names: str) -> list[Kind]:
    """Return the file formats of sheets in a list such as `csv,xlsx`; ConfigError for an unknown one."""
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in _WRITERS:
            raise ConfigError(f"--format: {name!r}: {suggestion(name, _WRITERS)}")
    return cast("list[Kind]", chosen)


def guide(sample: Sample) -> str:
    """Return the guide for assessors as a self-contained HTML page."""
    from jinja2 import Environment

    page = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True).from_string(
        resources.template("review/guide.html.j2")
    )
    form = sample.form
    return page.render(language=form.language, title=form.title, body=html(sample.guide))


def dispute(review: Desk, path: Path) -> tuple[Path, int]:
    """Write the adjudicator's sheet: rows in disagreement, with the answers of assessors and panel; none if none is.

    Return its path and number of rows. UserError if the file exists with other content, since the adjudicator may have
    filled it in.
    """
    rows = disagreements(review)
    if not rows:
        return path, 0
    opinions = {
        row.row_id: "; ".join(
            [
                *(f"{who}: {grade}" for who, grade in row.said.items()),
                *([f"{'published' if row.of_items else 'panel'}: {row.verdict}"] if row.verdict else ()),
            ]
        )
        for row in rows
    }
    texts = {row.row_id: review.sample.rows[row.row_id].texts for row in rows}
    remedy = f"read it (`curate review adjudicate {shlex.quote(str(path))}`), or choose another --out"
    _write({path: to_csv(review.sample.form, ADJUDICATED, texts, opinions)}, remedy)
    return path, len(rows)


def take_back(
    review: Desk, files: Sequence[Path], assessor: str | None = None, *, keep_good_rows: bool = False
) -> list[FileResult]:
    """Record the answers in the sheets of a sample; return one result per file.

    `assessor` is who filled in the files; None to read it from the sheet's column. If any row has a problem, nothing is
    imported: TableError with one fault per problem in all files. With `keep_good_rows`, such rows are left out and
    listed in the results. Contradicting answers of one person in two files are always an error; if the files are
    imported one by one, the later answer counts.
    """
    sheets: list[tuple[Path, str, Returned]] = []
    faults: list[TableFault] = []
    for file in files:
        try:
            sheets.append((file, *_returned(review, file, assessor)))
        except TableError as error:
            faults += error.faults
    faults += _contradictions(sheets)
    mended_by_option = not faults
    if not keep_good_rows:
        faults += [problem.fault(file) for file, _, returned in sheets for problem in returned.problems]
    if faults:
        raise TableError(faults, [["--keep-good-rows"]] if mended_by_option else ())
    return [_record(review, file, person, returned) for file, person, returned in sheets]


def _returned(review: Desk, file: Path, assessor: str | None) -> tuple[str, Returned]:
    form = review.sample.form
    try:
        content = file.read_bytes()
    except OSError as error:
        raise TableError.at(file, f"no readable file ({error.strerror})", "a sheet", "check the path") from error
    sheet = read(content, str(file), form)
    person = assessor or signed_by(sheet, (*review.assessors, ADJUDICATED))
    if person is None:
        raise TableError.at(
            file,
            "no name of an assessor",
            f"an assessor in the column {form.headers['assessor']!r}",
            f"name who filled it in with --assessor ({suggestion(file.stem, review.assessors)})",
        )
    rows: Mapping[str, tuple[str, ...]] = {row.row_id: row.texts for row in review.rows(person)}
    others = review.sample.rows.keys() - rows.keys()
    return person, check(sheet, form, rows, person, others)


def _contradictions(sheets: Sequence[tuple[Path, str, Returned]]) -> Iterator[TableFault]:
    """Yield one fault per row to which one person gives different answers in two files."""
    first_entries: dict[tuple[str, str], tuple[Path, SheetEntry]] = {}
    for file, person, returned in sheets:
        for entry in returned.answers:
            first_file, first_entry = first_entries.setdefault((person, entry.row_id), (file, entry))
            if entry.answer != first_entry.answer:
                yield TableFault(
                    f"{file}:{entry.row} ({entry.row_id})",
                    entry.answer or "no answer",
                    f"{first_entry.answer or 'no answer'} as in {first_file}:{first_entry.row}",
                    "take the files back one by one, the one that counts last",
                )


def _record(review: Desk, file: Path, person: str, returned: Returned) -> FileResult:
    """Record the entries of a sheet that changed since its last import, so that it overwrites no newer answer."""
    current = review.said(person)
    past = answers.history(review.sample.folder, person)
    earlier = {answer.row_id: answer for answer in past if answer.source == file.name}
    changes = []
    flagged = {(flag.row_id, flag.flag) for flag in flags.of(review) if flag.person == person}
    for entry in returned.answers:
        if entry.flag and (entry.row_id, entry.flag) not in flagged:
            flags.raise_flag(review, person, entry.row_id, entry.flag, "other")
        current_answer = current.get(entry.row_id, Answer(entry.row_id, None))
        imported = earlier.get(entry.row_id)
        if entry.flag and not entry.note:
            continue
        if not imported or entry.answer not in (None, imported.answer) or entry.note not in ("", imported.note):
            word, note = (
                entry.answer or current_answer.answer,
                entry.note or current_answer.note,
            )  # an empty cell does not withdraw an answer
            changes.append(Answer(entry.row_id, word, note, source=file.name))
    marked = Counter(entry.flag for entry in returned.answers)
    return FileResult(
        file,
        person,
        len(returned.answers),
        review.record(person, changes),
        returned.problems,
        sum(entry.answer is not None for entry in returned.answers),
        marked[flags.CANNOT],
        marked[flags.PERSONAL],
        returned.empty,
    )
