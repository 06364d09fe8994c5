"""Settings of the stage `queries`."""

from typing import Self

from pydantic import Field, model_validator

from curate.core.config import Section
from curate.runs.command import Names, setting
from curate.runs.running import AskingStage


class Config(Section):
    """Generator and filter panel of synthetic queries, and size of the set."""

    generator: str | None = Field(default=None, description="the language model that writes; it has no default")
    panel: tuple[str, ...] = Field(
        default=(), description="language models that filter, one of another family at least; kept is what all accept"
    )
    wanted: int = Field(default=200, ge=1, description="queries, at most")
    documents: int | None = Field(
        default=None, ge=1, description="documents that are drawn, one query each; by default 3 per 2 queries wanted"
    )
    shortest: int = Field(default=20, ge=1, description="characters of a document that is drawn, at least")
    passage_tokens: int | None = Field(
        default=1_000, ge=50, description="tokens of a document that models are shown; null for all"
    )
    examples: int = Field(
        default=5, ge=0, le=20, description="real queries that the writer is shown, drawn anew for each document"
    )
    lengths: tuple[int, int] | None = Field(
        default=None,
        description="least and most characters where there is no real query; by default those of the prompt",
    )
    length: float = Field(
        default=0.5, gt=0, lt=1, description="by what share a query may differ from the length that is asked for"
    )
    deciles: int = Field(default=10, ge=1, le=50, description="classes of length in which real queries are matched")
    copied: float = Field(
        default=0.9, gt=0, le=1, description="share of a query that its document may have in one piece, at most"
    )
    again: int = Field(default=2, ge=0, le=9, description="how often a query that breaks a rule is asked for again")
    mixed_models: bool = Field(default=False, description="go on though the replies of one model name several")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.lengths is not None and not 1 <= self.lengths[0] <= self.lengths[1]:
            raise ValueError(f"lengths {self.lengths[0]} to {self.lengths[1]}; give the least first, from 1 on")
        return self

    @property
    def drawn(self) -> int:
        """Return the maximum number of documents drawn."""
        return self.documents or -(-3 * self.wanted // 2)


class QueriesCommand(AskingStage):
    """Generate synthetic queries.

    A model writes them for a corpus, and models of another family filter them.
    """

    words = "queries"
    examples = ("queries --set queries.generator=qwen --plan", "queries --max-cost 5")
    stage = "queries"

    generator: str | None = setting("Language model that writes the queries.", None, key="queries.generator")
    panel: Names = setting("Models that confirm what was made, separated by commas.", (), key="queries.panel")
