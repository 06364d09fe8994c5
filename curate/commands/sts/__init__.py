"""Settings of the stage `sts`."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from curate.core.config import Section
from curate.runs.command import Names, setting
from curate.runs.running import AskingStage

TEMPLATES = "templates"
"""Name of the generator that uses no model."""


class Shares(Section):
    """Shares of the kinds of pairs; they need not add up to 1."""

    positive: float = Field(default=0.48, ge=0)
    hard: float = Field(default=0.26, ge=0)
    easy: float = Field(default=0.26, ge=0)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.positive + self.hard + self.easy:
            raise ValueError("one share at least must be above 0")
        return self


class Config(Section):
    """Dictionary, generator, panel, and size of the set."""

    dictionary: str | None = Field(
        default=None, description="file of synonyms, in annotations/ or by path; by default synonyms-LANGUAGE.tsv"
    )
    lexicon: Path | None = Field(default=None, description="words that are known to be words, one per line")
    faults: Literal["stop", "drop"] = Field(default="stop", description="what becomes of faulty rows of it")
    generator: str = Field(default=TEMPLATES, description="a language model, or `templates`, which needs none")
    panel: tuple[str, ...] = Field(default=(), description="language models that confirm; kept is what all agree on")
    confirm_dictionary: bool = Field(default=False, description="ask the panel about the words first; for a noisy one")
    edits: bool = Field(
        default=False, description="negatives by small edits (negation, side, dose, broader word) where there are any"
    )
    again: int = Field(default=3, ge=0, le=9, description="how often a sentence that breaks a rule is asked for again")
    length: float = Field(default=0.3, gt=0, lt=1, description="by what share a sentence may differ in length")
    queries: int | None = Field(default=None, ge=1, description="queries that are used at most, by seed")
    test: int = Field(default=5_000, ge=0, description="pairs of the test split, at most")
    train: int = Field(default=10_000, ge=0, description="pairs of the train split, at most")
    shares: Shares = Shares()
    """Shares of the kinds, met exactly."""
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")


class StsCommand(AskingStage):
    """Build sentence pairs.

    Pairs around synonyms, of the same meaning or of another.
    """

    words = "sts"
    examples = ("sts --set sts.generator=templates --plan", "sts --max-cost 5")
    stage = "sts"

    generator: str | None = setting(
        "Language model that writes the sentences, or `templates`.", None, key="sts.generator"
    )
    panel: Names = setting("Models that confirm what was made, separated by commas.", (), key="sts.panel")
