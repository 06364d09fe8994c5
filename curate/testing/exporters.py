"""What an exporter promises: the right labels, no other ones, and the same bytes again."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from curate.core.protocols import Benchmark, Exporter
from curate.core.records import Document
from curate.system.files import digests, frame
from curate.testing.retrievers import ListCorpus

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
        corpus=ListCorpus(FEVER),
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
        corpus=ListCorpus(FEVER, size=5),
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
