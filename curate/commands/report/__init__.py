"""The stage `report`: the HTML report of a run."""

from pydantic import Field

from curate.core.config import Section
from curate.runs.running import StageCommand


class Config(Section):
    """Language of the page, and amounts of content."""

    language: str | None = Field(default=None, description="of the page, zh or en; without it that of the texts")
    pairs: int = Field(default=20, ge=0, description="sample pairs, spread over the verdicts")
    queries: int = Field(default=60, ge=0, description="queries, drawn by seed, whose pairs can be read one by one")
    pairs_per_query: int = Field(default=20, ge=0, description="pairs of each of them, spread over the verdicts")
    excerpt: int = Field(default=200, ge=1, description="characters of a passage that are shown")
    lengths: int = Field(default=5_000, ge=1, description="queries, and documents, whose tokens are counted, at most")


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
