"""A benchmark of real questions and answers, from its source to a model's score, and the audit of its own labels.

Three retrievers search 5,303 answers to a depth of 500; three judges at servers of their own grade every pair of the
pools. They are scripts, which prove plumbing alone; every figure is counted again from what they would say.
"""

import json
import shutil
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from tests.support import machine, scoring
from tests.support.pools import table
from tests.support.runs import curate, ran
from tests.vendor import vendor

pytestmark = pytest.mark.accept

GRADES, RELEVANT = "SABCD", "SA"
BOUNDS = (0.6, 0.5, 0.4, 0.25)
"""Shares of a query's character pairs that a passage has to hold for each of the first four grades."""
JUDGES = ("alpha", "beta", "gamma")
RETRIEVERS = ("bm25", "ngrams", "use")
DEPTH, QUERIES, NEGATIVES = 500, 40, 20
SPEND = ("--max-cost", "1000")


def judged_by(name: str) -> Callable[[str, str], str]:
    """Return the script of a judge: the grade by shared pairs of characters, one off for every fiftieth text."""

    def grade(query: str, passage: str) -> str:
        asked = {query[at : at + 2] for at in range(len(query) - 1)}
        share = sum(pair in passage for pair in asked) / max(1, len(asked))
        place = next((at for at, bound in enumerate(BOUNDS) if share >= bound), len(BOUNDS))
        differs = zlib.crc32(f"{name}|{query}|{passage}".encode()) % 50 == 0
        return GRADES[place + (1 if place < 4 else -1) * differs]

    return grade


def legacy(folder: Path, source: Path) -> None:
    """Write the real set as a folder in BEIR's layout: the titles of the first questions, and their labels."""
    data = folder / "CmedqaRetrieval"
    (data / "qrels").mkdir(parents=True)
    shutil.copy(source / "corpus.jsonl", data)
    stories = pl.read_ndjson(source / "queries.jsonl").head(QUERIES)
    asked = stories.select("_id", text=pl.col("metadata").struct.field("title"))
    asked.write_ndjson(data / "queries.jsonl")
    labels = pl.read_csv(source / "qrels.tsv", separator="\t")
    labels.filter(pl.col("query-id").is_in(asked["_id"].implode())).write_csv(
        data / "qrels" / "test.tsv", separator="\t"
    )


def pipeline(folder: Path, urls: dict[str, str]) -> None:
    """Write the pipeline and models.yaml as a user has them."""
    price = {"input": 1, "output": 2, "currency": "CNY", "date": "2026-01-01"}
    models = {
        name: {"kind": "openai", "model": f"{name}-1", "base_url": url, "price": price} for name, url in urls.items()
    }
    (folder / "models.yaml").write_text(yaml.safe_dump(models), encoding="utf-8")
    settings = {
        "version": 1,
        "name": "card",
        "language": "zh",
        "currency": "CNY",
        "stages": ["ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", "sts", "export", "report"],
        "ingest": {"source": "CmedqaRetrieval"},
        "retrievers": {"ngrams": {"kind": "bm25", "tokens": "bigrams"}},
        "pool": {"retrievers": list(RETRIEVERS), "depth": DEPTH, "size": DEPTH},
        "judge": {"models": list(JUDGES), "allow_weak_judges": True},
        "sts": {"generator": "templates", "edits": True, "test": 12, "train": 0},
        "export": {"small": True, "rerank": {"positives": 10, "negatives": NEGATIVES}, "license": "cc-by-4.0"},
    }
    (folder / "card.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")


def texts(run: Path) -> dict[str, dict[str, str]]:
    """Return the masked texts that judges read, of queries and of documents."""
    asked, corpus = table(run, "diversify", "queries"), table(run, "diversify", "corpus")
    return {
        "query": dict(asked.select("query_id", "text").iter_rows()),
        "doc": dict(corpus.select("doc_id", "text").iter_rows()),
    }


def test_from_a_legacy_set_to_a_score(tmp_path: Path, shared_data: Path) -> None:
    legacy(tmp_path, shared_data / "zh_legacy")
    with ExitStack() as servers:
        vendors = {name: servers.enter_context(vendor(judged_by(name))) for name in JUDGES}
        pipeline(tmp_path, {name: each.url for name, each in vendors.items()})
        ran(tmp_path, "run", "card.yaml", *SPEND)
        agreed = machine.data(ran(tmp_path, "agree", "--run", "runs/card", "--json").stdout)
        sent = sum(len(each.calls) for each in vendors.values())
        retrievers = (
            "--retrievers",
            ",".join(RETRIEVERS),
            "--depth",
            "100",
            "--set",
            "retrievers.ngrams={kind: bm25, tokens: bigrams}",
        )
        ran(tmp_path, "audit", "CmedqaRetrieval", "--models", ",".join(JUDGES), *retrievers, *SPEND)
        again = sum(len(each.calls) for each in vendors.values()) - sent
    checked = curate(tmp_path, "verify", "runs/card/export")
    assert (checked.returncode, "no difference" in checked.stderr) == (3, True), "edits by rules have no panel to check"
    run = tmp_path / "runs" / "card"
    grades = recounted(run)
    kappa_is_that_of_statsmodels(agreed["agreement"], grades)
    unanimous_pairs_alone_are_published(run, grades)
    audit_is_a_recount(tmp_path)
    assert again < sent / 10, "what was judged is not paid again"
    ran(tmp_path, "evaluate", "runs/card", "-m", "bm25,use", "--no-baselines")
    scored_as_stock_mteb_does(run)


def recounted(run: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what the judges would say to every pair, and hold pools and ratings against it."""
    read = texts(run)
    pool = table(run, "pool", "pool")
    sizes = Counter(pool["query_id"])
    assert len(sizes) > 0.9 * QUERIES
    assert set(sizes.values()) <= {DEPTH, DEPTH + 1}, "a label that no retriever found joins its pool"
    grades = {
        (query, doc): tuple(judged_by(name)(read["query"][query], read["doc"][doc]) for name in JUDGES)
        for query, doc in pool.select("query_id", "doc_id").iter_rows()
    }
    said: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for query, doc, judge, label in (
        table(run, "judge", "ratings").select("query_id", "doc_id", "judge", "grade").iter_rows()
    ):
        said[query, doc][judge] = label
    assert {pair: tuple(each[name] for name in JUDGES) for pair, each in said.items()} == grades
    return grades


def kappa_is_that_of_statsmodels(agreement: Any, grades: dict[tuple[str, str], tuple[str, ...]]) -> None:
    """Compare Fleiss' kappa of all grades."""
    counts, _ = aggregate_raters([[GRADES.index(label) for label in labels] for labels in grades.values()], n_cat=5)
    assert agreement["all_grades"]["fleiss"] == pytest.approx(fleiss_kappa(counts), abs=1e-6)
    assert agreement["all_grades"]["unanimous"] == sum(len(set(labels)) == 1 for labels in grades.values())


def unanimous_pairs_alone_are_published(run: Path, grades: dict[tuple[str, str], tuple[str, ...]]) -> None:
    """Hold the labels of the run and of its export against the grades."""
    votes = {pair: {label in RELEVANT for label in labels} for pair, labels in grades.items()}
    positives = {pair for pair, said in votes.items() if said == {True}}
    qrels = table(run, "consensus", "qrels")
    assert set(qrels.select("query_id", "doc_id").iter_rows()) == positives
    lines = (run / "export" / "trec" / "qrels.txt").read_text(encoding="utf-8").splitlines()
    assert sum(line.split()[3] != "0" for line in lines) == len(positives) > QUERIES
    assert {path.name for path in (run / "export" / "mteb").iterdir() if path.is_dir()} == {
        "retrieval",
        "reranking",
        "sts",
    }


def audit_is_a_recount(folder: Path) -> None:
    """Count confirmed, wrong and missing labels by what the judges would say to each text."""
    run = folder / "runs" / "audit-CmedqaRetrieval"
    read = texts(run)
    labels = pl.read_csv(folder / "CmedqaRetrieval" / "qrels" / "test.tsv", separator="\t")
    labelled = set(labels.select("query-id", "corpus-id").iter_rows())
    counts: Counter[str] = Counter()
    for query, doc, kind in table(run, "audit", "compared").select("query_id", "doc_id", "kind").iter_rows():
        relevant = {judged_by(name)(read["query"][query], read["doc"][doc]) in RELEVANT for name in JUDGES}
        if kind == "unretrieved":
            counts["unretrieved"] += 1
        elif (query, doc) in labelled:
            counts["contested" if len(relevant) == 2 else "confirmed" if True in relevant else "false_positives"] += 1
        elif kind not in ("duplicate", "same question"):
            counts["false_negatives"] += relevant == {True}
            counts["undecided"] += len(relevant) == 2
    measures = json.loads((run / "audit" / "audit.json").read_text(encoding="utf-8"))["measures"]
    assert {name: measures[name]["total"] for name in counts} == counts
    assert measures["labels"]["total"] == len(labelled)
    assert min(counts["confirmed"], counts["false_positives"], counts["false_negatives"]) > 0


def scored_as_stock_mteb_does(run: Path) -> None:
    """Score an encoder on each of the three tasks by mteb itself."""
    tasks = json.loads((run / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))["tasks"]
    for task, (name, measure) in zip(
        tasks, {"retrieval": "ndcg_at_10", "reranking": "map_at_10", "sts": "cosine_spearman"}.items(), strict=True
    ):
        mine = next(score for score in task["scores"] if score["model"] == "use")
        theirs = scoring.scores(run / "export" / "mteb" / name)[measure]
        assert mine["stock"]["value"] == pytest.approx(theirs, abs=1e-5)
