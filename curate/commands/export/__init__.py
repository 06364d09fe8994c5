"""Settings of the stage `export`."""

from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.tables.exporters.labels import Gain, Labels, Rerank
from curate.tables.exporters.task_metadata import MtebMetadata


class Shortcuts(Section):
    """Warning threshold and encoders of the lexical shortcut check: length, shared characters, a keyword per class."""

    models: tuple[str, ...] = Field(
        default=(), description="encoders that send nothing; without any one that the run pools with, or USE"
    )
    limit: float = Field(
        default=0.9, gt=0, description="of the best encoder's distance from equal scores; a shortcut above it warns"
    )
    texts: int = Field(default=5_000, ge=0, description="a task with more is not checked; 0 checks none")
    strict: bool = Field(default=False, description="stop instead of warning")


class Config(Section):
    """Formats, labels, ids and metadata of an export."""

    formats: tuple[str, ...] = ("mteb", "beir", "trec")
    labels: Labels = Field(
        default="binary", description="of the retrieval task: binary, graded in their place, or both"
    )
    grade: Literal["lower-median", "minimum"] = Field(
        default="lower-median", description="of the judges' grades, for graded labels; see docs/scales.md"
    )
    gain_below_cut: bool = Field(default=True, description="grades below the cut keep their gain in graded labels")
    rerank: Rerank = Rerank()
    ids: Literal["auto", "new", "keep"] = Field(
        default="auto",
        exclude_if=lambda value: value == "keep",  # as 0.2 did, whose exports stay up to date
        description="`new`: q000001, d000001; `auto`: so where ids of no named public set hold five digits in a row",
    )
    license: str | None = Field(default=None, description="identifier such as cc-by-4.0, or an address")
    source: str = Field(default="", description="one sentence for the card: where queries and documents come from")
    instruction: str | None = Field(default=None, description="how instruction-following models are asked")
    shortcuts: Shortcuts = Shortcuts()
    mteb: MtebMetadata = MtebMetadata()
    citation: str | None = Field(default=None, description="how the set is cited, in Markdown")

    @property
    def gain(self) -> Gain | None:
        """Return the settings of graded labels; None if labels are binary only."""
        return None if self.labels == "binary" else Gain(grade=self.grade, gain_below_cut=self.gain_below_cut)
