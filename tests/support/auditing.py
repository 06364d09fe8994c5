"""A small set with labels that are wrong in known ways, and its audit as a user types it."""

import json
from pathlib import Path
from typing import Any

from tests.support.runs import Done, curate, tiny

RETRIEVERS = ["--set", "retrievers.words={kind: bm25}", "--set", "retrievers.pairs={kind: bm25, tokens: bigrams}"]
STRICT = ["--set", "judges.strict={kind: lexical, thresholds: {S: 0.9, A: 0.7, B: 0.4, C: 0.2}}"]
OPTIONS = [*RETRIEVERS, *STRICT, "--retrievers", "words,pairs", "--depth", "8"]


def labelled(folder: Path) -> None:
    """Write a BEIR folder `data` of 6 queries and 21 documents.

    q5 asks what q0 asks; d20 has the text of d00, the label of q0; q1 has a wrong label (d07) beside the right one, and
    q2 one whose document does not exist.
    """
    tiny(folder)
    data = folder / "data"
    lines = {name: (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() for name in ("queries", "corpus")}
    twin, copy = json.loads(lines["queries"][0]), json.loads(lines["corpus"][0])
    lines["queries"].append(json.dumps({**twin, "_id": "q5"}, ensure_ascii=False))
    lines["corpus"].append(json.dumps({**copy, "_id": "d20"}, ensure_ascii=False))
    for name, rows in lines.items():
        (data / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with (data / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("q1\td07\t1\nq2\tgone\t1\n")


def audited(folder: Path, *words: str, source: str = "data") -> Done:
    """Audit a folder by two heuristics over two kinds of BM25."""
    return curate(folder, "audit", source, "--models", "lexical,strict", *OPTIONS, *words)


def figures(folder: Path, name: str = "audit-data") -> dict[str, Any]:
    """Return what an audit wrote into audit.json."""
    found: dict[str, Any] = json.loads((folder / "runs" / name / "audit" / "audit.json").read_text(encoding="utf-8"))
    return found
