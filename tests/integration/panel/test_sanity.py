"""Signs that a panel does not judge: told after the first ratings, before the rest is paid, and at the end."""

import json
from pathlib import Path

import polars as pl

from curate.core.scale import FIVE
from curate.panel import sanity
from tests.support.runs import curate
from tests.vendor import Vendor, vendor

QUERIES, DEPTH = 64, 10
PRICE = {"input": 1, "output": 1, "currency": "EUR", "date": "2026-01-01"}
PIPELINE = """\
version: 1
name: asked
ingest: {source: data}
diversify: {enabled: false}
pool: {retrievers: [bm25], depth: DEPTH, size: DEPTH}
judges: JUDGES
judge: {models: [one, two], batch: 10, controls: off, allow_weak_judges: true}
export: {small: true, rerank: {enabled: false}}
"""


def asking(folder: Path, server: Vendor, stages: str = "") -> None:
    """Write 64 questions with 10 documents each, and a pipeline that asks two models of a server."""
    (folder / "data/qrels").mkdir(parents=True)
    topics = [f"{a}{b}病" for a in "甲乙丙丁戊己庚辛" for b in "心肝脾肺肾胃胆肠"][:QUERIES]
    queries = [{"_id": f"q{n:02}", "text": f"{topic}怎么治疗"} for n, topic in enumerate(topics)]
    texts = [f"{topic}怎么治疗，第{m}条答复" for topic in topics for m in range(DEPTH)]
    corpus = [{"_id": f"d{n:03}", "text": text} for n, text in enumerate(texts)]
    for name, rows in (("queries", queries), ("corpus", corpus)):
        (folder / f"data/{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "data/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq00\td000\t1\n")
    judges = {
        name: {"kind": "openai", "model": name, "base_url": server.url, "price": PRICE} for name in ("one", "two")
    }
    text = PIPELINE.replace("JUDGES", json.dumps(judges)).replace("DEPTH", str(DEPTH))
    (folder / "p.yaml").write_text(text + stages, "utf-8")


def ratings(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, ["query_id", "doc_id", "judge", "grade"], orient="row")


def test_a_judge_that_finds_everything_relevant_is_named_before_the_rest_is_paid(tmp_path: Path) -> None:
    with vendor(lambda _query, _passage: "S") as server:
        asking(tmp_path, server)
        done = curate(tmp_path, "run", "p.yaml", "--max-cost", "5")
        assert len(server.calls) == 2 * QUERIES  # the first look sends prompts that would have been sent anyway
    assert done.returncode == 0, done.stderr
    signs = [line for line in done.stderr.splitlines() if "gives S or A" in line]
    early = [f"judge: after 400 pairs: {name} gives S or A to 400 of 400 pairs" for name in ("one", "two")]
    late = [f"judge: note: {name} gives S or A to 640 of 640 pairs" for name in ("one", "two")]
    assert [line.removesuffix(": it may not judge at all") for line in signs] == early + late


def test_a_run_whose_queries_have_no_positive_stops_if_told_to(tmp_path: Path) -> None:
    with vendor(lambda _query, _passage: "D") as server:
        asking(tmp_path, server)
        done = curate(tmp_path, "run", "p.yaml", "--yes", "--set", "judge.sanity.stop=true")
        assert done.returncode == 2
        assert "only 0 of 40 queries have a positive, of those judged first" in done.stderr
        assert len(server.calls) == 2 * 40
        done = curate(tmp_path, "run", "p.yaml", "--yes")  # what was paid is kept
        assert "judge: after 400 pairs: only 0 of 40 queries have a positive" in done.stderr
        assert len(server.calls) == 2 * QUERIES


def test_a_run_ends_with_what_was_kept_and_why_not_more(tmp_path: Path) -> None:
    with vendor(lambda query, passage: "S" if "甲心病" in query and "甲心病" in passage else "D") as server:
        asking(tmp_path, server)
        with (tmp_path / "data/queries.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"_id": "again", "text": "甲心病怎么治疗"}\n')
        done = curate(tmp_path, "run", "p.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    end = done.stdout[done.stdout.index("queries: ") :].splitlines()
    said = [line for line in end if "known positives" not in line]
    assert said[0] == "queries: 1 of 65 are exported; left out: 63 no positive, 1 equal to another"
    assert said[1] == "labels: 10 positives (10.0 per exported query); of 640 judged pairs 630 not relevant"
    assert said[2].startswith("paid: 0.")
    assert said[2].endswith(" EUR")
    assert said[3].startswith("next: curate review export --run ")
    assert "consensus: note: only 1 of 64 queries have a positive" in done.stderr


def test_a_run_without_a_positive_ends_with_queries_and_money_too(tmp_path: Path) -> None:
    with vendor(lambda _query, _passage: "D") as server:
        asking(tmp_path, server)
        with (tmp_path / "data/queries.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"_id": "again", "text": "甲心病怎么治疗"}\n')
        done = curate(tmp_path, "run", "p.yaml", "--yes")
    assert done.returncode != 0
    said = [line.removeprefix("curate: ") for line in done.stderr.splitlines()[-4:]]
    assert said[0].endswith("export: no query has a positive, so there is no benchmark to write")
    assert said[1] == "queries: 0 of 65 are exported; left out: 64 no positive, 1 equal to another"
    assert said[2].startswith("paid: 0.")
    assert said[2].endswith(" EUR")
    assert "curate show verdicts" in said[3]


def test_a_run_in_which_all_is_relevant_says_so(tmp_path: Path) -> None:
    with vendor(lambda _query, _passage: "S") as server:
        asking(tmp_path, server)
        done = curate(tmp_path, "run", "p.yaml", "--yes")
    labels = next(line for line in done.stdout.splitlines() if line.startswith("labels:"))
    assert labels == "labels: 640 positives (10.0 per exported query); all 640 judged pairs are relevant"


def test_a_panel_that_contradicts_itself_is_named(tmp_path: Path) -> None:
    """One judge finds relevant what the other does not."""
    pairs = [(f"q{n % 10}", f"d{n}") for n in range(250)]
    rows = [(*pair, judge, "SD"[(n + place) % 2]) for n, pair in enumerate(pairs) for place, judge in enumerate("ab")]
    assert sanity.panel(ratings(*rows), ["a", "b"], FIVE) == [
        "the judges are on both sides of the cut in 250 of 250 pairs",
        "the judges agree less than chance would have them: Fleiss' kappa -1.000 on the cut",
    ]
    assert sanity.panel(ratings(*rows[:398]), ["a", "b"], FIVE) == []  # 199 pairs say nothing yet
    assert sanity.judges(ratings(*rows), FIVE) == []


def test_one_grade_for_all_controls_is_said() -> None:
    controls = pl.DataFrame({"kind": ["positive", "rejected", "random"], "grade": ["A", "A", None]})
    assert sanity.undiscerning(controls) == "A"
    assert sanity.undiscerning(controls.with_columns(grade=pl.Series(["A", "B", None]))) == ""
    assert sanity.undiscerning(controls.filter(pl.col("kind") == "positive")) == ""


def test_few_survivors_are_said_of_a_sample_only_if_it_is_sure() -> None:
    assert sanity.survivors(9, 100)
    assert not sanity.survivors(10, 100)
    assert not sanity.survivors(0, 0)
    assert sanity.surely_few(0, 40)
    assert not sanity.surely_few(0, 30)  # the truth may be an eighth
