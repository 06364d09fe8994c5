"""The recorded grades of two assessors, given again by vendors on loopback, and a run that is judged by them."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from curate.core.records import shown
from tests.support.runs import ran
from tests.vendor import Vendor, vendor
from tests.vendor.records import Script

MODELS = {"first": "assessor-1", "second": "assessor-2"}
HELD = 3
"""Recorded pairs per query that the run does not pool, so that a later system can find them."""
Grades = Mapping[tuple[str, str, str], str]
"""(query id, document id, assessor) -> grade."""


def grades(panel: Path) -> Grades:
    with (panel / "ratings.tsv").open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t")
        return {(row["query_id"], row["doc_id"], row["assessor"]): row["grade"] for row in rows}


def recorded(panel: Path) -> dict[str, list[str]]:
    """Return query -> its documents that were graded."""
    found = defaultdict(set)
    for query, doc, _ in grades(panel):
        found[query].add(doc)
    return {query: sorted(docs) for query, docs in sorted(found.items())}


def write_run(path: Path, ranked: Mapping[str, Sequence[str]]) -> None:
    lines = [f"{q} Q0 {d} {r} {1000 - r} t\n" for q, docs in ranked.items() for r, d in enumerate(docs, start=1)]
    path.write_text("".join(lines), encoding="utf-8")


def _ids(panel: Path, name: str) -> dict[str, str]:
    """Return text, as a judge sees it, -> id."""
    rows = [json.loads(line) for line in (panel / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return {" ".join(shown(row.get("title") or "", row["text"]).split()): row["_id"] for row in rows}


def _script(panel: Path, assessor: str) -> Script:
    queries, corpus, given = _ids(panel, "queries"), _ids(panel, "corpus"), grades(panel)

    def grade(query: str, passage: str) -> str:
        pair = queries[" ".join(query.split())], corpus[" ".join(passage.split())]
        return given[(*pair, assessor)]

    return grade


@contextmanager
def judged(folder: Path, panel: Path) -> Iterator[Sequence[Vendor]]:
    """Run the panel's set, without the last documents of every query, into `runs/panel`; yield the vendors, running."""
    ranked = {query: docs[:-HELD] for query, docs in recorded(panel).items()}
    write_run(folder / "rated.trec", ranked)
    with vendor(_script(panel, "assessor-1")) as first, vendor(_script(panel, "assessor-2")) as second:
        price = {"currency": "USD", "input": 1.0, "output": 1.0, "date": "2026-11-01"}
        settings = {
            "version": 1,
            "name": "panel",
            "language": "zh",
            "ingest": {"source": str(panel), "duplicates": "keep"},
            "mask": {"enabled": False},
            "diversify": {"enabled": False},
            "retrievers": {"rated": {"kind": "runfile", "path": "rated.trec"}},
            "pool": {"retrievers": ["rated"], "depth": 20, "size": 20},
            "judges": {
                name: {"kind": "openai", "model": model, "base_url": server.url, "price": price}
                for (name, model), server in zip(MODELS.items(), (first, second), strict=True)
            },
            "judge": {"models": list(MODELS), "controls": 0},
            "export": {"small": True, "rerank": {"negatives": 8}, "formats": ["mteb", "beir", "trec"]},
        }
        (folder / "panel.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        ran(folder, "run", "panel.yaml", "--yes")
        yield first, second
