"""What needs no meaning, measured on the pairs: how far overlap, length or the words of a sentence give the label away.

Average precision, .5 by chance where half of the pairs are positive. A model that is not above the best of these has
shown nothing on the set.
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
from curate.stats.replicated import average_precision
from curate.stats.shortcuts import alike_in_length, grams
from curate.system.files import frame

FOLDS = 5
Marks = Sequence[frozenset[str]]


def overlap_alone(pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of the overlap of characters; None without both labels."""
    return _precision([pair.overlap for pair in pairs], pairs)


def floors(pairs: Sequence[CandidatePair]) -> dict[str, float | None]:
    """Return the average precision of every shortcut, None where it is not defined.

    `overlap` of characters; `length`, how alike it is; `sentence2`, the words of the second sentence alone; `edits`,
    the words that stand in one sentence of the pair only. Words vote by naive Bayes, learnt on the pairs of other
    queries.
    """
    one, two = (grams([getattr(pair, name) for pair in pairs]) for name in ("sentence1", "sentence2"))
    changed = [
        frozenset(f"+{gram}" for gram in b - a) | {f"-{gram}" for gram in a - b} for a, b in zip(one, two, strict=True)
    ]
    return {
        "overlap": overlap_alone(pairs),
        "length": _precision([alike_in_length(pair.sentence1, pair.sentence2) for pair in pairs], pairs),
        "sentence2": _learnt(two, pairs),
        "edits": _learnt(changed, pairs),
    }


def _precision(scores: Sequence[float], pairs: Sequence[CandidatePair]) -> float | None:
    labels = [pair.label for pair in pairs]
    if len(set(labels)) < 2:
        return None
    found = average_precision(np.array(scores, dtype=np.float64), np.array(labels, dtype=np.float64))
    return round(float(found(np.ones((1, len(pairs))))[0]), 4)


def _learnt(marks: Marks, pairs: Sequence[CandidatePair]) -> float | None:
    """Return the average precision of what marks tell, each fifth of the queries scored by what the others teach."""
    if len({pair.query_id for pair in pairs}) < FOLDS or len({pair.label for pair in pairs}) < 2:
        return None
    fold = [int(text_digest(pair.query_id)[:8], 16) % FOLDS for pair in pairs]
    rules = {
        held: _bayes(
            [(mark, pair.label) for at, (mark, pair) in enumerate(zip(marks, pairs, strict=True)) if fold[at] != held]
        )
        for held in set(fold)
    }
    return _precision([rules[at](mark) for at, mark in zip(fold, marks, strict=True)], pairs)


def _bayes(taught: Sequence[tuple[frozenset[str], int]]) -> Callable[[frozenset[str]], float]:
    """Return the log odds of label 1 by the marks that are there: naive Bayes with Laplace's one more of each."""
    sizes = Counter(label for _, label in taught)
    there: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for marks, label in taught:
        for mark in marks:
            there[mark][label] += 1
    odds = {
        mark: math.log((counts[1] + 1) / (sizes[1] + 2)) - math.log((counts[0] + 1) / (sizes[0] + 2))
        for mark, counts in there.items()
    }
    return lambda marks: round(sum(sorted(odds.get(mark, 0.0) for mark in marks)), 9)


# Choice of pairs: as many negatives as positives of each class of overlap, so that shared characters tell nothing.


@dataclass(frozen=True)
class MatchItem:
    """A pair as far as choosing it is concerned."""

    pair_id: str
    source: str
    label: int
    family: str
    """Of its kind: the kinds of negatives of one class are taken in turn."""
    overlap: float


def matched(items: Sequence[MatchItem], classes: int, most: int, seed: int, purpose: str) -> set[str]:
    """Return the ids of at most `most` pairs, half of them positive in every class of overlap.

    Classes lie between quantiles of the overlap of all items; a quantile that items have is a class of its own.
    """
    place = dict(zip((each.pair_id for each in items), _classes(items, classes), strict=True))
    mixed = shuffled(sorted(items, key=lambda each: each.pair_id), seed, "match", purpose)
    positives, negatives = ([each for each in mixed if each.label == label] for label in (1, 0))
    sides = _by_class(positives, place), _by_class(_in_turn(negatives), place)
    sizes = {at: min(len(found), len(sides[1][at])) for at, found in sides[0].items() if at in sides[1]}
    slots = shuffled([at for at, size in sorted(sizes.items()) for _ in range(size)], seed, "slots", purpose)
    wanted = {size: slots[: most // 2].count(size) for size in sizes}
    sources = [{each.source for each in side} for side in (positives, negatives)]
    first = _taken(sides[1], wanted, sources[0])
    chosen = _taken(sides[0], wanted, {each.source for each in first}, sources[1])
    second = _taken(sides[1], wanted, {each.source for each in chosen})
    return {each.pair_id for each in (*chosen, *second)}


def paired(items: Sequence[MatchItem]) -> int:
    """Return how many sources have both a positive and a negative."""
    labels: defaultdict[str, set[int]] = defaultdict(set)
    for each in items:
        labels[each.source].add(each.label)
    return sum(len(label) == 2 for label in labels.values())


def _classes(items: Sequence[MatchItem], classes: int) -> list[int]:
    overlaps = np.array([each.overlap for each in items])
    if not len(overlaps):
        return []
    edges = np.quantile(overlaps, np.arange(1, classes) / classes)
    below, at = (np.searchsorted(edges, overlaps, side=side) for side in ("left", "right"))
    found: list[int] = (below + at).tolist()
    return found


def _by_class(items: Sequence[MatchItem], place: Mapping[str, int]) -> dict[int, list[MatchItem]]:
    found: defaultdict[int, list[MatchItem]] = defaultdict(list)
    for each in items:
        found[place[each.pair_id]].append(each)
    return dict(found)


def _in_turn(items: Sequence[MatchItem]) -> list[MatchItem]:
    """Return the items so that families take turns: of each as many as there are while others last."""
    families: defaultdict[str, list[MatchItem]] = defaultdict(list)
    for each in items:
        families[each.family].append(each)
    rounds = zip_longest(*(families[name] for name in sorted(families)))
    return [each for each in chain.from_iterable(rounds) if each is not None]


def _taken(side: Mapping[int, Sequence[MatchItem]], wanted: Mapping[int, int], *preferred: set[str]) -> list[MatchItem]:
    """Return so many of each class, those of the most preferred sources first, and in the order given among equals."""
    found: list[MatchItem] = []
    for at, number in wanted.items():
        found += sorted(side[at], key=lambda each: [each.source not in sources for sources in preferred])[:number]
    return found


# What a set of paraphrases came to, in tables and figures.

SPLITS = ("test", "train")
UNMATCHED = "not drawn when overlap was matched"
REASONS = {
    "rejected": "the panel says otherwise",
    "contested": "the panel does not agree",
    "incomplete": "a judge gave no answer",
}
"""Verdict -> why such a pair is in no split."""


def chosen(made: ParaphraseResult, wanted: Mapping[str, int], deciles: int, seed: int) -> set[str]:
    """Return the ids of the pairs that make the set."""
    found: set[str] = set()
    for split, most in wanted.items():
        here = [pair for pair in made.pairs if pair.usable and made.drawn.side[pair.query_id] == split]
        found |= matched([_item(each) for each in here], deciles, most, seed, split)
    return found


def _item(pair: CandidatePair) -> MatchItem:
    return MatchItem(pair.pair_id, pair.query_id, pair.label, pair.family, pair.overlap)


def table(made: ParaphraseResult, in_set: set[str]) -> pl.DataFrame:
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
            "split": made.drawn.side[pair.query_id] if pair.pair_id in in_set else None,
            "group": made.drawn.group[pair.query_id],
            "verdict": pair.verdict,
            "votes": [{"judge": name, "answer": answer} for name, answer in sorted((pair.votes or {}).items())],
        }
        for pair in made.pairs
    )
    return frame("paraphrases", rows).sort("pair_id")


def fates(made: ParaphraseResult, in_set: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return query -> why it has no paraphrase, and pair -> why it is in no split."""
    queries = dict(made.drawn.left_out)
    for query_id in made.drawn.sources:
        if query_id not in made.writer.written:
            refused = query_id in made.writer.refused
            told = query_id in made.writer.disclosing
            broken = "its sentence held personal data" if told else "no sentence kept to the rules"
            queries[query_id] = "the generator refused" if refused else broken
    left = [pair for pair in made.pairs if pair.pair_id not in in_set]
    return queries, {each.pair_id: REASONS.get(each.verdict, UNMATCHED) for each in left}


def dropped(queries: Mapping[str, str], pairs: Mapping[str, str]) -> pl.DataFrame:
    """Return the table `dropped`: queries and pairs by reason."""
    rows = [
        {"table": table, "id": name, "stage": "paraphrase", "reason": reason}
        for table, reasons in (("queries", queries), ("paraphrases", pairs))
        for name, reason in reasons.items()
    ]
    return frame("dropped", rows).sort("table", "id")


def facts(made: ParaphraseResult, in_set: set[str], panel: Sequence[str], seed: int) -> dict[str, Json]:
    """Return the figures of the set: what became of all pairs, how far judges agree, and the floors of each split."""
    queries, pairs = fates(made, in_set)
    unwritten = {name: why for name, why in queries.items() if name not in made.drawn.left_out}
    verdicts = Counter((pair.kind, pair.verdict) for pair in made.pairs)
    ways = Counter(pair.way for pair in made.pairs if pair.kind == PARAPHRASE)
    return {
        "planned": len(made.pairs) + len(unwritten),
        "built": len(in_set),
        "dropped": dict(sorted(Counter([*unwritten.values(), *pairs.values()]).items())),
        "panel": list(panel),
        "retrievers": [miner.name for miner in made.drawn.miners],
        "queries": len(made.drawn.sources),
        "pairs": {
            kind: {verdict: count for (of, verdict), count in sorted(verdicts.items()) if of == kind}
            for kind in dict.fromkeys(pair.kind for pair in made.pairs)
        },
        "ways": dict(sorted(ways.items())),
        "broken_rules": dict(sorted((+made.writer.broken).items())),
        "refused": len(made.writer.refused),
        "agreement": {
            "sentences": _agreement([pair for pair in made.pairs if pair.family != EDIT], (NO, YES), panel, seed),
            "edits": _agreement([pair for pair in made.pairs if pair.family == EDIT], ("", CHANGED), panel, seed),
        },
        "splits": {split: _split(made, in_set, split) for split in SPLITS if split in made.drawn.side.values()},
        "originals": _originals(made),
    }


def _split(made: ParaphraseResult, in_set: set[str], split: str) -> dict[str, Json]:
    """Return the figures of one split: `before` is the average precision of overlap on all that could be chosen."""
    usable = [pair for pair in made.pairs if pair.usable and made.drawn.side[pair.query_id] == split]
    here = [each for each in usable if each.pair_id in in_set]
    kinds: Json = dict(sorted(Counter(each.kind for each in here).items()))
    return {
        "pairs": len(here),
        "kinds": kinds,
        "paired": paired([_item(each) for each in here]),
        "overlap_before": overlap_alone(usable),
        "floors": dict(floors(here)),
    }


def _originals(made: ParaphraseResult) -> dict[str, Json]:
    """Return what the judging of originals came to; pairs that nobody judged are neither positives nor negatives."""
    asked = {original.pair_id for original in made.originals}
    positives = Counter(
        original.pair_id for original in made.originals if original.verdict in ("confirmed", "unconfirmed")
    )
    verdicts: Json = dict(sorted(Counter(original.verdict for original in made.originals).items()))
    return {
        "paraphrases": len(asked),
        "originals": len(made.drawn.texts),
        "verdicts": verdicts,
        "several": sum(count > 1 for count in positives.values()),
        "unjudged": len(asked) * len(made.drawn.texts) - len(made.originals),
    }


def _agreement(pairs: Sequence[CandidatePair], answers: tuple[str, str], panel: Sequence[str], seed: int) -> Json:
    """Return the panel's agreement, queries resampled; None with fewer than two judges or without pairs.

    The last answer stands against all others; no answer is none.
    """
    if len(panel) < 2 or not pairs:
        return None
    missing = ("failed", "refused", "unparsed")

    def code(said: str | None) -> int:
        return -1 if said is None or said in missing else int(said == answers[1])

    codes = [[code((pair.votes or {}).get(name)) for name in panel] for pair in pairs]
    places = {name: place for place, name in enumerate(dict.fromkeys(pair.query_id for pair in pairs))}
    clusters = [places[pair.query_id] for pair in pairs]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed)
