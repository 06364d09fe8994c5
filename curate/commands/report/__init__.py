"""The stage `report`: the HTML report of a run."""

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from curate.core.config import Section
from curate.runs.running import StageCommand

_FORMER = {"pairs": 20, "queries": 60, "pairs_per_query": 20, "excerpt": 200}
"""Settings of the sample pairs of earlier pages, with their defaults; pipelines of finished runs have them."""


class Config(Section):
    """Language of the page, and amounts of content."""

    language: str | None = Field(default=None, description="of the page, zh or en; without it that of the texts")
    lengths: int = Field(default=5_000, ge=1, description="queries, and documents, whose tokens are counted, at most")

    @model_validator(mode="before")
    @classmethod
    def _without_former(cls, settings: Any) -> Any:  # noqa: ANN401 - whatever a pipeline has
        if not isinstance(settings, dict):
            return settings
        return {key: setting for key, setting in settings.items() if key not in _FORMER}

    @model_serializer(mode="wrap")
    def _with_former(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the settings with the former ones, so that reports of finished runs stay up to date."""
        return {**_FORMER, **dump(self)}


class ReportCommand(StageCommand):
    """Write the HTML report.

    One file.
    """

    words = "report"
    examples = (
        "report",
        "report --run runs/demo --set report.language=en",
    )
    stage = "report"
