"""Settings of the stage `train_set`."""

from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.panel import sanity
from curate.runs.leaks import Leaks


class Negatives(Section):
    """Which of the candidates below the cut are taken."""

    number: int = Field(default=15, ge=1, description="negatives of a query, at most")
    least: int = Field(default=1, ge=1, description="a query with fewer is left out")
    grades: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="best grade of a negative; all below the cut without it"
    )
    draw: Literal["by_rank", "by_grade"] = Field(
        default="by_rank", description="by_rank takes the best-ranked first, by_grade the best-graded"
    )


class Config(Section):
    """The test set, and what a query trains on."""

    test: str = Field(default="", description="folder of the test set's run, or of an export of it; `none` checks none")
    leaks: Leaks = Leaks()
    positives: int = Field(default=10, ge=1, description="positives of a query, at most; best grades first")
    negatives: Negatives = Negatives()
    least: float = Field(
        default=sanity.FEWEST_QUERIES, ge=0, le=1, description="share of the queries below which no set is written"
    )
    most: float = Field(
        default=sanity.MOST_RELEVANT,
        gt=0,
        le=1,
        description="share of a judge's pairs with one relevant grade above which no set is written",
    )
    scores: bool = Field(default=False, description="write grades as scores, to distil from")
    license: str | None = None
    source: str = Field(default="", description="one sentence for the card: where queries and documents come from")
    instruction: str | None = Field(default=None, description="written as the prompt of every query")
