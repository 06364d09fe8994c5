"""The stage `paraphrase`: a model writes, two families find neighbours, a panel confirms, overlap is matched."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.core.config import Settings
from curate.core.errors import BudgetError, ConfigError, UserError
from curate.ledger import Ledger
from curate.pipeline.stage import Report
from curate.runs.ledger_check import check as findings
from curate.system.files import digests, frame, read_json, write_table
from tests.support.pools import step, table
from tests.support.runs import curate
from tests.support.steps import beir
from tests.vendor import Call, Fault, Vendor, error, refusal, says, vendor

WORDS = ("胃溃疡", "痛风", "偏头痛", "白内障", "青光眼")
BODIES = ("能喝什么酒", "早期疼起来怎么办", "左边疼是怎么回事", "孩子吃什么药", "吃二甲双胍可以吗")
QUERIES = {f"q{n}{m}": f"{word}{body}" for n, word in enumerate(WORDS) for m, body in enumerate(BODIES)}
TWIN = {"twin": "痛风可以喝什么酒"}
"""Means the same as another query, q10."""
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
MINERS = ["bm25", "use"]
MODELS = (("g", "alpha-1"), ("a", "beta-1"), ("b", "gamma-1"), ("kin", "alpha-2"))


def prepared(folder: Path, queries: Mapping[str, str]) -> Path:
    """Return a run folder that stands before the stage."""
    run = folder / "run"
    (run / "diversify").mkdir(parents=True)
    rows = ({"query_id": name, "text": text, "source": "test"} for name, text in queries.items())
    write_table(run / "diversify", "queries", frame("queries", rows))
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return prepared(tmp_path, {**QUERIES, **TWIN})


def paraphrase(
    run: Path, server: Vendor | None = None, consent: Mapping[str, Any] | None = None, **settings: Any
) -> Report:
    """Run the stage with a generator `g` and judges `a` and `b`, all on one server, unless it says otherwise."""
    judges: dict[str, Settings] = {}
    if server is not None:
        settings = {"generator": "g", "panel": ["a", "b"], **settings}
        for name, model in MODELS:
            judges[name] = {"kind": "openai", "model": model, "base_url": server.url, "price": PRICE, "concurrency": 2}
    known = {"retrievers": MINERS, "test": 40, "pool": 2, **settings}
    return step(run, "paraphrase", known, judges, **(consent if consent is not None else {"yes": True}))


Behaviour = Callable[[Call], Fault | None]


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Vendor]]:
    with ExitStack() as running:
        yield lambda faults: running.enter_context(vendor(lambda _query, _text: "S", faults))


def write(call: Call) -> Fault:
    """Write the query with two words before it; of one kind of queries a sentence of another meaning."""
    text = call.query.replace("青光眼早期", "青光眼晚期")
    return says(json.dumps({"paraphrase": f"请问{text}"}, ensure_ascii=False))


def vote(yes: bool) -> Fault:
    return says(json.dumps({"label": "yes" if yes else "no", "reason": "因为如此。"}, ensure_ascii=False))


def plain(text: str) -> str:
    return text.removeprefix("请问").replace("可以喝", "能喝")


def judged(call: Call) -> bool:
    """Answer the three questions as one who knows what was done: no pregnant patients, no change by one drug."""
    asked, one, two = call.body["messages"][0]["content"], call.query, call.passages["passage"]
    if "合情合理" in asked:
        return "孕妇" not in two
    if "是否需要不同的回答" in asked:
        return "格列美脲" not in two
    return plain(one) == plain(two)


def honest(call: Call) -> Fault:
    return vote(judged(call)) if "passage" in call.passages else write(call)


def pairs(run: Path) -> pl.DataFrame:
    return table(run, "paraphrase", "paraphrases")


def in_set(run: Path) -> pl.DataFrame:
    return pairs(run).drop_nulls("split")


def said(row: Mapping[str, Any]) -> dict[str, str]:
    return {vote["judge"]: vote["answer"] for vote in row["votes"]}


# With a generator and a panel


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Report]]:
    """Return a run with honest models, made once, and its report: to be read alone."""
    run = prepared(tmp_path_factory.mktemp("paraphrase"), {**QUERIES, **TWIN})
    with vendor(lambda _query, _text: "S", honest) as server:
        yield run, paraphrase(run, server)


def test_written_confirmed_matched_and_paid_once(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    report = paraphrase(run, server, edits=2)
    rows, chosen = pairs(run), in_set(run)
    assert Counter(chosen["label"])[1] == Counter(chosen["label"])[0] > 0
    assert set(chosen["verdict"]) == {"confirmed"}
    assert not chosen["sentence2"].str.contains("孕妇|格列美脲").any(), "rejected edits do not appear"
    assert not chosen["sentence2"].str.contains("请问青光眼晚期").any(), "nor rejected paraphrases"
    rejected = rows.filter(pl.col("sentence2") == "请问青光眼晚期疼起来怎么办").row(0, named=True)
    assert (rejected["verdict"], rejected["split"], said(rejected)) == ("rejected", None, {"a": "no", "b": "no"})
    twins = rows.filter(pl.col("kind") == "neighbour", pl.col("query_id").is_in(["q10", "twin"]))
    for row in twins.iter_rows(named=True):
        same = {row["sentence1"], row["sentence2"]} == {QUERIES["q10"], TWIN["twin"]}
        assert row["verdict"] == ("rejected" if same else "confirmed")
    found: Any = report.facts
    assert found["planned"] == found["built"] + sum(found["dropped"].values())
    assert found["models"] == {"a": ["beta-1"], "b": ["gamma-1"], "g": ["alpha-1"]}
    assert found["agreement"]["sentences"]["percent"] == found["agreement"]["edits"]["percent"] == 1
    assert found["parts"] == {"retriever": MINERS, "judge": ["a", "b"], "generator": ["g"]}
    assert [name.split(" (")[0] for name in found["prompts"]] == [
        "paraphrase-write-zh",
        "sts-sentences-zh",
        "edit-plausible-zh",
        "edit-different-zh",
    ]
    assert max(Counter(json.dumps(call.body) for call in server.calls).values()) == 1
    kept, before = digests(run / "paraphrase"), len(server.calls)
    again = paraphrase(run, server, {"offline": True}, edits=2)
    assert (len(server.calls), again.spent, digests(run / "paraphrase")) == (before, 0, kept)
    assert dict(again.facts) == dict(report.facts)
    with Ledger(run / "home" / "ledger.db") as ledger:
        assert list(findings(ledger)) == []


def test_personal_data_that_the_model_writes_reaches_no_judge(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    phone, stubborn, once = "13812345678", QUERIES["q11"], QUERIES["q21"]

    def indiscreet(call: Call) -> Fault:
        told_off = "个人信息，请去掉" in call.body["messages"][1]["content"]
        if "passage" not in call.passages and (call.query == stubborn or (call.query == once and not told_off)):
            return says(json.dumps({"paraphrase": f"{call.query[:4]}{phone}"}, ensure_ascii=False))
        return honest(call)

    server = serve(indiscreet)
    report = paraphrase(run, server, edits=0, length=0.99)
    facts: Any = report.facts
    assert facts["broken_rules"] == {"personal": 4}, "three attempts of one, and the first of the other"
    assert not any(phone in json.dumps(call.body) for call in server.calls), "no judge is asked of it"
    lost = table(run, "paraphrase", "dropped").filter(pl.col("table") == "queries").select("id", "reason").rows()
    assert ("q11", "its sentence held personal data") in lost
    assert facts["planned"] == facts["built"] + sum(facts["dropped"].values())
    assert "paraphrase-q21" in pairs(run)["pair_id"].to_list()
    assert not any(
        phone in str(table(run, "paraphrase", name).rows()) for name in ("paraphrases", "originals", "dropped")
    )


def test_retrievers_take_turns_and_say_the_rank(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    paraphrase(run, serve(honest), window={"first": 2, "last": 5}, edits=0)
    near = pairs(run).filter(pl.col("kind") == "neighbour")
    shares = Counter(near["retriever"])
    assert set(shares) == set(MINERS)
    assert abs(shares["bm25"] - shares["use"]) <= 4
    assert near["rank"].is_between(2, 5).all()
    texts = set(QUERIES.values()) | set(TWIN.values())
    assert set(near["sentence2"]) <= texts
    both = [frozenset(pair) for pair in near.select("sentence1", "sentence2").iter_rows()]
    assert len(set(both)) == len(both), "no two queries meet twice"


def test_an_equal_original_is_a_positive_of_retrieval(made: tuple[Path, Report]) -> None:
    run, report = made
    rows = table(run, "paraphrase", "originals")
    assert set(rows["query_id"]) == {*QUERIES, *TWIN}, "the corpus is every original"
    positives = rows.filter(pl.col("verdict") == "confirmed").select("pair_id", "query_id").rows()
    own = [(name, name.removeprefix("paraphrase-")) for name in rows["pair_id"].drop_nulls().unique()]
    assert set(positives) == {*own, ("paraphrase-q10", "twin"), ("paraphrase-twin", "q10")}
    assert not rows.filter(pl.col("pair_id").str.starts_with("paraphrase-q41")).height, (
        "a rejected one searches nothing"
    )
    found: Any = report.facts
    originals = found["originals"]
    assert originals["several"] == 2
    assert originals["unjudged"] == originals["paraphrases"] * 26 - sum(originals["verdicts"].values()) > 0


def test_one_judge_against_it_is_enough(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    def doubting(call: Call) -> Fault:
        if "passage" not in call.passages:
            return write(call)
        odd = call.model == "gamma-1" and call.query.startswith("痛风")
        return vote(judged(call) != odd)

    found: Any = paraphrase(run, serve(doubting)).facts
    of_gout = pairs(run).filter(pl.col("sentence1").str.starts_with("痛风"))
    assert {"contested"} <= set(of_gout["verdict"]) <= {"contested", "rejected"}
    assert of_gout["split"].is_null().all()
    assert found["dropped"]["the panel does not agree"] > 0
    assert 0 < found["agreement"]["sentences"]["fleiss"] < 1


def test_a_panel_that_says_yes_to_anything_is_noticed(
    run: Path, serve: Callable[[Behaviour], Vendor], made: tuple[Path, Report]
) -> None:
    report = paraphrase(run, serve(lambda call: vote(True) if "passage" in call.passages else write(call)))
    assert any("neighbours equal to their query" in note for note in report.notes)
    assert not (in_set(run)["kind"] == "neighbour").any()
    assert not any("neighbours equal to their query" in note for note in made[1].notes)


def test_what_breaks_a_rule_is_asked_again_with_the_reason(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    tries = Counter[str]()

    def learning(call: Call) -> Fault:
        if "passage" in call.passages:
            return vote(judged(call))
        tries[call.query] += 1
        wrong = says(json.dumps({"paraphrase": call.query}, ensure_ascii=False)), says("好的")
        return [*wrong, write(call)][tries[call.query] - 1]

    server = serve(learning)
    found: Any = paraphrase(run, server, again=2).facts
    asked = [call.body["messages"][1]["content"] for call in server.calls if call.query == QUERIES["q00"]][:3]
    assert ["与 query 是同一句话" in each for each in asked] == [False, True, False]
    assert "不是约定的格式" in asked[2]
    assert found["broken_rules"] == {"reply": 26, "same": 26}
    assert found["ways"] == {"model": 26}


def test_refusals_failures_and_nonsense(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    down = True

    def odd(call: Call) -> Fault:
        if "passage" in call.passages:
            return says("相同") if call.query.startswith("偏头痛") else vote(judged(call))
        if call.query.startswith("白内障"):
            return error(429, retry_after=86_400) if down else write(call)
        return refusal if call.query.startswith("胃溃疡") else write(call)

    server = serve(odd)
    report = paraphrase(run, server)
    found: Any = report.facts
    assert report.unfinished == "5 questions failed; run `curate paraphrase` again to retry"
    assert (found["refused"], found["dropped"]["the generator refused"]) == (5, 5)
    assert found["pairs"]["paraphrase"]["incomplete"] == 5
    down, before = False, len(server.calls)
    assert paraphrase(run, server).unfinished == ""
    sent = [call for call in server.calls[before:] if "passage" not in call.passages]
    assert len(sent) == 5, "what was answered is not asked again"


def test_nothing_is_sent_without_permission(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    with pytest.raises(BudgetError, match=r"would send:\n  paraphrase.generator=g: 26 calls[\s\S]*a, sentences: 7"):
        paraphrase(run, server, {})
    with pytest.raises(UserError, match="--offline sends none"):
        paraphrase(run, server, {"offline": True})
    assert server.calls == []
    with pytest.raises(BudgetError):
        paraphrase(run, server, {"max_cost": 0.001})
    assert len(server.calls) < 26
    report = paraphrase(run, server, {"max_cost": 5.0})
    assert 0 < report.spent < 5


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nobody confirms": ({"panel": []}, "paraphrase.panel: found nobody"),
    "the family alone": ({"panel": ["kin"]}, r"generator's family \(alpha\)"),
    "a name twice": ({"panel": ["a", "a"]}, "found a name twice"),
    "a heuristic": ({"panel": ["lexical"]}, "paraphrase.panel: 'lexical' is no language model"),
    "no such generator": ({"generator": "lexical"}, "paraphrase.generator: 'lexical' is no language model"),
    "one miner": ({"retrievers": ["bm25"]}, "paraphrase.retrievers: found bm25 of bm25"),
    "one twice": ({"retrievers": ["use", "use"]}, r"use is of the family of use \(use\)"),
    "no negatives": ({"neighbours": 0, "edits": 0}, "without them there is no negative"),
    "no pairs": ({"test": 0}, "test and train are both 0"),
    "window": ({"window": {"first": 9, "last": 3}}, "first 9 stands behind last 3"),
    "no such lexicon": ({"lexicon": "nowhere.txt"}, "paraphrase.lexicon: nowhere.txt: no such file"),
}


@pytest.mark.parametrize(("settings", "said"), WRONG.values(), ids=WRONG)
def test_what_is_refused_before_anything_is_sent(
    run: Path, serve: Callable[[Behaviour], Vendor], settings: dict[str, Any], said: str
) -> None:
    server = serve(honest)
    with pytest.raises(ConfigError, match=said):
        paraphrase(run, server, **settings)
    assert server.calls == []


# Without a model


def many(number: int) -> dict[str, str]:
    ends = ("", "多久能好", "要紧吗", "吃什么好", "会传染吗", "怎么预防", "早期有什么症状", "能不能喝咖啡")
    words = ("高血压", "糖尿病", "痛风", "脂肪肝", "哮喘", "湿疹", "肺炎", "近视", "贫血", "失眠", "便秘", "骨折")
    starts = ("", "孩子得了", "老人得了", "左边查出", "请问")
    texts = [f"{start}{word}{end}" for end in ends[1:] for start in starts for word in words]
    return {f"q{n:03}": text for n, text in enumerate(texts[:number])}


def test_offline_there_is_a_set_and_it_says_what_it_is(tmp_path: Path) -> None:
    run = prepared(tmp_path, many(200))
    report = paraphrase(run, test=60, train=40, neighbours=2, edits=2)
    chosen = in_set(run)
    assert set(chosen["verdict"]) == {"unconfirmed"}
    assert [note.partition(":")[0] for note in report.notes[:2]] == [
        "templates wrote these paraphrases",
        "nobody confirmed these pairs",
    ]
    assert (report.cost, report.facts["models"], report.facts["prompts"]) == (0, {}, [])
    assert not (run / "paraphrase" / "asked.json").exists()
    sides = {name: chosen.filter(pl.col("split") == name) for name in ("test", "train")}
    texts = {name: {*side["sentence1"], *side["sentence2"]} for name, side in sides.items()}
    groups = {name: set(side["group"]) for name, side in sides.items()}
    assert all(side.height for side in sides.values())
    assert not texts["test"] & texts["train"]
    assert not groups["test"] & groups["train"]
    assert (chosen["sentence1"] != chosen["sentence2"]).all()
    again = prepared(tmp_path / "again", many(200))
    paraphrase(again, test=60, train=40, neighbours=2, edits=2)
    assert digests(again / "paraphrase") == digests(run / "paraphrase")


def test_shared_characters_no_longer_tell_the_label(tmp_path: Path) -> None:
    run = prepared(tmp_path, many(300))
    found: Any = paraphrase(run, test=200, edits=3).facts
    split = found["splits"]["test"]
    assert split["pairs"] >= 60
    assert split["floors"]["overlap"] <= 0.55
    assert abs(split["overlap_before"] - 0.5) > 0.1
    assert split["paired"] >= 0.6 * split["pairs"] / 2
    assert set(split["kinds"]) > {"paraphrase", "neighbour"}


def test_why_queries_have_no_pair(tmp_path: Path) -> None:
    texts = {
        "q0": "痛风？",
        "q1": "白内障能喝酒吗",
        "q2": "白内障能喝酒吗？",
        "q3": "天上的星星多少颗",
        "q4": "痛风能喝酒吗",
    }
    run = prepared(tmp_path, texts)
    report = paraphrase(run, test=4, queries=2)
    dropped = table(run, "paraphrase", "dropped").filter(pl.col("table") == "queries")
    why = dict(dropped.select("id", "reason").iter_rows())
    assert why["q0"] == "its text has under 5 characters"
    assert why["q2"] == "its text is that of another query"
    assert list(why.values()).count("beyond the number of queries") == 1
    assert any(note.startswith("fewer pairs than wanted (test:") for note in report.notes)


def test_a_language_without_templates_needs_a_model(tmp_path: Path) -> None:
    beir(tmp_path / "data", [{"_id": "q1", "text": "Was hilft gegen Gicht?"}], [{"_id": "d1", "text": "Wasser."}])
    settings = {
        "version": 1,
        "name": "de",
        "language": "de",
        "ingest": {"source": "data"},
        "stages": ["ingest", "mask", "diversify", "paraphrase"],
        "diversify": {"enabled": False},
        "paraphrase": {"retrievers": MINERS},
    }
    (tmp_path / "de.yaml").write_text(json.dumps(settings), encoding="utf-8")
    done = curate(tmp_path, "run", "de.yaml")
    assert "paraphrase.generator: there are no templates for de" in done.stderr
    with vendor(lambda _query, _text: "S", lambda call: vote(False) if call.passages else write(call)) as server:
        judges = {name: {"kind": "openai", "model": model, "base_url": server.url} for name, model in MODELS[:2]}
        settings |= {"judges": judges, "paraphrase": {"retrievers": MINERS, "generator": "g", "panel": ["a"]}}
        (tmp_path / "de.yaml").write_text(json.dumps(settings), encoding="utf-8")
        done = curate(tmp_path, "run", "de.yaml", "--yes")
    assert done.returncode == 0, done.stderr


def test_who_was_asked_what_is_written_down(made: tuple[Path, Report]) -> None:
    asked = read_json(made[0] / "paraphrase" / "asked.json")
    assert list(asked) == ["edit-different", "edit-plausible", "sts-sentences"]
    assert all(set(each["panel"]) == {"a", "b"} for each in asked.values())
