"""Floors of labelled texts: the commonest class, one keyword per class, length, random vectors, tf-idf."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curate.commands.evaluate.floor_vectors import random_vectors, reduced, tfidf
from curate.commands.evaluate.scorers_labels import clustered
from curate.commands.evaluate.tasks import EvaluationTask, Foreign
from curate.stats.shortcut_scores import lengths
from curate.stats.shortcuts import commonest, drawn, grams, keyword_rule
from curate.stats.tally import Floats


def of_classification(task: EvaluationTask) -> Iterator[tuple[str, list[list[Any]]]]:
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
        yield name, [_predicted(made, known[draw], [labels[i] for i in draw], asked) for draw in draws]


def of_clustering(task: EvaluationTask) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
    """Yield names and clusters per draw, by mteb's k-means on the texts that mteb draws."""
    made = task.made
    embedded, draws = clustered(made, len(task.data))
    column, labels = list(task.data[made.input_column_name]), list(task.data[made.label_column_name])
    texts, classes = [column[i] for i in embedded], len({labels[i] for i in embedded})
    yield "all-equal", {"Level 0": [[0] * len(draw) for draw in draws]}
    vectors = {"length": lengths(texts), "random encoder": random_vectors(texts), "tf-idf": reduced(texts)}
    for name, rows in vectors.items():
        yield name, {"Level 0": [_clusters(made, rows[draw], classes) for draw in draws]}


def _predicted(made: Foreign, known: Foreign, labels: Sequence[int], asked: Foreign) -> list[int]:
    from sklearn.base import clone

    model = clone(made.evaluator_model).fit(known, labels)
    return [each.item() for each in model.predict(asked)]


def _clusters(made: Foreign, rows: Floats, classes: int) -> list[int]:
    from sklearn.cluster import MiniBatchKMeans

    # As mteb has it; n_init is its default too.
    model = MiniBatchKMeans(classes, batch_size=made.k_mean_batch_size, n_init=1, random_state=made.seed)
    return [int(each) for each in model.fit_predict(rows)]
