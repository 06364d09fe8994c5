"""What a retriever promises: lists that are sorted, cut and complete, and the same again."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from curate.core.config import digest
from curate.core.protocols import Corpus, Retriever, quiet
from curate.core.records import Document, Hit, Query
from curate.retrieval.ranking import ask
from curate.system.egress import understood

CORPUS = {
    "d9": "高血压患者能喝咖啡吗？可以少量喝咖啡，要注意血压。",
    "d10": "小儿发热可以先物理降温，多喝水。",
    "d2": "小儿发热可以先物理降温，多喝水。",
    "d3": "痛风病人要少吃海鲜，少喝啤酒。",
    "d4": "Coffee raises the blood pressure for a short time.",
    "d5": "Gout patients should avoid seafood and beer.",
    "d6": "今天的股市行情上涨。",
}
"""Texts of a retriever's test; two are equal, and d10 stands before d2 because ids are texts."""
QUERIES = {"zh": "小儿发热", "en": "gout and beer", "mixed": "痛风 gout", "none": "⁂⁂"}
WHOLE = 1000
"""A depth that no ranking of these texts reaches."""


class ListCorpus:
    """A corpus in memory, read some documents at a time."""

    def __init__(self, documents: Mapping[str, str] | Iterable[Document], size: int = 2) -> None:
        if isinstance(documents, Mapping):
            documents = [Document(doc_id, "", text) for doc_id, text in documents.items()]
        self.documents, self.size = list(documents), size
        self.digest = digest([[each.doc_id, each.title, each.text] for each in self.documents])

    def __len__(self) -> int:
        return len(self.documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self), self.size):
            yield self.documents[start : start + self.size]


def listed(retriever: Retriever, corpus: Corpus, queries: Mapping[str, str], depth: int) -> list[list[Hit]]:
    """Return what a retriever finds as one list of hits per query."""
    found: list[list[Hit]] = []
    for _, hits in ask(retriever, corpus, [Query(*each) for each in queries.items()], depth, quiet):
        ends = np.cumsum(hits.counts)
        for start, end in zip(ends - hits.counts, ends, strict=True):
            here = zip(hits.rows[start:end].tolist(), hits.scores[start:end].tolist(), strict=True)
            found.append([Hit(hits.ids[row], rank, score) for rank, (row, score) in enumerate(here, start=1)])
    return found


def check_retriever(make: Callable[[], Retriever], *, cuts: bool = True) -> None:
    """Check a retriever on `CORPUS`: lists that are sorted, cut, complete, and the same again.

    `cuts` is False for one that yields all it has at any depth, because its ids may be out of date, as of a file.
    """
    retriever = make()
    assert understood(retriever), 'egress is "local" for what sends nothing, "remote" for all else'
    json.dumps(retriever.identity)
    whole = listed(retriever, ListCorpus(CORPUS), QUERIES, WHOLE)
    for hits in whole:
        order = [(-hit.score, hit.doc_id if cuts else "") for hit in hits]
        assert order == sorted(order), "hits come best first, ties by document id"
        assert all(isinstance(hit.score, float) and math.isfinite(hit.score) for hit in hits), "scores are finite"
        assert len({hit.doc_id for hit in hits}) == len(hits), "a document is found once"
        assert {hit.doc_id for hit in hits} <= set(CORPUS), "only documents of the corpus are found"
    for depth in (1, 2):
        expected = [hits[:depth] for hits in whole] if cuts else whole
        assert listed(retriever, ListCorpus(CORPUS), QUERIES, depth) == expected, "a depth only cuts the lists"
    assert listed(make(), ListCorpus(CORPUS, size=3), QUERIES, WHOLE) == whole, "made again, it finds the same"
    assert listed(retriever, ListCorpus(CORPUS), {}, 5) == [], "no queries, no lists"
    if cuts:
        assert listed(retriever, ListCorpus({}), QUERIES, 5) == [[]] * len(QUERIES), "nothing is found in nothing"
    _check_progress(retriever)


def _check_progress(retriever: Retriever) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def note(label: str, total: int, done: int) -> None:
        seen[label] = total, done

    list(retriever.search(ListCorpus(CORPUS), [Query(*each) for each in QUERIES.items()], 5, note))
    assert all(total == done for total, done in seen.values()), "progress ends at its total"
