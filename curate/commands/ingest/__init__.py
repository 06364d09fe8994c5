"""Settings of the stage `ingest`."""

from typing import Literal

from pydantic import Field

from curate.core.config import Section
from curate.core.sampling import generator
from curate.retrieval.similarity.leaks import form
from curate.runs.running import StageCommand
from curate.tables.readers import Table
from curate.tables.readers.items import Names
from curate.tables.readers.settings import Input, LabelsFile


class SampledSplit(Section):
    """One of two splits; the text of a query decides, so that more queries move none, and copies stay together."""

    take: Literal["train", "test"]
    test: float = Field(default=0.1, gt=0, lt=1, description="share of the queries that are for tests")
    seed: int = Field(default=7, description="another seed divides otherwise; both runs need the same")

    def holds(self, text: str) -> bool:
        """Return whether a query with this text is in the split."""
        return (generator(self.seed, "split", form(text)).random() < self.test) == (self.take == "test")


class Config(Input):
    """Where the input is, and what to do about duplicates and mistakes in it."""

    pairs: bool = Field(
        default=False,
        exclude_if=lambda pairs: not pairs,  # so that no ingest of before is out of date
        description="row i of the corpus is a known positive of row i of the queries; both are columns of one file",
    )
    labels: LabelsFile | None = Field(default=None, description="classes of queries or of documents, for `label`")
    ids: list[str] | None = Field(default=None, description="ids of the queries to take; all without it")
    part: SampledSplit | None = Field(default=None, description="take the queries of one split; all without it")
    sample: int | None = Field(default=None, ge=1, description="take so many queries, drawn by `sample_seed`")
    sample_seed: int = Field(default=7, description="another seed draws other queries")
    on_error: Literal["stop", "drop"] = Field(
        default="stop", description="stop at a bad row, or drop it with its reason"
    )
    max_drop: float = Field(
        default=0.5,
        ge=0,
        le=1,
        exclude_if=lambda _: True,  # it stops a run, and changes no table
        description="a larger share of a table's rows dropped stops the run",
    )
    duplicates: Literal["merge", "keep"] = Field(
        default="merge", description="what becomes of equal texts under several ids"
    )
    html: Literal["keep", "strip"] = Field(
        default="keep", description="whether tags, comments and scripts of HTML are stripped from titles and texts"
    )
    relevant_from: int | None = Field(
        default=None,
        ge=1,
        description="lowest score of the set's own qrels that means relevant; without it any above 0 does",
    )
    keep_raw: bool = Field(default=False, description="keep the raw texts in the run folder once they are masked")

    def names(self, table: Table) -> Names:
        """Return field -> candidate column names; for pairs, the column of the queries is not the documents' title."""
        columns = super().names(table)
        query_columns = super().names("queries")["text"] if self.pairs and table == "corpus" else ()
        return {field: names for field, names in columns.items() if field != "title" or not {*names} & {*query_columns}}


class IngestCommand(StageCommand):
    """Load the data.

    Queries, corpus and qrels are read, exact duplicates merged.
    """

    words = "ingest"
    examples = (
        "ingest --pipeline my.yaml",
        "ingest --set ingest.sample=100",
    )
    stage = "ingest"
