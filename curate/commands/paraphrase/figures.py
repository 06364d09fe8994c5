"""What a set of paraphrases came to, in tables and figures."""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from curate.ask.edits.confirmation import CHANGED
from curate.commands.paraphrase.floors import floors, overlap_alone
from curate.commands.paraphrase.making import ParaphraseResult
from curate.commands.paraphrase.matching import MatchItem, matched, paired
from curate.commands.paraphrase.pairs import EDIT, NO, PARAPHRASE, YES, CandidatePair
from curate.core.config import Json
from curate.panel import agreement_figures
from curate.panel.agreement_figures import Kind as Scale
from curate.system.files import frame

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
        here = [each for each in made.pairs if each.usable and made.drawn.side[each.query_id] == split]
        found |= matched([_item(each) for each in here], deciles, most, seed, split)
    return found


def _item(pair: CandidatePair) -> MatchItem:
    return MatchItem(pair.pair_id, pair.query_id, pair.label, pair.family, pair.overlap)


def table(made: ParaphraseResult, in_set: set[str]) -> pl.DataFrame:
    """Return the table `paraphrases`: every pair, those of the set with their split."""
    rows = (
        {
            "pair_id": each.pair_id,
            "query_id": each.query_id,
            "sentence1": each.sentence1,
            "sentence2": each.sentence2,
            "label": each.label,
            "kind": each.kind,
            "retriever": each.retriever,
            "rank": each.rank,
            "overlap": each.overlap,
            "split": made.drawn.side[each.query_id] if each.pair_id in in_set else None,
            "group": made.drawn.group[each.query_id],
            "verdict": each.verdict,
            "votes": [{"judge": name, "answer": answer} for name, answer in sorted((each.votes or {}).items())],
        }
        for each in made.pairs
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
    left = [each for each in made.pairs if each.pair_id not in in_set]
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
    verdicts = Counter((each.kind, each.verdict) for each in made.pairs)
    ways = Counter(each.way for each in made.pairs if each.kind == PARAPHRASE)
    return {
        "planned": len(made.pairs) + len(unwritten),
        "built": len(in_set),
        "dropped": dict(sorted(Counter([*unwritten.values(), *pairs.values()]).items())),
        "panel": list(panel),
        "retrievers": [each.name for each in made.drawn.miners],
        "queries": len(made.drawn.sources),
        "pairs": {
            kind: {verdict: count for (of, verdict), count in sorted(verdicts.items()) if of == kind}
            for kind in dict.fromkeys(each.kind for each in made.pairs)
        },
        "ways": dict(sorted(ways.items())),
        "broken_rules": dict(sorted((+made.writer.broken).items())),
        "refused": len(made.writer.refused),
        "agreement": {
            "sentences": _agreement([each for each in made.pairs if each.family != EDIT], (NO, YES), panel, seed),
            "edits": _agreement([each for each in made.pairs if each.family == EDIT], ("", CHANGED), panel, seed),
        },
        "splits": {split: _split(made, in_set, split) for split in SPLITS if split in made.drawn.side.values()},
        "originals": _originals(made),
    }


def _split(made: ParaphraseResult, in_set: set[str], split: str) -> dict[str, Json]:
    """Return the figures of one split: `before` is the average precision of overlap on all that could be chosen."""
    usable = [each for each in made.pairs if each.usable and made.drawn.side[each.query_id] == split]
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
    asked = {each.pair_id for each in made.originals}
    positives = Counter(each.pair_id for each in made.originals if each.verdict in ("confirmed", "unconfirmed"))
    verdicts: Json = dict(sorted(Counter(each.verdict for each in made.originals).items()))
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

    codes = [[code((each.votes or {}).get(name)) for name in panel] for each in pairs]
    places = {name: place for place, name in enumerate(dict.fromkeys(each.query_id for each in pairs))}
    clusters = [places[each.query_id] for each in pairs]
    return agreement_figures.figures(codes, Scale(2, "nominal"), panel, clusters, seed=seed)
