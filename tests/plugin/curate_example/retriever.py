"""`ngrams`: documents that share many stretches of characters with the query."""

from collections.abc import Iterator, Sequence

from curate import Corpus, Hit, Json, Kit, Progress, Query, Section


class Config(Section):
    """What a pipeline file may set, as in `retrievers: {mine: {kind: ngrams, size: 2}}`."""

    size: int = 3
    """Characters of a stretch."""


class Ngrams:
    """Rank documents by Dice's coefficient, 2 |A and B| / (|A| + |B|), of the stretches of characters."""

    egress = "local"  # it sends nothing

    def __init__(self, name: str, config: Config, kit: Kit) -> None:
        self.name, self._size = name, config.size
        self.identity: Json = {"kind": "ngrams", "version": 1, "size": config.size}  # all that changes a ranking

    def search(self, corpus: Corpus, queries: Sequence[Query], depth: int, progress: Progress) -> Iterator[list[Hit]]:
        """Yield each query's best documents that share anything with it, best first, ties by document id."""
        documents = {item.doc_id: self._cut(item.shown()) for batch in corpus.batches() for item in batch}
        for done, query in enumerate(queries, start=1):
            asked = self._cut(query.text)
            scores = {doc_id: dice(asked, found) for doc_id, found in documents.items() if asked & found}
            best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:depth]
            yield [Hit(doc_id, rank, scores[doc_id]) for rank, doc_id in enumerate(best, start=1)]
            progress(f"search, {self.name}", len(queries), done)

    def _cut(self, text: str) -> set[str]:
        plain = "".join(text.lower().split())
        return {plain[at : at + self._size] for at in range(len(plain) - self._size + 1)}


def dice(one: set[str], other: set[str]) -> float:
    """Return Dice's coefficient of two sets that are not both empty, in [0, 1]."""
    return 2 * len(one & other) / (len(one) + len(other))
