"""Find the thresholds of the heuristic judges on the demos' known grades, and what they reach on texts they never saw.

    python -m benchmarks.calibrate_heuristics RUNS DATA    a folder with finished runs `demo` and `demo-en`, and one
                                                           with `panel` and `medquad_legacy_en`

For every grade g in S, A, B, C the threshold is the one, to 2 digits for coverage and 3 for cosines, with the best F1
for "graded g or better" over all pairs of a demo's pools, of the Chinese one for zh, of the English one for latin.
Reported is every demo in five parts of its queries, each part graded by thresholds of the other four; the English demo
by the packaged Chinese thresholds; and, by packaged ones, sets that no threshold was fitted on: of Chinese the median
grade of three assessors, of English whether an answer is the question's own, among the nearest of all on 45 subjects.
"""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import yaml

from curate.ask import build
from curate.ask.judges.heuristic import Config, Lexical, Similarity, packaged
from curate.core.config import Json, text_digest
from curate.core.records import Document, Query
from curate.core.scale import FIVE
from curate.pipeline.stage import Context, home
from curate.system import resources
from curate.system.corpus import TableCorpus

ANY = dict.fromkeys("SABC", 1.0)
JUDGES = ("lexical", "e5", "use")
PARTS, NEAREST, SUBJECTS = 5, 10, 45
Floats, Codes = npt.NDArray[np.float64], npt.NDArray[np.int64]


@dataclass(frozen=True)
class Graded:
    """Pairs in the order of their queries, the place of each grade on the scale, and each judge's scores."""

    name: str
    queries: Sequence[str]
    truth: Codes
    scores: dict[str, Floats]


def best(scores: Floats, wanted: npt.NDArray[np.bool_], digits: int, beta: float = 1.0) -> float:
    """Return the threshold with the best F-beta (F1 by default); of equals the largest."""
    marks, weight = np.unique(np.round(scores, digits)), beta**2
    counts = [((scores >= mark).sum(), (wanted & (scores >= mark)).sum()) for mark in marks]
    figures = [(1 + weight) * hits / (chosen + weight * wanted.sum()) for chosen, hits in counts]
    return float(marks[len(figures) - 1 - int(np.argmax(figures[::-1]))])


def fitted(scores: Floats, truth: Codes, judge: str) -> list[float]:
    """Return a judge's thresholds for S, A, B and C."""
    digits = 2 if judge == "lexical" else 3
    return list(np.minimum.accumulate([best(scores, truth <= place, digits) for place in range(4)]).tolist())


def said(scores: Floats, marks: Sequence[float]) -> Codes:
    """Return the place on the scale of the grade that thresholds give each score."""
    return np.asarray(4 - sum((np.round(scores, 5) >= mark).astype(np.int64) for mark in marks), dtype=np.int64)


def kappa(one: Codes, other: Codes, grades: int) -> float:
    """Return Cohen's kappa, weighted by the squared distance of the grades."""
    table = np.zeros((grades, grades))
    np.add.at(table, (one, other), 1 / len(one))
    far = np.subtract.outer(np.arange(grades), np.arange(grades)) ** 2
    return float(1 - (far * table).sum() / (far * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())


def row(judge: str, graded: Graded, grades: Codes, how: str) -> None:
    """Print what a judge's grades agree with."""
    relevant, chosen = graded.truth <= 1, grades <= 1
    hits, ranks = (relevant & chosen).sum(), pl.Series(graded.scores[judge]).rank("average").to_numpy()
    auc = (ranks[relevant].mean() - (relevant.sum() + 1) / 2) / (~relevant).sum()  # Mann and Whitney's U
    cut = kappa(relevant.astype(np.int64), chosen.astype(np.int64), 2)
    every = kappa(graded.truth, grades, 5)
    figures = (auc, cut, every, hits / max(1, chosen.sum()), hits / relevant.sum())
    print(f"| {judge} | {graded.name} | {how} | {' | '.join(f'{each:.2f}' for each in figures)} |")


def judged(
    name: str, context: Context, queries: dict[str, str], documents: dict[str, Document], pairs: dict[str, list[str]]
) -> Graded:
    """Score the pairs, query after query; the truth is left to be filled in."""
    kit = build.kit(context)
    judges: dict[str, Lexical | Similarity] = {"lexical": Lexical("lexical", Config(thresholds=ANY), kit)}
    judges |= {each: Similarity(each, Config(thresholds=ANY), kit) for each in JUDGES[1:]}
    scored = {
        each: np.concatenate(
            [
                np.array(judge.scores(Query(query, queries[query]), [documents[doc] for doc in docs]))
                for query, docs in pairs.items()
            ]
        )
        for each, judge in judges.items()
    }
    asked = [query for query, docs in pairs.items() for _ in docs]
    return Graded(name, asked, np.zeros(len(asked), np.int64), scored)


def demo(run: Path, graded: Path) -> Graded:
    """Return a demo's pool by its planted grades; what no grade is known of is D."""
    context = Context(run=run, out=run, home=home())
    queries = dict(context.read("diversify", "queries").select("query_id", "text").iter_rows())
    documents = {doc.doc_id: doc for batch in TableCorpus(run / "diversify").batches() for doc in batch}
    known = {(row[0], row[1]): row[2] for row in pl.read_csv(graded, separator="\t").iter_rows()}
    pool = context.read("pool", "pool").select("query_id", "doc_id")
    pairs = {str(key[0]): part["doc_id"].to_list() for key, part in pool.group_by("query_id", maintain_order=True)}
    found = judged(run.name, context, queries, documents, pairs)
    truth = [FIVE.labels.index(known.get((query, doc), "D")) for query, docs in pairs.items() for doc in docs]
    return Graded(found.name, found.queries, np.array(truth), found.scores)


def panel(folder: Path) -> Graded:
    """Return the pairs that three assessors graded, by the median grade."""
    queries, documents = texts(folder)
    ratings = pl.read_csv(folder / "ratings.tsv", separator="\t")
    place = pl.col("grade").replace_strict({label: at for at, label in enumerate(FIVE.labels)}, return_dtype=pl.Int64)
    middle = ratings.group_by("query_id", "doc_id").agg(place.median().cast(pl.Int64)).sort("query_id", "doc_id")
    pairs = {str(key[0]): part["doc_id"].to_list() for key, part in middle.group_by("query_id", maintain_order=True)}
    found = judged("panel (zh)", Context(run=folder, out=folder, home=home()), queries, documents, pairs)
    return Graded(found.name, found.queries, middle["grade"].to_numpy(), found.scores)


def medquad(folder: Path) -> Graded:
    """Return the nearest answers of every question on some subjects: A its own, C of its subject, D any other."""
    queries, documents = texts(folder)
    names = sorted({each.title for each in documents.values()})
    random.Random(7).shuffle(names)
    documents = {key: each for key, each in documents.items() if each.title in names[:SUBJECTS]}
    labels = pl.read_csv(folder / "qrels.tsv", separator="\t").select("query-id", "corpus-id")
    own = {pair for pair in labels.iter_rows() if pair[1] in documents}
    asked = {query for query, _ in own}
    pairs = {query: list(documents) for query in queries if query in asked}
    found = judged("MedQuAD (en)", Context(run=folder, out=folder, home=home()), queries, documents, pairs)
    kept = nearest(found.scores, len(documents))
    every = [(query, doc) for query in pairs for doc in documents]
    subjects = {query: {documents[doc].title for asked, doc in own if asked == query} for query in pairs}
    truth = [1 if pair in own else 3 if documents[pair[1]].title in subjects[pair[0]] else 4 for pair in every]
    scores = {judge: each[kept] for judge, each in found.scores.items()}
    return Graded(found.name, np.array(found.queries)[kept].tolist(), np.array(truth)[kept], scores)


def nearest(scores: dict[str, Floats], documents: int) -> npt.NDArray[np.bool_]:
    """Return which pairs are among the first NEAREST of their query by any judge."""
    places = [np.argsort(np.argsort(-each.reshape(-1, documents), kind="stable")) for each in scores.values()]
    return np.asarray(np.min(places, axis=0) < NEAREST).ravel()


def texts(folder: Path) -> tuple[dict[str, str], dict[str, Document]]:
    """Return queries and documents of a folder in BEIR layout."""
    queries, corpus = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for name in ("queries", "corpus")
    )
    documents = {each["_id"]: Document(each["_id"], each.get("title") or "", each["text"]) for each in corpus}
    return {each["_id"]: each["text"] for each in queries}, documents


def crossed(graded: Graded, judge: str) -> Codes:
    """Return the grades of every fifth of the queries by thresholds of the others."""
    part = np.array([int(text_digest(query)[:8], 16) % PARTS for query in graded.queries])
    grades, scores = np.empty(len(part), np.int64), graded.scores[judge]
    for each in range(PARTS):
        own = part == each
        grades[own] = said(scores[own], fitted(scores[~own], graded.truth[~own], judge))
    return grades


def main(runs: Path, data: Path) -> None:
    """Print the fitted thresholds, then a table of what they and the packaged ones reach."""
    sets = {
        "zh": (demo(runs / "demo", resources.demo() / "grades.tsv"), panel(data / "panel")),
        "en": (demo(runs / "demo-en", resources.demo() / "en" / "grades.tsv"), medquad(data / "medquad_legacy_en")),
    }
    found: dict[str, Json] = {
        f"{judge}, {language}": dict(zip("SABC", fitted(known.scores[judge], known.truth, judge), strict=True))
        for judge in JUDGES
        for language, (known, _) in sets.items()
    }
    print(yaml.safe_dump(found, sort_keys=False))
    print("| judge | tested on | thresholds | AUC | kappa, cut | kappa, grades | precision | recall |")
    print("| --- | --- | --- | --: | --: | --: | --: | --: |")
    for judge in JUDGES:
        for language, (known, other) in sets.items():
            own, first = ([*packaged(judge, judge).of(each, judge).values()] for each in (language, "zh"))
            row(judge, known, crossed(known, judge), "of the other queries")
            if language == "en" and judge != "lexical":
                row(judge, known, said(known.scores[judge], first), "packaged for zh")
            row(judge, other, said(other.scores[judge], own), f"packaged for {language}")
            if language == "en" and judge != "lexical":
                row(judge, other, said(other.scores[judge], first), "packaged for zh")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
