"""Paraphrases and their originals in an export: stock mteb scores them, cards warn, and what is wrong is refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.evaluate import provenance, tasks
from curate.core.protocols import Benchmark
from curate.system.files import frame
from curate.tables.exporters.ids import prefixed
from curate.tables.exporters.mteb import export
from curate.tables.exporters.reading import mteb
from curate.tables.kinds import kind
from curate.testing import ListCorpus
from tests.integration.tables.test_exporters import evaluate
from tests.support.runs import card_section

QUERIES = {
    f"q{n}": text for n, text in enumerate(("高血压能喝酒吗", "痛风能吃豆腐吗", "白内障要手术吗", "感冒要吃药吗"))
}
VOTES = [{"judge": "a", "answer": "yes"}]


def pair(query: str, sentence: str, label: int, kind: str, **other: Any) -> dict[str, Any]:
    row = {"pair_id": f"{kind}-{query}", "query_id": query, "sentence1": QUERIES[query], "sentence2": sentence}
    told = {"label": label, "kind": kind, "overlap": 0.5, "group": query, "verdict": "confirmed", "votes": VOTES}
    return {**row, **told, "split": "test", **other}


def paraphrases(**other: Any) -> pl.DataFrame:
    rows = [pair(query, f"请问{text}", 1, "paraphrase") for query, text in QUERIES.items()]
    rows += [pair("q0", QUERIES["q1"], 0, "neighbour", retriever="use", rank=3)]
    rows += [pair("q1", "痛风不能吃什么", 0, "negation"), pair("q2", "白内障要吃药吗", 0, "swap")]
    rows += [pair("q3", "感冒要紧吗", 0, "neighbour", verdict="contested", split=None)]
    return frame("paraphrases", rows).with_columns(**other)


def originals() -> pl.DataFrame:
    judged = [("q0", "q0", "confirmed"), ("q1", "q1", "confirmed"), ("q2", "q1", "contested"), ("q0", "q1", "rejected")]
    rows: list[dict[str, Any]] = [
        {
            "query_id": original,
            "text": QUERIES[original],
            "pair_id": f"paraphrase-{query}",
            "paraphrase": f"请问{QUERIES[query]}",
            "verdict": verdict,
            "votes": VOTES,
        }
        for original, query, verdict in judged
    ]
    return frame("originals", [*rows, {"query_id": "q3", "text": QUERIES["q3"], "votes": []}])


def benchmark(facts: Mapping[str, Any] | None = None, **tables: pl.DataFrame) -> Benchmark:
    asked = frame("queries", ({"query_id": name, "text": text} for name, text in QUERIES.items()))
    labels = frame("qrels", [{"query_id": "q0", "doc_id": "d1", "score": 1}])
    verdicts = frame(
        "verdicts", [{"query_id": "q0", "doc_id": "d1", "verdict": "relevant", "votes": [], "policy": "x"}]
    )
    held = {"paraphrases": paraphrases(), "originals": originals(), **tables}
    told = {"kinds": {"paraphrase": facts or {}}}
    corpus = ListCorpus({"d1": "少量可以。", "d2": "不要紧。"})
    return Benchmark("b", "zh", asked.head(1), corpus, labels, labels.clear(), verdicts, told, tables=held)


def test_stock_mteb_scores_both(tmp_path: Path) -> None:
    export(benchmark(), tmp_path)
    found = evaluate(tmp_path / "paraphrase")
    assert found["main_score"] == found["max_ap"]
    assert 0.5 < found["max_ap"] <= 1
    retrieved = evaluate(tmp_path / "sentence-retrieval")
    assert retrieved["main_score"] == retrieved["ndcg_at_10"]
    assert retrieved["recall_at_1"] == 0.5, "of the second query the first original shares more characters"


def test_what_is_read_back_is_what_was_written(tmp_path: Path) -> None:
    made = benchmark()
    export(made, tmp_path)
    written = mteb(tmp_path).kinds
    pairs = kind("paraphrase").read(written["paraphrase"])
    wanted = paraphrases().drop_nulls("split").sort("pair_id")
    assert pairs.select(wanted.columns).sort("pair_id").to_dicts() == wanted.to_dicts()
    back = kind("sentence-retrieval").read(written["sentence-retrieval"])
    columns = ["query_id", "text", "pair_id", "paraphrase", "verdict"]
    assert back.select(columns).rows() == originals().sort("query_id", "pair_id").select(columns).rows()
    assert back["score"].to_list() == [1, None, 1, None, None]


def test_cards_name_the_circular_and_warn_where_nobody_confirmed(tmp_path: Path) -> None:
    parts = {"retriever": ["use"], "judge": ["a"], "generator": ["g"]}
    for folder, panel in (("one", ["a"]), ("two", [])):
        (tmp_path / folder).mkdir()
        export(benchmark({"panel": panel, "parts": parts}), tmp_path / folder)
        for name in ("paraphrase", "sentence-retrieval"):
            card = card_section(tmp_path / folder, name)
            assert ("Nobody confirmed these" in card) == (not panel)
            assert ("all judges say" in card) == bool(panel)
            assert "*Circular:* as generator g had a part in this set" in card
            front = (tmp_path / folder / name / "README.md").read_text(encoding="utf-8")
            assert "generator:\n  - g\n" in front, "for `curate evaluate`"
    told = {each.kind.name: each for each in tasks.in_folder(tmp_path / "one")}
    flagged = {
        name: [who for who in ("use", "a", "g") if provenance.circular(who, each)] for name, each in told.items()
    }
    assert (flagged["paraphrase"], flagged["sentence-retrieval"]) == (["use", "a", "g"], ["a", "g"])
    assert "use" not in flagged["retrieval"], "who retrieves documents is told of, and mined no negatives"


def test_ids_follow_the_queries() -> None:
    met = replace(benchmark(), corpus=ListCorpus({"q0": "少量可以。", "d2": "不要紧。"}))
    renamed, _ = prefixed(met)
    pairs, rows = renamed.tables["paraphrases"], renamed.tables["originals"]
    assert set(pairs["query_id"]) == set(pairs["group"]) == {f"q-{name}" for name in QUERIES}
    assert set(rows["query_id"]) == {f"q-{name}" for name in QUERIES}


def test_people_are_shown_the_pairs_of_the_set() -> None:
    items = kind("paraphrase").to_review(paraphrases())
    assert items is not None
    assert items.rows.height == 7
    assert set(items.rows["label"]) == set(items.answers) == {"yes", "no"}
    assert "test, negation" in items.rows["stratum"].to_list()


FIRST = pl.int_range(pl.len()) == 0
WRONG: dict[str, tuple[dict[str, pl.Expr], str]] = {
    "an id twice": ({"pair_id": pl.lit("x")}, "7 ids stand there twice|6 ids stand there twice"),
    "an empty text": ({"sentence2": pl.lit(" ")}, "7 rows have an empty text"),
    "equal texts": ({"sentence2": pl.col("sentence1")}, "7 pairs are of equal sentences"),
    "a label": ({"label": pl.lit(1)}, "3 labels are not their kind's"),
    "a verdict": ({"verdict": pl.lit("contested")}, "7 pairs were not confirmed"),
    "a split": (
        {"split": pl.when(FIRST).then(pl.lit("train")).otherwise("split")},
        "pairs share groups with the other",
    ),
    "one label": ({"split": pl.when(pl.col("label") == 1).then("split")}, "all pairs of the split test have one label"),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_what_must_not_be_exported(change: dict[str, pl.Expr], said: str) -> None:
    made = benchmark(paraphrases=paraphrases(**change))
    lines = list(kind("paraphrase").problems(made))
    assert any(part in line for line in lines for part in said.split("|")), lines
    assert not any(text in line for line in lines for text in QUERIES.values())
    assert list(kind("paraphrase").problems(benchmark())) == []


def test_originals_that_must_not_be_exported() -> None:
    def problems(**change: pl.Expr) -> list[str]:
        return list(kind("sentence-retrieval").problems(benchmark(originals=originals().with_columns(**change))))

    assert problems() == []
    assert "ids of texts have several" in problems(query_id=pl.lit("q0"))[0]
    assert "2 paraphrases have no original" in problems(verdict=pl.lit("rejected"))[-1]
    assert any("rows have an empty text" in line for line in problems(text=pl.lit("")))


def test_a_split_without_test_pairs_is_no_task() -> None:
    train = paraphrases(split=pl.lit("train"))
    assert not kind("paraphrase").present(benchmark(paraphrases=train))
    assert kind("paraphrase").present(benchmark())
    assert not kind("sentence-retrieval").present(
        benchmark(originals=originals().with_columns(verdict=pl.lit("rejected")))
    )
