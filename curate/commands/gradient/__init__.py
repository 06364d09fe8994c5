"""Settings of the stage `gradient`."""

from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, field_validator

from curate.core.config import Section
from curate.runs.command import Names, setting
from curate.runs.running import AskingStage

Made = Literal["mix", "edit", "consensus"]
MADE: tuple[Made, ...] = get_args(Made)
"""Kinds of gradients."""
EditKind = Literal["negation", "laterality", "dose", "drug", "population", "time", "swap"]
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)
TEMPLATES, PARAPHRASE = "templates", "paraphrase"
"""Sources of an edited query's counterpart with the same meaning: the dictionary, or the stage `paraphrase`."""


class Config(Section):
    """Kinds and sizes of gradients, and the panel that confirms edits."""

    kind: tuple[Made, ...] = Field(
        default=MADE, min_length=1, description="kinds of gradients; `mix` never alone, for shared characters solve it"
    )
    mix: int = Field(default=2_000, ge=3, description="pairs of source and destination that are mixed, at most")
    edit: int = Field(default=700, ge=1, description="queries that are edited, one edit per query, at most")
    per_kind: int = Field(default=150, ge=1, description="edits of one kind, at most: swaps apply to most queries")
    consensus: int | None = Field(default=None, ge=1, description="judged queries whose grades are levels, at most")
    pairs: Literal["answers", "titles"] = Field(
        default="answers", description="mixed are relevant documents against their query, or bodies against their title"
    )
    shortest: int = Field(default=20, ge=1, description="code points that a source needs to be mixed")
    edits: tuple[EditKind, ...] = Field(default=EDIT_KINDS, min_length=1, description="kinds of edits that are tried")
    generator: Literal["templates", "paraphrase"] = Field(
        default="templates",
        description="who writes the counterpart of the same meaning: templates put a synonym of the dictionary in, "
        "paraphrase takes what the stage of that name has had confirmed",
    )
    panel: tuple[str, ...] = Field(default=(), description="language models that confirm; kept is what all agree on")
    dictionary: str | None = Field(
        default=None, description="file of synonyms, in annotations/ or by path; by default synonyms-LANGUAGE.tsv"
    )
    lexicon: Path | None = Field(default=None, description="words that are known to be words, one per line")
    faults: Literal["stop", "drop"] = Field(default="stop", description="what becomes of faulty rows of it")
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")

    @field_validator("kind")
    @classmethod
    def _never_mix_alone(cls, kind: tuple[Made, ...]) -> tuple[Made, ...]:
        if set(kind) == {"mix"}:
            raise ValueError(
                "mix alone says little of meaning, for shared characters follow its levels as well as an encoder does; "
                "add edit, or consensus, which costs nothing: [mix, consensus]"
            )
        return kind


class GradientCommand(AskingStage):
    """Build similarity series.

    Texts with falling agreement to a query: mixes, edits, and the panel's grades.
    """

    words = "gradient"
    examples = ("gradient --plan", "gradient --max-cost 5")
    stage = "gradient"

    generator: str | None = setting(
        "Who writes counterparts of the same meaning: `templates`, or `paraphrase`, the stage.",
        None,
        key="gradient.generator",
    )
    panel: Names = setting("Models that confirm what was made, separated by commas.", (), key="gradient.panel")
