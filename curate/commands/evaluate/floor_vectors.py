"""Vectors that know no meaning: random ones, and tf-idf of character or word n-grams."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from curate.commands.evaluate.tasks import Foreign
from curate.stats.shortcuts import unspaced
from curate.stats.tally import Floats

DIM = 256
"""Of random vectors."""
REDUCED = 100
"""Dimensions to which tf-idf is reduced before texts are clustered."""
SEED = 42


def random_vectors(texts: Sequence[str], dim: int = DIM) -> Floats:
    """Return a random unit vector per text; equal texts have equal ones, in every process."""
    seeds = [int.from_bytes(sha256(text.encode()).digest()[:8], "big") for text in texts]
    rows = np.array([np.random.default_rng(seed).standard_normal(dim) for seed in seeds]).reshape(len(texts), dim)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float64)


def tfidf(known: Sequence[str]) -> Foreign:
    """Return what makes sparse tf-idf rows of texts, fitted on these: unit rows, sublinear counts.

    Characters 1- to 2-grams where most letters are Chinese or Japanese, else words; an n-gram of one text alone is left
    out, unless there is no other.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings = {"analyzer": "char" if unspaced(known) else "word", "ngram_range": (1, 2), "sublinear_tf": True}
    try:
        return TfidfVectorizer(min_df=2, **settings).fit(known)
    except ValueError:  # no n-gram is in two texts
        return TfidfVectorizer(**{**settings, "analyzer": "char"}).fit(known)


def reduced(texts: Sequence[str]) -> Floats:
    """Return tf-idf rows reduced to 100 dimensions by truncated SVD, or to as many as there are."""
    from sklearn.decomposition import TruncatedSVD

    rows = tfidf(texts).transform(texts)
    size = min(REDUCED, rows.shape[1] - 1, rows.shape[0] - 1)
    if size < 1:
        return np.asarray(rows.toarray(), dtype=np.float64)
    return np.asarray(TruncatedSVD(size, random_state=SEED).fit_transform(rows), dtype=np.float64)


def cosines(one: Foreign, other: Foreign) -> list[float]:
    """Return the inner products of rows of unit length, dense or sparse."""
    return [float(each) for each in np.asarray(one.multiply(other).sum(axis=1)).ravel()]
