"""Settings of the stage `label`."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.runs.command import Names, setting
from curate.runs.running import AskingStage

Leak = Literal["keep", "mask", "drop"]


class Config(Section):
    """Classes, panel, treatment of words that reveal the class, and split."""

    classes: Mapping[str, str] = Field(
        default={},
        description="class -> what belongs to it, as the panel is shown it; without it the name stands alone",
    )
    panel: tuple[str, ...] = Field(
        default=(), description="language models that choose a class; confirmed is what all choose as given"
    )
    leak: Leak = Field(
        default="keep",
        description="what becomes of names of classes and of the best keyword of each: kept, masked in all texts, or "
        "every text that holds one is dropped",
    )
    near: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="share of runs of characters in common from which two texts are of one group",
    )
    min_texts: int = Field(default=16, ge=2, description="a class of fewer texts is left out")
    min_groups: int = Field(default=8, ge=2, description="a class of fewer groups is left out")
    test: float = Field(default=0.3, gt=0, lt=1, description="share of the texts of each class that are for tests")
    texts: int | None = Field(
        default=2_048, ge=4, description="texts of all classes together, at most, by seed and in whole groups"
    )
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")


class LabelCommand(AskingStage):
    """Build classification sets.

    A panel picks the label of each text.
    """

    words = "label"
    examples = ("label --set label.panel=[gpt,qwen] --plan", "label --max-cost 5USD")
    stage = "label"

    panel: Names = setting("Models that confirm what was made, separated by commas.", (), key="label.panel")
