"""Lexical shortcut baselines, and scores on labelled texts and pairs without scikit-learn.

A model that does not beat them shows no understanding of the texts (Gururangan et al., NAACL 2018, for sentence pairs).
They need no model, so they run at export as well as at evaluation.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from curate.stats import significance
from curate.stats.confusion import confusions, macro_f1
from curate.stats.significance import pearson, products
from curate.stats.tally import Floats, Ints

CHARACTERS, WORDS = (1, 2, 3, 4), (1, 2)
"""Lengths of keywords, as n-grams: of characters for scripts without spaces, else of words."""
UNSPACED = (("\u2e80", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))
"""Code point ranges of Chinese characters and Japanese kana; texts of mostly these have no spaces between words."""
_WORD = re.compile(r"\w+")
PER_CLASS, DRAWS, SEED = 8, 10, 42
"""Defaults of mteb's classification: training texts per class, number of draws, and seed."""


def overlap(one: str, other: str) -> float:
    """Return the cosine similarity, 0 to 1, of two texts' counts of lower-case character 1- and 2-grams.

    The similarity with an empty text is 0.
    """
    counts_one, counts_other = _counts(one), _counts(other)
    length = math.sqrt(sum(n * n for n in counts_one.values()) * sum(n * n for n in counts_other.values()))
    return sum(count * counts_other[gram] for gram, count in counts_one.items()) / length if length else 0.0


def alike_in_length(one: str, other: str) -> float:
    """Return the negative difference of two texts' lengths in characters."""
    return -float(abs(len(one) - len(other)))


def _counts(text: str) -> Counter[str]:
    low = text.lower()
    return Counter(low) + Counter(first + second for first, second in pairwise(low))


def drawn(
    labels: Sequence[int], per_class: int = PER_CLASS, draws: int = DRAWS, seed: int = SEED
) -> Iterator[list[int]]:
    """Yield the indexes of training texts for each draw of mteb's classification, at most `per_class` per class.

    As in mteb, every draw shuffles the order of the previous one, with the same seed.
    """
    order = list(range(len(labels)))
    for _ in range(draws):
        np.random.RandomState(seed).shuffle(order)
        counts: Counter[int] = Counter()
        chosen = []
        for index in order:
            counts[labels[index]] += 1
            if counts[labels[index]] <= per_class:
                chosen.append(index)
        yield chosen


def commonest(labels: Sequence[int]) -> int:
    """Return the most frequent label; on ties the lowest."""
    return min(Counter(labels).items(), key=lambda counted: (-counted[1], counted[0]))[0]


@dataclass(frozen=True)
class KeywordRule:
    """Classifier with one keyword per class: a text is in the first class whose keyword it contains."""

    keywords: Sequence[tuple[str, int]]
    """Pairs of keyword and label, in descending order of the keyword's F1."""
    otherwise: int
    """Label of a text that contains none of the keywords."""

    def __call__(self, texts: Sequence[frozenset[str]]) -> list[int]:
        """Return the label of every text; `texts` are sets of n-grams."""
        return [next((label for word, label in self.keywords if word in held), self.otherwise) for held in texts]


def grams(texts: Sequence[str]) -> list[frozenset[str]]:
    """Return the n-grams of every text: of 1 to 4 characters, or of 1 or 2 lower-case words.

    Characters are used if most letters of all texts are Chinese or Japanese.
    """
    if unspaced(texts):
        return [_grams_of(text, CHARACTERS) for text in texts]
    return [_grams_of(_WORD.findall(text.lower()), WORDS) for text in texts]


def unspaced(texts: Sequence[str]) -> bool:
    """Return whether most letters of these texts belong to a script without spaces."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    return 2 * sum(any(low <= letter <= high for low, high in UNSPACED) for letter in letters) > len(letters)


def _grams_of(pieces: Sequence[str], sizes: Sequence[int]) -> frozenset[str]:
    between = "" if isinstance(pieces, str) else " "
    return frozenset(
        between.join(pieces[start : start + size]) for size in sizes for start in range(len(pieces) - size + 1)
    )


def keyword_rule(texts: Sequence[frozenset[str]], labels: Sequence[int], otherwise: int) -> KeywordRule:
    """Return the rule with, per class, the n-gram that has the best F1 on these texts.

    Ties by length, then alphabetically. `texts` are sets of n-grams.
    """
    among, best = Counter(gram for held in texts for gram in held), []
    for label, size in sorted(Counter(labels).items()):
        inside = Counter(
            gram for held, text_label in zip(texts, labels, strict=True) if text_label == label for gram in held
        )
        scored = [(-2 * hits / (among[gram] + size), len(gram), gram) for gram, hits in inside.items()]
        if scored:
            best.append((min(scored), label))
    return KeywordRule([(gram, label) for (_, _, gram), label in sorted(best)], otherwise)


# Scores of shortcuts and models on labelled texts and pairs, without scikit-learn: for warnings before an export.

Encode = Callable[[Sequence[str]], Floats]
"""Function from texts to an array with one unit vector per text."""
Measure = Callable[[Floats, Floats], float]
"""Function from similarities and labels to a score."""
SEEDS = (42, 43, 44)
"""Seeds of the k-means runs whose V-measures are averaged."""


@dataclass(frozen=True)
class ShortcutScores:
    """Scores on one task: of the trivial baseline (`floor`), of shortcuts by name, and of models by name."""

    floor: float
    shortcuts: Mapping[str, float]
    models: Mapping[str, float]

    @property
    def shortcut(self) -> str:
        """Return the name of the best shortcut."""
        return max(self.shortcuts, key=lambda name: self.shortcuts[name])

    @property
    def model(self) -> str:
        """Return the name of the best model."""
        return max(self.models, key=lambda name: self.models[name])

    @property
    def share(self) -> float | None:
        """Return the best shortcut's lead over the baseline, divided by the best model's lead.

        None if the model has no lead.
        """
        lead = self.models[self.model] - self.floor
        return (self.shortcuts[self.shortcut] - self.floor) / lead if lead > 0 else None


def of_pairs(
    one: Sequence[str], other: Sequence[str], labels: Sequence[float], models: Mapping[str, Encode], measure: str
) -> ShortcutScores:
    """Return the scores on sentence pairs by the `measure` named in `MEASURES`; for correlations the baseline is 0."""
    score, marks, both = MEASURES[measure], np.array(labels, dtype=np.float64), list(zip(one, other, strict=True))
    shortcuts = {
        "length": score(np.array([alike_in_length(*pair) for pair in both]), marks),
        "overlap": score(np.array([overlap(*pair) for pair in both]), marks),
    }
    model_scores = {name: score((encode(one) * encode(other)).sum(axis=1), marks) for name, encode in models.items()}
    return ShortcutScores(
        float(marks.mean()) if measure == "max_ap" else 0.0, _defined(shortcuts), _defined(model_scores)
    )


def _defined(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores with NaN (correlation with a constant) replaced by 0."""
    return {name: 0.0 if np.isnan(score) else score for name, score in scores.items()}


def _plain_score(score: significance.Replicated, items: int) -> float:
    return float(score(np.ones((1, items)))[0])


MEASURES: Mapping[str, Measure] = {
    "max_ap": lambda x, y: _plain_score(significance.average_precision(x, y), len(x)),
    "cosine_spearman": lambda x, y: _plain_score(significance.spearman(x, y), len(x)),
    "cosine_pearson": lambda x, y: float(pearson(products(x, y).sum(axis=0))),
}
"""mteb's name of a pair measure -> function from similarities and labels to the score."""


def of_classes(
    known: tuple[Sequence[str], Sequence[int]], asked: tuple[Sequence[str], Sequence[int]], models: Mapping[str, Encode]
) -> ShortcutScores:
    """Return mean macro-F1 over mteb's draws of training texts.

    The baseline always predicts the most frequent class.
    """
    (texts, labels), (others, truth) = known, asked
    codes = {label: code for code, label in enumerate(sorted({*labels, *truth}))}
    train_codes, right = [codes[label] for label in labels], np.array([codes[label] for label in truth], dtype=np.int64)
    draws, most = list(drawn(train_codes)), commonest(train_codes)

    def score(predicted: Sequence[Sequence[int]]) -> float:
        predictions = [np.array(labels, dtype=np.int64) for labels in predicted]
        return float(macro_f1(confusions(right, predictions, len(codes)).sum(axis=0)))

    def trained(rows: Floats, new: Floats) -> float:
        return score([logistic(rows[draw], [train_codes[i] for i in draw], new) for draw in draws])

    held, seen = grams(texts), grams(others)
    rules = [keyword_rule([held[i] for i in draw], [train_codes[i] for i in draw], most) for draw in draws]
    shortcuts = {"keyword": score([rule(seen) for rule in rules]), "length": trained(lengths(texts), lengths(others))}
    scores = {name: trained(encode(texts), encode(others)) for name, encode in models.items()}
    return ShortcutScores(score([[most] * len(others)]), shortcuts, scores)


def of_clusters(texts: Sequence[str], labels: Sequence[int], models: Mapping[str, Encode]) -> ShortcutScores:
    """Return mean V-measure of k-means with as many clusters as labels; the baseline, one cluster, scores 0."""
    marks, times = np.unique(np.array(labels), return_inverse=True)[1], np.ones(len(texts), dtype=np.int64)

    def score(rows: Floats) -> float:
        measures = [significance.v_measure(marks, _clusters(rows, len(set(labels)), seed), times) for seed in SEEDS]
        return float(np.mean([_plain_score(measure, len(texts)) for measure in measures]))

    return ShortcutScores(
        0.0, {"length": score(lengths(texts))}, {name: score(encode(texts)) for name, encode in models.items()}
    )


def _clusters(rows: Floats, count: int, seed: int) -> Ints:
    from scipy.cluster.vq import kmeans2

    return np.asarray(kmeans2(rows, min(count, len(rows)), minit="++", seed=seed)[1], dtype=np.int64)


def lengths(texts: Sequence[str]) -> Floats:
    """Return the standardised logarithm of each text's length; shape (texts, 1)."""
    logarithms = np.log1p([[len(text)] for text in texts])
    return np.asarray((logarithms - logarithms.mean()) / (logarithms.std() or 1.0), dtype=np.float64)


def logistic(rows: Floats, labels: Sequence[int], asked: Floats) -> list[int]:
    """Return the labels of the rows `asked`, predicted by logistic regression with scikit-learn's default penalty."""
    from scipy.optimize import minimize

    names, code = np.unique(np.array(labels), return_inverse=True)
    if len(names) == 1:
        return [int(names[0])] * len(asked)
    wide, truth = np.column_stack([rows, np.ones(len(rows))]), np.eye(len(names))[code]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(wide.shape[1], -1)
        logits = wide @ weights
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        free = np.vstack([weights[:-1], np.zeros_like(weights[:1])])  # the last row is the intercept
        gradient = wide.T @ (np.exp(logs) - truth) + free
        return float((free**2).sum() / 2 - (truth * logs).sum()), gradient.ravel()

    weights = minimize(loss, np.zeros(wide.shape[1] * len(names)), jac=True, method="L-BFGS-B").x
    best = (np.column_stack([asked, np.ones(len(asked))]) @ weights.reshape(wide.shape[1], -1)).argmax(axis=1)
    return [int(names[index]) for index in best]
