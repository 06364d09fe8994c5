"""Find the thresholds of the heuristic judges on the demo's known grades, and write thresholds.yaml.

For every grade g in S, A, B, C the threshold is the one, to 2 digits for coverage and 3 for cosines, with the best
F1 for "graded g or better" over all pairs of the demo's pools. Run, after `curate run demo`:
python benchmarks/calibrate_heuristics.py [RUN] [GRADES.tsv]; a run of the English demo gives the thresholds of words.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import yaml

from curate.core.records import Document, Query
from curate.core.scale import FIVE
from curate.panel.judges.heuristic import Config, Lexical, Similarity
from curate.stages.asking import build
from curate.stages.context import Context, home
from curate.system import resources
from curate.system.corpus import TableCorpus

ANY = dict.fromkeys("SABC", 1.0)


def best(scores: npt.NDArray[np.float64], wanted: npt.NDArray[np.bool_], digits: int) -> float:
    """Return the threshold with the best F1; of equals the largest."""
    marks = np.unique(np.round(scores, digits))
    counts = [((scores >= mark).sum(), (wanted & (scores >= mark)).sum()) for mark in marks]
    f1 = [2 * hits / (chosen + wanted.sum()) for chosen, hits in counts]
    return float(marks[len(f1) - 1 - int(np.argmax(f1[::-1]))])


def main(run: Path, graded: Path) -> None:
    """Score every pair of the run's pools and print the thresholds with what they reach."""
    context = Context(run=run, out=run, home=home(), language="zh")
    queries = {
        row[0]: Query(*row) for row in context.read("diversify", "queries").select("query_id", "text").iter_rows()
    }
    documents = {doc.doc_id: doc for batch in TableCorpus(run / "diversify").batches() for doc in batch}
    known = pl.read_csv(graded, separator="\t")
    grades = {(query_id, doc_id): grade for query_id, doc_id, grade in known.iter_rows()}
    pairs = [(row[0], row[1]) for row in context.read("pool", "pool").select("query_id", "doc_id").iter_rows()]
    truth = np.array([FIVE.labels.index(grades.get(pair, "D")) for pair in pairs])
    kit = build.kit(context)
    judges = {"lexical": Lexical("lexical", Config(thresholds=ANY), kit)} | {
        name: Similarity(name, Config(thresholds=ANY), kit) for name in ("e5", "use")
    }
    found: dict[str, dict[str, float]] = {}
    for name, judge in judges.items():
        scores = np.array(_scores(judge, pairs, queries, documents))
        digits = 2 if name == "lexical" else 3
        marks = [best(scores, truth <= place, digits) for place in range(4)]
        marks = np.minimum.accumulate(marks).tolist()
        found[name] = dict(zip(FIVE.labels, marks, strict=False))
        relevant, said = truth <= 1, scores >= marks[1]
        recall, precision = (relevant & said).sum() / relevant.sum(), (relevant & said).sum() / said.sum()
        print(f"{name}: {found[name]}  at the cut: precision {precision:.2f}, recall {recall:.2f}")
    print(yaml.safe_dump({"thresholds": found}, sort_keys=False))


def _scores(
    judge: Lexical | Similarity,
    pairs: list[tuple[str, str]],
    queries: dict[str, Query],
    documents: dict[str, Document],
) -> list[float]:
    order: dict[str, list[str]] = {}
    for query_id, doc_id in pairs:
        order.setdefault(query_id, []).append(doc_id)
    scored = {
        (query_id, doc_id): score
        for query_id, docs in order.items()
        for doc_id, score in zip(docs, judge.scores(queries[query_id], [documents[d] for d in docs]), strict=True)
    }
    return [scored[pair] for pair in pairs]


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]]
    main(*given, *[Path("runs/demo"), resources.demo() / "grades.tsv"][len(given) :])
