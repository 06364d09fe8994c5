"""The command `audit`: compares the original labels of a data set with a panel's verdicts, and repairs them."""

from pydantic import Field

from curate.core.config import Section


class Config(Section):
    """Further systems to compare, and amounts of content of the page."""

    systems: tuple[str, ...] = Field(default=(), description="further retrievers, such as run files, to be scored")
    recall: int = Field(default=50, ge=1, description="depth of recall; that of the pool where it is less deep")
    worst: int = Field(default=10, ge=0, description="queries with the most errors that the page shows")
    examples: int = Field(default=5, ge=0, description="documents of each kind that the page shows of such a query")
    excerpt: int = Field(default=200, ge=1, description="characters of a document that are shown")
