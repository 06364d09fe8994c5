"""The stage `gradient`: a panel confirms edits and counterparts, mixes follow from texts, grades are levels."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.gradient import Config
from curate.commands.gradient.stage import planned
from curate.commands.verify.verification import verify
from curate.core.config import Settings, check
from curate.core.errors import BudgetError, ConfigError, UserError
from curate.core.protocols import Benchmark
from curate.ledger import Ledger
from curate.pipeline.stage import Consent, Context, Report
from curate.system.files import digests, frame, read_json, write_json, write_table
from curate.tables.kinds import kind
from curate.tables.kinds.gradient import LEVELS, mixed
from tests import ROOT
from tests.integration.commands.report.test_report import Read
from tests.integration.tables.test_exporters import evaluate, load
from tests.support.pools import pooled, step, table
from tests.support.runs import card_section, ran, tiny
from tests.vendor import Call, Fault, Vendor, error, says, vendor

KILLER = ROOT / "tests/support/killer.py"
WORDS = {"胃溃疡": "消化性溃", "痛风": "尿酸病", "偏头痛": "偏头疼", "白内障": "白内之障", "青光眼": "绿光眼"}
QUERIES = {f"q{n}": f"{word}患者饭前吃3片药好吗" for n, word in enumerate(WORDS)} | {"q9": "发什么呆呢"}
DOCUMENTS = {f"d{n}": f"{word}患者最好饭后再服药，剂量要按医生说的来，不要自己加量。" for n, word in enumerate(WORDS)}
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
Behaviour = Callable[[Call], Fault | None]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def prepared(tmp_path: Path) -> Path:
    """Return a run folder before the stage: query n has document n, of grade A, and the next one, of grade C."""
    run = pooled(tmp_path / "run", DOCUMENTS, QUERIES)
    dictionary = "term\tsynonym\tkind\tsource\tunseen\n" + "".join(
        f"{term}\t{synonym}\texact\ttest\tboth\n" for term, synonym in WORDS.items()
    )
    (tmp_path / "words.tsv").write_text(dictionary, encoding="utf-8")
    rows = []
    for n in range(len(WORDS)):
        for doc, grade, verdict in ((n, "A", "relevant"), ((n + 1) % len(WORDS), "C", "not relevant")):
            votes = [{"judge": judge, "grade": grade} for judge in ("x", "y", "z")]
            votes[0] = {"judge": "x", "grade": "S"}
            rows.append({"query_id": f"q{n}", "doc_id": f"d{doc}", "verdict": verdict, "votes": votes, "policy": "m"})
    (run / "consensus").mkdir()
    write_table(run / "consensus", "verdicts", frame("verdicts", rows))
    return run


def gradient(run: Path, server: Vendor | None = None, consent: Mapping[str, Any] | None = None, **more: Any) -> Report:
    """Run the stage with judges `a` and `b` on one server, or without any."""
    judges: dict[str, Settings] = {}
    if server is not None:
        more = {"panel": ["a", "b"], **more}
        for name, model in (("a", "beta-1"), ("b", "gamma-1")):
            judges[name] = {"kind": "openai", "model": model, "base_url": server.url, "price": PRICE, "concurrency": 2}
    known = {"dictionary": str(run.parent / "words.tsv"), "faults": "drop", **more}
    return step(run, "gradient", known, judges, **(consent if consent is not None else {"yes": True}))


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Vendor]]:
    with ExitStack() as running:
        yield lambda faults: running.enter_context(vendor(lambda _query, _text: "S", faults))


def asked_of(call: Call) -> str:
    """Return which question a call asks, by its answers: same, plausible or different."""
    said = call.body["messages"][0]["content"]
    return "plausible" if "合情合理" in said else "different" if "需要不同的回答" in said else "same"


def vote(yes: bool) -> Fault:
    return says(json.dumps({"label": "yes" if yes else "no", "reason": "因为如此。"}, ensure_ascii=False))


def agreeable(_call: Call) -> Fault:
    return vote(True)


def items(run: Path, made: str) -> pl.DataFrame:
    return table(run, "gradient", "gradients").filter(pl.col("kind") == made)


def reasons(run: Path, made: str) -> Counter[str]:
    rows = table(run, "gradient", "dropped")["reason"].to_list()
    return Counter(each.removeprefix(f"{made}: ") for each in rows if each.startswith(f"{made}: "))


# Edits and their panel


def test_confirmed_and_paid_once(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(agreeable)
    report = gradient(run, server)
    found: Any = report.facts
    rows = items(run, "edit")
    assert len(server.calls) == 2 * (5 + 5 + 5), "counterparts, plausible, different; two judges"
    assert rows.height == 10
    for row in rows.iter_rows(named=True):
        assert row["source"] == QUERIES[row["query_id"]] != row["destination"]
        assert row["verdict"] == "confirmed"
        answer = "yes" if row["level"] else "different"
        assert row["votes"] == [{"judge": "a", "answer": answer}, {"judge": "b", "answer": answer}]
    assert (found["planned_by_kind"]["edit"], found["built_by_kind"]["edit"]) == (6, 5)
    assert reasons(run, "edit") == {"no word with a synonym": 1}
    assert len({row["variant"] for row in rows.iter_rows(named=True)}) == 4, "kinds of edits come near to equal"
    assert found["figures"]["edit"]["all"]["pairs"] == 5
    assert found["agreement"]["edits"]["percent"] == 1
    assert report.cost is not None
    assert report.spent == pytest.approx(report.cost) != 0
    kept = digests(run / "gradient")
    again = gradient(run, server, {"offline": True})
    assert (len(server.calls), again.spent) == (30, 0)
    assert digests(run / "gradient") == kept


def test_what_the_panel_rejects_does_not_appear(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    def critical(call: Call) -> Fault:
        what, judge = asked_of(call), call.model
        if call.query.startswith("痛风"):
            return vote(what != "plausible")  # both find its edit implausible
        if call.query.startswith("偏头痛"):
            return vote(what != "different" or judge == "beta-1")  # one says that one answer does for both
        if call.query.startswith("白内障"):
            return vote(what != "same")  # its counterpart means something else
        return vote(True)

    server = serve(critical)
    report = gradient(run, server)
    assert set(items(run, "edit")["query_id"]) == {"q0", "q4"}
    assert reasons(run, "edit") == {
        "its edit is rejected": 1,
        "its edit is contested": 1,
        "its counterpart is rejected": 1,
        "no word with a synonym": 1,
    }
    edited = table(run, "gradient", "edited")
    votes = {row["query_id"]: row for row in edited.iter_rows(named=True) if row["variant"] != "synonym"}
    assert [each["answer"] for each in votes["q1"]["votes"]] == ["implausible", "implausible"]
    assert [each["answer"] for each in votes["q2"]["votes"]] == ["different", "same"]
    assert votes["q3"]["votes"] == [], "an edit without its counterpart is not paid for"
    asked = Counter((call.query[:2], asked_of(call)) for call in server.calls)
    assert asked[("痛风", "different")] == 0, "an implausible edit is not asked about further"
    found: Any = report.facts
    assert sum(found["dropped"].values()) + found["built"] == found["planned"]


def test_what_failed_is_asked_again_and_nothing_else(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    down = True

    def shaky(call: Call) -> Fault:
        return error(429, retry_after=86_400) if down and call.query.startswith("痛风") else vote(True)

    server = serve(shaky)
    first = gradient(run, server)
    assert first.unfinished.startswith("2 questions failed; run `curate gradient` again")
    assert reasons(run, "edit")["its counterpart is incomplete"] == 1
    down, before = False, len(server.calls)
    assert gradient(run, server).unfinished == ""
    assert len(server.calls) == before + 6
    assert items(run, "edit").height == 10


def test_nothing_is_sent_without_permission_and_the_plan_is_what_is_sent(
    run: Path, serve: Callable[[Behaviour], Vendor]
) -> None:
    server = serve(agreeable)
    with pytest.raises(BudgetError, match=r"confirming edits would send:[\s\S]*in all: 30 calls"):
        gradient(run, server, {})
    with pytest.raises(UserError, match="--offline sends none"):
        gradient(run, server, {"offline": True})
    with pytest.raises(BudgetError):
        gradient(run, server, {"max_cost": 0.000001})
    assert server.calls == []
    judges: dict[str, Settings] = {"a": {"kind": "openai", "model": "beta-1", "base_url": server.url, "price": PRICE}}
    context = Context(run, run / "gradient", run / "home", definitions={"judges": judges}, consent=Consent())
    settings = {"panel": ["a"], "dictionary": str(run.parent / "words.tsv"), "faults": "drop"}
    rows = planned(check(Config, settings, "gradient"), context)
    assert [row.calls for row in rows] == [5, 5, 5, 15]
    assert server.calls == []


def test_a_word_of_a_panel_that_is_no_model(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"gradient\.panel: 'lexical' is no language model"):
        gradient(run, panel=["lexical"])


# Mixes and grades


def test_mixes_are_spliced_as_the_recipe_says(run: Path) -> None:
    report = gradient(run)
    rows = items(run, "mix")
    assert rows.height == 5 * len(LEVELS)
    held = {(row["pair_id"], row["level"]): row for row in rows.iter_rows(named=True)}
    for (name, share), row in held.items():
        own, other = held[name, 100], held.get((row["alternate_id"], 100))
        assert row["source_id"] == own["source_id"]
        if share == 100:
            assert other is None
        elif share == 0:
            assert other is not None
            assert (row["source"], row["destination"]) == (own["source"], other["destination"])
        else:
            assert other is not None
            assert row["source"] == mixed(own["source"], other["source"], share / 100)
            assert row["destination"] == own["destination"]
    for level in LEVELS[:-1]:
        others = [held[name, level]["alternate_id"] for name in set(rows["pair_id"])]
        assert sorted(others) == sorted(set(rows["pair_id"])), "each pair lends itself once"
    found: Any = report.facts
    assert found["figures"]["mix"]["foreign"]["pooled"]["value"] is not None
    assert set(found["figures"]["mix"]["means"]) == {"0", "25", "50", "75", "100"}
    assert report.notes[0].startswith("nobody confirmed these edits")


def test_grades_are_levels_and_not_exported(run: Path) -> None:
    found: Any = gradient(run, kind=["consensus"]).facts
    rows = items(run, "consensus")
    assert set(rows.select("level", "verdict").iter_rows()) == {(3.0, "relevant"), (1.0, "not relevant")}
    assert found["figures"]["consensus"]["overlap"]["pooled"]["value"] > 0.5
    assert found["figures"]["mix"] is None
    assert reasons(run, "consensus") == {"no judged document": 1}
    tables = {"gradients": table(run, "gradient", "gradients")}
    benchmark: Any = type("Only", (), {"tables": tables})
    assert not kind("gradient-edit").present(benchmark)
    assert not kind("gradient-mix").present(benchmark)


def test_titles_can_be_the_destinations(run: Path) -> None:
    rows = (
        {"doc_id": f"d{n}", "title": f"题{n}", "text": text, "source": "t"} for n, text in enumerate(DOCUMENTS.values())
    )
    write_table(run / "diversify", "corpus", frame("corpus", rows))
    gradient(run, kind=["mix", "consensus"], pairs="titles", mix=4)
    rows_of = items(run, "mix").filter(pl.col("level") == 100)
    assert rows_of.height == 4
    assert set(rows_of["destination"]) < {f"题{n}" for n in range(5)}
    assert reasons(run, "mix") == {"beyond gradient.mix": 1}


def test_no_kind_of_edit_is_made_more_often_than_it_may(run: Path) -> None:
    gradient(run, kind=["edit"], edits=["swap", "dose"], per_kind=1)
    assert sorted(items(run, "edit").filter(pl.col("level") == 0)["variant"]) == ["dose", "swap"]
    assert reasons(run, "edit") == {"beyond gradient.per_kind": 3, "no word with a synonym": 1}


def test_mix_is_never_alone() -> None:
    with pytest.raises(ConfigError, match="mix alone says little of meaning"):
        check(Config, {"kind": ["mix"]}, "gradient")


def test_paraphrases_take_the_place_of_synonyms(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    with pytest.raises(ConfigError, match="run `curate paraphrase`"):
        gradient(run, generator="paraphrase")
    row = {"label": 1, "kind": "paraphrase", "verdict": "confirmed", "votes": [{"judge": "a", "answer": "yes"}]}
    rows = [{**row, "pair_id": "p1", "query_id": "q9", "sentence1": QUERIES["q9"], "sentence2": "在出什么神呢"}]
    rows += [{**rows[0], "pair_id": "p2", "query_id": "q0", "sentence2": "胃溃疡患者空腹服药三片行吗"}]
    (run / "paraphrase").mkdir()
    write_table(run / "paraphrase", "paraphrases", frame("paraphrases", rows))
    write_json(run / "paraphrase" / "stage.json", {"report": {"rows_in": 1, "rows_out": 1}})
    write_json(run / "paraphrase" / "asked.json", {"sts-sentences": {"as": "they were asked"}})
    server = serve(agreeable)
    gradient(run, server, generator="paraphrase")
    assert items(run, "edit").filter(pl.col("level") == 1)["destination"].to_list() == ["胃溃疡患者空腹服药三片行吗"]
    assert {asked_of(call) for call in server.calls} == {"plausible", "different"}, "nothing is confirmed twice"
    asked = json.loads((run / "gradient" / "asked.json").read_text(encoding="utf-8"))
    assert asked["sts-sentences"] == {"as": "they were asked"}


def test_a_paraphrase_that_holds_personal_data_is_no_counterpart(run: Path) -> None:
    row = {"label": 1, "kind": "paraphrase", "verdict": "unconfirmed", "votes": [], "query_id": "q0"}
    row |= {"pair_id": "p", "sentence1": QUERIES["q0"], "sentence2": "胃溃疡空腹服药行吗，13812345678"}
    (run / "paraphrase").mkdir()
    write_table(run / "paraphrase", "paraphrases", frame("paraphrases", [row]))
    write_json(run / "paraphrase" / "stage.json", {"report": {"rows_in": 1, "rows_out": 1}})
    gradient(run, generator="paraphrase", kind=["edit"])
    assert items(run, "edit").is_empty()
    assert reasons(run, "edit")["its counterpart holds personal data"] == 1
    assert table(run, "gradient", "edited").is_empty()


def test_ids_of_queries_and_documents_are_renamed_apart(run: Path) -> None:
    gradient(run)
    new = {"query_id": "q-" + pl.col("query_id"), "doc_id": "d-" + pl.col("doc_id")}
    renamed = kind("gradient-edit").renamed(table(run, "gradient", "gradients"), new)
    for made, side in (("edit", "q-q"), ("mix", "d-d"), ("consensus", "d-d")):
        rows = renamed.filter(pl.col("kind") == made)
        assert rows["source_id"].str.starts_with(side).all()
        assert rows["query_id"].str.starts_with("q-q").all()


def test_people_are_shown_both_texts_and_a_lack_of_levels_is_no_export(run: Path) -> None:
    gradient(run)
    gradients = table(run, "gradient", "gradients")
    shown = kind("gradient-edit").to_review(gradients)
    assert shown is not None
    assert set(shown.rows["label"]) == set(shown.answers) == {"same", "different"}
    assert set(shown.rows.columns) == {"item_id", "text1", "text2", "label", "stratum"}
    assert kind("gradient-mix").to_review(gradients) is None
    whole: Any = type("Whole", (Benchmark,), {"__init__": lambda self, tables: self.__dict__.update(tables=tables)})
    for made in ("edit", "mix"):
        own = gradients.filter(pl.col("kind") == made)
        assert list(kind(f"gradient-{made}").problems(whole({"gradients": own}))) == []
        said = list(kind(f"gradient-{made}").problems(whole({"gradients": own[1:]})))
        assert said[0].startswith("gradients: 1 pairs lack a level")


# The whole way


def test_from_a_pipeline_to_the_scores_of_stock_mteb_and_to_the_page(tmp_path: Path) -> None:
    tiny(tmp_path)
    stages = "stages=[ingest, mask, diversify, pool, judge, consensus, resolve, gradient, export, report]"
    ran(tmp_path, "run", "tiny.yaml", "--set", stages, "--set", "gradient.shortest=5")
    folder = tmp_path / "runs" / "tiny" / "export" / "mteb"
    for name, most in (("gradient-edit", 1), ("gradient-mix", 100)):
        rows = load(folder / name, "items")
        assert {"sentence1", "sentence2", "score", "kind", "pair-id"} <= set(rows[0])
        assert max(row["score"] for row in rows) == most
        scores = evaluate(folder / name)
        assert scores["main_score"] == scores["cosine_spearman"]
        assert -1 <= scores["cosine_spearman"] <= 1
        assert ("Nobody confirmed these pairs" in card_section(folder, name)) == (name == "gradient-edit")
    assert "### gradient-edit: planned, built and dropped" in card_section(folder, "gradient-edit")
    assert "[as gradient-edit](#gradient-edit)" in card_section(folder, "gradient-mix")
    assert not (folder / "gradient-consensus").exists()
    page = Read((tmp_path / "runs" / "tiny" / "report" / "report.html").read_text(encoding="utf-8"))
    for words in ("Nobody confirmed these edits", "Spliced texts, five levels", "改动一处", "评审等级作为分值"):
        assert words in page.text
    export = folder.parent
    assert read_json(export / "stage.json")["report"]["facts"]["gate"] == {
        "looked": True,
        "published": 0,
        "left_out": 0,
    }
    assert table(export.parent, "export", "found").is_empty()
    with Ledger(tmp_path / "home" / "ledger.db") as ledger:
        [found] = verify(folder, ledger)
    assert found.differences == []
    assert any(line.startswith("gradient-edit:") for line in found.unchecked), "nobody was asked"
    assert not any(line.startswith("gradient-mix:") for line in found.unchecked)
