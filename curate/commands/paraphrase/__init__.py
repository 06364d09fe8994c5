"""Settings of the stage `paraphrase`."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from curate.core.config import Section
from curate.runs.command import Names, setting
from curate.runs.running import AskingStage

TEMPLATES = "templates"
"""Name of the generator that uses no model."""


class RankWindow(Section):
    """Ranks of a retriever's list from which a neighbour is drawn."""

    first: int = Field(default=1, ge=1)
    last: int = Field(default=64, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError(f"first {self.first} stands behind last {self.last}")
        return self


class Config(Section):
    """Generator, panel, source of negatives, and size of the set."""

    generator: str = Field(default=TEMPLATES, description="a language model, or `templates`, which needs none")
    panel: tuple[str, ...] = Field(default=(), description="language models that confirm; kept is what all agree on")
    retrievers: tuple[str, ...] = Field(
        default=(), description="which find neighbours in turn, two families at least; by default from those of `pool`"
    )
    window: RankWindow = RankWindow()
    """Ranks from which a neighbour is drawn by seed."""
    neighbours: int = Field(default=2, ge=0, le=8, description="neighbours that are judged per query")
    edits: int = Field(default=1, ge=0, le=6, description="small edits that change the meaning, judged per query")
    dictionary: str | None = Field(
        default=None, description="file of synonyms, in annotations/ or by path; by default synonyms-LANGUAGE.tsv"
    )
    lexicon: Path | None = Field(default=None, description="words that are known to be words, one per line")
    faults: Literal["stop", "drop"] = Field(default="stop", description="what becomes of faulty rows of it")
    again: int = Field(default=2, ge=0, le=9, description="how often a sentence that breaks a rule is asked for again")
    length: float = Field(default=0.5, gt=0, lt=1, description="by what share a paraphrase may differ in length")
    queries: int | None = Field(
        default=None, ge=1, description="queries that are written beside, at most; by default as many as pairs wanted"
    )
    test: int = Field(default=2_000, ge=0, description="pairs of the test split, at most; half of them positive")
    train: int = Field(default=0, ge=0, description="pairs of the train split, at most")
    deciles: int = Field(default=10, ge=1, le=50, description="classes of overlap with as many positives as negatives")
    pool: int = Field(default=5, ge=0, le=100, description="originals per retriever that are judged per paraphrase")
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")

    @model_validator(mode="after")
    def _some_pairs(self) -> Self:
        if not self.test + self.train:
            raise ValueError("test and train are both 0; ask for some pairs")
        if not self.neighbours + self.edits:
            raise ValueError("neighbours and edits are both 0, and without them there is no negative")
        return self


class ParaphraseCommand(AskingStage):
    """Build paraphrase pairs.

    Paraphrases are written and confirmed by a panel, and neighbours set against them.
    """

    words = "paraphrase"
    examples = ("paraphrase --set paraphrase.generator=qwen --plan", "paraphrase --max-cost 5")
    stage = "paraphrase"

    generator: str | None = setting(
        "Language model that writes the sentences, or `templates`.", None, key="paraphrase.generator"
    )
    panel: Names = setting("Models that confirm what was made, separated by commas.", (), key="paraphrase.panel")
