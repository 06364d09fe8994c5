"""Settings of the stage `judge`."""

from pathlib import Path

from pydantic import Field, field_validator

from curate.core.config import Section
from curate.panel import controls
from curate.panel.cascade import Mode
from curate.panel.sanity import Sanity


class Gate(Section):
    """Settings of controls, and the minimum accuracy of judges."""

    positives: Path | None = Field(
        default=None, description="table of pairs that people graded: query_id, doc_id, grade; without it no gate"
    )
    floor: float = Field(default=controls.FLOOR, ge=0, le=1, description="least lower bound of balanced accuracy")
    least: int = Field(default=controls.LEAST, ge=1, description="answers of each class that a judge needs to pass")
    size: int = Field(default=2 * controls.LEAST, ge=1, description="controls of each class, at most")
    adversarial: int = Field(
        default=20, ge=0, description="controls of each adversarial family, at most: pasted query words, padding, ..."
    )


CONTROL_SHARE = 0.1
"""Maximum prompts of controls that need no people, as a share of those of the pool."""


class Config(Section):
    """Settings of the panel and its prompts."""

    models: tuple[str, ...] = ("lexical", "e5", "use")
    rubric: str | None = Field(default=None, description="name of a rubric in prompts/; by default rubric-LANGUAGE")
    batch: int = Field(default=10, ge=1, le=100, description="passages in one prompt")
    passage_tokens: int | None = Field(
        default=1500, ge=50, description="a longer passage is cut at the end of a sentence; null never cuts"
    )
    query_tokens: int | None = Field(default=500, ge=20, description="the same for queries")
    language: str | None = Field(
        default=None, description="what the texts are taken for, where they look like another language; see --language"
    )
    mixed_models: bool = Field(default=False, description="go on though the replies to one judge name several models")
    cascade: Mode | None = Field(default=None, description="ask dear judges only what cheap ones leave open")
    cascade_sample: float = Field(default=0.05, ge=0, le=1, description="share of pairs that a cascade judges in full")
    gate: Gate = Gate()
    controls: int = Field(
        default=12,
        ge=0,
        exclude_if=lambda _: True,  # they come before a pool is judged, and change no grade of it
        description="queries at which new language models are first given controls that need no people (a likely "
        "positive, another query's, a random passage), at most a tenth of all prompts; off for none",
    )
    sanity: Sanity = Sanity()
    allow_weak_judges: bool = Field(default=False, description="go on with judges that do not pass the gate")

    def control_queries(self, prompts: int) -> int:
        """Return at how many queries controls stand that need no people; one has no other's positive beside it."""
        size = min(self.controls, int(CONTROL_SHARE * prompts))
        return size if size > 1 else 0

    @field_validator("controls", mode="before")
    @classmethod
    def _zero_if_off(cls, controls: object) -> object:
        return 0 if controls in (False, "off") else controls
