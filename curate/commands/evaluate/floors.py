"""Vectors that know no meaning: random ones, and tf-idf of character or word n-grams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from curate.commands.evaluate.scorers_by_type import SIMILARITIES, clustered, sources
from curate.commands.evaluate.scoring import Scored, point, restored
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.core.config import digest
from curate.stats.bootstrap import DIGITS
from curate.stats.shortcut_scores import lengths
from curate.stats.shortcuts import alike_in_length, commonest, drawn, grams, keyword_rule, overlap, unspaced
from curate.stats.tally import Floats, Ints
from curate.system.files import read_json, write_json

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


# Floors of labelled texts: the commonest class, one keyword per class, length, random vectors, tf-idf.


def classification_floors(task: EvaluationTask) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield names and predictions per draw; all but the commonest class are fitted on the texts that mteb draws."""
    made, data, training = task.made, task.data, task.training
    texts, learnt = list(data[made.input_column_name]), list(training[made.input_column_name])
    labels = list(training[made.label_column_name])
    draws = list(drawn(labels, made.samples_per_label, made.n_experiments, made.seed))
    most = commonest(labels)
    yield "majority class", [[most] * len(texts) for _ in draws]
    held, seen = grams(learnt), grams(texts)
    rules = [keyword_rule([held[i] for i in draw], [labels[i] for i in draw], most) for draw in draws]
    yield "keyword", [rule(seen) for rule in rules]
    rows = tfidf(learnt)
    vectors: Mapping[str, tuple[Foreign, Foreign]] = {
        "length": (lengths(learnt), lengths(texts)),
        "random encoder": (random_vectors(learnt), random_vectors(texts)),
        "tf-idf": (rows.transform(learnt), rows.transform(texts)),
    }
    for name, (known, asked) in vectors.items():
        yield name, [_predicted_labels(made, known[draw], [labels[i] for i in draw], asked) for draw in draws]


def clustering_floors(task: EvaluationTask) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
    """Yield names and clusters per draw, by mteb's k-means on the texts that mteb draws."""
    made = task.made
    embedded, draws = clustered(made, len(task.data))
    column, labels = list(task.data[made.input_column_name]), list(task.data[made.label_column_name])
    texts, classes = [column[i] for i in embedded], len({labels[i] for i in embedded})
    yield "all-equal", {"Level 0": [[0] * len(draw) for draw in draws]}
    vectors = {"length": lengths(texts), "random encoder": random_vectors(texts), "tf-idf": reduced(texts)}
    for name, rows in vectors.items():
        yield name, {"Level 0": [_clusters(made, rows[draw], classes) for draw in draws]}


def _predicted_labels(made: Foreign, known: Foreign, labels: Sequence[int], asked: Foreign) -> list[int]:
    from sklearn.base import clone

    model = clone(made.evaluator_model).fit(known, labels)
    return [each.item() for each in model.predict(asked)]


def _clusters(made: Foreign, rows: Floats, classes: int) -> list[int]:
    from sklearn.cluster import MiniBatchKMeans

    # As mteb has it; n_init is its default too.
    model = MiniBatchKMeans(classes, batch_size=made.k_mean_batch_size, n_init=1, random_state=made.seed)
    return [int(each) for each in model.fit_predict(rows)]


# Floors of pairs of texts: equal scores, length, shared characters, random vectors, tf-idf, one text alone.

FOLDS = 5
"""Parts of the sources: what reads one text alone is fitted on the others."""

Saved = dict[str, list[float]]
NamedPairScores = Iterator[tuple[str, Saved]]


def pair_classification_floors(task: EvaluationTask) -> NamedPairScores:
    """Yield names and similarities of pairs with label 1 or 0."""
    one, other = (list(task.data[name]) for name in (task.made.input1_column_name, task.made.input2_column_name))
    labels = [float(each) for each in task.data[task.made.label_column_name]]
    yield "all-equal", saved([0.0] * len(labels))
    yield from _surface(one, other)
    yield from _alone(one, other, labels, sources(task.data))


def similarity_floors(task: EvaluationTask) -> NamedPairScores:
    """Yield names and similarities of pairs with levels; one text alone is read where there are two levels."""
    one, other = (list(task.data[name]) for name in task.made.column_names)
    labels = [float(each) for each in task.data["score"]]
    yield from _surface(one, other)
    yield from _foreign(one, other, labels, sources(task.data))
    if len(set(labels)) == 2:
        yield from _alone(one, other, [float(label == max(labels)) for label in labels], sources(task.data))


def _foreign(
    one: Sequence[str], other: Sequence[str], levels: Sequence[float], source: Sequence[float]
) -> NamedPairScores:
    """Yield shared characters of all texts of a series with what its lowest level has, where that is foreign to it.

    Only an artefact of mixing can order these, so what is far from 0 says that the levels can be told without meaning.
    """
    ends = [
        {each: text for each, text, level in zip(source, other, levels, strict=True) if level == end}
        for end in (min(levels), max(levels))
    ]
    zero, own = ends
    if len(set(levels)) > 2 and set(zero) == set(own) and all(zero[each] != own[each] for each in zero):
        yield "foreign destination", saved([overlap(text, zero[each]) for text, each in zip(one, source, strict=True)])


def saved(similarity: Sequence[float]) -> Saved:
    """Return one similarity in the place of each that mteb saves."""
    return {name: [-each if name.endswith("distances") else each for each in similarity] for name in SIMILARITIES}


def _surface(one: Sequence[str], other: Sequence[str]) -> NamedPairScores:
    both = list(zip(one, other, strict=True))
    yield "length", saved([alike_in_length(*pair) for pair in both])
    yield "overlap", saved([overlap(*pair) for pair in both])
    here, there = random_vectors(one), random_vectors(other)
    yield "random encoder", saved([float(each) for each in (here * there).sum(axis=1)])
    model = tfidf([*one, *other])
    yield "tf-idf", saved(cosines(model.transform(one), model.transform(other)))


def _alone(
    one: Sequence[str], other: Sequence[str], labels: Sequence[float], source: Sequence[float]
) -> NamedPairScores:
    """Yield what can be told from a text without its partner, where the texts of a source differ on that side.

    Fitted on four fifths of the sources and used on the last: a keyword, such as a negation, and tf-idf.
    """
    marks, fold = np.array(labels), np.array(source, dtype=np.int64) % FOLDS
    if len(set(source)) < 2 * FOLDS or any(len(set(marks[fold != part])) < 2 for part in range(FOLDS)):
        return
    for side, texts in (("sentence1", one), ("sentence2", other)):
        if len({*zip(source, texts, strict=True)}) > len(set(source)):
            yield f"{side} alone, keyword", saved(list(_keyword(texts, marks, fold)))
            yield f"{side} alone, tf-idf", saved(list(_linear(texts, marks, fold)))


def _keyword(texts: Sequence[str], labels: Floats, fold: Ints) -> Floats:
    held, found = grams(texts), np.zeros(len(texts))
    for part in range(FOLDS):
        known, asked = (np.flatnonzero(each).tolist() for each in (fold != part, fold == part))
        rule = keyword_rule([held[i] for i in known], [int(labels[i]) for i in known], 0)
        found[asked] = rule([held[i] for i in asked])
    return found


def _linear(texts: Sequence[str], labels: Floats, fold: Ints) -> Floats:
    from sklearn.linear_model import LogisticRegression

    found = np.zeros(len(texts))
    for part in range(FOLDS):
        known, asked = (np.flatnonzero(each).tolist() for each in (fold != part, fold == part))
        learnt = [texts[i] for i in known]
        model = tfidf(learnt)
        fitted = LogisticRegression(max_iter=100).fit(model.transform(learnt), labels[known])
        found[asked] = fitted.decision_function(model.transform([texts[i] for i in asked]))
    return found


# Floors of rankings: random vectors for a corpus; for candidates also equal scores, length and shared characters.

DEPTH, BLOCK, RANKING_DIM = 100, 256, 64
"""Documents per query, queries that are ranked at once, dimensions of random vectors."""

Rankings = dict[str, dict[str, float]]
NamedRankings = Iterator[tuple[str, Rankings]]


def retrieval_floors(task: EvaluationTask) -> NamedRankings:
    """Yield the rankings of random vectors; BM25, which is a model, is the shortcut here."""
    data = task.data
    documents, queries = random_vectors(_document_texts(data["corpus"]), RANKING_DIM), data["queries"]
    ids, found = list(data["corpus"]["id"]), Rankings()
    depth = min(DEPTH, len(ids))
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        scores = random_vectors(block["text"], RANKING_DIM) @ documents.T
        best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        for query, row, places in zip(block["id"], scores, best, strict=True):
            found[query] = {ids[place]: float(row[place]) for place in places}
    yield "random encoder", found


def reranking_floors(task: EvaluationTask) -> NamedRankings:
    """Yield the rankings of every query's candidates; of equal scores the order is that of ids, as in trec_eval."""
    data = task.data
    texts = dict(zip(data["corpus"]["id"], _document_texts(data["corpus"]), strict=True))
    asked = dict(zip(data["queries"]["id"], data["queries"]["text"], strict=True))

    def ranked(score: Callable[[str, str], float]) -> Rankings:
        return {
            query: {doc: score(asked[query], texts[doc]) for doc in candidates}
            for query, candidates in data["top_ranked"].items()
        }

    yield "all-equal", ranked(lambda _query, _document: 0.0)
    yield "length", ranked(lambda _query, document: float(len(document)))
    yield "alike in length", ranked(alike_in_length)
    yield "overlap", ranked(overlap)
    vectors = dict(zip(texts, random_vectors(list(texts.values()), RANKING_DIM), strict=True))
    given = dict(zip(asked, random_vectors(list(asked.values()), RANKING_DIM), strict=True))
    yield (
        "random encoder",
        {
            query: {doc: float(given[query] @ vectors[doc]) for doc in candidates}
            for query, candidates in data["top_ranked"].items()
        },
    )


def _document_texts(corpus: Foreign) -> list[str]:
    titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
    return [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]


# Floors and shortcuts of a task, scored as models are: what a score is worth without meaning.

VERSION = 3
"""Of what is kept; another one is scored again."""
FLOORS = frozenset({"all-equal", "majority class", "random encoder"})
"""Names of those that know nothing; the others are shortcuts."""
Predictions = Iterator[tuple[str, Any]]
"""Names and predictions, as mteb saves those of a model."""
OF_TYPE: Mapping[str, Callable[[EvaluationTask], Predictions]] = {
    "Classification": classification_floors,
    "Clustering": clustering_floors,
    "PairClassification": pair_classification_floors,
    "STS": similarity_floors,
    "Retrieval": retrieval_floors,
    "Reranking": reranking_floors,
}
"""What makes the floors, by mteb's type of task."""


@dataclass(frozen=True)
class FloorScore:
    """A floor or shortcut, and what it did on a task."""

    name: str
    scored: Scored

    @property
    def sort(self) -> str:
        """Return `floor` or `shortcut`."""
        return "floor" if self.name in FLOORS else "shortcut"


def floors(task: EvaluationTask, folder: Path) -> list[FloorScore]:
    """Return the floors and shortcuts of a task; empty for a type that has none.

    `folder` holds what was scored before, by the digest of the task's content and what computes them.
    """
    make = OF_TYPE.get(task.kind.mteb.type)
    if make is None:
        return []
    used = [version(name) for name in ("mteb", "scikit-learn", "numpy")]
    path = folder / f"{digest(['floors', VERSION, task.content, task.kind.mteb.type, task.measure, *used])}.json"
    if not path.is_file():
        every = [_scored(task, name, saved) for name, saved in make(task)]
        found = [asdict(each) for each in every if not isnan(each.main)]  # nothing varies: no correlation
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"floors": found})
    kept = [restored(row) for row in read_json(path)["floors"]]
    return [FloorScore(each.model, each) for each in kept]


def _scored(task: EvaluationTask, name: str, saved: Any) -> Scored:  # noqa: ANN401 - as mteb saves it
    found = task.scorer.items(saved, task, task.data)
    main = round(point(task.scorer, found["values"]), DIGITS)
    return Scored(name, "", "", None, main, {}, None, **found)
