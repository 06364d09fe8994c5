"""A small benchmark out of the packaged demo, written as stock mteb reads it, and a set of sentence pairs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import yaml

from curate.core.protocols import Benchmark
from curate.system.files import frame, sha256
from curate.system.resources import demo
from curate.tables.exporters import EXPORTERS
from curate.testing import ListCorpus

PAIRS = [("发烧怎么办", "发热怎么办", 1), ("发烧怎么办", "骨折怎么办", 0), ("胃疼", "胃痛", 1), ("胃疼", "耳鸣", 0)]


def benchmark(judges: Sequence[str] = ("judge-a", "judge-b"), queries: int = 10) -> Benchmark:
    """Return the first queries of the demo, their relevant documents and as many others.

    Of each query the first other document is contested, and the second was judged not relevant.
    """
    labels = pl.read_csv(demo() / "qrels" / "test.tsv", separator="\t", schema_overrides={"score": pl.Int32})
    labels = labels.filter(pl.col("score") > 0).rename({"query-id": "query_id", "corpus-id": "doc_id"})
    asked = [row for row in rows("queries") if row["_id"] in set(labels["query_id"])][:queries]
    names = [row["_id"] for row in asked]
    labels = labels.filter(pl.col("query_id").is_in(names)).sort("query_id", "doc_id")
    kept = set(labels["doc_id"])
    others = [row for row in rows("corpus") if row["_id"] not in kept][: 2 * queries]
    texts = {row["_id"]: row["text"] for row in rows("corpus") if row["_id"] in kept} | {
        row["_id"]: row["text"] for row in others
    }
    doubts = list(zip(names, others[::2], others[1::2], strict=True))
    said = [(query, doc, "relevant", "SA") for query, doc in labels.select("query_id", "doc_id").iter_rows()]
    said += [(query, one["_id"], "contested", "AC") for query, one, _ in doubts]
    said += [(query, other["_id"], "not relevant", "DD") for query, _, other in doubts]
    negatives = [{"query_id": query, "doc_id": other["_id"], "score": 0} for query, _, other in doubts]
    return Benchmark(
        name="small",
        language="zh",
        queries=frame("queries", [{"query_id": row["_id"], "text": row["text"], "source": ""} for row in asked]),
        corpus=ListCorpus(texts),
        qrels=labels.select("query_id", "doc_id", "score"),
        candidates=pl.concat([labels.select("query_id", "doc_id", "score"), frame("qrels", negatives)]),
        verdicts=frame("verdicts", [_verdict(*row, judges) for row in said]),
        facts={"license": "apache-2.0"},
    )


def rows(name: str) -> list[dict[str, str]]:
    """Return the packaged demo's queries or corpus."""
    lines = (demo() / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def written(made: Benchmark, folder: Path) -> Path:
    """Write a benchmark as the exporter `mteb` does."""
    folder.mkdir(parents=True)
    EXPORTERS.load("mteb")(made, folder)
    return folder


def renamed(made: Benchmark, name: str) -> Benchmark:
    """Return the same benchmark under another name, with one label less."""
    return replace(
        made, name=name, qrels=made.qrels.slice(1) if made.qrels.height > made.queries.height else made.qrels
    )


def sentences(folder: Path) -> Path:
    """Write pairs of sentences as a task of the kind STS."""
    folder.mkdir(parents=True)
    table = pl.DataFrame(PAIRS, schema=["sentence1", "sentence2", "score"], orient="row")
    table.write_parquet(folder / "pairs.parquet")
    name = f"pairs-{sha256(folder / 'pairs.parquet')[:16]}.parquet"
    (folder / "pairs.parquet").rename(folder / name)
    front = {
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": name}]}],
        "mteb": {
            "name": "small-sts",
            "type": "STS",
            "eval_langs": ["cmn-Hans"],
            "main_score": "cosine_pearson",
            "description": "pairs",
        },
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(front)}---\n", encoding="utf-8")
    return folder


def _verdict(query: str, doc: str, verdict: str, grades: str, judges: Sequence[str]) -> dict[str, object]:
    votes = [{"judge": judge, "grade": grade} for judge, grade in zip(judges, grades, strict=True)]
    return {"query_id": query, "doc_id": doc, "verdict": verdict, "votes": votes, "policy": "unanimous"}
