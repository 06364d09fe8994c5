"""The stage `sts`: a model writes, rules and a panel check, quotas draw; every answer is paid once and read again."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ask.edits.question_templates import EDITS
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import groups
from curate.ask.edits.synonyms import read as entries
from curate.commands.sts.task import KINDS
from curate.core.config import Settings, read_yaml
from curate.core.errors import BudgetError, ConfigError, DataError, RunFailed, UserError
from curate.ledger import Ledger
from curate.pipeline.stage import Report
from curate.runs.ledger_check import check as findings
from curate.system import resources
from curate.system.files import digests, frame, write_table
from tests import ROOT
from tests.integration.commands.report.test_report import Read
from tests.support import machine
from tests.support.pools import step, table
from tests.support.runs import curate, tiny
from tests.support.trials import accepting
from tests.vendor import Call, Fault, Vendor, error, refusal, says, vendor

KILLER = ROOT / "tests/support/killer.py"
HEAD = "term\tsynonym\tkind\tsource\tunseen\n"
WORDS = {"胃溃疡": "消化性胃溃", "痛风": "尿酸病", "偏头痛": "偏头疼", "白内障": "白内之障", "青光眼": "绿光眼"}
BODIES = ("能喝酒抽烟吃辣吗", "早期疼起来怎么办")
QUERIES = {f"q{n}{m}": f"{word}{body}" for n, word in enumerate(WORDS) for m, body in enumerate(BODIES)}
PRICE: Settings = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}
SHORT = {"test": 4, "train": 2}


def rows_of(words: Mapping[str, str]) -> str:
    return HEAD + "".join(f"{term}\t{synonym}\texact\ttest\tboth\n" for term, synonym in words.items())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return prepared(tmp_path, QUERIES, rows_of(WORDS))


def prepared(folder: Path, queries: Mapping[str, str], dictionary: str) -> Path:
    """Return a run folder that stands before the stage, and write a dictionary beside it."""
    run = folder / "run"
    (run / "diversify").mkdir(parents=True)
    rows = ({"query_id": name, "text": text, "source": "test"} for name, text in queries.items())
    write_table(run / "diversify", "queries", frame("queries", rows))
    (folder / "words.tsv").write_text(dictionary, encoding="utf-8")
    return run


def sts(run: Path, server: Vendor | None = None, consent: Mapping[str, Any] | None = None, **settings: Any) -> Report:
    """Run the stage with a generator `g` and judges `a` and `b`, all on one server, unless it says otherwise."""
    judges: dict[str, Settings] = {}
    if server is not None:
        settings = {"generator": "g", "panel": ["a", "b"], **settings}
        for name, model in (("g", "alpha-1"), ("a", "beta-1"), ("b", "gamma-1"), ("kin", "alpha-2")):
            judges[name] = {"kind": "openai", "model": model, "base_url": server.url, "price": PRICE, "concurrency": 2}
    known = {"dictionary": str(run.parent / "words.tsv"), "faults": "drop", **SHORT, **settings}
    return step(run, "sts", known, judges, **(consent if consent is not None else {"yes": True}))


Behaviour = Callable[[Call], Fault | None]


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], Vendor]]:
    with ExitStack() as running:
        yield lambda faults: running.enter_context(vendor(lambda _query, _text: "S", faults))


def wanted(call: Call) -> list[str]:
    """Return the kinds that a generator is asked for."""
    schema = call.body["response_format"]["json_schema"]["schema"]
    return list(schema["required"])


def write(call: Call, **other: str) -> Fault:
    """Write what the kinds ask for, unless told otherwise."""
    query, term, synonym = call.query, call.passages["term"], call.passages["synonym"]
    body = query.removeprefix(term)
    changed = body.replace("能", "不能").replace("早期", "半夜")
    sentences = {"positive": synonym + body, "hard": synonym + changed, "easy": term + changed, **other}
    return says(json.dumps({kind: sentences[kind] for kind in wanted(call)}, ensure_ascii=False))


def vote(same: bool) -> Fault:
    return says(json.dumps({"label": "yes" if same else "no", "reason": "因为如此。"}, ensure_ascii=False))


def same(call: Call) -> bool:
    """Judge as somebody who knows the dictionary: the texts are equal once synonyms have given way."""
    one, two = call.query, call.passages["passage"]
    for term, synonym in WORDS.items():
        one, two = one.replace(synonym, term), two.replace(synonym, term)
    return one == two


def honest(call: Call) -> Fault:
    return write(call) if "term" in call.passages else vote(same(call))


def pairs(run: Path) -> pl.DataFrame:
    return table(run, "sts", "pairs")


def reasons(run: Path) -> Counter[str]:
    return Counter(table(run, "sts", "dropped")["reason"])


# With a generator and a panel


def test_personal_data_that_the_model_writes_reaches_no_judge(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    phone = "13812345678"

    def indiscreet(call: Call) -> Fault:
        if "term" in call.passages and call.query == QUERIES["q00"]:
            return says(json.dumps(dict.fromkeys(wanted(call), f"{phone}{call.passages['synonym']}能喝吗")))
        if "term" in call.passages and call.query == QUERIES["q10"] and "个人信息，请去掉" not in str(call.body):
            return write(call, positive=f"{phone}{call.passages['synonym']}能喝吗")
        return honest(call)

    server = serve(indiscreet)
    found: Any = sts(run, server, length=0.99).facts
    assert found["broken_rules"]["personal"] >= 2
    assert not any(phone in json.dumps(call.body) for call in server.calls), "no judge is asked of it"
    lost = dict(table(run, "sts", "dropped").select("id", "reason").rows())
    assert lost["q00"] == "a sentence held personal data"
    rewritten = table(run, "sts", "sentences").filter(pl.col("query_id") == "q10", pl.col("kind") == "positive")
    assert rewritten["attempt"].to_list() == [2]
    assert not any(phone in str(table(run, "sts", name).rows()) for name in ("pairs", "sentences", "dropped"))


def test_written_confirmed_drawn_and_paid_once(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    report = sts(run, server)
    found: Any = report.facts
    assert len(server.calls) == 10 + 2 * 30
    assert found["sentences"] == {kind: {"kept": 10} for kind in KINDS}
    assert (found["ways"], found["attempts"]) == ({"model": 30}, {"1": 30})
    assert found["agreement"]["fleiss"] == 1
    assert (found["agreement"]["items"], found["agreement"]["clusters"]) == (30, 10)
    assert found["models"] == {"a": ["beta-1"], "b": ["gamma-1"], "g": ["alpha-1"]}
    assert found["panel"] == ["a", "b"]
    assert [each.split(" (")[0] for each in found["prompts"]] == ["sts-write-zh", "sts-sentences-zh"]
    rows = pairs(run)
    assert Counter(rows["split"]) == {"test": 4, "train": 2}
    assert found["splits"]["test"]["kinds"] == {"positive": 2, "hard": 1, "easy": 1}
    assert found["splits"]["test"]["positive_share"] == 0.5
    assert found["splits"]["test"]["lengths"]["positive"]["ratio_mean"] > 1
    assert found["splits"]["test"]["shortcuts"]["synonym_present"] == pytest.approx(0.5774, abs=1e-4)
    for row in rows.iter_rows(named=True):
        assert row["sentence1"] == QUERIES[row["query_id"]]
        assert row["label"] == (row["kind"] == "positive")
        assert (row["term"] in row["sentence2"]) == (row["kind"] == "easy")
        assert (row["synonym"] in row["sentence2"]) == (row["kind"] != "easy")
    assert report.cost is not None
    assert report.cost > 0
    assert report.spent == pytest.approx(report.cost)
    assert reasons(run) == {"not drawn": 4}
    kept = digests(run / "sts")
    again = sts(run, server, {"offline": True})
    assert len(server.calls) == 70
    assert digests(run / "sts") == kept
    assert dict(again.facts) == dict(report.facts)
    assert again.spent == 0
    with Ledger(run / "home" / "ledger.db") as ledger:
        assert list(findings(ledger)) == []


def test_what_breaks_a_rule_is_asked_again_with_the_reason(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    tries = Counter[str]()
    lock = threading.Lock()

    def learning(call: Call) -> Fault:
        if "term" not in call.passages:
            return vote(same(call))
        with lock:
            tries[call.query] += 1
            attempt = tries[call.query]
        if attempt == 1:
            return write(call, hard=call.query)
        if attempt == 2:
            return says("好的！")
        return write(call)

    server = serve(learning)
    found: Any = sts(run, server).facts
    asked = [call for call in server.calls if "term" in call.passages and call.query == QUERIES["q00"]]
    assert [wanted(call) for call in asked] == [list(KINDS), ["hard"], ["hard"]]
    first, second, third = (call.body["messages"][1]["content"] for call in asked)
    assert "hard: 缺少应有的那个词" in second
    assert "hard: 与 query 是同一句话" in second
    assert "hard: 上一次的回复不是约定的格式" in third
    assert "缺少" not in first
    assert found["attempts"] == {"1": 20, "3": 10}
    assert found["broken_rules"] == {"word": 10, "other word": 10, "same": 10, "reply": 10}
    assert found["sentences"]["hard"] == {"kept": 10}


def test_after_three_times_more_there_is_no_sentence(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(lambda call: write(call, positive="x", hard="x", easy="x"))
    report = sts(run, server)
    assert len(server.calls) == 10 * 4
    assert pairs(run).is_empty()
    assert reasons(run) == {"no sentence kept to the rules": 10}
    assert report.unfinished == ""
    found: Any = report.facts
    assert found["splits"]["test"]["shortcuts"]["synonym_present"] is None
    assert found["agreement"] is None


def test_one_judge_against_it_is_enough(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    def doubting(call: Call) -> Fault:
        if "term" in call.passages:
            return write(call)
        odd = call.model == "gamma-1" and call.query.startswith("痛风")
        return vote(same(call) != odd)

    found: Any = sts(run, serve(doubting), test=20, train=0).facts
    assert found["sentences"] == {kind: {"kept": 8, "rejected": 2} for kind in KINDS}
    assert not pairs(run)["sentence1"].str.starts_with("痛风").any()
    assert reasons(run)["no sentence was confirmed"] == 2
    assert 0 < found["agreement"]["fleiss"] < 1
    low, high = found["agreement"]["intervals"]["fleiss"]
    assert low < found["agreement"]["fleiss"] < high
    answers = table(run, "sts", "sentences").filter(pl.col("query_id") == "q10", pl.col("kind") == "positive")
    assert answers["answers"].to_list() == [[{"judge": "a", "answer": "yes"}, {"judge": "b", "answer": "no"}]]


NOISE = {"胃溃疡": "十二指肠溃疡", "痛风": "尿酸病", "偏头痛": "紧张性头痛"}


def test_wrong_pairs_of_a_noisy_dictionary_are_rejected_by_the_panel(
    tmp_path: Path, serve: Callable[[Behaviour], Vendor]
) -> None:
    queries = {f"q{n}": f"{word}早期疼得厉害的时候到底应该怎么办" for n, word in enumerate(NOISE)}
    run = prepared(tmp_path, queries, rows_of({**NOISE, "脑梗": "脑溢血"}))

    def expert(call: Call) -> Fault:
        """Know which words are synonyms; one judge of two errs on headaches."""
        if "term" in call.passages:
            return write(call)
        if "query" in call.body["messages"][0]["content"] and len(call.query) < 8:
            right = {call.query, call.passages["passage"]} == {"痛风", "尿酸病"}
            return vote(right or (call.model == "beta-1" and call.query == "偏头痛"))
        return vote(same(call))

    server = serve(expert)
    found: Any = sts(run, server, confirm_dictionary=True, test=1, train=0).facts
    book = found["dictionary"]
    assert (book["rows"], book["asked"], book["rejected"]) == (4, 3, 2)  # a word that no query holds is not paid for
    assert book["agreement"]["items"] == 3
    dropped = table(run, "sts", "dropped")
    said = "the panel does not agree that both words mean the same"
    assert dropped.filter(pl.col("reason") == said)["id"].to_list() == ["words.tsv:2", "words.tsv:4"]
    assert pairs(run)["term"].to_list() == ["痛风"]
    assert not any("十二指肠溃疡" in call.passages.get("synonym", "") for call in server.calls)
    without: Any = sts(run, server, test=4, train=0).facts
    assert without["dictionary"]["asked"] == 0
    assert "十二指肠溃疡" in table(run, "sts", "sentences")["synonym"].to_list()


def test_a_word_inside_a_rejected_one_is_not_used_unasked(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    words = {"胃溃疡出血": "十二指肠出血", "胃溃疡": "消化性胃溃"}
    run = prepared(tmp_path, {"q0": "胃溃疡出血早期疼起来怎么办呢"}, rows_of(words))
    server = serve(lambda call: write(call) if "term" in call.passages else vote(False))
    found: Any = sts(run, server, confirm_dictionary=True, test=1, train=0).facts
    assert (found["dictionary"]["asked"], found["dictionary"]["rejected"]) == (1, 1)
    assert reasons(run)["no synonym that fits into its length and is not there already"] == 0
    assert reasons(run)["no word of the dictionary"] == 1
    assert len(server.calls) == 2, "nobody wrote anything"


def test_words_that_nobody_answered_for_stop_before_more_is_paid(
    run: Path, serve: Callable[[Behaviour], Vendor]
) -> None:
    down = True

    def shaky(call: Call) -> Fault:
        asked_of_words = "term" not in call.passages and len(call.query) < 8
        if asked_of_words:
            return error(429, retry_after=86_400) if down and call.query == "痛风" else vote(same(call))
        return honest(call)

    server = serve(shaky)
    with pytest.raises(RunFailed, match="2 questions about words failed; run `curate sts` again"):
        sts(run, server, confirm_dictionary=True)
    assert not any("term" in call.passages for call in server.calls)
    down = False
    before = len(server.calls)
    found: Any = sts(run, server, confirm_dictionary=True).facts
    assert found["dictionary"]["rejected"] == 0
    assert len(server.calls) == before + 2 + 10 + 60


def test_refusals_and_nonsense_are_no_sentence_and_no_vote(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    def odd(call: Call) -> Fault:
        if "term" in call.passages:
            return refusal if call.query.startswith("痛风") else write(call)
        return says("相同") if call.query.startswith("偏头痛") else vote(same(call))

    server = serve(odd)
    report = sts(run, server, test=20, train=0)
    found: Any = report.facts
    assert found["refused"] == 2
    assert found["sentences"]["positive"] == {"incomplete": 2, "kept": 6}
    assert reasons(run)["the generator refused"] == 2
    assert report.unfinished == ""
    before = len(server.calls)
    sts(run, server, {"yes": True, "retry": True}, test=20, train=0)
    assert len(server.calls) == before + 2 + 2 * 6
    sts(run, server, {"offline": True}, test=20, train=0)


def test_what_failed_is_asked_again_and_nothing_else(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    down = {"痛风"}

    def shaky(call: Call) -> Fault:
        failing = any(call.query.startswith(word) for word in down)
        return error(429, retry_after=86_400) if failing and "term" in call.passages else honest(call)

    server = serve(shaky)
    first = sts(run, server)
    assert first.unfinished == "2 questions failed; run `curate sts` again to retry them"
    down.clear()
    before = len(server.calls)
    assert sts(run, server).unfinished == ""
    assert len(server.calls) == before + 2 + 2 * 6


def test_nothing_is_sent_without_permission(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    with pytest.raises(BudgetError, match=r"making an STS set would send:\n  sts.generator=g: 10 calls[\s\S]*30 calls"):
        sts(run, server, {})
    with pytest.raises(UserError, match="--offline sends none"):
        sts(run, server, {"offline": True})
    assert server.calls == []
    with pytest.raises(BudgetError):
        sts(run, server, {"max_cost": 0.001})
    sent = len(server.calls)
    assert sent < 10
    report = sts(run, server, {"max_cost": 5.0})
    assert 0 < report.spent < 5
    assert max(Counter(json.dumps(call.body) for call in server.calls).values()) == 1


def test_a_plan_counts_every_round(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    tries = Counter[str]()

    def shaky(call: Call) -> Fault:
        """Fail on two words, and on a third when it is asked for again."""
        if "term" not in call.passages:
            return vote(same(call))
        tries[call.query] += 1
        failing = call.query.startswith(("偏头痛", "青光眼")) or tries[call.query] > 1
        broken = write(call, hard="x") if call.query.startswith("痛风") else write(call)
        return error(429, retry_after=86_400) if failing else broken

    server = serve(shaky)
    assert sts(run, server).unfinished == "6 questions failed; run `curate sts` again to retry them"
    with pytest.raises(BudgetError, match=r"sts.generator=g: 6 calls[\s\S]*judges.a, sentences: 14 calls"):
        sts(run, server, {})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nobody confirms": ({"panel": []}, "sts.panel: found nobody"),
    "the family alone": ({"panel": ["kin"]}, r"generator's family \(alpha\)"),
    "itself alone": ({"panel": ["g"]}, r"generator's family \(alpha\)"),
    "a name twice": ({"panel": ["a", "a"]}, "found a name twice"),
    "a heuristic": ({"panel": ["lexical"]}, "sts.panel: 'lexical' is no language model"),
    "no such generator": ({"generator": "lexical"}, "sts.generator: 'lexical' is no language model"),
    "words, and nobody": ({"generator": "templates", "panel": [], "confirm_dictionary": True}, "nobody can confirm"),
    "no share": ({"shares": {"positive": 0, "hard": 0, "easy": 0}}, "one share at least"),
    "no such lexicon": ({"lexicon": "nowhere.txt"}, "sts.lexicon: nowhere.txt: no such file"),
}


@pytest.mark.parametrize(("settings", "said"), WRONG.values(), ids=WRONG)
def test_who_may_not_judge(
    run: Path, serve: Callable[[Behaviour], Vendor], settings: dict[str, Any], said: str
) -> None:
    server = serve(honest)
    with pytest.raises(ConfigError, match=said):
        sts(run, server, **settings)
    assert server.calls == []


def test_the_generator_may_be_one_of_several_judges(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    found: Any = sts(run, serve(honest), panel=["g", "kin", "a"]).facts
    assert found["sentences"]["positive"] == {"kept": 10}


def test_small_edits_spare_a_model_its_negatives(run: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    found: Any = sts(run, server, edits=True).facts
    assert found["ways"]["model"] < 30
    assert sum(found["ways"].values()) == 30
    assert {way for way in found["ways"] if way != "model"} <= {*EDITS}
    asked = [kind for call in server.calls if "term" in call.passages for kind in wanted(call)]
    assert len(asked) == found["ways"]["model"]


# Without a model

ASKS = (
    *("能喝咖啡吗", "吃什么药好", "早期有什么症状", "多久能好", "会传染给家人吗"),
    *("怎么预防", "要做手术吗", "能跑步吗", "是什么引起的"),
)
PLACES = ("", "孩子得了", "医生说是", "左边查出", "请问老人有", "体检发现")


def many(number: int) -> dict[str, str]:
    """Return so many different questions with words of the packaged dictionary."""
    text = Path("annotations/synonyms-zh.tsv").read_text(encoding="utf-8")
    lexer = Lexer(entries(text, ".tsv", "x"))
    words = [lexer.spelled[word] for word in sorted(lexer.partners)]
    texts = [f"{place}{word}{ask}" for ask in ASKS for place in PLACES for word in words]
    return {f"q{n:05}": text for n, text in enumerate(texts[:number])}


def offline(folder: Path, texts: Mapping[str, str], **settings: Any) -> tuple[Path, Report]:
    run = prepared(folder, texts, rows_of(WORDS))
    return run, step(run, "sts", {"edits": True, **settings})


def test_offline_there_is_a_set_and_it_says_what_it_is(tmp_path: Path) -> None:
    run, report = offline(tmp_path, many(300), test=60, train=40)
    rows = pairs(run)
    assert Counter(rows["split"]) == {"test": 60, "train": 40}
    assert report.notes[0].startswith("templates wrote these pairs and nobody confirmed them")
    assert set(table(run, "sts", "sentences")["outcome"]) == {"unconfirmed"}
    assert report.cost == 0
    found: Any = report.facts
    assert (found["models"], found["prompts"]) == ({}, [])
    assert found["agreement"] is None
    other, _ = offline(tmp_path / "again", many(300), test=60, train=40)
    assert digests(other / "sts") == digests(run / "sts")


def test_the_settings_of_the_demo_make_a_set_of_its_queries(tmp_path: Path) -> None:
    lines = (resources.demo() / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = {row["_id"]: row["text"] for row in map(json.loads, lines)}
    section: Any = read_yaml(resources.find("pipelines", "demo.yaml"))["sts"]
    run, report = offline(tmp_path, queries, **section)
    assert Counter(pairs(run).select("split", "kind").iter_rows()) == {
        ("test", "positive"): 14,
        ("test", "hard"): 8,
        ("test", "easy"): 8,
        ("train", "positive"): 5,
        ("train", "hard"): 2,
        ("train", "easy"): 3,
    }
    assert len(report.notes) == 1


def test_the_splits_share_no_query_no_word_and_no_pair(tmp_path: Path) -> None:
    run, _ = offline(tmp_path, many(900), test=150, train=300)
    rows = pairs(run)
    text = Path("annotations/synonyms-zh.tsv").read_text(encoding="utf-8")
    root = groups(entries(text, ".tsv", "x"))
    sides = {name: rows.filter(pl.col("split") == name) for name in ("test", "train")}
    assert [len(side) for side in sides.values()] == [150, 300]
    for column in ("query_id", "sentence1"):
        assert not set(sides["test"][column]) & set(sides["train"][column])
    words = {name: {*side["term"], *side["synonym"]} for name, side in sides.items()}
    assert not words["test"] & words["train"]
    meant = {name: {root[word.lower()] for word in each} for name, each in words.items()}
    assert not meant["test"] & meant["train"]
    assert rows["query_id"].n_unique() == len(rows) == 450


@pytest.mark.parametrize("hundreds", [5, *accepting(50)])
def test_pairs_are_drawn_in_exact_shares(hundreds: int, tmp_path: Path) -> None:
    run, report = offline(tmp_path, many(320 * hundreds), test=100 * hundreds, train=40 * hundreds)
    rows = pairs(run)
    counted = Counter(rows.select("split", "kind").iter_rows())
    assert counted == {
        ("test", "positive"): 48 * hundreds,
        ("test", "hard"): 26 * hundreds,
        ("test", "easy"): 26 * hundreds,
        ("train", "positive"): 96 * hundreds // 5,
        ("train", "hard"): 52 * hundreds // 5,
        ("train", "easy"): 52 * hundreds // 5,
    }
    found: Any = report.facts
    assert found["splits"]["test"]["positive_share"] == 0.48
    assert rows["sentence2"].n_unique() == 140 * hundreds
    assert all(0.7 <= len(two) / len(one) <= 1.3 for one, two in rows.select("sentence1", "sentence2").iter_rows())


def test_why_queries_have_no_pair(tmp_path: Path) -> None:
    queries = {
        "twin": "白内障能喝酒吗？",
        "q0": "白内障能喝酒吗",
        "q1": "发什么呆",
        "q2": "得了白内障以后又说是白内之障怎么办",
        "q3": "痛风",
        "q4": "偏头痛吃什么药好",
    }
    run = prepared(tmp_path, queries, rows_of(WORDS))
    sts(run, None, test=1, train=0)
    dropped = dict(table(run, "sts", "dropped").select("id", "reason").iter_rows())
    drawn = set(pairs(run)["query_id"])
    assert len(drawn) == 1
    assert set(dropped) == set(queries) - drawn
    assert dropped["q0"] == "its text is that of another query"
    assert dropped["q1"] == "no word of the dictionary"
    assert dropped["q2"] == dropped["q3"] == "no synonym that fits into its length and is not there already"


def test_at_most_so_many_queries_are_used(tmp_path: Path) -> None:
    run, report = offline(tmp_path, many(100), queries=20, test=50, train=0)
    assert reasons(run)["beyond sts.queries"] > 40
    assert report.facts["queries_with_a_word"] == 20
    assert any("fewer pairs than wanted (test:" in note for note in report.notes)


def test_a_faulty_dictionary_stops_unless_it_may_be_left_out(tmp_path: Path) -> None:
    run = prepared(tmp_path, QUERIES, rows_of(WORDS) + "痛风\t痛风\texact\ttest\t\n")
    with pytest.raises(DataError, match=r"words.tsv:7: a word is its own synonym: 痛风[\s\S]*sts.faults=drop"):
        sts(run, None, faults="stop")
    report = sts(run, None, faults="drop")
    found: Any = report.facts
    assert found["dictionary"]["faulty"]["a word is its own synonym"] == 1
    assert any("faulty rows of the dictionary were left out" in note for note in report.notes)


# The command


def test_the_command_runs_plans_and_is_skipped(tmp_path: Path, serve: Callable[[Behaviour], Vendor]) -> None:
    server = serve(honest)
    name = tiny(tmp_path)
    stages = "stages=[ingest, mask, diversify, pool, judge, consensus, resolve, sts, export, report]"
    done = curate(tmp_path, "run", name, "--set", stages, "--set", "sts.test=2", "--set", "sts.train=1")
    assert done.returncode == 0, done.stderr
    assert "sts: note: templates wrote these pairs" in done.stderr
    shown = curate(tmp_path, "show", "pairs", "--run", "runs/tiny")
    assert shown.returncode == 0, shown.stderr
    page = (tmp_path / "runs/tiny/report.html").read_text(encoding="utf-8")
    words: Any = read_yaml(resources.data_file("tables/kinds/sts.yaml"))["zh"]
    read = Read(page)
    assert read.row("测试集：正例")[0] == "1"
    assert [read.row(words[name])[0] for name in ("pairs", "positive_share")] == ["2", "0.500"]
    assert words["unconfirmed"] in read.text
    assert [read.row(name) for name in ("计划", "完成", f"舍弃：{words['reasons']['not drawn']}")] == [
        ["5"],
        ["3"],
        ["1"],
    ]
    card = (tmp_path / "runs/tiny/export/mteb/README.md").read_text(encoding="utf-8")
    assert "| planned | 5 |\n| built | 3 |\n| dropped: no word of the dictionary | 1 |" in card
    again = curate(tmp_path, "sts", "--run", "runs/tiny")
    assert "sts: up to date, skipped" in again.stderr
    judges = [
        item
        for key, model in (("g", "alpha-1"), ("a", "beta-1"))
        for item in ("--set", f"judges.{key}={{kind: openai, model: {model}, base_url: '{server.url}'}}")
    ]
    asking = ["sts", "--run", "runs/tiny", *judges, "--set", "sts.generator=g", "--set", "sts.panel=[a]"]
    plan = curate(tmp_path, *asking, "--plan")
    assert plan.returncode == 0, plan.stderr
    assert [line.split("  ")[0] for line in plan.stdout.splitlines()[1:]] == [
        "sts.generator=g",
        "judges.a, sentences",
        "in all",
    ]
    rows = machine.data(curate(tmp_path, *asking, "--plan", "--json").stdout)
    assert [row["question"] for row in rows] == ["sts.generator=g", "judges.a, sentences", "in all"]
    assert server.calls == []
    stopped = curate(tmp_path, *asking)
    assert stopped.returncode == 2
    assert "making an STS set would send:" in stopped.stderr
    assert server.calls == []
    judges += ["--set", f"judges.b={{kind: openai, model: gamma-1, base_url: '{server.url}'}}"]
    asked = curate(
        tmp_path, "sts", "--run", "runs/tiny", *judges, "--set", "sts.generator=g", "--set", "sts.panel=[a,b]", "--yes"
    )
    assert asked.returncode == 0, asked.stderr
    assert server.calls
    stale = curate(tmp_path, "report", "--run", "runs/tiny")
    assert "out of date, and shown as they are: export" in stale.stderr, "the pairs that it holds are others now"
    assert curate(tmp_path, "export", "--run", "runs/tiny").returncode == 0
    shown = curate(tmp_path, "report", "--run", "runs/tiny")
    assert shown.returncode == 0, shown.stderr
    read = Read((tmp_path / "runs/tiny/report.html").read_text(encoding="utf-8"))
    assert words["unconfirmed"] not in read.text
    assert words["agreement_caption"] in read.text
    assert sum(row[:1] == ["Fleiss κ"] for row in read.rows) == 2
