"""Near-duplicate search by an HNSW index, for corpora too large for exact comparison."""

from collections.abc import Iterator

import numpy as np

from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import longest, pair_products
from curate.retrieval.similarity.near_duplicates import DIGITS, by_item
from curate.retrieval.similarity.screening import Rows, Scores
from curate.system.faiss_library import library

LINKS, BUILDING, SEARCHING = 32, 80, 64
"""Parameters of the graph: neighbours per item, candidates when adding, candidates when searching."""


class Graph:
    """HNSW graph (FAISS) of the retained items, to find near-duplicates among an item's k nearest neighbours.

    Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using hierarchical navigable small
    world graphs, 2018. Similarities are exact to five digits, but the graph may miss a neighbour, and then retain an
    item that the exact rule drops. All cores build the graph, so two runs may miss different neighbours.
    """

    def __init__(self, vectors: Vectors, t: float, k: int) -> None:
        faiss = library()
        self._vectors, self._t, self._k = vectors.view(np.ndarray), round(t, DIGITS), k
        self._kept: list[Rows] = []
        self._index = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction, self._index.hnsw.efSearch = BUILDING, max(SEARCHING, k)

    def keep(self, items: Rows) -> None:
        """Append items, in order."""
        self._kept.append(items)
        self._index.add(self._rows(items))

    def before(self, items: Rows) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield (item, its near-duplicates among the retained items, their similarities), for items that have any."""
        block = self._rows(items)
        _, indexes = self._index.search(block, self._k)
        rows, columns = np.nonzero(indexes >= 0)  # a short list is filled with -1
        kept_items = np.concatenate([np.empty(0, np.int64), *self._kept])
        near = [(rows, kept_items[indexes[rows, columns]])]
        rows, columns = np.nonzero(block @ block.T > self._t - 10.0**-DIGITS)
        near.append((rows[columns < rows], items[columns[columns < rows]]))
        rows, others = (np.concatenate(arrays) for arrays in zip(*near, strict=True))
        exact = np.round(pair_products(block, rows, self._vectors, others), DIGITS)
        above = np.flatnonzero(exact > self._t)
        yield from by_item(items, rows[above], others[above], exact[above])

    def nearest(self, _item: int, items: Rows, similarities: Scores) -> tuple[int, float]:
        """Return the first of the most similar items found, and its similarity."""
        best = int(similarities.argmax())
        return int(items[best]), float(similarities[best])

    def _rows(self, items: Rows) -> Vectors:
        """Return the vectors of items in contiguous float32; DataError if one has NaN or infinity."""
        block = np.ascontiguousarray(self._vectors[items], dtype=np.float32)
        longest(block, "item", items)
        return block
