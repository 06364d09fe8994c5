"""A run of as many queries as a test wants, whose judges replay what they are told."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ANSWERS = (
    "{}患者能喝咖啡吗？可以少量喝。",
    "{}的病因很多。",
    "得了{}以后要按时服药，少喝咖啡。",
    "{}怎样预防？",
)
TRUE = "SDSD"
"""Grades of the four documents of a query, of which the last has another for every judge; those of others are D."""


def topic(number: int) -> str:
    return f"甲{number:03}病"


def sized(
    folder: Path,
    queries: int,
    judges: Sequence[str] = ("one", "two"),
    grades: Mapping[str, Mapping[tuple[int, int], str]] | None = None,
    panel: Sequence[str] | None = None,
    **settings: Any,
) -> str:
    """Write data of so many queries with four documents each and a pipeline `bench.yaml`; return its name.

    The pool of a query are its own documents and the first two of the next query. `grades` changes what a judge
    says of a document, by its place among all documents, for a query.
    """
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    asked = [{"_id": f"q{n:03}", "text": f"{topic(n)}患者能喝咖啡吗"} for n in range(queries)]
    texts = [answer.format(topic(n)) for n in range(queries) for answer in ANSWERS]
    corpus = [{"_id": f"d{at:03}", "title": "", "text": text} for at, text in enumerate(texts)]
    for name, rows in (("queries", asked), ("corpus", corpus)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = "".join(f"q{n:03}\td{4 * n:03}\t1\n" for n in range(queries))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + known, encoding="utf-8")
    ranked = [
        f"q{n:03} Q0 d{(4 * n + at) % (4 * queries):03} {at + 1} {9 - at} ranked\n"
        for n in range(queries)
        for at in range(6)
    ]
    (folder / "ranked.trec").write_text("".join(ranked), encoding="utf-8")
    for place, judge in enumerate(judges):
        true = TRUE[:3] + "DCB"[place % 3]
        own = (grades or {}).get(judge, {})
        graded = [
            f"q{n:03}\td{at:03}\t{own.get((n, at), true[at % 4] if at // 4 == n else 'D')}"
            for n in range(queries)
            for at in range(4 * queries)
        ]
        (folder / f"{judge}.tsv").write_text("query_id\tdoc_id\tgrade\n" + "\n".join(graded) + "\n", encoding="utf-8")
    base: dict[str, Any] = {
        "version": 1,
        "name": "bench",
        "language": "zh",
        "ingest": {"source": "data"},
        "mask": {"enabled": False},
        "diversify": {"enabled": False},
        "retrievers": {"ranked": {"kind": "runfile", "path": "ranked.trec"}},
        "pool": {"retrievers": ["ranked"], "depth": 6, "size": 6},
        "judges": {judge: {"kind": "replay", "path": f"{judge}.tsv"} for judge in judges},
        "judge": {"models": list(panel or judges)},
        "export": {"rerank": {"negatives": 1}},
    }
    base |= settings
    (folder / "bench.yaml").write_text(yaml.safe_dump(base, allow_unicode=True), encoding="utf-8")
    return "bench.yaml"
