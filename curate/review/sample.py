"""A sample for review by assessors, drawn once and frozen with its texts and verdicts."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import polars as pl

from curate.core.config import Json, canonical
from curate.core.errors import DataError, NotFound, UserError, suggestion
from curate.core.languages import in_language
from curate.core.scale import FIVE, Scale
from curate.review import forms as guide
from curate.review.forms import Form, explained, form
from curate.system import resources
from curate.system.files import read_json, read_table, write_json, write_table

VERSION = 1
ITEM_FORMS = ("item", "item-pair")
"""Forms of samples of a task type's items, with one or two texts; their answers are not grades of documents."""
OF_SOME = ("accept", "contested", "scores")
"""Values of the fact `of` of samples not drawn from all judged pairs; each has its own design."""
PILOT = "pilot"
"""Value of the fact `of` of a pilot: pairs graded before a panel is chosen, not a review of its labels."""
_LETTERS = "abcdfghjkmnpqrstvwxyz"
"""Letters of row names: without e, since a spreadsheet reads 1E5 as a number; without i, l, o and u, often misread."""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """Texts of one row, in the order of the form."""

    row_id: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Stratum:
    """A stratum of the pool: its number of pairs (`size`), and how many of them were drawn at random."""

    name: str
    size: int
    drawn: int


@dataclass(frozen=True)
class Design:
    """How a sample was drawn, and the form on which assessors answer it."""

    name: str
    form: str
    language: str
    seed: int
    assessors: Sequence[str]
    strata: Sequence[Stratum]
    overlap: float = 0.0
    """Share of the rows that a second assessor reads, too."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    scale: Mapping[str, Json] | None = None
    """Scale of the judges, as in `Scale.to_json`; None for the default scale of five grades."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Language -> grade -> meaning, from the judges' rubric; empty in older samples on the default scale, to which the
    packaged guide's own meanings belong."""
    version: int = VERSION


@dataclass(frozen=True)
class Sample:
    """A frozen sample in its folder."""

    folder: Path
    design: Design
    survey: pl.DataFrame
    """The `survey` table; the first of `assessors` is the one whose answer counts; `expected` is the right answer to a
    planted control, None in drawn rows."""

    @classmethod
    def load(cls, folder: Path) -> "Sample":
        """Return the sample in a folder; DataError if it is damaged or of another version."""
        if not (folder / "design.json").is_file():
            names = [path.parent.name for path in folder.parent.glob("*/design.json")]
            raise NotFound(
                f"{folder}: no such sample; {suggestion(folder.name, names)}; `curate review export` draws one"
            )
        try:
            design = read_json(folder / "design.json")
            if design["version"] == VERSION:
                strata = [Stratum(**stratum) for stratum in design["strata"]]
                return cls(folder, Design(**{**design, "strata": strata}), read_table(folder, "survey"))
        except (DataError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            raise DataError(
                f"{folder}: design.json or survey.parquet is damaged or missing, expected a sample as `curate review "
                "export` froze it; put copies of both back"
            ) from error
        raise DataError(f"{folder}: a sample of version {design['version']}, expected {VERSION}; draw a new one")

    @classmethod
    def find(cls, run: Path, name: str | None = None) -> "Sample":
        """Return a sample of a run by name, by default the newest; NotFound if none was drawn, DataError if damaged."""
        if name is not None:
            return cls.load(run / "reviews" / name)
        paths = sorted((run / "reviews").glob("*/design.json"), key=lambda path: path.stat().st_mtime)
        if not paths:
            raise NotFound(f"{run}: no sample was drawn yet; `curate review export --size N` draws one")
        return cls.load(paths[-1].parent)

    @staticmethod
    def refuse(folder: Path) -> None:
        """Raise UserError if a folder already holds a sample, since assessors may have answered it."""
        if (folder / "design.json").exists():
            raise UserError(
                f"{folder}: holds a sample already, which people may have answered; choose another --sample"
            )

    def freeze(self) -> None:
        """Write the sample; UserError if its folder holds one."""
        self.refuse(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_table(self.folder, "survey", self.survey)
        write_json(self.folder / "design.json", asdict(self.design))

    @cached_property
    def form(self) -> Form:
        """Return the form of the questions, in the sample's language."""
        base = form(self.design.form, self.design.language, self.scale)
        if self.of_items:
            meanings = {answer: self.meanings.get(answer, "") for answer in base.answers}
            return explained(replace(base, question=self.question(base.language)), meanings)
        return explained(base, self.meanings) if self.design.scale and self.design.meanings else base

    @property
    def of_items(self) -> bool:
        """Return whether its rows are items of a task type instead of query-document pairs."""
        return self.design.form in ITEM_FORMS

    @property
    def of_some(self) -> bool:
        """Return whether only some judged pairs could be drawn, so that its strata do not represent the others."""
        return self.design.facts.get("of") in OF_SOME

    @property
    def of_pilot(self) -> bool:
        """Return whether the sample is a pilot for choosing a panel instead of a review of labels."""
        return self.design.facts.get("of") == PILOT

    def question(self, language: str) -> str:
        """Return the question about an item in the language, else in English, else in any language; only for items."""
        return in_language(cast("Mapping[str, str]", self.design.facts["question"]), language)

    @cached_property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return FIVE if self.design.scale is None else Scale.from_json(self.design.scale)

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Return answer -> meaning, best first, from rubric or guide, in the sample's language if it has that."""
        base = form(self.design.form, self.design.language, self.scale)
        if not (by_language := self._rubric):
            return dict(guide.meanings(self.guide, base.language))
        languages = (self.design.language, self.design.language.partition("-")[0], base.language, *sorted(by_language))
        meanings = next(by_language[language] for language in languages if language in by_language)
        return {label: meanings[label] for label in self.scale.labels if label in meanings}

    @property
    def _rubric(self) -> Mapping[str, Mapping[str, str]]:
        """Return the meanings of the design; none where a guide of the working directory explains the five grades."""
        explains = self.design.scale is None and not self.of_items
        own = explains and not resources.packaged(resources.find("annotations", self.form.guide))
        return {} if own else self.design.meanings

    @cached_property
    def guide(self) -> str:
        """Return the guide for assessors, in Markdown."""
        if self.of_items:
            question = cast("Mapping[str, str]", self.design.facts["question"])
            return guide.of_items(resources.guide("ITEMS.md"), question, self.scale, self.design.meanings)
        if self.design.scale is None:
            text = resources.guide(self.form.guide)
            return guide.of_rubric(text, self.scale, self._rubric) if self._rubric else text
        return guide.of_scale(resources.guide("GUIDE-SCALE.md"), self.scale, self.design.meanings)

    @cached_property
    def rows(self) -> dict[str, SampleRow]:
        """Return row_id -> row, in the order of the table."""
        columns = self.survey.select("row_id", "texts").iter_rows()
        return {row_id: SampleRow(row_id, tuple(texts)) for row_id, texts in columns}

    def of(self, person: str) -> list[SampleRow]:
        """Return a person's rows in reading order."""
        row_ids = self.survey.filter(pl.col("assessors").list.contains(person))["row_id"]
        return [self.rows[row_id] for row_id in row_ids]


def name_row(sample: str, number: int, ids: Sequence[str], texts: Sequence[str]) -> str:
    """Return the name of a row: its number and a checksum over the sample, the number, the ids and the texts.

    It has letters at both ends, so that no spreadsheet converts it to a number or a date. Because of the checksum, a
    name that a spreadsheet changed or incremented is not that of another row.
    """
    checksum = int.from_bytes(hashlib.sha256(canonical([sample, number, list(ids), list(texts)]).encode()).digest()[:8])
    letters = []
    for _ in range(6):
        checksum, digit = divmod(checksum, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return f"r{number:05}-{''.join(letters)}"
