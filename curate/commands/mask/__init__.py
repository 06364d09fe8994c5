"""Settings of the stage `mask`."""

from typing import Any, Literal

from pydantic import Field

from curate.ask.privacy_guard import Leaving
from curate.pii.settings import Masking
from curate.runs.command import option
from curate.runs.options import AskingModels
from curate.runs.running import StageCommand
from curate.view.answers import Result


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


class MaskCommand(StageCommand, AskingModels):
    """Mask PII.

    Personal data is replaced by typed placeholders.
    """

    words = "mask"
    examples = (
        "mask",
        "mask --model qwen-local --offline",
    )
    stage = "mask"

    model: str | None = option(
        "Language model on this machine that marks personal data before the rules do.",
        None,
        key="mask.model",
        complete="models",
        metavar="NAME",
    )

    def result(self) -> Result[Any]:
        """Mask the texts within the budget of the model, if one is asked."""
        work = self.open_run()
        work.consent = self.consent()
        return self.run_stage(work, force=self.retry)
