"""Lexical shortcut baselines of the pairs: how well overlap, length or single words predict the label.

Average precision; 0.5 is chance where half of the pairs are positive. Scores of a model that does not exceed the best
baseline say nothing about meaning.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
import polars as pl

from curate.ask.edits.confirmation import CHANGED
from curate.commands.paraphrase.making import ParaphraseResult
from curate.commands.paraphrase.pairs import EDIT, NO, PARAPHRASE, YES, CandidatePair
from curate.core.config import Json, text_digest
from curate.core.sampling import shuffled
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.stats.shortcuts import alike_in_length, grams
from curate.stats.significance import average_precision
from curate.system.files import frame

FOLDS = 5
Marks = Sequence[frozenset[str]]


def overlap_alone(pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of the overlap of characters; None without both labels."""
    return _precision([pair.overlap for pair in pairs], pairs)


def floors(pairs: Sequence[CandidatePair]) -> dict[str, float | None]:
    """Return the average precision of every shortcut, None if undefined.

    `overlap` of characters; `length` similarity; `sentence2`, the words of the second sentence; `edits`, the words
    in only one sentence of the pair. Words are scored by naive Bayes, trained on the pairs of other queries.
    """
    first_grams, second_grams = (grams([getattr(pair, name) for pair in pairs]) for name in ("sentence1", "sentence2"))
    changed = [
        frozenset(f"+{gram}" for gram in b - a) | {f"-{gram}" for gram in a - b}
        for a, b in zip(first_grams, second_grams, strict=True)
    ]
    return {
        "overlap": overlap_alone(pairs),
        "length": _precision([alike_in_length(pair.sentence1, pair.sentence2) for pair in pairs], pairs),
        "sentence2": _bayes_precision(second_grams, pairs),
        "edits": _bayes_precision(changed, pairs),
    }


def _precision(scores: Sequence[float], pairs: Sequence[CandidatePair]) -> float | None:
    labels = [pair.label for pair in pairs]
    if len(set(labels)) < 2:
        return None
    precision = average_precision(np.array(scores, dtype=np.float64), np.array(labels, dtype=np.float64))
    return round(float(precision(np.ones((1, len(pairs))))[0]), 4)


def _bayes_precision(marks: Marks, pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of naive Bayes on the marks, cross-validated over queries; None if undefined."""
    if len({pair.query_id for pair in pairs}) < FOLDS or len({pair.label for pair in pairs}) < 2:
        return None
    fold = [int(text_digest(pair.query_id)[:8], 16) % FOLDS for pair in pairs]
    rules = {
        test_fold: _bayes(
            [
                (mark, pair.label)
                for index, (mark, pair) in enumerate(zip(marks, pairs, strict=True))
                if fold[index] != test_fold
            ]
        )
        for test_fold in set(fold)
    }
    return _precision([rules[pair_fold](mark) for pair_fold, mark in zip(fold, marks, strict=True)], pairs)


def _bayes(examples: Sequence[tuple[frozenset[str], int]]) -> Callable[[frozenset[str]], float]:
    """Return a scorer of log odds of label 1 from the marks present: naive Bayes with add-one smoothing."""
    sizes = Counter(label for _, label in examples)
    label_counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for marks, label in examples:
        for mark in marks:
            label_counts[mark][label] += 1
    odds = {
        mark: math.log((counts[1] + 1) / (sizes[1] + 2)) - math.log((counts[0] + 1) / (sizes[0] + 2))
        for mark, counts in label_counts.items()
    }
    # sorted and rounded: the sum must not depend on the order of a set
    return lambda marks: round(sum(sorted(odds.get(mark, 0.0) for mark in marks)), 9)


# Choice of pairs: as many negatives as positives of each class of overlap, so that shared characters tell nothing.


@dataclass(frozen=True)
class MatchItem:
    """Attributes of a pair that the selection uses."""

    pair_id: str
    source: str
    label: int
    family: str
    """Family of its kind; negatives of one class alternate between families."""
    overlap: float


def matched(items: Sequence[MatchItem], classes: int, most: int, seed: int, purpose: str) -> set[str]:
    """Return the ids of at most `most` pairs, half of them positive in every class of overlap.

    Classes lie between quantiles of the overlap of all items; items exactly at a quantile are a class of their own.
    """
    class_by_pair = dict(zip((pair.pair_id for pair in items), _classes(items, classes), strict=True))
    mixed = shuffled(sorted(items, key=lambda pair: pair.pair_id), seed, "match", purpose)
    positives, negatives = ([pair for pair in mixed if pair.label == label] for label in (1, 0))
    sides = _by_class(positives, class_by_pair), _by_class(_round_robin(negatives), class_by_pair)
    sizes = {
        overlap_class: min(len(candidates), len(sides[1][overlap_class]))
        for overlap_class, candidates in sides[0].items()
        if overlap_class in sides[1]
    }
    slots = shuffled(
        [overlap_class for overlap_class, size in sorted(sizes.items()) for _ in range(size)], seed, "slots", purpose
    )
    counts = {size: slots[: most // 2].count(size) for size in sizes}
    sources = [{pair.source for pair in group} for group in (positives, negatives)]
    likely_negatives = _drawn_by_class(sides[1], counts, sources[0])
    chosen_positives = _drawn_by_class(sides[0], counts, {pair.source for pair in likely_negatives}, sources[1])
    chosen_negatives = _drawn_by_class(sides[1], counts, {pair.source for pair in chosen_positives})
    return {pair.pair_id for pair in (*chosen_positives, *chosen_negatives)}


def paired(items: Sequence[MatchItem]) -> int:
    """Return how many sources have both a positive and a negative."""
    labels: defaultdict[str, set[int]] = defaultdict(set)
    for pair in items:
        labels[pair.source].add(pair.label)
    return sum(len(source_labels) == 2 for source_labels in labels.values())


def _classes(items: Sequence[MatchItem], classes: int) -> list[int]:
    overlaps = np.array([pair.overlap for pair in items])
    if not len(overlaps):
        return []
    edges = np.quantile(overlaps, np.arange(1, classes) / classes)
    below, up_to = (np.searchsorted(edges, overlaps, side=side) for side in ("left", "right"))
    class_numbers: list[int] = (below + up_to).tolist()
    return class_numbers


def _by_class(items: Sequence[MatchItem], class_by_pair: Mapping[str, int]) -> dict[int, list[MatchItem]]:
    by_class: defaultdict[int, list[MatchItem]] = defaultdict(list)
    for pair in items:
        by_class[class_by_pair[pair.pair_id]].append(pair)
    return dict(by_class)


def _round_robin(items: Sequence[MatchItem]) -> list[MatchItem]:
    """Return the items in round-robin order over their families."""
    families: defaultdict[str, list[MatchItem]] = defaultdict(list)
    for pair in items:
        families[pair.family].append(pair)
    rounds = zip_longest(*(families[name] for name in sorted(families)))
    return [pair for pair in chain.from_iterable(rounds) if pair is not None]


def _drawn_by_class(
    by_class: Mapping[int, Sequence[MatchItem]], sizes: Mapping[int, int], *preferred: set[str]
) -> list[MatchItem]:
    """Return `sizes` items of each class: those of the first preferred sources first, else in the given order."""
    selected: list[MatchItem] = []
    for overlap_class, size in sizes.items():
        selected += sorted(
            by_class[overlap_class], key=lambda pair: [pair.source not in sources for sources in preferred]
        )[:size]
    return selected


# Tables and figures of a finished set.

SPLITS = ("test", "train")
UNMATCHED = "not drawn when overlap was matched"
REASONS = {
    "rejected": "the panel says otherwise",
    "contested": "the panel does not agree",
    "incomplete": "a judge gave no answer",
}
"""Verdict -> why such a pair is in no split."""


def chosen(result: ParaphraseResult, sizes: Mapping[str, int], deciles: int, seed: int) -> set[str]:
    """Return the ids of the pairs that are selected for the set."""
    in_set: set[str] = set()
    for split, size in sizes.items():
        candidates = [pair for pair in result.pairs if pair.usable and result.drawn.side[pair.query_id] == split]
        in_set |= matched([_match_item(pair) for pair in candidates], deciles, size, seed, split)
    return in_set


def _match_item(pair: CandidatePair) -> MatchItem:
    return MatchItem(pair.pair_id, pair.query_id, pair.label, pair.family, pair.overlap)


def table(result: ParaphraseResult, in_set: set[str]) -> pl.DataFrame:
    """Return the table `paraphrases`: every pair, those of the set with their split."""
    rows = (
        {
            "pair_id": pair.pair_id,
            "query_id": pair.query_id,
            "sentence1": pair.sentence1,
            "sentence2": pair.sentence2,
            "label": pair.label,
            "kind": pair.kind,
            "retriever": pair.retriever,
            "rank": pair.rank,
            "overlap": pair.overlap,
            "split": result.drawn.side[pair.query_id] if pair.pair_id in in_set else None,
            "group": result.drawn.group[pair.query_id],
            "verdict": pair.verdict,
            "votes": [{"judge": name, "answer": answer} for name, answer in sorted((pair.votes or {}).items())],
        }
        for pair in result.pairs
    )
    return frame("paraphrases", rows).sort("pair_id")


def fates(result: ParaphraseResult, in_set: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return query -> why it has no paraphrase, and pair -> why it is in no split."""
    queries = dict(result.drawn.left_out)
    for query_id in result.drawn.sources:
        if query_id not in result.writer.written:
            refused = query_id in result.writer.refused
            disclosed = query_id in result.writer.disclosing
            broken = "its sentence held personal data" if disclosed else "no sentence kept to the rules"
            queries[query_id] = "the generator refused" if refused else broken
    excluded = [pair for pair in result.pairs if pair.pair_id not in in_set]
    return queries, {pair.pair_id: REASONS.get(pair.verdict, UNMATCHED) for pair in excluded}


def dropped(queries: Mapping[str, str], pairs: Mapping[str, str]) -> pl.DataFrame:
    """Return the table `dropped`: queries and pairs by reason."""
    rows = [
        {"table": table, "id": name, "stage": "paraphrase", "reason": reason}
        for table, reasons in (("queries", queries), ("paraphrases", pairs))
        for name, reason in reasons.items()
    ]
    return frame("dropped", rows).sort("table", "id")


def facts(result: ParaphraseResult, in_set: set[str], panel: Sequence[str], seed: int) -> dict[str, Json]:
    """Return the figures of the set: counts by outcome, agreement of the judges, and the baselines of each split."""
    queries, pairs = fates(result, in_set)
    unwritten = {name: why for name, why in queries.items() if name not in result.drawn.left_out}
    verdicts = Counter((pair.kind, pair.verdict) for pair in result.pairs)
    ways = Counter(pair.way for pair in result.pairs if pair.kind == PARAPHRASE)
    return {
        "planned": len(result.pairs) + len(unwritten),
        "built": len(in_set),
        "dropped": dict(sorted(Counter([*unwritten.values(), *pairs.values()]).items())),
        "panel": list(panel),
        "retrievers": [miner.name for miner in result.drawn.miners],
        "queries": len(result.drawn.sources),
        "pairs": {
            kind: {verdict: count for (pair_kind, verdict), count in sorted(verdicts.items()) if pair_kind == kind}
            for kind in dict.fromkeys(pair.kind for pair in result.pairs)
        },
        "ways": dict(sorted(ways.items())),
        "broken_rules": dict(sorted((+result.writer.broken).items())),
        "refused": len(result.writer.refused),
        "agreement": {
            "sentences": _agreement([pair for pair in result.pairs if pair.family != EDIT], (NO, YES), panel, seed),
            "edits": _agreement([pair for pair in result.pairs if pair.family == EDIT], ("", CHANGED), panel, seed),
        },
        "splits": {
            split: _split_figures(result, in_set, split) for split in SPLITS if split in result.drawn.side.values()
        },
        "originals": _original_figures(result),
    }


def _split_figures(result: ParaphraseResult, in_set: set[str], split: str) -> dict[str, Json]:
    """Return the figures of one split: `overlap_before` is that of all usable pairs, before selection."""
    usable = [pair for pair in result.pairs if pair.usable and result.drawn.side[pair.query_id] == split]
    selected = [pair for pair in usable if pair.pair_id in in_set]
    kinds: Json = dict(sorted(Counter(pair.kind for pair in selected).items()))
    return {
        "pairs": len(selected),
        "kinds": kinds,
        "paired": paired([_match_item(pair) for pair in selected]),
        "overlap_before": overlap_alone(usable),
        "floors": dict(floors(selected)),
    }


def _original_figures(result: ParaphraseResult) -> dict[str, Json]:
    """Return the figures of the judged originals; unjudged pairs count neither as positives nor as negatives."""
    pair_ids = {original.pair_id for original in result.originals}
    positives = Counter(
        original.pair_id for original in result.originals if original.verdict in ("confirmed", "unconfirmed")
    )
    verdicts: Json = dict(sorted(Counter(original.verdict for original in result.originals).items()))
    return {
        "paraphrases": len(pair_ids),
        "originals": len(result.drawn.texts),
        "verdicts": verdicts,
        "several": sum(count > 1 for count in positives.values()),
        "unjudged": len(pair_ids) * len(result.drawn.texts) - len(result.originals),
    }


def _agreement(pairs: Sequence[CandidatePair], answers: tuple[str, str], panel: Sequence[str], seed: int) -> Json:
    """Return the panel's agreement, queries resampled; None with fewer than two judges or without pairs.

    Answers are coded 1 for `answers[1]`, 0 for any other; a failed or missing answer is a missing value.
    """
    if len(panel) < 2 or not pairs:
        return None
    missing = ("failed", "refused", "unparsed")

    def code(answer: str | None) -> int:
        return -1 if answer is None or answer in missing else int(answer == answers[1])

    codes = [[code((pair.votes or {}).get(name)) for name in panel] for pair in pairs]
    query_index = {name: index for index, name in enumerate(dict.fromkeys(pair.query_id for pair in pairs))}
    clusters = [query_index[pair.query_id] for pair in pairs]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed).to_json()
