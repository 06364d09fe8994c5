"""Classification: texts with one class each, for a classifier over an encoder's vectors."""

import polars as pl

from curate.core.protocols import Benchmark
from curate.tables.kinds.kind import TEST, ExportTable, MtebClass, TaskContent
from curate.tables.kinds.labelled import OfClasses

_TASK = MtebClass(
    "Classification",
    "classification.AbsTaskClassification",
    "f1",
    "macro-F1",
    "text-classification",
    {"samples_per_label": 8, "n_experiments": 10},
)


class Classification(OfClasses):
    """All labels as they are given."""

    name = "classification"
    title = "classification"
    mteb = _TASK
    splits = (TEST, "train")
    scorer = "curate.commands.evaluate.scorers_labels:ClassificationScorer"
    section = "tables/kinds/labelled_section.html.j2"
    section_words = "tables/kinds/labelled.yaml"

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return the texts of both splits."""
        rows = self.rows(benchmark)
        parts = {split: self.written(rows.filter(pl.col("split") == split)) for split in self.splits}
        return TaskContent(
            [ExportTable("texts", [part], split) for split, part in parts.items()], lambda: self.counts(rows)
        )


class ConfirmedClassification(Classification):
    """The labels that all judges confirmed."""

    name = "classification-confirmed"
    title = "classification (confirmed labels)"
    only_confirmed = True
    section = section_words = ""
