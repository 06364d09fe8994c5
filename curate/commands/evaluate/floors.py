"""Trivial baselines by task type: random vectors, tf-idf, length, shared characters, keywords."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
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
from curate.stats.shortcuts import alike_in_length, commonest, drawn, grams, keyword_rule, lengths, overlap, unspaced
from curate.stats.tally import Floats, Ints
from curate.system.files import read_json, write_json

DIM = 256
"""Number of dimensions of random vectors."""
REDUCED = 100
"""Number of dimensions of tf-idf vectors before clustering."""
SEED = 42


def random_vectors(texts: Sequence[str], dim: int = DIM) -> Floats:
    """Return a random unit vector per text, seeded by the text: equal texts have equal vectors in every process."""
    seeds = [int.from_bytes(sha256(text.encode()).digest()[:8], "big") for text in texts]
    rows = np.array([np.random.default_rng(seed).standard_normal(dim) for seed in seeds]).reshape(len(texts), dim)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float64)


def tfidf(texts: Sequence[str]) -> Foreign:
    """Return a tf-idf vectorizer fitted on texts, with unit rows and sublinear counts.

    n-grams of one and two characters if most letters are Chinese or Japanese, else of words. n-grams that occur in one
    text only are excluded, unless there are no others.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings = {"analyzer": "char" if unspaced(texts) else "word", "ngram_range": (1, 2), "sublinear_tf": True}
    try:
        return TfidfVectorizer(min_df=2, **settings).fit(texts)
    except ValueError:  # no n-gram is in two texts
        return TfidfVectorizer(**{**settings, "analyzer": "char"}).fit(texts)


def reduced(texts: Sequence[str]) -> Floats:
    """Return tf-idf rows reduced to `REDUCED` dimensions, or fewer if there are fewer, by truncated SVD."""
    from sklearn.decomposition import TruncatedSVD

    rows = tfidf(texts).transform(texts)
    size = min(REDUCED, rows.shape[1] - 1, rows.shape[0] - 1)
    if size < 1:
        return np.asarray(rows.toarray(), dtype=np.float64)
    return np.asarray(TruncatedSVD(size, random_state=SEED).fit_transform(rows), dtype=np.float64)


def cosines(first: Foreign, second: Foreign) -> list[float]:
    """Return the inner product of each two corresponding unit rows, of dense or sparse matrices."""
    return [float(product) for product in np.asarray(first.multiply(second).sum(axis=1)).ravel()]


# Labelled texts: the commonest class, one keyword per class, length, random vectors, tf-idf.


def classification_floors(task: EvaluationTask) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield (name of a baseline, predictions per draw).

    All but the majority class are fitted on the texts that mteb draws.
    """
    from sklearn.base import clone

    mteb_task, texts_table, training = task.made, task.data, task.training
    texts, learnt = list(texts_table[mteb_task.input_column_name]), list(training[mteb_task.input_column_name])
    labels = list(training[mteb_task.label_column_name])
    draws = list(drawn(labels, mteb_task.samples_per_label, mteb_task.n_experiments, mteb_task.seed))
    most = commonest(labels)
    yield "majority class", [[most] * len(texts) for _ in draws]
    train_grams, test_grams = grams(learnt), grams(texts)
    rules = [keyword_rule([train_grams[i] for i in draw], [labels[i] for i in draw], most) for draw in draws]
    yield "keyword", [rule(test_grams) for rule in rules]
    rows = tfidf(learnt)
    vectors: Mapping[str, tuple[Foreign, Foreign]] = {
        "length": (lengths(learnt), lengths(texts)),
        "random encoder": (random_vectors(learnt), random_vectors(texts)),
        "tf-idf": (rows.transform(learnt), rows.transform(texts)),
    }
    for name, (train_rows, test_rows) in vectors.items():
        predictions = []
        for draw in draws:
            model = clone(mteb_task.evaluator_model).fit(train_rows[draw], [labels[i] for i in draw])
            predictions.append([label.item() for label in model.predict(test_rows)])
        yield name, predictions


def clustering_floors(task: EvaluationTask) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
    """Yield (name of a baseline, clusters per draw), by mteb's k-means on the texts that mteb draws."""
    from sklearn.cluster import MiniBatchKMeans

    mteb_task = task.made
    embedded, draws = clustered(mteb_task, len(task.data))
    column, labels = list(task.data[mteb_task.input_column_name]), list(task.data[mteb_task.label_column_name])
    texts, classes = [column[i] for i in embedded], len({labels[i] for i in embedded})
    yield "all-equal", {"Level 0": [[0] * len(draw) for draw in draws]}
    vectors = {"length": lengths(texts), "random encoder": random_vectors(texts), "tf-idf": reduced(texts)}
    for name, rows in vectors.items():
        clusters = []
        for draw in draws:
            # the same settings as in mteb, n_init included
            model = MiniBatchKMeans(
                classes, batch_size=mteb_task.k_mean_batch_size, n_init=1, random_state=mteb_task.seed
            )
            clusters.append([int(cluster) for cluster in model.fit_predict(rows[draw])])
        yield name, {"Level 0": clusters}


# Pairs of texts: equal scores, length, shared characters, random vectors, tf-idf, one text only.

FOLDS = 5
"""Number of cross-validation folds over sources, for baselines that read one text of a pair only."""

Saved = dict[str, list[float]]
NamedPairScores = Iterator[tuple[str, Saved]]


def pair_classification_floors(task: EvaluationTask) -> NamedPairScores:
    """Yield (name of a baseline, similarities) for pairs with label 1 or 0."""
    first_texts, second_texts = (
        list(task.data[name]) for name in (task.made.input1_column_name, task.made.input2_column_name)
    )
    labels = [float(label) for label in task.data[task.made.label_column_name]]
    yield "all-equal", saved([0.0] * len(labels))
    yield from _surface(first_texts, second_texts)
    yield from _single_text(first_texts, second_texts, labels, sources(task.data))


def similarity_floors(task: EvaluationTask) -> NamedPairScores:
    """Yield (name of a baseline, similarities) for pairs with levels.

    Baselines that read only one text of a pair are included only if there are two levels.
    """
    first_texts, second_texts = (list(task.data[name]) for name in task.made.column_names)
    labels = [float(label) for label in task.data["score"]]
    yield from _surface(first_texts, second_texts)
    yield from _lowest_partner(first_texts, second_texts, labels, sources(task.data))
    if len(set(labels)) == 2:
        yield from _single_text(
            first_texts, second_texts, [float(label == max(labels)) for label in labels], sources(task.data)
        )


def _lowest_partner(
    first_texts: Sequence[str], second_texts: Sequence[str], levels: Sequence[float], source: Sequence[float]
) -> NamedPairScores:
    """Yield the overlap of each first text with the second text of the lowest level of its source.

    Only if that text differs from the one of the highest level. The overlap can order the levels only by an artefact of
    mixing, so a correlation far from 0 means that the levels are detectable without meaning.
    """
    ends = [
        {
            text_source: text
            for text_source, text, level in zip(source, second_texts, levels, strict=True)
            if level == end
        }
        for end in (min(levels), max(levels))
    ]
    lowest, highest = ends
    if (
        len(set(levels)) > 2
        and set(lowest) == set(highest)
        and all(lowest[text_source] != highest[text_source] for text_source in lowest)
    ):
        yield (
            "foreign destination",
            saved([overlap(text, lowest[text_source]) for text, text_source in zip(first_texts, source, strict=True)]),
        )


def saved(similarity: Sequence[float]) -> Saved:
    """Return similarities under all names that mteb saves; distances are negated."""
    return {name: [-score if name.endswith("distances") else score for score in similarity] for name in SIMILARITIES}


def _surface(first_texts: Sequence[str], second_texts: Sequence[str]) -> NamedPairScores:
    both = list(zip(first_texts, second_texts, strict=True))
    yield "length", saved([alike_in_length(*pair) for pair in both])
    yield "overlap", saved([overlap(*pair) for pair in both])
    first_vectors, second_vectors = random_vectors(first_texts), random_vectors(second_texts)
    yield "random encoder", saved([float(cosine) for cosine in (first_vectors * second_vectors).sum(axis=1)])
    model = tfidf([*first_texts, *second_texts])
    yield "tf-idf", saved(cosines(model.transform(first_texts), model.transform(second_texts)))


def _single_text(
    first_texts: Sequence[str], second_texts: Sequence[str], labels: Sequence[float], source: Sequence[float]
) -> NamedPairScores:
    """Yield baselines that read one text of a pair only, for a side on which sources have several texts.

    Cross-validated over sources: a keyword, such as a negation, and logistic regression on tf-idf.
    """
    label_array, fold = np.array(labels), np.array(source, dtype=np.int64) % FOLDS
    if len(set(source)) < 2 * FOLDS or any(len(set(label_array[fold != test_fold])) < 2 for test_fold in range(FOLDS)):
        return
    for side, texts in (("sentence1", first_texts), ("sentence2", second_texts)):
        if len({*zip(source, texts, strict=True)}) > len(set(source)):
            yield f"{side} alone, keyword", saved(list(_keyword(texts, label_array, fold)))
            yield f"{side} alone, tf-idf", saved(list(_linear(texts, label_array, fold)))


def _keyword(texts: Sequence[str], labels: Floats, fold: Ints) -> Floats:
    text_grams, scores = grams(texts), np.zeros(len(texts))
    for test_fold in range(FOLDS):
        train, test = (np.flatnonzero(is_in_fold).tolist() for is_in_fold in (fold != test_fold, fold == test_fold))
        rule = keyword_rule([text_grams[i] for i in train], [int(labels[i]) for i in train], 0)
        scores[test] = rule([text_grams[i] for i in test])
    return scores


def _linear(texts: Sequence[str], labels: Floats, fold: Ints) -> Floats:
    from sklearn.linear_model import LogisticRegression

    scores = np.zeros(len(texts))
    for test_fold in range(FOLDS):
        train, test = (np.flatnonzero(is_in_fold).tolist() for is_in_fold in (fold != test_fold, fold == test_fold))
        learnt = [texts[i] for i in train]
        model = tfidf(learnt)
        fitted = LogisticRegression(max_iter=100).fit(model.transform(learnt), labels[train])
        scores[test] = fitted.decision_function(model.transform([texts[i] for i in test]))
    return scores


# Rankings: random vectors for a corpus; for candidates also equal scores, length and shared characters.

DEPTH, BLOCK, RANKING_DIM = 100, 256, 64
"""Number of documents per query, queries per block, dimensions of random vectors."""

Rankings = dict[str, dict[str, float]]
NamedRankings = Iterator[tuple[str, Rankings]]


def retrieval_floors(task: EvaluationTask) -> NamedRankings:
    """Yield the rankings by random vectors; BM25 is not included, because it is scored as a model."""
    task_data = task.data
    documents, queries = random_vectors(_document_texts(task_data["corpus"]), RANKING_DIM), task_data["queries"]
    ids, rankings = list(task_data["corpus"]["id"]), Rankings()
    depth = min(DEPTH, len(ids))
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        scores = random_vectors(block["text"], RANKING_DIM) @ documents.T
        best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        for query, row, columns in zip(block["id"], scores, best, strict=True):
            rankings[query] = {ids[column]: float(row[column]) for column in columns}
    yield "random encoder", rankings


def reranking_floors(task: EvaluationTask) -> NamedRankings:
    """Yield (name of a baseline, ranking of every query's candidates); ties are ordered by id, as in trec_eval."""
    task_data = task.data
    texts = dict(zip(task_data["corpus"]["id"], _document_texts(task_data["corpus"]), strict=True))
    query_texts = dict(zip(task_data["queries"]["id"], task_data["queries"]["text"], strict=True))

    def ranked(score: Callable[[str, str], float]) -> Rankings:
        return {
            query: {doc: score(query_texts[query], texts[doc]) for doc in candidates}
            for query, candidates in task_data["top_ranked"].items()
        }

    yield "all-equal", ranked(lambda _query, _document: 0.0)
    yield "length", ranked(lambda _query, document: float(len(document)))
    yield "alike in length", ranked(alike_in_length)
    yield "overlap", ranked(overlap)
    vectors = dict(zip(texts, random_vectors(list(texts.values()), RANKING_DIM), strict=True))
    query_vectors = dict(zip(query_texts, random_vectors(list(query_texts.values()), RANKING_DIM), strict=True))
    yield (
        "random encoder",
        {
            query: {doc: float(query_vectors[query] @ vectors[doc]) for doc in candidates}
            for query, candidates in task_data["top_ranked"].items()
        },
    )


def _document_texts(corpus: Foreign) -> list[str]:
    titles = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
    return [f"{title or ''} {text}".strip() for title, text in zip(titles, corpus["text"], strict=True)]


# Baselines of a task, scored like models.

VERSION = 3
"""Version of the stored scores; scores of another version are recomputed."""
FLOORS = frozenset({"all-equal", "majority class", "random encoder"})
"""Names of baselines without any information on the texts; all others are lexical shortcuts."""
Predictions = Iterator[tuple[str, Any]]
"""Pairs of a baseline's name and its predictions, in the structure that mteb saves."""
OF_TYPE: Mapping[str, Callable[[EvaluationTask], Predictions]] = {
    "Classification": classification_floors,
    "Clustering": clustering_floors,
    "PairClassification": pair_classification_floors,
    "STS": similarity_floors,
    "Retrieval": retrieval_floors,
    "Reranking": reranking_floors,
}
"""mteb's task type -> function that yields its baselines."""


def floors(task: EvaluationTask, folder: Path) -> list[Scored]:
    """Return the scores of a task's trivial baselines, as of models; [] for a task type without baselines.

    `folder` stores the scores by a digest of the task's content and the versions of the libraries.
    """
    make = OF_TYPE.get(task.kind.mteb.type)
    if make is None:
        return []
    used = [version(name) for name in ("mteb", "scikit-learn", "numpy")]
    path = folder / f"{digest(['floors', VERSION, task.content, task.kind.mteb.type, task.measure, *used])}.json"
    if not path.is_file():
        all_scored = []
        for name, saved in make(task):
            item_scores = task.scorer.items(saved, task, task.data)
            main = round(point(task.scorer, item_scores["values"]), DIGITS)
            all_scored.append(Scored(name, "", "", None, main, {}, None, **item_scores))
        defined = [asdict(scored) for scored in all_scored if not isnan(scored.main)]  # nothing varies: no correlation
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"floors": defined})
    stored = [restored(row) for row in read_json(path)["floors"]]
    return [replace(row, floor="floor" if row.model in FLOORS else "shortcut") for row in stored]
