"""The contracts of retrievers, judges and exporters, for tests of ours and of other packages.

Each check takes a function that makes the plugin, and raises an AssertionError that says which promise is broken.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from curate.config import digest
from curate.files import digests, frame
from curate.protocols import Benchmark, Corpus, Exporter, Judge, Retriever, quiet
from curate.ranking import ask
from curate.records import Document, Hit, Outcome, Query

CORPUS = {
    "d9": "高血压患者能喝咖啡吗？可以少量喝咖啡，要注意血压。",
    "d10": "小儿发热可以先物理降温，多喝水。",
    "d2": "小儿发热可以先物理降温，多喝水。",
    "d3": "痛风病人要少吃海鲜，少喝啤酒。",
    "d4": "Coffee raises the blood pressure for a short time.",
    "d5": "Gout patients should avoid seafood and beer.",
    "d6": "今天的股市行情上涨。",
}
"""Texts of a retriever's test; two are equal, and d10 stands before d2 because ids are texts."""
QUERIES = {"zh": "小儿发热", "en": "gout and beer", "mixed": "痛风 gout", "none": "⁂⁂"}
WHOLE = 1000
"""A depth that no ranking of these texts reaches."""
QUERY = Query("q1", "高血压能喝咖啡吗")
PASSAGES = (
    Document("d1", "", "高血压能喝咖啡吗？可以少量喝。"),
    Document("d2", "", "高血压患者要少吃盐。"),
    Document("d3", "", "咖啡豆的产地。"),
    Document("d4", "", "今天天气很好。"),
)
FEVER = (
    Document("007", "", "热"),
    Document("008", "", "热咳"),
    Document("009", "热", "咳热"),
    Document("d4", "", "咳"),
    Document("d5", "", "咳咳痛"),
    Document("d6", "", "痛"),
    Document("d7", "药", "疹"),
)
POSITIVES = (("001", "009"), ("001", "008"), ("002", "d4"))
NEGATIVES = (("001", "007"), ("002", "d6"))
UNDECIDED = (("001", "d4"), ("002", "d5"), ("002", "008"))
"""Pairs of `benchmark()`: what must be labelled 1, may be labelled 0, and must have no label."""


class Listed:
    """A corpus in memory, read some documents at a time."""

    def __init__(self, documents: Mapping[str, str] | Iterable[Document], size: int = 2) -> None:
        if isinstance(documents, Mapping):
            documents = [Document(doc_id, "", text) for doc_id, text in documents.items()]
        self.documents, self.size = list(documents), size
        self.digest = digest([[each.doc_id, each.title, each.text] for each in self.documents])

    def __len__(self) -> int:
        return len(self.documents)

    def batches(self) -> Iterator[Sequence[Document]]:
        """Yield the documents in order."""
        for start in range(0, len(self), self.size):
            yield self.documents[start : start + self.size]


def listed(retriever: Retriever, corpus: Corpus, queries: Mapping[str, str], depth: int) -> list[list[Hit]]:
    """Return what a retriever finds as a list of hits a query."""
    found: list[list[Hit]] = []
    for _, hits in ask(retriever, corpus, [Query(*each) for each in queries.items()], depth, quiet):
        ends = np.cumsum(hits.counts)
        for start, end in zip(ends - hits.counts, ends, strict=True):
            here = zip(hits.rows[start:end].tolist(), hits.scores[start:end].tolist(), strict=True)
            found.append([Hit(hits.ids[row], rank, score) for rank, (row, score) in enumerate(here, start=1)])
    return found


def check_retriever(make: Callable[[], Retriever], *, cuts: bool = True) -> None:
    """Check a retriever on `CORPUS`: lists that are sorted, cut, complete, and the same again.

    `cuts` is False for one that yields all it has whatever the depth, because its ids may be out of date, as of a file.
    """
    retriever = make()
    json.dumps(retriever.identity)
    whole = listed(retriever, Listed(CORPUS), QUERIES, WHOLE)
    for hits in whole:
        order = [(-hit.score, hit.doc_id) for hit in hits]
        assert order == sorted(order), "hits come best first, ties by document id"
        assert all(isinstance(hit.score, float) and math.isfinite(hit.score) for hit in hits), "scores are finite"
        assert len({hit.doc_id for hit in hits}) == len(hits), "a document is found once"
        assert {hit.doc_id for hit in hits} <= set(CORPUS), "only documents of the corpus are found"
    for depth in (1, 2):
        expected = [hits[:depth] for hits in whole] if cuts else whole
        assert listed(retriever, Listed(CORPUS), QUERIES, depth) == expected, "a depth only cuts the lists"
    assert listed(make(), Listed(CORPUS, size=3), QUERIES, WHOLE) == whole, "made again, it finds the same"
    assert listed(retriever, Listed(CORPUS), {}, 5) == [], "no queries, no lists"
    if cuts:
        assert listed(retriever, Listed({}), QUERIES, 5) == [[]] * len(QUERIES), "nothing is found in nothing"
    _check_progress(retriever)


def _check_progress(retriever: Retriever) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def note(label: str, total: int, done: int) -> None:
        seen[label] = total, done

    list(retriever.search(Listed(CORPUS), [Query(*each) for each in QUERIES.items()], 5, note))
    assert all(total == done for total, done in seen.values()), "progress ends at its total"


def check_judge(make: Callable[[], Judge], query: Query = QUERY, passages: Sequence[Document] = PASSAGES) -> None:
    """Check a judge: one outcome a passage, which depends on nothing but the pair; identity that can be kept."""
    judge = make()
    assert json.loads(json.dumps(judge.identity)), "an identity says what can change a grade"
    outcomes = list(judge.rate(query, passages))
    assert all(isinstance(each, Outcome) for each in outcomes), "a judge gives outcomes"
    assert len(outcomes) == len(passages), "every passage has an outcome"
    assert list(judge.rate(query, passages[::-1])) == outcomes[::-1], "the order of the passages changes nothing"
    alone = [outcome for passage in passages for outcome in judge.rate(query, [passage])]
    assert alone == outcomes, "the other passages change nothing"
    assert list(make().rate(query, passages)) == outcomes, "made again, it says the same"
    assert list(judge.rate(query, [])) == [], "of no passage nothing is said"


def benchmark() -> Benchmark:
    """Return two queries on seven documents, with ids that look like numbers and pairs that nobody decided."""
    labelled = [*((*pair, 1) for pair in POSITIVES), *((*pair, 0) for pair in NEGATIVES)]
    decided = {
        **dict.fromkeys(POSITIVES, ("relevant", "SAS")),
        **dict.fromkeys(NEGATIVES, ("not relevant", "BCD")),
        **dict.fromkeys(UNDECIDED, ("contested", "ABB")),
        UNDECIDED[-1]: ("incomplete", "A-A"),
    }
    keys = ("query_id", "doc_id", "score")
    rows = [dict(zip(keys, row, strict=True)) for row in labelled]
    return Benchmark(
        name="fever",
        language="zh",
        queries=frame(
            "queries", [{"query_id": key, "text": text, "source": ""} for key, text in (("001", "热"), ("002", "咳"))]
        ),
        corpus=Listed(FEVER),
        qrels=frame("qrels", [row for row in rows if row["score"]]),
        candidates=frame("qrels", rows),
        verdicts=frame("verdicts", [_verdict(*pair, *said) for pair, said in decided.items()]),
        facts={"judges": [{"name": "judge-a"}, {"name": "judge-b"}], "license": None},
    )


def _verdict(query: str, document: str, decided: str, grades: str) -> dict[str, object]:
    """Return one row of verdicts; `-` stands for a judge that gave no grade, and the judges are not in order."""
    names = ("judge-b", "judge-a", "judge-c")
    votes = [
        {"judge": name, "grade": None if grade == "-" else grade} for name, grade in zip(names, grades, strict=True)
    ]
    return {"query_id": query, "doc_id": document, "verdict": decided, "votes": votes, "policy": "unanimous"}


def check_exporter(export: Exporter, labels: Callable[[Path], Iterable[tuple[str, str, int]]]) -> None:
    """Check an exporter on `benchmark()`: what it labels, and that the same benchmark gives the same bytes.

    `labels` reads query, document and score of every label back from a folder that the exporter wrote.
    """
    made = benchmark()
    shuffled = replace(
        made,
        corpus=Listed(FEVER, size=5),
        qrels=made.qrels.reverse(),
        candidates=made.candidates.reverse(),
        verdicts=made.verdicts.reverse(),
    )
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, name) for name in ("one", "two")]
        for folder, each in zip(folders, (made, shuffled), strict=True):
            folder.mkdir()
            export(each, folder)
        assert digests(folders[0]), "something is written"
        assert digests(folders[0]) == digests(folders[1]), "the same benchmark gives the same bytes"
        files = [path for path in folders[0].rglob("*") if path.is_file()]
        assert not [path for path in files if path.name.startswith(".")], "no hidden file is left"
        assert not [path for path in files if place.encode() in path.read_bytes()], "no file names a path"
        found = list(labels(folders[0]))
    assert {row[:2] for row in found if row[2]} == set(POSITIVES), "every positive is labelled, and nothing else is 1"
    assert {row[:2] for row in found if not row[2]} <= set(NEGATIVES), "only what nobody found relevant is 0"
