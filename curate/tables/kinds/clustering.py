"""Clustering: the same texts as in classification, both splits together, for nothing is trained on them."""

from collections.abc import Mapping

from curate.core.config import Json
from curate.core.protocols import Benchmark
from curate.tables.kinds.kind import ExportTable, MtebClass, TaskContent
from curate.tables.kinds.labelled import OfClasses

MOST = 2_048
"""Texts that are embedded, at most."""


class Clustering(OfClasses):
    """All labels as they are given."""

    name = "clustering"
    title = "clustering"
    mteb = MtebClass(
        "Clustering",
        "clustering.AbsTaskClustering",
        "v_measure",
        "V-measure",
        "text-classification",
        # mteb embeds 4 % of the texts unless it is told otherwise.
        {"max_fraction_of_documents_to_embed": None, "max_document_to_embed": MOST},
    )
    shown, labelled = "sentences", "labels"
    scorer = "curate.commands.evaluate.scorers_labels:ClusteringScorer"

    def attributes(self, benchmark: Benchmark) -> Mapping[str, Json]:
        """Return what mteb embeds: everything, and as many texts in each draw, with replacement, as there are."""
        return {**self.mteb.attributes, "max_documents_per_cluster": min(self.rows(benchmark).height, MOST)}

    def content(self, benchmark: Benchmark) -> TaskContent:
        """Return all texts as one split."""
        rows = self.rows(benchmark)
        return TaskContent([ExportTable("texts", [self.written(rows)])], lambda: self.counts(rows))


class ConfirmedClustering(Clustering):
    """The labels that all judges confirmed."""

    name = "clustering-confirmed"
    title = "clustering (confirmed labels)"
    only_confirmed = True
