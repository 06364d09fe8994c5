"""What negatives mined by one encoder do to pairs of sentences: AP and F1 of that encoder and of the overlap.

    python -m benchmarks.kinds_pairs ZH    a folder with a queries.jsonl of questions that have a title each

Pairs are a question and its title, positive, and the question with another's title, negative: drawn by chance, from the
64 nearest titles by USE alone (`use`), or as the stage `paraphrase` draws, from those by BM25 and USE in turn, with the
overlap of characters matched by decile (`two families, matched`). F1 is at its best threshold on the same pairs; called
positive throughout, they have .667.
"""

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curate.ask import build
from curate.commands.paraphrase import RankWindow
from curate.commands.paraphrase import pairs as neighbours
from curate.commands.paraphrase.figures import MatchItem, matched
from curate.core.protocols import quiet
from curate.pipeline.stage import Context, home
from curate.stats.shortcuts import overlap
from curate.stats.significance import average_precision

PAIRS, SHORTEST, SEED, CHANCE, WINDOW, DECILES = 2_000, 20, 13, 14, 64, 10


@dataclass(frozen=True)
class PairScores:
    """Average precision and best F1 of a similarity."""

    ap: float
    f1: float


def questions(folder: Path, number: int = PAIRS) -> list[tuple[str, str]]:
    """Return question and title of so many rows by seed: none too short, equal to its title, or seen before."""
    rows = pl.read_ndjson(folder / "queries.jsonl").sort("_id").select("text", pl.col("metadata").struct.field("title"))
    found: list[tuple[str, str]] = []
    seen: tuple[set[str], set[str]] = (set(), set())
    for ask, title in ((one.strip(), two.strip()) for one, two in rows.iter_rows()):
        if len(ask) >= SHORTEST and ask != title and ask not in seen[0] and title not in seen[1]:
            found.append((ask, title))
        seen[0].add(ask)
        seen[1].add(title)
    random.Random(SEED).shuffle(found)
    return found[:number]


def scores(similarity: Sequence[float], labels: Sequence[int]) -> PairScores:
    """Return average precision, and F1 at the threshold that makes it best, as mteb has both."""
    values, known = np.array(similarity, dtype=np.float64), np.array(labels, dtype=np.float64)
    order = np.argsort(-values, kind="stable")
    hits, called = np.cumsum(known[order]), np.arange(1, len(known) + 1)
    ap = float(average_precision(values, known)(np.ones((1, len(known))))[0])
    return PairScores(ap, float((2 * hits / (called + known.sum())).max()))


def mined(names: Sequence[str], nearest: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return each name with one of its nearest, by chance and in order."""
    chance = random.Random(SEED)
    return [(name, chance.choice(nearest[name][:WINDOW])) for name in names]


def measured(folder: Path) -> dict[str, dict[str, PairScores]]:
    """Return way of drawing negatives -> similarity -> its scores."""
    rows = questions(folder)
    context = Context(run=Path(), out=Path(), home=home())
    names = [f"{place:04}" for place in range(len(rows))]
    titles = dict(zip(names, (title for _, title in rows), strict=True))
    asks = dict(zip(names, (ask for ask, _ in rows), strict=True))
    retrievers = [build.retriever(context, name) for name in ("bm25", "use")]
    lists = {each.name: neighbours.nearest(each, titles, titles, WINDOW, quiet) for each in retrievers}
    both = neighbours.draw(lists, names, dict.fromkeys(names, "test"), RankWindow(), 1, SEED)
    ways = {
        "by chance": _successors(names),
        "use": mined(names, lists["use"]),
        "two families": [(each.query_id, each.other) for each in both],
    }
    encoder = build.encoder(context, "use")
    of_asks, of_titles = (encoder.encode(list(each.values()), "query") for each in (asks, titles))
    cosines = of_asks @ of_titles.T
    found: dict[str, dict[str, PairScores]] = {}
    for way, negatives in ways.items():
        pairs = [(name, name, 1) for name in names] + [(name, other, 0) for name, other in negatives]
        shared = [overlap(asks[one], titles[two]) for one, two, _ in pairs]
        cosine = [float(cosines[int(one), int(two)]) for one, two, _ in pairs]
        found[way] = _scored(pairs, shared, cosine)
        if way == "two families":
            kept = _matched(pairs, shared)
            found[f"{way}, matched"] = _scored(*([each[at] for at in kept] for each in (pairs, shared, cosine)))
    return found


def _successors(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name with the next in an order by chance, the first behind the last."""
    order = list(names)
    random.Random(CHANCE).shuffle(order)
    behind = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [(name, behind[name]) for name in names]


def _matched(pairs: Sequence[tuple[str, str, int]], shared: Sequence[float]) -> list[int]:
    items = [MatchItem(f"{at:05}", one, label, "neighbour", shared[at]) for at, (one, _, label) in enumerate(pairs)]
    return sorted(int(name) for name in matched(items, DECILES, len(pairs), SEED, "benchmark"))


def _scored(
    pairs: Sequence[tuple[str, str, int]], shared: Sequence[float], cosine: Sequence[float]
) -> dict[str, PairScores]:
    labels = [label for *_, label in pairs]
    return {"overlap": scores(shared, labels), "use": scores(cosine, labels)}


def main() -> None:
    """Print a row per way of drawing negatives and similarity."""
    print("| negatives | similarity | AP | F1 |\n| --- | --- | --- | --- |")
    for way, each in measured(Path(sys.argv[1])).items():
        for name, score in each.items():
            print(f"| {way} | {name} | {score.ap:.3f} | {score.f1:.3f} |")


if __name__ == "__main__":
    main()
