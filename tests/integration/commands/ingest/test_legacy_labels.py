"""Known positives that a user brings to a build: each joins a pool without a rank, is judged, and is accounted for."""

import json
from pathlib import Path

import polars as pl
import pytest

from curate.pipeline import legacy
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Context
from curate.retrieval.fusion import grown, with_positives
from curate.runs import rankings as coverage
from curate.system.files import frame, write_table
from tests.support.runs import ran, tiny

PAIR = ["query_id", "doc_id"]
SHALLOW = ("--set", "pool.depth=2", "--set", "pool.size=2")
LABELS = "q0 d00 1,q0 d19 1,q0 d03 0,q1 d04 1,q1 d99 1,q2 d07 2,q2 d08 0,q3 d98 0,q4 d16 1,q4 d02 0,q4 d10 1"
"""Two of them, one of which is a positive, are of documents that there are not."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brought")
    tiny(folder)
    lines = ["query-id corpus-id score", *LABELS.split(",")]
    (folder / "data" / "qrels" / "test.tsv").write_text("\n".join(lines).replace(" ", "\t") + "\n")
    more = ("--set", "pool.legacy=true", "--set", "ingest.on_error=drop", "--set", "pool.queries=4")
    (folder / "said.txt").write_text(ran(folder, "run", "tiny.yaml", *SHALLOW, *more).stdout)
    return folder


def rows(folder: Path, stage: str, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "runs" / "tiny" / stage / f"{name}.parquet")


def fact(folder: Path, stage: str) -> dict[str, int]:
    mark = json.loads((folder / "runs" / "tiny" / stage / "stage.json").read_text())
    found: dict[str, int] = mark["report"]["facts"]["legacy"]
    return found


def test_every_known_positive_is_in_its_pool_and_judged_without_a_rank(made: Path) -> None:
    pool, known = rows(made, "pool", "pool"), rows(made, "diversify", "qrels").filter(pl.col("score") > 0)
    drawn = known.join(pool, on="query_id", how="semi")
    assert len(drawn.join(pool, on=PAIR, how="anti")) == 0
    assert len(drawn.join(rows(made, "judge", "ratings"), on=PAIR, how="anti")) == 0
    unranked = pool.filter(pl.col("hits").list.len() == 0)
    assert 0 < len(unranked) == fact(made, "pool")["joined"] < len(drawn) == fact(made, "pool")["positives"]
    assert unranked["position"].min() == 3, "behind the two that the retrievers brought"
    assert len(unranked.join(drawn, on=PAIR, how="anti")) == 0


def test_what_was_brought_is_the_sum_of_what_became_of_it(made: Path) -> None:
    counts = fact(made, "resolve")
    assert counts["brought"] == sum(counts[name] for name in legacy.STATUSES) == 7
    assert (counts["not in corpus"], counts["dropped"]) == (1, 0)
    listed = pl.read_csv(made / "runs" / "tiny" / "resolve" / "legacy.tsv", separator="\t")
    verdicts = rows(made, "resolve", "verdicts").join(listed, on=PAIR)
    assert listed.columns == [*PAIR, "status", "votes", "policy"]
    assert verdicts["policy_right"].to_list() == verdicts["policy"].to_list()
    assert len(listed) == 6
    assert (verdicts["verdict"] == "relevant").sum() == counts["confirmed"]
    assert (verdicts["verdict"] == "contested").sum() == counts["contested"]
    assert len(listed) - len(verdicts) == counts["not judged"], "of the query that was not drawn"
    assert verdicts["votes_right"].str.contains(r"^lexical [SABCD], strict [SABCD]$").all()


def test_the_run_the_page_and_the_card_say_it(made: Path) -> None:
    run = made / "runs" / "tiny"
    counts = fact(made, "resolve")
    said = f"7 known positives: {counts['confirmed']} confirmed, {counts['rejected']} rejected, "
    assert said in (made / "said.txt").read_text()
    assert "resolve/legacy.tsv" in (made / "said.txt").read_text()
    assert said in (run / "export" / "mteb" / "README.md").read_text()
    page = (run / "report.html").read_text()
    assert "Known positives that the data came with" in page
    assert "数据自带的正例标注" in page


def test_figures_on_retrievers_are_those_without_them(made: Path) -> None:
    ran(made, "check", "pool", "--run", "runs/tiny")
    checked = json.loads((made / "runs" / "tiny" / "checks" / "pool.json").read_text())
    pool = rows(made, "pool", "pool")
    unranked = pool.filter(pl.col("hits").list.len() == 0)
    confirmed = len(unranked.join(rows(made, "resolve", "qrels"), on=PAIR, how="semi"))
    assert [each["retriever"] for each in checked["leave_one_out"]] == ["pairs", "words", "legacy"]
    assert checked["leave_one_out"][-1]["alone"] == confirmed
    assert checked["capture"]["found"] == checked["relevant"] - checked["beyond_depth"] - confirmed
    assert sum(each["pairs"] for each in checked["by_position"]) == len(pool) - len(unranked)


def test_an_audit_and_a_build_without_the_setting_take_none(tmp_path: Path) -> None:
    tiny(tmp_path)
    stages = "stages=[ingest, mask, diversify, pool, judge, consensus, resolve]"
    ran(tmp_path, "run", "tiny.yaml", *SHALLOW, "--set", stages, "--set", "pool.legacy=false")
    assert not (tmp_path / "runs" / "tiny" / "resolve" / "legacy.tsv").exists()
    assert (rows(tmp_path, "pool", "pool")["hits"].list.len() > 0).all()
    assert "legacy" not in PoolConfig(legacy=False).model_dump(), "as 0.2 had it"
    audit = Context(tmp_path, tmp_path, tmp_path, settings={"stages": ["pool", "audit"]})
    assert not legacy.joins(PoolConfig(legacy=True), audit)


def test_labels_that_went_with_a_text_are_in_the_account(tmp_path: Path) -> None:
    scores = {"d1": 1, "d2": 2, "d3": 0}
    labels = frame("qrels", [{"query_id": "q", "doc_id": doc, "score": score} for doc, score in scores.items()])
    lost = [{"table": "qrels", "id": f"q {doc}", "stage": "diversify", "reason": "r"} for doc in ("d2", "d3")]
    tables = [
        ("mask", "qrels", labels),
        ("diversify", "qrels", labels[:1]),
        ("diversify", "dropped", frame("dropped", lost)),
    ]
    facts = {"ingest": {legacy.LOST: {"dropped": 2}}, "pool": {"legacy": {}}}
    for stage in ("ingest", "mask", "diversify", "pool", "resolve"):
        (tmp_path / stage).mkdir()
        report = {"rows_in": 0, "rows_out": 0, "facts": facts.get(stage, {})}
        (tmp_path / stage / "stage.json").write_text(json.dumps({"report": report}))
    for stage, name, table in tables:
        write_table(tmp_path / stage, name, table)
    votes = [{"judge": "a", "grade": "S"}, {"judge": "b", "grade": None}]
    verdict = {"query_id": "q", "doc_id": "d1", "verdict": "incomplete", "votes": votes, "policy": "unanimous"}
    context = Context(tmp_path, tmp_path / "resolve", tmp_path)
    found = legacy.account(frame("verdicts", [verdict]), context)["legacy"]
    assert found == {**dict.fromkeys(legacy.STATUSES, 0), "brought": 4, "incomplete": 1, "dropped": 3}
    written = (tmp_path / "resolve" / legacy.FILE).read_text().splitlines()[1:]
    assert written == ["q\td1\tincomplete\ta S, b -\tunanimous", "q\td2\tdropped\t\t"]


def test_a_pool_that_grows_keeps_them_outside_of_every_depth() -> None:
    def ranked(retriever: str, *docs: str) -> list[dict[str, object]]:
        return [
            {"query_id": "q", "retriever": retriever, "doc_id": doc, "rank": rank, "score": 1 / rank}
            for rank, doc in enumerate(docs, start=1)
        ]

    hit = [{"retriever": "old", "rank": 1, "score": 1.0}]
    pool = frame("pool", [{"query_id": "q", "doc_id": "a", "position": 1, "hits": hit}])
    known = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["b", "a", "c"]})
    joined = with_positives(pool, known)
    assert joined.select("doc_id", "position").rows() == [("a", 1), ("b", 2), ("c", 3)]
    rankings = frame("rankings", [*ranked("old", "a", "b"), *ranked("new", "c", "d", "b")])
    later = grown(joined, rankings, ["new"], 2)
    by = {row["doc_id"]: [hit["retriever"] for hit in row["hits"]] for row in later.iter_rows(named=True)}
    assert by == {"a": ["old"], "b": [], "c": ["new"], "d": ["new"]}
    assert with_positives(later, known).equals(later)
    assert coverage.depths(rankings, coverage.ranked_hits(later))["depth"].to_list() == [1]
