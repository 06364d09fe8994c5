"""Settings of the stage `mask`."""

from typing import Literal

from pydantic import Field

from curate.ask.privacy_guard import Leaving
from curate.pii.settings import Masking


class Config(Masking, Leaving):
    """What is looked for, and what is written in its place."""

    enabled: bool = Field(default=True, description="false copies the tables as they are")
    processes: int | None = Field(default=None, ge=1, description="how many mask at once; all cores for large tables")
    ids: Literal["mask", "keep"] = Field(
        default="mask", description="rename ids in which personal data is found, or keep them: they identify nobody"
    )
    model: str | None = Field(
        default=None,
        description="a language model on this machine that looks first, by name; its judge says `local: true`",
    )
    allow_remote: bool = Field(default=False, description="send unmasked texts to a model on another machine, too")
    on_failure: Literal["stop", "rules"] = Field(
        default="stop", description="what becomes of texts that the model did not check: stop, or the rules alone look"
    )
