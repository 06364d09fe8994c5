"""Floors of pairs of texts: equal scores, length, shared characters, random vectors, tf-idf, one text alone."""

from collections.abc import Iterator, Sequence

import numpy as np

from curate.commands.evaluate.floor_vectors import cosines, random_vectors, tfidf
from curate.commands.evaluate.scorers_pairs import SIMILARITIES, sources
from curate.commands.evaluate.tasks import EvaluationTask
from curate.stats.shortcuts import alike_in_length, grams, keyword_rule, overlap
from curate.stats.tally import Floats, Ints

FOLDS = 5
"""Parts of the sources: what reads one text alone is fitted on the others."""

Saved = dict[str, list[float]]
Named = Iterator[tuple[str, Saved]]


def of_classification(task: EvaluationTask) -> Named:
    """Yield names and similarities of pairs with label 1 or 0."""
    one, other = (list(task.data[name]) for name in (task.made.input1_column_name, task.made.input2_column_name))
    labels = [float(each) for each in task.data[task.made.label_column_name]]
    yield "all-equal", saved([0.0] * len(labels))
    yield from _surface(one, other)
    yield from _alone(one, other, labels, sources(task.data))


def of_similarity(task: EvaluationTask) -> Named:
    """Yield names and similarities of pairs with levels; one text alone is read where there are two levels."""
    one, other = (list(task.data[name]) for name in task.made.column_names)
    labels = [float(each) for each in task.data["score"]]
    yield from _surface(one, other)
    yield from _foreign(one, other, labels, sources(task.data))
    if len(set(labels)) == 2:
        yield from _alone(one, other, [float(label == max(labels)) for label in labels], sources(task.data))


def _foreign(one: Sequence[str], other: Sequence[str], levels: Sequence[float], source: Sequence[float]) -> Named:
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


def _surface(one: Sequence[str], other: Sequence[str]) -> Named:
    both = list(zip(one, other, strict=True))
    yield "length", saved([alike_in_length(*pair) for pair in both])
    yield "overlap", saved([overlap(*pair) for pair in both])
    here, there = random_vectors(one), random_vectors(other)
    yield "random encoder", saved([float(each) for each in (here * there).sum(axis=1)])
    model = tfidf([*one, *other])
    yield "tf-idf", saved(cosines(model.transform(one), model.transform(other)))


def _alone(one: Sequence[str], other: Sequence[str], labels: Sequence[float], source: Sequence[float]) -> Named:
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
