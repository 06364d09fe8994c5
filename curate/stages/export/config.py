"""Settings of the stage `export`."""

from pydantic import Field

from curate.core.config import Section
from curate.formats.exporters.candidates import Rerank


class Config(Section):
    """What is written."""

    formats: tuple[str, ...] = ("mteb", "beir", "trec")
    rerank: Rerank = Rerank()
    license: str | None = None
    source: str = Field(default="", description="one sentence for the card: where queries and documents come from")
    instruction: str | None = Field(default=None, description="how instruction-following models are asked")
    citation: str | None = Field(default=None, description="how the set is cited, in Markdown")
