"""The recorded grades of three assessors, given again by a vendor on loopback, and a run that is judged by it."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

from tests.support.runs import ran

MODELS = {"first": "assessor-1", "second": "assessor-2", "third": "assessor-3"}
Grades = Mapping[tuple[str, str, str], str]
"""(query id, document id, assessor) -> grade."""


def grades(panel: Path) -> Grades:
    with (panel / "ratings.tsv").open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t")
        return {(row["query_id"], row["doc_id"], row["assessor"]): row["grade"] for row in rows}


def texts(panel: Path, name: str) -> dict[str, str]:
    """Return text -> id of the queries or the corpus."""
    lines = (panel / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {"\n".join(part for part in (row.get("title", ""), row["text"]) if part): row["_id"] for row in rows}


def write_run(path: Path, pairs: list[tuple[str, str, int]], tag: str) -> None:
    path.write_text("".join(f"{q} Q0 {d} {r} {1000 - r} {tag}\n" for q, d, r in pairs), encoding="utf-8")


def judged(folder: Path, panel: Path, url: str) -> None:
    """Run the panel's set in a folder: two of the recorded assessors are models of the vendor at `url`."""
    pairs = sorted({(query, doc) for query, doc, _ in grades(panel)})
    ranked = [(query, doc, n % 20 + 1) for n, (query, doc) in enumerate(pairs)]
    write_run(folder / "rated.trec", ranked, "rated")
    judges = "".join(
        f"  {name}: {{kind: openai, model: {model}, base_url: {url}, api_key: k, "
        "price: {input: 1, output: 1, currency: USD}}\n"
        for name, model in list(MODELS.items())[:2]
    )
    (folder / "panel.yaml").write_text(
        f"""version: 1
name: panel
language: zh
ingest: {{source: {panel}, duplicates: keep}}
mask: {{enabled: false}}
diversify: {{enabled: false}}
retrievers:
  rated: {{kind: runfile, path: rated.trec}}
pool: {{retrievers: [rated], depth: 20, size: 20}}
judges:
{judges}judge: {{models: [first, second]}}
export: {{rerank: {{negatives: 10}}}}
""",
        encoding="utf-8",
    )
    ran(folder, "run", "panel.yaml", "--yes")
