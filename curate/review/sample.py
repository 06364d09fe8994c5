"""A sample that people check: drawn once, frozen with the texts and verdicts that it saw."""

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
"""Forms of samples of items of a kind of benchmark, by one text or two; what is said there grades no document."""
OF_SOME = ("accept", "contested", "scores")
"""What samples are `of` that are not drawn of all judged pairs, each by a design of its own."""
PILOT = "pilot"
"""What a pilot is a sample of: pairs that are graded before a panel is chosen, and are no review of its labels."""
_LETTERS = "abcdfghjkmnpqrstvwxyz"
"""No e, so that no program takes a row's name for a number such as 1E5; no i, l, o or u, which are misread."""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """What a person reads: the texts of one row, in the order of the form."""

    row_id: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Stratum:
    """A part of the pool that was drawn from at one rate."""

    name: str
    size: int
    drawn: int


@dataclass(frozen=True)
class Design:
    """How a sample was drawn."""

    name: str
    form: str
    language: str
    seed: int
    assessors: Sequence[str]
    strata: Sequence[Stratum]
    overlap: float = 0.0
    """Share of the rows that a second person reads too."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    scale: Mapping[str, Json] | None = None
    """The scale that the judges graded on, as `Scale.to_json` has it; None for the five grades."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Language -> grade -> what it means, by the judges' rubric; empty for the five grades: the guide explains them."""
    version: int = VERSION


@dataclass(frozen=True)
class Sample:
    """A frozen sample in its folder."""

    folder: Path
    design: Design
    survey: pl.DataFrame
    """The `survey` table; `assessors` names first who counts, then who reads it besides; `expected` is an answer in
    planted controls, None in drawn rows."""

    @classmethod
    def load(cls, folder: Path) -> "Sample":
        """Return the sample in a folder; DataError if it is damaged or of another version."""
        if not (folder / "design.json").is_file():
            known = [path.parent.name for path in folder.parent.glob("*/design.json")]
            raise NotFound(
                f"{folder}: no such sample; {suggestion(folder.name, known)}; `curate review export` draws one"
            )
        try:
            data = read_json(folder / "design.json")
            if data["version"] == VERSION:
                strata = [Stratum(**each) for each in data["strata"]]
                return cls(folder, Design(**{**data, "strata": strata}), read_table(folder, "survey"))
        except (DataError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            raise DataError(
                f"{folder}: design.json or survey.parquet is damaged or missing, expected a sample as `curate review "
                "export` froze it; put copies of both back"
            ) from error
        raise DataError(f"{folder}: a sample of version {data['version']}, expected {VERSION}; draw a new one")

    @classmethod
    def find(cls, run: Path, name: str | None = None) -> "Sample":
        """Return a sample of a run by its name, the newest one without; UserError if there is none."""
        if name is not None:
            return cls.load(run / "reviews" / name)
        found = sorted((run / "reviews").glob("*/design.json"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise NotFound(f"{run}: no sample was drawn yet; `curate review export --size N` draws one")
        return cls.load(found[-1].parent)

    @staticmethod
    def refuse(folder: Path) -> None:
        """Raise UserError if a folder holds a sample already, for people may have answered it."""
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
        """Return what is asked, in the sample's language."""
        asked = form(self.design.form, self.design.language, self.scale)
        if self.of_items:
            meanings = {answer: self.meanings.get(answer, "") for answer in asked.answers}
            return explained(replace(asked, question=self.question(asked.language)), meanings)
        return explained(asked, self.meanings) if self.design.meanings else asked

    @property
    def of_items(self) -> bool:
        """Say whether its rows are items of a kind of benchmark."""
        return self.design.form in ITEM_FORMS

    @property
    def of_some(self) -> bool:
        """Say whether only some of the judged pairs could be drawn: its strata tell nothing of the others."""
        return self.design.facts.get("of") in OF_SOME

    @property
    def of_pilot(self) -> bool:
        """Say whether people grade it so that a panel can be chosen; it is no review of labels."""
        return self.design.facts.get("of") == PILOT

    def question(self, language: str) -> str:
        """Return what is asked of an item, in a language, English, or the first that there is."""
        return in_language(cast("Mapping[str, str]", self.design.facts["question"]), language)

    @cached_property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return FIVE if self.design.scale is None else Scale.from_json(self.design.scale)

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Return answer -> what it means, best first: in the sample's language if the rubric or the guide has it."""
        asked = form(self.design.form, self.design.language, self.scale)
        if not (known := self.design.meanings):
            return dict(guide.meanings(self.guide, asked.language))
        languages = (self.design.language, self.design.language.partition("-")[0], asked.language, *sorted(known))
        said = next(known[language] for language in languages if language in known)
        return {label: said[label] for label in self.scale.labels if label in said}

    @cached_property
    def guide(self) -> str:
        """Return the guide for those who answer, in Markdown."""
        if self.of_items:
            known = cast("Mapping[str, str]", self.design.facts["question"])
            return guide.of_items(resources.guide("ITEMS.md"), known, self.scale, self.design.meanings)
        if not self.design.meanings:
            return resources.guide(self.form.guide)
        return guide.of_scale(resources.guide("GUIDE-SCALE.md"), self.scale, self.design.meanings)

    @cached_property
    def rows(self) -> dict[str, SampleRow]:
        """Return row_id -> row, in the order of the table."""
        columns = self.survey.select("row_id", "texts").iter_rows()
        return {row_id: SampleRow(row_id, tuple(texts)) for row_id, texts in columns}

    def of(self, person: str) -> list[SampleRow]:
        """Return the rows that a person is to read, in reading order."""
        mine = self.survey.filter(pl.col("assessors").list.contains(person))["row_id"]
        return [self.rows[row_id] for row_id in mine]


def name_row(sample: str, number: int, ids: Sequence[str], texts: Sequence[str]) -> str:
    """Return the name of a row: its number and a checksum over the sample, the ids and the texts.

    It has letters at both ends, so that no spreadsheet takes it for a number or a date, and a name that was changed, or
    that a spreadsheet counted up, is not that of another row.
    """
    value = int.from_bytes(hashlib.sha256(canonical([sample, number, list(ids), list(texts)]).encode()).digest()[:8])
    letters = []
    for _ in range(6):
        value, place = divmod(value, len(_LETTERS))
        letters.append(_LETTERS[place])
    return f"r{number:05}-{''.join(letters)}"
