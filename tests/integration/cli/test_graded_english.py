"""A benchmark with graded labels of English medical texts: five judges over HTTP, four of five, scored by stock mteb.

The judges are scripted, so this shows the plumbing from real texts to another tool's score, and nothing of any judge.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.core.config import text_digest
from tests.support import machine
from tests.support.pools import table
from tests.support.runs import curate, ran
from tests.support.scoring import scores
from tests.vendor import refusal, vendor

JUDGES = ("one", "two", "three", "four", "five")
QUERIES, DOCUMENTS = 10, 60
GAINS = {"3": 3, "2": 2, "1": 1, "0": 0}


def graded(judge: str) -> Callable[[str, str], str]:
    """Return a judge that grades by the words in common, one grade off for a fifth of all pairs."""

    def grade(query: str, passage: str) -> str:
        words = {word for word in query.lower().replace("?", "").split() if len(word) > 3}
        share = len(words & set(passage.lower().split())) / max(len(words), 1)
        true = 3 if share > 0.65 else 2 if share > 0.4 else 1 if share > 0.1 else 0
        chance = int(text_digest(f"{judge} {query} {passage}")[:4], 16) % 10
        return str(min(max(true + {0: 1, 1: -1}.get(chance, 0), 0), 3))

    return grade


@pytest.fixture(scope="module")
def data(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a part of MedQuAD: some questions, their own answers, and others."""
    real, folder = shared_data / "medquad_legacy_en", tmp_path_factory.mktemp("medquad")
    queries = pl.read_ndjson(real / "queries.jsonl")[: 40 * QUERIES : 40]
    qrels = pl.read_csv(real / "qrels.tsv", separator="\t").filter(pl.col("query-id").is_in(queries["_id"].implode()))
    corpus = pl.read_ndjson(real / "corpus.jsonl").filter(pl.col("text").str.len_chars() < 1500)
    own = pl.col("_id").is_in(qrels["corpus-id"].implode())
    (folder / "data").mkdir()
    queries.write_ndjson(folder / "data" / "queries.jsonl")
    pl.concat([corpus.filter(own), corpus.filter(~own)[::40][:DOCUMENTS]]).write_ndjson(
        folder / "data" / "corpus.jsonl"
    )
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Iterator[Path]:
    """Return the run folder of the finished benchmark; the judges are still there."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(vendor(graded(name), faults=[refusal] if name == "five" else []))
            for name in JUDGES
        }
        model = {"kind": "openai", "json_mode": "schema"}
        settings = {
            "version": 1,
            "name": "medquad",
            "language": "en",
            "ingest": {"source": "data"},
            "diversify": {"enabled": False},
            "pool": {"retrievers": ["words", "pairs"], "depth": 12, "size": 12},
            "retrievers": {"words": {"kind": "bm25"}, "pairs": {"kind": "bm25", "tokens": "bigrams"}},
            "judges": {
                name: {**model, "model": f"judge-{name}", "base_url": server.url} for name, server in servers.items()
            },
            "judge": {"models": list(JUDGES), "rubric": "rubric-en-trec", "batch": 4},
            "consensus": {"policy": {"positive": {"at_least": 4, "of": 5}, "negative": {"at_least": 3}}},
            "export": {"small": True, "labels": "graded", "rerank": {"enabled": False}, "ids": "keep"},
        }
        (data / "medquad.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        ran(data, "run", "medquad.yaml", "--yes")
        yield data / "runs" / "medquad"


def test_four_of_five_decide(run: Path) -> None:
    verdicts = table(run, "consensus", "verdicts")
    assert verdicts["policy"].unique().to_list() == ["4 of 5, negative 3"]
    for verdict, votes in verdicts.select("verdict", "votes").iter_rows():
        given = [vote["grade"] for vote in votes if vote["grade"]]
        yes = sum(grade in "32" for grade in given)
        no, left = len(given) - yes, 5 - len(given)
        relevant = "relevant" if yes >= 4 else "not relevant" if no >= 3 else ""
        assert verdict == (relevant or ("contested" if yes + left < 4 and no + left < 3 else "incomplete"))
    assert set(verdicts["verdict"]) >= {"relevant", "not relevant", "contested"}


def test_the_labels_are_the_lower_median_of_the_grades(run: Path) -> None:
    verdicts = table(run, "resolve", "verdicts").filter(pl.col("verdict") != "incomplete")
    wanted = set(table(run, "resolve", "qrels")["query_id"])
    expected = {}
    for query, doc, votes in verdicts.select("query_id", "doc_id", "votes").iter_rows():
        given = sorted(vote["grade"] for vote in votes if vote["grade"])
        if query in wanted and (gain := GAINS[given[(len(given) - 1) // 2]]):
            expected[query, doc] = gain
    [qrels] = (run / "export" / "mteb" / "retrieval").glob("qrels-*.parquet")
    assert {row[:2]: row[2] for row in pl.read_parquet(qrels).iter_rows()} == expected
    assert len(set(expected.values())) == 3


def test_stock_mteb_scores_it_and_verify_derives_it(run: Path, data: Path) -> None:
    found = scores(run / "export" / "mteb" / "retrieval")
    assert found["main_score"] == found["ndcg_at_10"] > 0
    done = curate(data, "verify", str(run / "export"))
    assert "differ" not in done.stdout
    assert done.returncode == 3, done.stdout  # what the cards say of the run as a whole is in no table


def test_agree_shows_the_rule_beside_the_others_and_what_it_does_to_systems(run: Path, data: Path) -> None:
    rankings = table(run, "pool", "rankings").filter(pl.col("retriever") == "words").sort("query_id", "rank")
    lines = [
        f"{query} Q0 {doc} {rank} {-rank} mine"
        for query, doc, rank in rankings.select("query_id", "doc_id", "rank").iter_rows()
        if rank % 2 == 0
    ]
    (data / "mine.run").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = machine.data(ran(data, "agree", "--run", str(run), "--run-file", "mine.run", "--json").stdout)
    assert [row["policy"] for row in found["policies"]][-1] == "4 of 5, negative 3"
    systems = found["systems"]["ndcg_at_10"]
    assert set(systems) == {
        "unanimous",
        "unanimous-grade",
        "majority",
        "dawid-skene",
        "4 of 5, negative 3",
        "graded, lower median",
    }
    assert set(systems["unanimous"]) == {"words", "pairs", "file mine"}
    for each in found["systems"]["against_unanimous"].values():
        assert -1 <= each["tau_b"]["low"] <= each["tau_b"]["high"] <= 1
    shown = ran(data, "agree", "--run", str(run)).stdout
    assert "nDCG@10 of the systems under the labels of each policy" in shown
    assert "4 of 5, negative 3" in shown
